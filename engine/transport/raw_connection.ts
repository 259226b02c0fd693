/**
 * One WebSocket line on a connection: {@linkcode FrameReader} reads, {@linkcode WriteQueue} writes.
 *
 * Two loops that do not wait for each other: {@linkcode RawConnection.run} reads, and a write
 * starts the next one until the queue is empty. What is sent within a turn is written at its end,
 * by the listener, but for the first part of it where that is much. A line is over when `closed`
 * was reported; its socket may stay for {@linkcode LINE_CLOSE_MS}, so that the peer hears why.
 *
 * @module
 */
import {
  DRAINED_BYTES,
  LINE_CLOSE_MS,
  SEND_AHEAD_BYTES,
} from "../../sdk/typescript/wire/limits.ts";
import type { Connection, ConnectionEvents } from "../ports/connection.ts";
import { eachMessage } from "./batch_lines.ts";
import { shortReason } from "./close_reason.ts";
import { type BrokenCode, type FrameEvents, FrameReader, OPCODE } from "./frames.ts";
import { LineWatch } from "./line_watch.ts";
import type { RawSocket } from "./raw_socket.ts";
import type { Acceptance } from "./upgrade.ts";
import { type BlockPool, WriteQueue } from "./write_queue.ts";

/** What all lines of a port have in common: of 10,000 that are idle, every byte counts. */
export interface RawConnectionOptions {
  readonly pool: BlockPool;
  readonly maxMessageBytes: number;
  readonly maxQueuedBytes: number;
  /** A peer from which nothing comes, or that takes nothing of what is due, for so long is cut. */
  readonly silenceMs: number;
  readonly pingMs: number;
  /** Something waits to be written: `flush` is due at the end of the turn. */
  due(line: RawConnection): void;
  /** The line of that address was ended from this side: its peer broke a bound or a rule. */
  cut(address: string, reason: string): void;
  /** Nothing is left of it. */
  over(line: RawConnection): void;
}

const NOTHING = new Uint8Array();
/**
 * With so much to do, a peer can begin while this side handles the rest of the turn: at 64 calls
 * of 100 B in flight, that is half as many calls again in a second, and a third off their time.
 */
const EARLY_BYTES = 4 * 1024;
/** A peer that got so much at once is busy anyway: it would be one write more for nothing. */
const BUSY_BYTES = 64 * 1024;

/** A line that is open. Its owner calls `run` once and `look` now and then. */
export class RawConnection implements Connection, FrameEvents {
  readonly id: string = crypto.randomUUID();
  readonly isBatching: boolean;
  readonly #socket: RawSocket;
  readonly #address: string;
  readonly #options: RawConnectionOptions;
  readonly #queue: WriteQueue;
  readonly #reader: FrameReader;
  readonly #watch: LineWatch;
  #events: ConnectionEvents | undefined;
  /** `closing`: the peer was told; `over`: nothing more is sent; `gone`: the socket is closed. */
  #state: "open" | "closing" | "over" | "gone" = "open";
  #farewell = { code: 1006, reason: "connection lost" };
  /** When the peer's part in the end has to be done, as {@linkcode look} tells time. */
  #waitsForEnd = false;
  #endAt = Infinity;

  #isPaused = false;
  #wake: (() => void) | undefined;
  #isWriting = false;
  #lastWriteBytes = 0;
  #isDue = false;
  /** The queue was so long that the core may wait for `drained`. */
  #isBehind = false;

  /** Takes a socket on which the upgrade is to be answered. */
  constructor(
    socket: RawSocket,
    address: string,
    { accepted, isBatching }: Acceptance,
    options: RawConnectionOptions,
  ) {
    this.#socket = socket;
    this.#address = address;
    this.#options = options;
    this.isBatching = isBatching;
    this.#queue = new WriteQueue(options.pool, isBatching);
    this.#queue.raw(accepted);
    this.#reader = new FrameReader(this, options.maxMessageBytes);
    const firstMs = options.pingMs * (1 + Math.random()) / 2;
    this.#watch = new LineWatch(performance.now(), options.silenceMs, options.pingMs, firstMs);
  }

  get queuedBytes(): number {
    return this.#state === "open" ? this.#queue.bytes : 0;
  }

  send(text: string): void {
    if (this.#state !== "open") return;
    this.#queue.text(text);
    this.#sent();
  }

  forward(
    head: Uint8Array,
    headBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (this.#state !== "open") return;
    this.#queue.textBytes(head, headBytes, memory, start, end);
    this.#sent();
  }

  sendBinary(bytes: Uint8Array): void {
    if (this.#state !== "open") return;
    this.#queue.binary(bytes);
    this.#sent();
  }

  pause(): boolean {
    if (this.#state === "open") {
      this.#isPaused = true;
      this.#reader.pause();
    }
    return true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#reader.resume();
    this.#wake?.();
  }

  close(code: number, reason: string): void {
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.#farewell = { code, reason };
    this.#sayGoodbye(code, reason);
    this.resume(); // The peer's goodbye has to be read.
  }

  /**
   * Hands what is read to `events` until the line is over; never rejects. One loop and one wait,
   * since each function that waits for another is half a kilobyte of an idle line.
   */
  async run(events: ConnectionEvents): Promise<void> {
    this.#events = events;
    this.#due();
    try {
      while (this.#state === "open" || this.#state === "closing") {
        let count;
        try {
          count = await this.#socket.read(this.#reader.room());
        } catch {
          break; // The peer broke off, or the line was ended from this side.
        }
        if (count === null) break;
        this.#watch.wasHeard = true;
        this.#reader.added(count);
        this.#reader.read();
        if (this.#isPaused) await this.#untilResumed();
        // A peer with Nagle's delay sends the payload only once it has heard something.
        if (this.#reader.endsBehindHeader) this.#control(OPCODE.pong, NOTHING);
      }
    } catch (error) {
      this.#mistaken(error);
    }
    if (this.#waitsForEnd) await this.#finished();
    this.destroy();
    this.#options.over(this);
  }

  /** Writes what was sent, unless a write is under way: that one goes on with it. */
  flush(): void {
    this.#isDue = false;
    if (!this.#isWriting) this.#write();
  }

  /** For the reader, as are the next four. */
  text(memory: Uint8Array, start: number, end: number, isPlain: boolean): void {
    if (!this.isBatching) return this.#textBytes(memory, start, end, isPlain);
    eachMessage(memory, start, end, (from, to) => this.#textBytes(memory, from, to, isPlain));
  }

  binary(bytes: Uint8Array): void {
    if (this.#state === "open") this.#events!.binary(bytes);
  }

  ping(payload: Uint8Array): void {
    // A peer that pings and does not read can do without the answers.
    if (this.#queue.bytes <= SEND_AHEAD_BYTES) this.#control(OPCODE.pong, payload);
  }

  goodbye(code: number, reason: string): void {
    if (this.#state === "open") {
      this.#farewell = { code, reason };
      this.#sayGoodbye(code, reason);
    }
    // Both sides have said what they had to: what is left to do is the socket's.
    this.#state = "over";
    this.#reader.stop();
    this.#report();
  }

  broken(code: BrokenCode, reason: string): void {
    if (this.#state === "open") this.#options.cut(this.#address, reason);
    this.goodbye(code, reason);
  }

  /** Ends a line that is silent, stuck or overdue; `now` is that of `performance`. */
  look(now: number): void {
    if (this.#state === "gone") return;
    if (this.#waitsForEnd) {
      if (this.#endAt === Infinity) this.#endAt = now + LINE_CLOSE_MS;
      if (now >= this.#endAt) this.destroy();
      return;
    }
    switch (this.#watch.look(now, this.#isPaused, this.#queue.bytes === 0)) {
      case "silent":
        return this.#giveUp(`peer silent for ${this.#options.silenceMs} ms`);
      case "stuck":
        return this.#cut("has read nothing");
      case "ping":
        this.#reader.ease();
        return this.#control(OPCODE.ping, NOTHING);
    }
  }

  async #untilResumed(): Promise<void> {
    while (this.#isPaused) {
      await new Promise<void>((resolve) => this.#wake = resolve);
      this.#wake = undefined;
      this.#reader.read();
    }
  }

  #textBytes(memory: Uint8Array, start: number, end: number, isPlain: boolean): void {
    if (this.#state === "open") this.#events!.textBytes(memory, start, end, isPlain);
  }

  #control(opcode: number, payload: Uint8Array): void {
    if (this.#state !== "open") return;
    this.#queue.control(opcode, payload);
    this.#sent();
  }

  #sayGoodbye(code: number, reason: string): void {
    const text = new TextEncoder().encode(shortReason(reason));
    const payload = code === 1005 ? NOTHING : Uint8Array.of(code >> 8, code & 255, ...text);
    this.#queue.control(OPCODE.close, payload);
    this.#waitsForEnd = true;
    this.#due();
  }

  #sent(): void {
    const { bytes } = this.#queue;
    if (bytes > EARLY_BYTES && !this.#isWriting && this.#lastWriteBytes < BUSY_BYTES) this.#write();
    if (bytes > SEND_AHEAD_BYTES) {
      this.#isBehind = true;
      if (!this.#isWriting) this.#write();
      if (bytes > this.#options.maxQueuedBytes) return this.#cut("has stopped reading");
    }
    this.#due();
  }

  #due(): void {
    if (this.#isDue || this.#isWriting) return;
    this.#isDue = true;
    this.#options.due(this);
  }

  #write(): void {
    const bytes = this.#queue.next();
    if (!bytes || this.#state === "gone") return;
    this.#isWriting = true;
    this.#lastWriteBytes = bytes.length;
    this.#socket.write(bytes).then(this.#wrote, this.#writeFailed);
  }

  /** One function for all writes of the line, so that none has to be made for each. */
  readonly #wrote = (count: number): void => {
    this.#isWriting = false;
    if (this.#state === "gone") return;
    this.#watch.hasMoved = true;
    this.#queue.wrote(count);
    this.#write();
    if (this.#isBehind && this.#queue.bytes <= DRAINED_BYTES && this.#state === "open") {
      this.#isBehind = false;
      try {
        this.#events!.drained();
      } catch (error) {
        this.#mistaken(error);
      }
    }
    if (!this.#isWriting) this.#wake?.();
  };

  readonly #writeFailed = (): void => {
    this.#isWriting = false;
    this.destroy();
  };

  #cut(what: string): void {
    const reason = `peer ${what}: ${this.#queue.bytes} bytes unsent`;
    this.#options.cut(this.#address, reason);
    this.#queue.drop();
    this.close(1008, reason);
    // The farewell may never be read: whoever waits for this peer learns it now.
    queueMicrotask(() => this.#report());
  }

  /** Whoever takes the events made a mistake: one line is lost, not the engine. */
  #mistaken(error: unknown): void {
    this.#options.cut(this.#address, `a message could not be handled: ${error}`);
    this.close(1011, "internal error");
  }

  #giveUp(reason: string): void {
    this.#options.cut(this.#address, reason);
    this.#farewell = { code: 1006, reason };
    this.destroy();
  }

  /** Waits until the peer has the goodbye and has ended its half. */
  async #finished(): Promise<void> {
    while (this.#queue.bytes > 0 && this.#state !== "gone") {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    await this.#socket.finish();
  }

  /** Ends the line without another word. */
  destroy(): void {
    this.#state = "gone";
    this.#isPaused = false;
    this.#reader.stop();
    this.#queue.drop();
    this.#socket.destroy();
    this.#wake?.();
    this.#report();
  }

  #report(): void {
    const events = this.#events;
    this.#events = undefined;
    try {
      events?.closed(this.#farewell.code, this.#farewell.reason);
    } catch (error) {
      this.#options.cut(this.#address, `the end of a line could not be handled: ${error}`);
    }
  }
}
