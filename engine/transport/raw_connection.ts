/**
 * One WebSocket connection: {@linkcode FrameReader} reads, {@linkcode WriteQueue} writes.
 *
 * Reading and writing do not wait for each other: {@linkcode RawConnection.run} is the read loop,
 * and each write starts the next one until the queue is empty. The listener flushes what was sent
 * within a tick of the event loop at its end; where that is much, the first part leaves earlier.
 * The connection has ended when `closed` was reported; its socket may stay for {@linkcode
 * CLOSE_MS}, so that the peer receives the close frame.
 *
 * @module
 */
import {
  CLOSE_MS,
  type Connection,
  type ConnectionEvents,
  DRAINED_BYTES,
  SEND_AHEAD_BYTES,
} from "../ports/connection.ts";
import {
  eachMessage,
  type FrameEvents,
  FrameReader,
  OPCODE,
  truncateReason,
  type ViolationCode,
} from "./frames.ts";
import type { Acceptance } from "./http.ts";
import type { RawSocket } from "./socket.ts";
import { type BlockPool, WriteQueue } from "./write_queue.ts";

/** Options shared by all connections of a port, so that 10,000 idle ones stay small. */
export interface RawConnectionOptions {
  readonly pool: BlockPool;
  readonly maxMessageBytes: number;
  readonly maxQueuedBytes: number;
  /** A peer that sends nothing, or reads nothing of what is queued, for this long is cut. */
  readonly silenceMs: number;
  readonly pingMs: number;
  /** How long the peer may take to end its half. Default: {@linkcode CLOSE_MS}. */
  readonly closeMs?: number | undefined;
  /** Called when data is queued: the owner has to call `flush` at the end of the tick. */
  flushDue(connection: RawConnection): void;
  /** Called when this side ends the connection because the peer broke a limit or a rule. */
  cut(address: string, reason: string): void;
  /** Called when the socket is closed. */
  ended(connection: RawConnection): void;
}

const EMPTY = new Uint8Array();
/**
 * A queue of this size is written before the tick ends, so that the peer can start while this side
 * handles the rest: at 64 calls of 100 B in flight, 1.5 times the calls per second.
 */
const EARLY_BYTES = 4 * 1024;
/** After a write of this size the peer is busy, and an early write would gain nothing. */
const BUSY_BYTES = 64 * 1024;

/** An open connection. Its owner calls `run` once and `checkPeer` regularly. */
export class RawConnection implements Connection, FrameEvents {
  readonly id: string = crypto.randomUUID();
  readonly isBatching: boolean;
  readonly #socket: RawSocket;
  readonly #address: string;
  readonly #options: RawConnectionOptions;
  readonly #queue: WriteQueue;
  readonly #reader: FrameReader;
  readonly #watch: PeerWatch;
  #events: ConnectionEvents | undefined;
  /** `closing`: the close frame is queued; `over`: nothing more is sent; `gone`: socket closed. */
  #state: "open" | "closing" | "over" | "gone" = "open";
  #closing = { code: 1006, reason: "connection lost" };
  #waitsForEnd = false;
  /** Deadline for the peer to end its half, on the clock of {@linkcode checkPeer}. */
  #endAt = Infinity;

  #isPaused = false;
  #wake: (() => void) | undefined;
  #isWriting = false;
  #lastWriteBytes = 0;
  #isFlushDue = false;
  /** Whether the queue was long enough for the core to wait for `drained`. */
  #isBehind = false;

  /** Queues the response to the upgrade. */
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
    this.#watch = new PeerWatch(performance.now(), options.silenceMs, options.pingMs, firstMs);
  }

  get queuedBytes(): number {
    return this.#state === "open" ? this.#queue.bytes : 0;
  }

  send(text: string): void {
    if (this.#state !== "open") return;
    this.#queue.text(text);
    this.#queued();
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
    this.#queued();
  }

  sendBinary(bytes: Uint8Array): void {
    if (this.#state !== "open") return;
    this.#queue.binary(bytes);
    this.#queued();
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
    this.#closing = { code, reason };
    this.#sendCloseFrame(code, reason);
    this.resume(); // To read the peer's close frame.
  }

  /**
   * Reads and reports to `events` until the connection has ended; never rejects. One loop with one
   * `await`: each nested async function would be half a kilobyte per idle connection.
   */
  async run(events: ConnectionEvents): Promise<void> {
    this.#events = events;
    this.#requestFlush();
    try {
      while (this.#state === "open" || this.#state === "closing") {
        let count;
        try {
          count = await this.#socket.read(this.#reader.room());
        } catch {
          break; // The connection broke off, or this side ended it.
        }
        if (count === null) break;
        this.#watch.wasHeard = true;
        this.#reader.added(count);
        this.#reader.read();
        if (this.#isPaused) await this.#untilResumed();
        // A peer with Nagle's algorithm sends the payload only after it received something.
        if (this.#reader.endsBehindHeader) this.#control(OPCODE.pong, EMPTY);
      }
    } catch (error) {
      this.#handlerFailed(error);
    }
    if (this.#waitsForEnd) await this.#finish();
    this.destroy();
    this.#options.ended(this);
  }

  /** Starts to write, unless a write is under way, which continues by itself. */
  flush(): void {
    this.#isFlushDue = false;
    if (!this.#isWriting) this.#write();
  }

  /** Called by the reader, as are the next four. */
  text(memory: Uint8Array, start: number, end: number, isPlain: boolean): void {
    if (!this.isBatching) return this.#textBytes(memory, start, end, isPlain);
    eachMessage(memory, start, end, (from, to) => this.#textBytes(memory, from, to, isPlain));
  }

  binary(bytes: Uint8Array): void {
    if (this.#state === "open") this.#events!.binary(bytes);
  }

  ping(payload: Uint8Array): void {
    // A peer that pings without reading gets no pongs.
    if (this.#queue.bytes <= SEND_AHEAD_BYTES) this.#control(OPCODE.pong, payload);
  }

  closeFrame(code: number, reason: string): void {
    if (this.#state === "open") {
      this.#closing = { code, reason };
      this.#sendCloseFrame(code, reason);
    }
    // Both close frames are exchanged; only the socket is left to close.
    this.#state = "over";
    this.#reader.stop();
    this.#report();
  }

  violation(code: ViolationCode, reason: string): void {
    if (this.#state === "open") this.#options.cut(this.#address, reason);
    this.closeFrame(code, reason);
  }

  /** Ends a connection that is silent, stuck or overdue; `now` is that of `performance`. */
  checkPeer(now: number): void {
    if (this.#state === "gone") return;
    if (this.#waitsForEnd) {
      if (this.#endAt === Infinity) this.#endAt = now + (this.#options.closeMs ?? CLOSE_MS);
      if (now >= this.#endAt) this.destroy();
      return;
    }
    switch (this.#watch.check(now, this.#isPaused, this.#queue.bytes === 0)) {
      case "silent":
        return this.#abandon(`peer silent for ${this.#options.silenceMs} ms`);
      case "stuck":
        return this.#cut("has read nothing");
      case "ping":
        this.#reader.shrinkBuffers();
        return this.#control(OPCODE.ping, EMPTY);
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
    this.#queued();
  }

  #sendCloseFrame(code: number, reason: string): void {
    const text = new TextEncoder().encode(truncateReason(reason));
    const payload = code === 1005 ? EMPTY : Uint8Array.of(code >> 8, code & 255, ...text);
    this.#queue.control(OPCODE.close, payload);
    this.#waitsForEnd = true;
    this.#requestFlush();
  }

  #queued(): void {
    const { bytes } = this.#queue;
    if (bytes > EARLY_BYTES && !this.#isWriting && this.#lastWriteBytes < BUSY_BYTES) this.#write();
    if (bytes > SEND_AHEAD_BYTES) {
      this.#isBehind = true;
      if (!this.#isWriting) this.#write();
      if (bytes > this.#options.maxQueuedBytes) return this.#cut("has stopped reading");
    }
    this.#requestFlush();
  }

  #requestFlush(): void {
    if (this.#isFlushDue || this.#isWriting) return;
    this.#isFlushDue = true;
    this.#options.flushDue(this);
  }

  #write(): void {
    const bytes = this.#queue.next();
    if (!bytes || this.#state === "gone") return;
    this.#isWriting = true;
    this.#lastWriteBytes = bytes.length;
    this.#socket.write(bytes).then(this.#wrote, this.#writeFailed);
  }

  /** A field, so that no function is allocated per write. */
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
        this.#handlerFailed(error);
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
    // The peer may never read the close frame; its calls end now.
    queueMicrotask(() => this.#report());
  }

  /** A handler of events threw: this connection ends, the engine goes on. */
  #handlerFailed(error: unknown): void {
    this.#options.cut(this.#address, `a message could not be handled: ${error}`);
    this.close(1011, "internal error");
  }

  #abandon(reason: string): void {
    this.#options.cut(this.#address, reason);
    this.#closing = { code: 1006, reason };
    this.destroy();
  }

  /** Waits until the peer has the close frame and has ended its half. */
  async #finish(): Promise<void> {
    while (this.#queue.bytes > 0 && this.#state !== "gone") {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    await this.#socket.finish();
  }

  /** Closes the socket at once. */
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
      events?.closed(this.#closing.code, this.#closing.reason);
    } catch (error) {
      this.#options.cut(this.#address, `the end of a connection could not be handled: ${error}`);
    }
  }
}

/** Result of {@linkcode PeerWatch.check}. */
export type Finding = "silent" | "stuck" | "ping" | undefined;

/**
 * Tracks whether a peer is alive: when it last sent, and when it last read something.
 *
 * The owner passes the time; what happens between two checks counts as happening at the later one.
 */
export class PeerWatch {
  /** Set when something arrived since the last check. */
  wasHeard = true;
  /** Set when queued bytes were written since the last check. */
  hasMoved = true;
  readonly #silenceMs: number;
  readonly #pingMs: number;
  #heardAt: number;
  #movedAt: number;
  #pingedAt: number;

  /**
   * Starts at `now`. A peer that sends nothing for `silenceMs` is silent, one that reads nothing
   * for that long is stuck, and the next ping is due `pingMs` after the last. The first is due
   * after `firstPingMs`, so that connections that open together are not pinged together.
   */
  constructor(now: number, silenceMs: number, pingMs: number, firstPingMs: number = pingMs) {
    this.#silenceMs = silenceMs;
    this.#pingMs = pingMs;
    this.#heardAt = this.#movedAt = now;
    this.#pingedAt = now + firstPingMs - pingMs;
  }

  /** `isPaused`: this side does not read; `isIdle`: nothing is queued. */
  check(now: number, isPaused: boolean, isIdle: boolean): Finding {
    if (this.wasHeard || isPaused) this.#heardAt = now;
    if (this.hasMoved || isIdle) this.#movedAt = now;
    this.wasHeard = this.hasMoved = false;
    if (now - this.#heardAt >= this.#silenceMs) return "silent";
    if (now - this.#movedAt >= this.#silenceMs) return "stuck";
    if (now - this.#pingedAt < this.#pingMs) return undefined;
    this.#pingedAt = now;
    return "ping";
  }
}
