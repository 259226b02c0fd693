/**
 * What a connection has received and no handler has read yet.
 *
 * There is one read of the socket at a time, also when it began before its bytes were wanted, as
 * {@linkcode Input.watch} does to notice a client that leaves.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";

/** First size of the buffer; most heads fit. */
const BUFFER_BYTES_FIRST = 4 * 1024;
/** What is read at once; after so many bytes of one body others get a turn. */
export const TURN_BYTES = 1024 * 1024;
/** Bodies that go on in one tick of the event loop: a few milliseconds of work. */
export const TURNS_PER_TICK = 4;

/** The part of a connection that is read from and written to. */
export interface ByteStream {
  /** Bytes read, `null` at the end. Rejects when the connection broke off. */
  read(into: Uint8Array): Promise<number | null>;
  /** Bytes written, which may be fewer. */
  write(bytes: Uint8Array): Promise<number>;
  /** Ends the own half. */
  closeWrite(): Promise<void>;
  close(): void;
}

/** The client has left, or its connection broke off, before all was received. */
export class ClientGone extends Error {
  constructor() {
    super("the client has left");
    this.name = "ClientGone";
  }
}

/**
 * The order in which the connections of a port go on with large bodies. Everything that has arrived
 * can be read in one tick of the event loop: of 150 clients that is seconds.
 */
export class BodyReadTurns {
  readonly #clock: Pick<Clock, "after">;
  #waiting: (() => void)[] = [];
  #isDue = false;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Resolves when it is the caller's turn to read {@linkcode TURN_BYTES}. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isDue || this.#waiting.length === 0) return;
    this.#isDue = true;
    this.#clock.after(0, () => {
      this.#isDue = false;
      for (const resolve of this.#waiting.splice(0, TURNS_PER_TICK)) resolve();
      this.#schedule();
    });
  }
}

/** See the module. */
export class Input {
  /** Received and not read: from {@linkcode start} to {@linkcode end}. */
  bytes: Uint8Array<ArrayBuffer> = new Uint8Array(BUFFER_BYTES_FIRST);
  start = 0;
  end = 0;
  /** Bytes that ever came. */
  total = 0;
  /** Whether a reader waits for the client now. */
  isWaiting = false;
  readonly #stream: ByteStream;
  readonly #turns: BodyReadTurns;
  #early: Promise<boolean> | undefined;
  #sinceTurn = 0;

  constructor(stream: ByteStream, turns: BodyReadTurns) {
    this.#stream = stream;
    this.#turns = turns;
  }

  /** How many bytes wait. */
  get waiting(): number {
    return this.end - this.start;
  }

  /**
   * Receives more; `false` at the end of the connection. The buffer grows up to `bytesMax`, which
   * must be more than what waits.
   *
   * @throws {Error} When the connection broke off.
   */
  async fill(bytesMax: number): Promise<boolean> {
    const early = this.#early;
    this.#early = undefined;
    this.isWaiting = true;
    try {
      return early ? await early : this.took(await this.read(bytesMax));
    } finally {
      this.isWaiting = false;
    }
  }

  /** Whether a read is under way already, for which {@linkcode fill} waits. */
  get hasEarly(): boolean {
    return this.#early !== undefined;
  }

  /** A part of {@linkcode fill}, without a promise of its own; {@linkcode took} is the other. */
  read(bytesMax: number): Promise<number | null> {
    this.#makeRoom(bytesMax);
    // A view takes 50 ns and 100 bytes, and mostly nothing waits.
    return this.#stream.read(this.end === 0 ? this.bytes : this.bytes.subarray(this.end));
  }

  /** Counts what {@linkcode read} has read; `false` at the end of the connection. */
  took(count: number | null): boolean {
    if (count === null) return false;
    this.end += count;
    this.total += count;
    return true;
  }

  /**
   * Moves bytes of a body into `target`: those that wait first, else straight from the socket.
   * Returns how many, at least one.
   *
   * @throws {ClientGone} At the end of the connection. {Error} When it broke off.
   */
  async take(target: Uint8Array): Promise<number> {
    if (this.#early) await this.fill(this.bytes.length + 1);
    if (this.waiting > 0) {
      const count = Math.min(this.waiting, target.length);
      target.set(this.bytes.subarray(this.start, this.start + count));
      this.start += count;
      return count;
    }
    this.isWaiting = true;
    let count: number | null;
    try {
      count = await this.#stream.read(target.subarray(0, TURN_BYTES));
    } finally {
      this.isWaiting = false;
    }
    if (count === null) throw new ClientGone();
    this.total += count;
    await this.turn(count);
    return count;
  }

  /** Lets others have a turn when much was read since the last one. */
  async turn(bytes: number): Promise<void> {
    this.#sinceTurn += bytes;
    if (this.#sinceTurn < TURN_BYTES) return;
    this.#sinceTurn = 0;
    await this.#turns.next();
  }

  /** Calls `gone` if the connection ends before more is received. Nothing when bytes wait. */
  watch(gone: () => void): void {
    if (this.#early || this.waiting > 0) return;
    this.#makeRoom(this.bytes.length);
    const early = this.#stream.read(this.bytes.subarray(this.end))
      .then((count) => this.took(count));
    this.#early = early;
    early.then((isOpen) => isOpen || gone(), gone);
  }

  /** The connection for another reader, and what was received already; nothing is read here. */
  handOver(): { readonly stream: ByteStream; readonly rest: Uint8Array } {
    const early = this.#early;
    if (early) return { stream: this.#behind(early), rest: new Uint8Array() };
    const rest = this.bytes.slice(this.start, this.end);
    this.bytes = new Uint8Array(); // The connection may stay for days.
    this.start = this.end = 0;
    return { stream: this.#stream, rest };
  }

  /** The connection when a read is under way, whose bytes come first. */
  #behind(early: Promise<boolean>): ByteStream {
    const stream = this.#stream;
    let first: Promise<boolean> | undefined = early;
    return {
      read: async (into) => {
        if (first && !await first) return null;
        first = undefined;
        if (this.waiting === 0) return await stream.read(into);
        const count = Math.min(this.waiting, into.length);
        into.set(this.bytes.subarray(this.start, this.start + count));
        this.start += count;
        return count;
      },
      write: (bytes) => stream.write(bytes),
      closeWrite: () => stream.closeWrite(),
      close: () => stream.close(),
    };
  }

  #makeRoom(bytesMax: number): void {
    if (this.start === this.end) this.start = this.end = 0;
    if (this.end < this.bytes.length) return;
    const waiting = this.bytes.subarray(this.start, this.end);
    const isLarge = waiting.length * 2 > this.bytes.length;
    const size = isLarge ? Math.min(this.bytes.length * 4, bytesMax) : this.bytes.length;
    const next = size > this.bytes.length ? new Uint8Array(size) : this.bytes;
    if (next === this.bytes) next.copyWithin(0, this.start, this.end);
    else next.set(waiting);
    this.bytes = next;
    this.end -= this.start;
    this.start = 0;
  }

  /** Gives a large buffer back while nothing waits. */
  shrink(): void {
    if (this.waiting > 0 || this.#early || this.bytes.length === BUFFER_BYTES_FIRST) return;
    this.bytes = new Uint8Array(BUFFER_BYTES_FIRST);
    this.start = this.end = 0;
  }
}
