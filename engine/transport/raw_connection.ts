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
  type Outline,
  SEND_AHEAD_BYTES,
  STALLED_MS,
  STREAM_AHEAD_BYTES,
  STREAM_DRAINED_BYTES,
  STREAM_STALLED_MS,
} from "../ports/connection.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../ports/memory.ts";
import { BufferLease } from "./buffer_lease.ts";
import {
  type FrameEvents,
  FrameReader,
  OPCODE,
  truncateReason,
  type ViolationCode,
} from "./frames.ts";
import type { Acceptance } from "./http.ts";
import type { RawSocket } from "./socket.ts";
import type { Work } from "../ports/turns.ts";
import { CREDIT_BYTES, type TickBudget } from "./tick_budget.ts";
import { PeerWatch } from "./peer_watch.ts";
import { type BlockPool, WriteQueue } from "./write_queue.ts";

/** Options shared by all connections of a port, so that 10,000 idle ones stay small. */
export interface RawConnectionOptions {
  readonly pool: BlockPool;
  /** The thread's time, shared with all other connections. */
  readonly ticks: TickBudget;
  /** For messages that are incomplete or unsent. Default: unlimited. */
  readonly memory?: MemoryBudget | undefined;
  /** Bytes of each direction that are not taken from it. Default: those of `BufferLease`. */
  readonly freeBytes?: number | undefined;
  readonly maxMessageBytes: number;
  /** A peer with more unsent has to make progress: see {@linkcode STALLED_MS}. */
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
/** What is written at once, before others have their turn. */
const WRITE_SHARE_BYTES = 1024 * 1024;
/**
 * A queue of this size is written before the tick ends, so that the peer can start while this side
 * handles the rest: at 64 calls of 100 B in flight, 1.5 times the calls per second.
 */
const EARLY_BYTES = 4 * 1024;
/** After a write of this size the peer is busy, and an early write would gain nothing. */
const BUSY_BYTES = 64 * 1024;

/** An open connection. Its owner calls `run` once and `checkPeer` regularly. */
export class RawConnection implements Connection, FrameEvents, Work {
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
  /** Bytes that were read wait for their turn. */
  #hasMore = false;
  #isQueued = false;
  /** The end waits for its turn to be reported. */
  #isEnding = false;
  /** A handler threw while it was its turn. */
  #isBroken = false;
  #wake: (() => void) | undefined;
  /** Cancels the wait for memory. */
  #stopWaiting: (() => void) | undefined;
  readonly #lease: BufferLease;
  /** Bytes read since the last {@linkcode takeProgress}. */
  #progressBytes = 0;
  #isSuspect = false;
  #isWriting = false;
  /** Bytes written since others had their turn, and whether more wait for theirs. */
  #writtenInTurn = 0;
  #isWriteDue = false;
  #lastWriteBytes = 0;
  #isFlushDue = false;
  /** Whether the queue was long enough for the core to wait for `drained`. */
  #isBehind = false;
  #aheadBytes = SEND_AHEAD_BYTES;
  #drainedBytes = DRAINED_BYTES;
  #isStream = false;

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
    const { ticks: pace, memory, freeBytes } = options;
    this.#lease = new BufferLease(memory, freeBytes);
    const reading = { isBatching, pace, memory, freeBytes };
    this.#reader = new FrameReader(this, options.maxMessageBytes, reading);
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
    this.#queueWork();
  }

  asStream(): void {
    this.#isStream = true;
    this.#aheadBytes = STREAM_AHEAD_BYTES;
    this.#drainedBytes = STREAM_DRAINED_BYTES;
    this.#watch.stuckMsMax = Math.max(STREAM_STALLED_MS, this.#options.silenceMs);
  }

  close(code: number, reason: string): void {
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.#closing = { code, reason };
    this.#sendCloseFrame(code, reason);
    this.resume(); // To read the peer's close frame.
    this.#wake?.();
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
        const room = this.#reader.room();
        if (this.#reader.missingBytes > 0) {
          await this.#untilMemory();
          continue;
        }
        let count;
        try {
          count = await this.#socket.read(room);
        } catch {
          break; // The connection broke off, or this side ended it.
        }
        if (count === null) break;
        this.#watch.wasHeard = true;
        if (this.#isSuspect) this.#suspect(false);
        this.#progressBytes += count;
        this.#reader.added(count);
        this.#readSome(count);
        while (this.#hasMore) {
          if (this.#reader.missingBytes > 0) {
            await this.#untilMemory();
            this.#queueWork();
          } else await new Promise<void>((resolve) => this.#wake = resolve);
        }
        if (this.#isBroken) break;
        // A peer with Nagle's algorithm sends the payload only after it received something.
        if (this.#reader.endsBehindHeader) this.#control(OPCODE.pong, EMPTY);
      }
    } catch (error) {
      this.#handlerFailed(error);
    }
    this.#wake = undefined;
    if (this.#waitsForEnd) await this.#finish();
    this.destroy();
    if (this.#events) await new Promise<void>((resolve) => this.#wake = resolve);
    this.#options.ended(this);
  }

  /** Starts to write, unless a write is under way, which continues by itself. */
  flush(): void {
    this.#isFlushDue = false;
    this.#writtenInTurn = 0;
    if (!this.#isWriting && !this.#isWriteDue) this.#write();
  }

  /** Called by the reader, as are the next four. */
  text(
    memory: Uint8Array,
    start: number,
    end: number,
    isPlain: boolean,
    outline?: Outline,
  ): void {
    if (this.#state === "open") this.#events!.textBytes(memory, start, end, isPlain, outline);
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
    if (!this.#retireSome()) return this.#report();
    this.#isEnding = true;
    this.#queueWork();
  }

  violation(code: ViolationCode, reason: string): void {
    if (this.#state === "open") this.#options.cut(this.#address, reason);
    this.closeFrame(code, reason);
  }

  /** Bytes of the memory budget that an unfinished message holds. */
  get heldBytes(): number {
    return this.#reader.heldBytes;
  }

  /** Whether it waits for memory to read on. */
  get isStarved(): boolean {
    return this.#stopWaiting !== undefined;
  }

  /** Bytes read since the last call. */
  takeProgress(): number {
    const bytes = this.#progressBytes;
    this.#progressBytes = 0;
    return bytes;
  }

  /** Ends a connection whose unfinished message holds memory that others wait for. */
  cutUnfinished(why: string): void {
    this.violation(1009, `unfinished message of ${this.heldBytes} bytes ${why}`);
    this.#wake?.();
  }

  probe(): void {
    if (this.#state !== "open" || this.#isPaused || this.#hasMore || this.isStarved) return;
    if (this.#watch.probe(performance.now())) this.#control(OPCODE.ping, EMPTY);
  }

  /** Ends a connection that is silent, stuck or overdue; `now` is that of `performance`. */
  checkPeer(now: number): void {
    if (this.#state === "gone") return;
    if (this.#waitsForEnd) return this.#checkEnd(now);
    const { bytes } = this.#queue;
    const { maxQueuedBytes, memory = UNLIMITED_MEMORY, silenceMs } = this.#options;
    const isReading = !this.#isPaused && !this.#hasMore && !this.isStarved;
    const isBehind = bytes > maxQueuedBytes || (memory.isTight && bytes > SEND_AHEAD_BYTES);
    switch (this.#watch.check(now, !isReading, bytes === 0)) {
      case "silent":
        return this.#abandon(`peer silent for ${silenceMs} ms`);
      case "stuck":
        return this.#cut("has read nothing");
      case "suspect":
        return this.#suspect(true);
      case "ping":
        this.#reader.shrinkBuffers();
        this.#control(OPCODE.ping, EMPTY);
    }
    if (isBehind && this.#watch.stuckMs(now) >= Math.min(STALLED_MS, silenceMs)) {
      this.#cut("has stopped reading");
    }
  }

  /** The reader of a stream may still have much to read before it gets to the close frame. */
  #checkEnd(now: number): void {
    const { closeMs = CLOSE_MS, silenceMs } = this.#options;
    const isPatient = this.#isStream && this.#state === "closing";
    const isAlive = isPatient && this.#watch.takeActivity();
    if (this.#endAt === Infinity || isAlive) this.#endAt = now + (isPatient ? silenceMs : closeMs);
    if (now >= this.#endAt) this.destroy();
  }

  #suspect(isSuspect: boolean): void {
    if (this.#isSuspect === isSuspect || this.#state !== "open") return;
    this.#isSuspect = isSuspect;
    this.#events!.suspected(isSuspect);
  }

  /** Waits until what the unfinished message needs may fit. */
  async #untilMemory(): Promise<void> {
    const { memory = UNLIMITED_MEMORY } = this.#options;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#stopWaiting = memory.whenRoom(this.#reader.missingBytes, resolve);
    });
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    this.#wake = undefined;
  }

  /** Handles what `count` bytes complete, now if there is time, else when it is its turn. */
  #readSome(count: number): void {
    const { ticks } = this.#options;
    ticks.credit -= count / CREDIT_BYTES | 0;
    this.#hasMore = !ticks.mayStart(this) || this.#reader.read() || this.#isPaused;
    if (this.#hasMore && this.#reader.missingBytes === 0) this.#queueWork();
  }

  /** Goes on with what {@linkcode #readSome} left, in its turn. */
  work(): boolean {
    this.#isQueued = false;
    if (this.#isWriteDue) {
      this.#isWriteDue = false;
      if (!this.#isWriting) this.#write();
    }
    if (this.#isEnding) {
      if (this.#retireSome()) return this.#isQueued = true;
      this.#report();
      this.#hasMore = false;
      this.#wake?.();
      return false;
    }
    if (this.#isPaused || !this.#hasMore) return false; // `resume` queues it again.
    try {
      this.#hasMore = this.#reader.read() || this.#isPaused;
    } catch (error) {
      this.#handlerFailed(error);
      this.#isBroken = true;
      this.#hasMore = false;
    }
    const isStarved = this.#reader.missingBytes > 0;
    if (!this.#hasMore || isStarved) this.#wake?.();
    return this.#isQueued = this.#hasMore && !this.#isPaused && !isStarved;
  }

  #queueWork(): void {
    const mayRead = this.#hasMore && !this.#isPaused && this.#stopWaiting === undefined;
    if (this.#isQueued || !(mayRead || this.#isWriteDue || this.#isEnding)) return;
    this.#isQueued = true;
    const { ticks } = this.#options;
    if (this.#isEnding) ticks.queueLast(this);
    else ticks.queue(this);
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
    if (bytes > EARLY_BYTES && this.#lastWriteBytes < BUSY_BYTES) {
      if (!this.#isWriting && !this.#isWriteDue) this.#write();
    }
    if (bytes > this.#aheadBytes) {
      this.#isBehind = true;
      if (!this.#isWriting && !this.#isWriteDue) this.#write();
    }
    if (!this.#lease.fit(bytes) && this.#isBehind) {
      return this.#cut("reads too slowly, and engine.memory_mb is used up");
    }
    this.#requestFlush();
  }

  #requestFlush(): void {
    if (this.#isFlushDue || this.#isWriting || this.#isWriteDue) return;
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
    if (this.#state === "gone") return this.#queue.end();
    this.#watch.hasMoved = true;
    this.#queue.wrote(count);
    this.#lease.fit(this.#queue.bytes);
    this.#writeMore(count);
    if (this.#isBehind && this.#queue.bytes <= this.#drainedBytes && this.#state === "open") {
      this.#isBehind = false;
      try {
        this.#events!.drained();
      } catch (error) {
        this.#handlerFailed(error);
      }
    }
    if (!this.#isWriting) this.#wake?.();
  };

  /** Writes at once are complete at once, too: others have their turn between them. */
  #writeMore(count: number): void {
    this.#writtenInTurn += count;
    if (this.#writtenInTurn < WRITE_SHARE_BYTES || this.#queue.bytes === 0) return this.#write();
    this.#writtenInTurn = 0;
    this.#isWriteDue = true;
    this.#queueWork();
  }

  readonly #writeFailed = (): void => {
    this.#isWriting = false;
    this.destroy();
  };

  #cut(what: string): void {
    const reason = `peer ${what}: ${this.#queue.bytes} bytes unsent`;
    this.#options.cut(this.#address, reason);
    this.#queue.drop();
    this.#lease.fit(this.#queue.bytes);
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
    this.#isPaused = this.#hasMore = false;
    this.#reader.stop();
    // A pending write still reads its block.
    if (this.#isWriting) this.#queue.drop();
    else this.#queue.end();
    this.#lease.fit(0);
    this.#stopWaiting?.();
    this.#socket.destroy();
    this.#wake?.();
    this.#reportInTurn();
  }

  /**
   * Ending calls and registrations takes time, 40 ms for 10,000 triggers, so connections that end
   * take turns, and messages of others go before them.
   */
  #reportInTurn(): void {
    const { ticks } = this.#options;
    if (this.#events === undefined || this.#isEnding) return;
    this.#isEnding = !ticks.mayStart(this) || this.#retireSome();
    if (this.#isEnding) return this.#queueWork();
    this.#report();
    ticks.isSpent();
  }

  /** Ends registrations until the turn is over; `true`: many are left. */
  #retireSome(): boolean {
    const { cut, ticks } = this.#options;
    try {
      while (this.#events?.retire?.()) if (ticks.isSpent()) return true;
    } catch (error) {
      cut(this.#address, `the end of a connection could not be handled: ${error}`);
    }
    return false;
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
