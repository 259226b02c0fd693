/**
 * The sending half of a link: frames become packets, and no more of them are on their way than the
 * window allows.
 *
 * Everything that is sent in one tick shares packets. A packet is sent once; whether it arrived is
 * known from what the other engine acknowledges, and a packet that is lost ends the link.
 *
 * @module
 */
import type { MemoryBudget } from "../ports/memory.ts";
import {
  HEAD_BYTES,
  KIND,
  LENGTH_BYTES,
  type LinkEnd,
  makePacket,
  PACKET_BYTES,
  PART_BYTES,
  writeHead,
} from "./packet.ts";

/** Packets are written into memory of this size, which the bus keeps until they are sent. */
const SLAB_BYTES = 256 * 1024;
/** A packet is begun only where so much of a slab is left. */
const SPARE_BYTES = 1024;
/** Bytes that may wait for the window; beyond, the link ends: the other engine is far behind. */
export const WAITING_BYTES_MAX = 512 * 1024 * 1024;

/** What the sending half uses. */
export interface OutgoingSetup {
  readonly epoch: number;
  readonly memory: MemoryBudget;
  /** Publishes a packet, which must not change afterwards. */
  publish(packet: Uint8Array): void;
  /** Runs a task at the end of the tick. */
  defer(task: () => void): void;
  /** Bytes that this engine has received and handled. */
  received(): number;
  /** Ends the link. */
  fail(reason: LinkEnd): void;
}

/** Sends frames. */
export class Outgoing {
  readonly #setup: OutgoingSetup;
  #window: number;
  #slab = new Uint8Array(0);
  #view = new DataView(this.#slab.buffer);
  /** Where the packet begins that is written now, and where its next frame goes. */
  #start = 0;
  #end = HEAD_BYTES;
  #isDue = false;
  #isOver = false;
  /** Number of the next packet. */
  #number = 0;
  #sentBytes = 0;
  #acknowledged = 0;
  readonly #waiting: Uint8Array[] = [];
  /** Index of the first of them that was not sent. */
  #next = 0;
  #waitingBytes = 0;

  constructor(setup: OutgoingSetup, windowBytes: number) {
    this.#setup = setup;
    this.#window = windowBytes;
  }

  /** Number of the next packet. */
  get number(): number {
    return this.#number;
  }

  /** Bytes of packets that were sent. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** Bytes that wait for the end of the tick or for the window. */
  get queuedBytes(): number {
    return this.#waitingBytes + this.#end - this.#start - HEAD_BYTES;
  }

  /** Changes how many bytes may be on their way. */
  set windowBytes(bytes: number) {
    this.#window = bytes;
  }

  /** Sends a frame in two parts, as `Connection.forward()` takes them; copies it. */
  send(
    prefix: Uint8Array,
    prefixBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (this.#isOver) return;
    const length = prefixBytes + end - start;
    if (length > PACKET_BYTES) {
      return this.#sendParts(prefix.subarray(0, prefixBytes), memory.subarray(start, end));
    }
    const bytes = LENGTH_BYTES + length;
    if (this.#end + bytes > this.#start + HEAD_BYTES + LENGTH_BYTES + PACKET_BYTES) this.#finish();
    if (this.#end + bytes > this.#slab.length) this.#renew();
    this.#view.setUint32(this.#end, length);
    const at = this.#end + LENGTH_BYTES;
    if (prefixBytes > 0) this.#slab.set(prefix.subarray(0, prefixBytes), at);
    this.#slab.set(memory.subarray(start, end), at + prefixBytes);
    this.#end += bytes;
    this.#sendSoon();
  }

  /** Sends a message between the links, behind the frames before it. */
  sendControl(body: Uint8Array): void {
    if (this.#isOver) return;
    this.#finish();
    this.#put(makePacket(KIND.control, this.#setup.epoch, body));
  }

  /** The other engine has handled so many bytes; `true` if fewer wait now. */
  acknowledge(bytes: number): boolean {
    if (bytes <= this.#acknowledged || bytes > this.#sentBytes) return false;
    this.#acknowledged = bytes;
    const before = this.#next;
    while (this.#next < this.#waiting.length && this.#hasRoom()) {
      const packet = this.#waiting[this.#next++]!;
      this.#waitingBytes -= packet.length;
      this.#setup.memory.release("buffers", packet.length);
      this.#publish(packet);
    }
    const isSent = this.#next > before;
    if (this.#next === this.#waiting.length) {
      this.#waiting.length = this.#next = 0;
    } else if (this.#next > 1_000) this.#waiting.splice(0, this.#next), this.#next = 0;
    return isSent;
  }

  /** Drops what was not sent. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#setup.memory.release("buffers", this.#waitingBytes);
    this.#waiting.length = this.#next = this.#waitingBytes = 0;
    this.#start = 0;
    this.#end = HEAD_BYTES;
  }

  #sendSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#setup.defer(() => {
      this.#isDue = false;
      if (!this.#isOver) this.#finish();
    });
  }

  /** Sends the packet that is written now, if it has frames. */
  #finish(): void {
    if (this.#end === this.#start + HEAD_BYTES) return;
    const packet = this.#slab.subarray(this.#start, this.#end);
    writeHead(this.#view, this.#start, { kind: KIND.data, epoch: this.#setup.epoch });
    this.#start = this.#end;
    this.#end = this.#start + HEAD_BYTES;
    if (this.#end + SPARE_BYTES > this.#slab.length) this.#renew();
    this.#put(packet);
  }

  /** The bus keeps what it was given until that is sent, so no memory is used twice. */
  #renew(): void {
    const begun = this.#slab.subarray(this.#start, this.#end);
    this.#slab = new Uint8Array(SLAB_BYTES);
    this.#view = new DataView(this.#slab.buffer);
    this.#slab.set(begun);
    this.#end -= this.#start;
    this.#start = 0;
  }

  #sendParts(prefix: Uint8Array, rest: Uint8Array): void {
    this.#finish();
    const length = prefix.length + rest.length;
    for (let at = 0; at < length && !this.#isOver; at += PART_BYTES) {
      const isLast = at + PART_BYTES >= length;
      const bytes = Math.min(PART_BYTES, length - at);
      const packet = new Uint8Array(HEAD_BYTES + bytes);
      const { epoch } = this.#setup;
      writeHead(new DataView(packet.buffer), 0, { kind: KIND.part, epoch, isLast });
      const ofPrefix = prefix.subarray(at, at + bytes);
      packet.set(ofPrefix, HEAD_BYTES);
      const from = at + ofPrefix.length - prefix.length;
      packet.set(rest.subarray(from, from + bytes - ofPrefix.length), HEAD_BYTES + ofPrefix.length);
      this.#put(packet);
    }
  }

  #put(packet: Uint8Array): void {
    if (this.#waiting.length === this.#next && this.#hasRoom()) return this.#publish(packet);
    if (
      this.#waitingBytes + packet.length > WAITING_BYTES_MAX ||
      !this.#setup.memory.take("buffers", packet.length)
    ) return this.#setup.fail("behind");
    this.#waiting.push(packet);
    this.#waitingBytes += packet.length;
  }

  #hasRoom(): boolean {
    return this.#sentBytes - this.#acknowledged < this.#window;
  }

  #publish(packet: Uint8Array): void {
    const view = new DataView(packet.buffer, packet.byteOffset, HEAD_BYTES);
    view.setUint32(8, this.#number++);
    view.setFloat64(16, this.#setup.received());
    this.#sentBytes += packet.length;
    this.#setup.publish(packet);
  }
}
