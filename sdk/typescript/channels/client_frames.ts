/**
 * RFC 6455 as a client on loopback: frames to the engine in one piece of memory that is ready to be
 * written, and the engine's frames from what was read.
 *
 * The mask of all frames is zero: masks keep scripts of browsers from talking to proxies that do
 * not know WebSocket, of which there are none on loopback, and they cost both sides a pass over
 * every byte.
 *
 * @module
 */

/** Kinds of frames. */
export const OPCODE = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Memory that is kept for the next frames. */
const KEPT_BYTES = 1024 * 1024;
const FIRST_BYTES = 1024;
/** Longest header of a frame with a mask. */
const HEADER_BYTES_MAX = 14;
const MASK_BYTES = 4;

/** Read at once, at first and at most. */
const READ_BYTES_FIRST = 4 * 1024;
const READ_BYTES_MAX = 256 * 1024;
/** A message of at least this part of the memory is passed on without a copy. */
const SHARED_PART = 1 / 4;
/** Longest payload of a control frame. */
const CONTROL_BYTES_MAX = 125;

const NOTHING: Uint8Array<ArrayBuffer> = new Uint8Array();

/** Frames that wait to be written. */
export class FrameBuffer {
  #memory: Uint8Array<ArrayBuffer> = NOTHING;
  #length = 0;

  /** Bytes that wait. */
  get length(): number {
    return this.#length;
  }

  /** Adds a whole message, or a control frame; copies it. */
  add(opcode: number, payload: Uint8Array): void {
    const bytes = payload.length;
    this.#reserve(HEADER_BYTES_MAX + bytes);
    const memory = this.#memory;
    let at = this.#length;
    memory[at++] = 0x80 | opcode;
    if (bytes < 126) memory[at++] = 0x80 | bytes;
    else if (bytes < 65_536) {
      memory[at++] = 0x80 | 126;
      memory[at++] = bytes >>> 8;
      memory[at++] = bytes & 255;
    } else {
      memory[at++] = 0x80 | 127;
      new DataView(memory.buffer).setBigUint64(at, BigInt(bytes));
      at += 8;
    }
    memory.fill(0, at, at + MASK_BYTES);
    memory.set(payload, at + MASK_BYTES);
    this.#length = at + MASK_BYTES + bytes;
  }

  /** The bytes to write; valid until the buffer changes. */
  bytes(): Uint8Array {
    return this.#memory.subarray(0, this.#length);
  }

  /** Drops everything. */
  clear(): void {
    this.#length = 0;
    if (this.#memory.length > KEPT_BYTES) this.#memory = NOTHING;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#memory.length) return;
    const larger = new Uint8Array(Math.max(FIRST_BYTES, needed, this.#memory.length * 2));
    larger.set(this.bytes());
    this.#memory = larger;
  }
}

/** What {@linkcode EngineFrames} reports. */
export interface EngineFrameEvents {
  text(text: string): void;
  /** The bytes are the receiver's. */
  binary(bytes: Uint8Array): void;
  ping(payload: Uint8Array): void;
  pong(): void;
  /** Nothing is reported afterwards. */
  closeFrame(code: number, reason: string): void;
  /** The same: the peer broke the protocol. */
  violation(reason: string): void;
}

const UTF_8 = new TextDecoder();

/** Finds the frames of an engine in the bytes of its connection. */
export class EngineFrames {
  readonly #events: EngineFrameEvents;
  readonly #bytesMax: number;
  #memory: Uint8Array<ArrayBuffer> = NOTHING;
  #size = READ_BYTES_FIRST;
  #start = 0;
  #end = 0;
  /** Bytes of the frame that is incomplete; 0: not known. */
  #needs = 0;
  /** A part of the memory belongs to a receiver. */
  #isShared = false;
  #state: "reading" | "paused" | "over" = "reading";
  /** The fragments of a message, and its kind. */
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #opcode: number = OPCODE.more;

  /** `bytesMax`: the largest message. */
  constructor(events: EngineFrameEvents, bytesMax: number) {
    this.#events = events;
    this.#bytesMax = bytesMax;
  }

  /** Begins with bytes that were read before. */
  begin(bytes: Uint8Array): void {
    this.#memory = Uint8Array.from(bytes);
    this.#end = bytes.length;
  }

  /** Where the next read goes. */
  room(): Uint8Array {
    const waiting = this.#end - this.#start;
    const needed = Math.max(waiting + 1, this.#needs);
    const isFree = !this.#isShared && this.#memory.length >= Math.max(needed, this.#size);
    const isRoomy = this.#memory.length - this.#start >= needed &&
      this.#memory.length - this.#end >= this.#size / 4;
    if (waiting > 0 && isRoomy) return this.#memory.subarray(this.#end);
    if (isFree) this.#memory.copyWithin(0, this.#start, this.#end);
    else {
      const memory = new Uint8Array(Math.max(this.#size, needed));
      memory.set(this.#memory.subarray(this.#start, this.#end));
      this.#memory = memory;
      this.#isShared = false;
    }
    this.#start = 0;
    this.#end = waiting;
    return this.#memory.subarray(this.#end);
  }

  /** Adds bytes that were read into {@linkcode room}. */
  added(count: number): void {
    this.#end += count;
    if (this.#end === this.#memory.length) {
      this.#size = Math.min(READ_BYTES_MAX, this.#size * 4);
    }
  }

  /** Reports all complete messages, until it is paused or over. */
  read(): void {
    while (this.#state === "reading" && this.#readFrame());
  }

  /** Stops reporting until {@linkcode resume} and the next {@linkcode read}. */
  pause(): void {
    if (this.#state === "reading") this.#state = "paused";
  }

  /** See {@linkcode pause}. */
  resume(): void {
    if (this.#state === "paused") this.#state = "reading";
  }

  /** Stops reporting for good. */
  stop(): void {
    this.#state = "over";
  }

  /** Reports one frame; `false` when it is incomplete. */
  #readFrame(): boolean {
    const memory = this.#memory;
    const there = this.#end - this.#start;
    if (there < 2) return false;
    const first = memory[this.#start]!;
    const short = memory[this.#start + 1]!;
    if (short >= 0x80) return this.#break("a frame of the engine has a mask");
    const header = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (there < header) return false;
    const bytes = this.#payloadBytes(short);
    if (bytes + this.#partBytes > this.#bytesMax) {
      return this.#break(`a message has more than ${this.#bytesMax} bytes`);
    }
    this.#needs = header + bytes;
    if (there < this.#needs) return false;
    const from = this.#start + header;
    this.#start += this.#needs;
    this.#needs = 0;
    this.#frame(first, memory.subarray(from, from + bytes));
    return true;
  }

  #payloadBytes(short: number): number {
    if (short < 126) return short;
    const at = this.#start + 2;
    if (short === 126) return this.#memory[at]! << 8 | this.#memory[at + 1]!;
    return Number(new DataView(this.#memory.buffer).getBigUint64(at));
  }

  #frame(first: number, payload: Uint8Array): void {
    const opcode = first & 15;
    const isWhole = first >= 0x80;
    if ((first & 0x70) !== 0) return void this.#break("a frame has a reserved bit");
    if (opcode >= OPCODE.close) return this.#control(opcode, isWhole, payload);
    const isMore = opcode === OPCODE.more;
    if (opcode > OPCODE.binary || isMore !== (this.#opcode !== OPCODE.more)) {
      return void this.#break("a frame is out of order");
    }
    if (isWhole && !isMore) return this.#message(opcode, payload);
    if (!isMore) this.#opcode = opcode;
    this.#parts.push(payload.slice());
    this.#partBytes += payload.length;
    if (isWhole) this.#finishMessage();
  }

  #control(opcode: number, isWhole: boolean, payload: Uint8Array): void {
    if (!isWhole || payload.length > CONTROL_BYTES_MAX) {
      return void this.#break("a control frame is too large");
    }
    if (opcode === OPCODE.ping) return this.#events.ping(payload.slice());
    if (opcode === OPCODE.pong) return this.#events.pong();
    if (opcode !== OPCODE.close) return void this.#break(`a frame has the opcode ${opcode}`);
    this.#state = "over";
    const code = payload.length < 2 ? 1005 : payload[0]! << 8 | payload[1]!;
    this.#events.closeFrame(code, UTF_8.decode(payload.subarray(2)));
  }

  #message(opcode: number, payload: Uint8Array): void {
    if (opcode === OPCODE.text) return this.#events.text(UTF_8.decode(payload));
    const isLarge = payload.length >= this.#memory.length * SHARED_PART;
    this.#isShared ||= isLarge;
    this.#events.binary(isLarge ? payload : payload.slice());
  }

  #finishMessage(): void {
    const whole = new Uint8Array(this.#partBytes);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    const opcode = this.#opcode;
    this.#parts = [];
    this.#partBytes = 0;
    this.#opcode = OPCODE.more;
    if (opcode === OPCODE.text) this.#events.text(UTF_8.decode(whole));
    else this.#events.binary(whole);
  }

  #break(reason: string): false {
    this.#state = "over";
    this.#events.violation(reason);
    return false;
  }
}
