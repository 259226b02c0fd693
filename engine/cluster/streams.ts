/**
 * Ends of channels over links: a worker claims an end at its own engine, and the channel is at the
 * engine that created it.
 *
 * What the worker sends goes over the link as it comes, and back. Each side has at most
 * `STREAM_AHEAD_BYTES` on the way that the other has not passed on; then it stops reading. So a
 * slow reader slows its writer down across engines, and no other traffic of the link.
 *
 * @module
 */
import { CHANNEL_CLOSE, CHANNEL_PATH } from "../../sdk/typescript/wire/channels.ts";
import { CHANNELS_MAX } from "../ports/channels.ts";
import {
  type Accept,
  type Connection,
  type ConnectionEvents,
  type Refusal,
  STREAM_AHEAD_BYTES,
  STREAM_DRAINED_BYTES,
  type Upgrade,
} from "../ports/connection.ts";
import type { Link } from "./link.ts";

/** First byte of a frame of the engine that claimed an end, and of the one that has the channel. */
export const STREAM_MARKS = { claimer: 1, owner: 2 } as const;

const OP = { claim: 1, text: 2, binary: 3, passed: 4, close: 5 } as const;
/** Mark, operation, number of the stream. */
const HEAD_BYTES = 6;
/** Bytes that are acknowledged at once, below what the other side may have on its way. */
const PASSED_BYTES = 32 * 1024;
/** Where a transport cannot stop reading, so many bytes may wait. */
const UNPAUSED_BYTES_MAX = 16 * 1024 * 1024;
const REASON_CHARS_MAX = 120;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const NOTHING = new Uint8Array(0);

/** What streams use. */
export interface StreamsSetup {
  /** The link to an engine; `undefined` when there is none. */
  linkTo(life: string): Link | undefined;
  /** Claims an end of a channel of this engine. */
  claim(upgrade: Upgrade): Refusal | Accept;
}

/** The ends that are claimed over links. */
export class Streams {
  readonly #setup: StreamsSetup;
  /** By link, then by number: ends claimed here, and ends of channels that are here. */
  readonly #claimed = new Map<Link, Map<number, Claimed>>();
  readonly #owned = new Map<Link, Map<number, Owned>>();
  #numbers = 0;

  constructor(setup: StreamsSetup) {
    this.#setup = setup;
  }

  /** Claims an end of a channel of another engine. */
  claim(life: string, { path, query }: Upgrade): Refusal | Accept {
    const link = this.#setup.linkTo(life);
    if (!link) return { status: 404, message: "Channel not found: its engine is not connected" };
    const streams = mapOf(this.#claimed, link);
    if (streams.size >= CHANNELS_MAX) {
      return { status: 503, message: `The engine has ${CHANNELS_MAX} streams to that engine` };
    }
    return (connection) => {
      const number = ++this.#numbers % 0x1_0000_0000;
      const ended = (): void => void streams.delete(number);
      const end = new Claimed({ link, number, mark: STREAM_MARKS.claimer, ended }, connection);
      if (link.isOver) {
        connection.close(CHANNEL_CLOSE.aborted, GONE);
        return end;
      }
      streams.set(number, end);
      const claim = { channel_id: path.slice(CHANNEL_PATH.length), query: query.toString() };
      end.transmit(OP.claim, encoder.encode(JSON.stringify(claim)));
      return end;
    };
  }

  /** Takes a frame of a stream. */
  take(link: Link, memory: Uint8Array, start: number, end: number): void {
    if (end - start < HEAD_BYTES) return;
    const view = new DataView(memory.buffer, memory.byteOffset + start, HEAD_BYTES);
    const [mark, op, number] = [view.getUint8(0), view.getUint8(1), view.getUint32(2)];
    const body = memory.subarray(start + HEAD_BYTES, end);
    if (mark === STREAM_MARKS.owner) return this.#claimed.get(link)?.get(number)?.take(op, body);
    if (op === OP.claim) return this.#claimHere(link, number, body);
    this.#owned.get(link)?.get(number)?.take(op, body);
  }

  /** A link is over, and with it its streams. */
  ended(link: Link): void {
    const all = [
      ...this.#claimed.get(link)?.values() ?? [],
      ...this.#owned.get(link)?.values() ?? [],
    ];
    this.#claimed.delete(link);
    this.#owned.delete(link);
    for (const end of all) end.cut();
  }

  #claimHere(link: Link, number: number, body: Uint8Array): void {
    const streams = mapOf(this.#owned, link);
    const ended = (): void => void streams.delete(number);
    const end = new Owned({ link, number, mark: STREAM_MARKS.owner, ended });
    const accepted = streams.size < CHANNELS_MAX && !streams.has(number) && this.#accept(body);
    if (typeof accepted !== "function") {
      return end.close(CHANNEL_CLOSE.aborted, accepted ? accepted.message : "Too many streams");
    }
    streams.set(number, end);
    end.start(accepted);
  }

  #accept(body: Uint8Array): Refusal | Accept {
    try {
      const { channel_id, query } = JSON.parse(decoder.decode(body));
      const path = `${CHANNEL_PATH}${channel_id}`;
      const headers = new Headers();
      return this.#setup.claim({ path, query: new URLSearchParams(query), headers, address: "" });
    } catch {
      return { status: 400, message: "A request for a channel that cannot be read" };
    }
  }
}

const GONE = "the engine of the channel is gone";

function mapOf<Of>(all: Map<Link, Map<number, Of>>, link: Link): Map<number, Of> {
  const known = all.get(link);
  if (known) return known;
  const made = new Map<number, Of>();
  all.set(link, made);
  return made;
}

/** One end of a stream over a link. */
interface EndSetup {
  readonly link: Link;
  readonly number: number;
  /** Of the frames that this end sends. */
  readonly mark: number;
  ended(): void;
}

/** What both ends do: count what is on its way, in both directions. */
abstract class StreamEnd {
  protected readonly setup: EndSetup;
  protected isOver = false;
  /** Sent, and not passed on by the other side. */
  protected unpassedBytes = 0;
  /** Received and passed on, and not acknowledged. */
  #passedBytes = 0;

  constructor(setup: EndSetup) {
    this.setup = setup;
  }

  /** Sends a frame; of text and bytes the size counts. */
  transmit(op: number, body: Uint8Array, start = 0, end: number = body.length): void {
    const { link, mark, number } = this.setup;
    const head = new Uint8Array(HEAD_BYTES);
    const view = new DataView(head.buffer);
    view.setUint8(0, mark);
    view.setUint8(1, op);
    view.setUint32(2, number);
    if (op === OP.text || op === OP.binary) this.unpassedBytes += end - start;
    link.forward(head, HEAD_BYTES, body, start, end);
  }

  /** What came was passed on. */
  protected passed(bytes: number, isAtOnce = false): void {
    this.#passedBytes += bytes;
    if (this.#passedBytes === 0 || !isAtOnce && this.#passedBytes < PASSED_BYTES) return;
    const body = new Uint8Array(4);
    new DataView(body.buffer).setUint32(0, this.#passedBytes);
    this.#passedBytes = 0;
    if (!this.isOver) this.transmit(OP.passed, body);
  }

  /** Takes a frame of the other end. */
  take(op: number, body: Uint8Array): void {
    if (this.isOver) return;
    if (op === OP.text || op === OP.binary) this.receive(op === OP.text, body);
    else if (op === OP.passed && body.length === 4) {
      const bytes = new DataView(body.buffer, body.byteOffset, 4).getUint32(0);
      this.unpassedBytes = Math.max(0, this.unpassedBytes - bytes);
      if (this.unpassedBytes <= STREAM_DRAINED_BYTES) this.relaxed();
    } else if (op === OP.close && body.length >= 2) {
      const code = new DataView(body.buffer, body.byteOffset, 2).getUint16(0);
      this.isOver = true;
      this.setup.ended();
      this.closed(code, decoder.decode(body.subarray(2)));
    }
  }

  /** Ends the stream at the other side. */
  protected finish(code: number, reason: string): void {
    if (this.isOver) return;
    const text = encoder.encode(reason.slice(0, REASON_CHARS_MAX));
    const body = new Uint8Array(2 + text.length);
    new DataView(body.buffer).setUint16(0, code);
    body.set(text, 2);
    this.transmit(OP.close, body);
    this.isOver = true;
    this.setup.ended();
  }

  /** The link is over. */
  cut(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.closed(CHANNEL_CLOSE.aborted, GONE);
  }

  protected abstract receive(isText: boolean, body: Uint8Array): void;
  /** The other side has passed on most of what was sent. */
  protected abstract relaxed(): void;
  protected abstract closed(code: number, reason: string): void;
}

/** An end that a worker of this engine has claimed: receives the events of its connection. */
class Claimed extends StreamEnd implements ConnectionEvents {
  readonly #connection: Connection;
  #isPaused = false;

  constructor(setup: EndSetup, connection: Connection) {
    super(setup);
    this.#connection = connection;
    connection.asStream?.();
  }

  text(text: string): void {
    this.#send(OP.text, encoder.encode(text));
  }

  textBytes(memory: Uint8Array, start: number, end: number): void {
    this.#send(OP.text, memory, start, end);
  }

  binary(bytes: Uint8Array): void {
    this.#send(OP.binary, bytes);
  }

  drained(): void {
    this.#passAll(true);
  }

  suspected(): void {}

  closed(code: number, reason: string): void {
    // Of the worker's connection, or of the other end, which is over then.
    if (this.isOver) return this.#connection.close(code, reason);
    this.finish(code, reason);
  }

  protected receive(isText: boolean, body: Uint8Array): void {
    if (isText) this.#connection.forward(NOTHING, 0, body, 0, body.length);
    else this.#connection.sendBinary(body);
    this.#waiting += body.length;
    if (this.#connection.queuedBytes <= STREAM_AHEAD_BYTES) this.#passAll();
  }

  protected relaxed(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#connection.resume();
  }

  /** Received, and not passed on while the worker does not read. */
  #waiting = 0;

  #passAll(isAtOnce = false): void {
    const bytes = this.#waiting;
    this.#waiting = 0;
    this.passed(bytes, isAtOnce);
  }

  #send(op: number, memory: Uint8Array, start = 0, end: number = memory.length): void {
    if (this.isOver) return;
    this.transmit(op, memory, start, end);
    if (this.#isPaused || this.unpassedBytes <= STREAM_AHEAD_BYTES) return;
    this.#isPaused = this.#connection.pause();
    if (!this.#isPaused && this.unpassedBytes > UNPAUSED_BYTES_MAX) {
      const reason = `over ${UNPAUSED_BYTES_MAX} bytes wait for the reader`;
      this.finish(CHANNEL_CLOSE.tooLarge, reason);
      this.#connection.close(CHANNEL_CLOSE.tooLarge, reason);
    }
  }
}

/** An end of a channel of this engine that a worker of another one has: its connection here. */
class Owned extends StreamEnd implements Connection {
  readonly id: string = crypto.randomUUID();
  readonly isBatching = false;
  #events: ConnectionEvents | undefined;
  #isPaused = false;
  #waiting = 0;

  /** Passes the connection to its channel. */
  start(accept: Accept): void {
    this.#events = accept(this);
  }

  get queuedBytes(): number {
    return this.unpassedBytes;
  }

  send(text: string): void {
    if (!this.isOver) this.transmit(OP.text, encoder.encode(text));
  }

  forward(
    prefix: Uint8Array,
    prefixBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (this.isOver) return;
    if (prefixBytes === 0) return this.transmit(OP.text, memory, start, end);
    const whole = new Uint8Array(prefixBytes + end - start);
    whole.set(prefix.subarray(0, prefixBytes));
    whole.set(memory.subarray(start, end), prefixBytes);
    this.transmit(OP.text, whole);
  }

  sendBinary(bytes: Uint8Array): void {
    if (!this.isOver) this.transmit(OP.binary, bytes);
  }

  pause(): boolean {
    this.#isPaused = true;
    return true;
  }

  resume(): void {
    this.#isPaused = false;
    const bytes = this.#waiting;
    this.#waiting = 0;
    this.passed(bytes, true);
  }

  close(code: number, reason: string): void {
    if (this.isOver) return;
    this.finish(code, reason);
    queueMicrotask(() => this.#events?.closed(code, reason));
  }

  protected receive(isText: boolean, body: Uint8Array): void {
    this.#waiting += body.length;
    if (isText) this.#events?.textBytes(body, 0, body.length, false);
    else this.#events?.binary(body);
    if (this.#isPaused || this.isOver) return;
    const bytes = this.#waiting;
    this.#waiting = 0;
    this.passed(bytes);
  }

  protected relaxed(): void {
    this.#events?.drained();
  }

  protected closed(code: number, reason: string): void {
    this.#events?.closed(code, reason);
  }
}
