/**
 * One channel of a guest: runs one program after the other and collects what they print.
 *
 * A program has ended when the guest says so and both its streams have come to their end marks, so
 * nothing that it printed is lost. A guest that breaks its word about the marks is not waited for.
 *
 * @module
 */
import type { Ended, OutputChunk } from "../../ports/launcher.ts";
import { type Channel, type ControlLine, type FromGuest, signalName } from "./control.ts";

/** After a program's end its output is given up when nothing came for so long, in milliseconds. */
const SILENT_MS = 10_000;
/** Most bytes that are read at once. */
const READ_BYTES = 16 * 1024;

/** What a channel consists of. */
export interface ChannelParts {
  readonly number: Channel;
  readonly stdout: Deno.Conn;
  readonly stderr: Deno.Conn;
  readonly control: Pick<ControlLine, "send">;
  /** Memory of the machine, to name it. */
  readonly memoryMb: number;
}

/** How a program ended, as the guest tells it. */
export type Exit = Extract<FromGuest, { type: "exit" }>;

/** One program of a channel, while it runs. */
interface Current {
  readonly output: (chunk: OutputChunk) => void;
  readonly started: PromiseWithResolvers<void>;
  readonly exit: PromiseWithResolvers<Exit | undefined>;
}

/** See the module. */
export class GuestChannel {
  readonly #parts: ChannelParts;
  readonly #streams: readonly { readonly marks: EndMarks; readonly done: Promise<void> }[];
  #current: Current | undefined;
  #lastByteMs = 0;

  /** Reads the streams from now on, until they end. */
  constructor(parts: ChannelParts) {
    this.#parts = parts;
    this.#streams = [this.#read(parts.stdout, "stdout"), this.#read(parts.stderr, "stderr")];
  }

  /** Whether nothing runs on it. */
  get isFree(): boolean {
    return this.#current === undefined;
  }

  /** Starts a script, on a channel that is free. Both promises settle if the machine ends. */
  start(script: number, output: (chunk: OutputChunk) => void): StartedProgram {
    const endMark = crypto.randomUUID();
    const started = Promise.withResolvers<void>();
    const exit = Promise.withResolvers<Exit | undefined>();
    this.#current = { output, started, exit };
    const marked = this.#streams.map(({ marks }) => marks.next(endMark));
    const { control, memoryMb, number: channel } = this.#parts;
    control.send({ type: "run", channel, script, endMark });
    const ended = exit.promise.then(async (told) => {
      await this.#silence(Promise.all(marked));
      for (const { marks } of this.#streams) marks.end();
      this.#current = undefined;
      return told === undefined ? undefined : endedOf(told, memoryMb);
    });
    return { started: started.promise, ended };
  }

  /** Sends a signal to what runs, once it has a process. */
  async signal(name: "TERM" | "KILL"): Promise<void> {
    const current = this.#current;
    if (!current) return;
    await current.started.promise;
    const { control, number: channel } = this.#parts;
    if (current === this.#current) control.send({ type: "signal", channel, name });
  }

  /** What the guest says of this channel. */
  take(message: Exit | Extract<FromGuest, { type: "started" }>): void {
    this.#current?.started.resolve();
    if (message.type === "exit") this.#current?.exit.resolve(message);
  }

  /** The machine is gone: what it had still sent is taken, then what runs has ended. */
  async close(): Promise<void> {
    await Promise.all(this.#streams.map(({ done }) => done));
    this.#current?.started.resolve();
    this.#current?.exit.resolve(undefined);
  }

  #read(connection: Deno.Conn, stream: OutputChunk["stream"]) {
    const marks = new EndMarks((bytes) => this.#current?.output({ stream, bytes }));
    const pump = async (): Promise<void> => {
      const buffer = new Uint8Array(READ_BYTES);
      for (;;) {
        const count = await connection.read(buffer).catch(() => null);
        if (count === null) break;
        this.#lastByteMs = performance.now();
        marks.add(buffer.slice(0, count)); // Whoever gets it may keep it.
      }
      marks.end();
    };
    return { marks, done: pump() };
  }

  /** Waits for a promise, for as long as bytes come. */
  async #silence(promise: Promise<unknown>): Promise<void> {
    this.#lastByteMs = performance.now();
    const silent = Promise.withResolvers<void>();
    const timer = setInterval(() => {
      if (performance.now() - this.#lastByteMs >= SILENT_MS) silent.resolve();
    }, SILENT_MS / 10);
    await Promise.race([promise, silent.promise]);
    clearInterval(timer);
  }
}

/** What became of a program that was to start. */
export interface StartedProgram {
  /** It has its process, or has ended before. */
  readonly started: Promise<void>;
  /** How it ended; `undefined`: with its machine. Never rejects. */
  readonly ended: Promise<Ended | undefined>;
}

function endedOf({ code, signal, outOfMemory }: Exit, memoryMb: number): Ended {
  const ended: Ended = { code, signal: signal === null ? null : signalName(signal) };
  return outOfMemory ? { ...ended, reason: `out of memory (${memoryMb} MiB)` } : ended;
}

/** See the module. */
export class ChannelPool {
  readonly channels: readonly GuestChannel[];
  #freed = Promise.withResolvers<void>();
  #isClosed = false;

  /** All are free at first. */
  constructor(channels: readonly GuestChannel[]) {
    this.channels = channels;
  }

  /**
   * Waits for a free one and starts on it at once. `undefined` when the guest is gone, or the
   * signal came first.
   */
  async start<T>(use: (channel: GuestChannel) => T, signal: AbortSignal): Promise<T | undefined> {
    const aborted = Promise.withResolvers<void>();
    const abort = (): void => aborted.resolve();
    signal.addEventListener("abort", abort);
    try {
      while (!this.#isClosed && !signal.aborted) {
        const channel = this.channels.find(({ isFree }) => isFree);
        // At once: behind an await, somebody else may have taken it.
        if (channel) return use(channel);
        await Promise.race([this.#freed.promise, aborted.promise]);
      }
      return undefined;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** A program has ended: those who wait look again. */
  wake(): void {
    this.#freed.resolve();
    this.#freed = Promise.withResolvers();
  }

  /** The guest is gone: nobody needs to wait any longer. */
  close(): void {
    this.#isClosed = true;
    this.wake();
  }
}

/** Cuts one stream. */
export class EndMarks {
  readonly #output: (bytes: Uint8Array<ArrayBuffer>) => void;
  /** Bytes that may be the beginning of the mark. */
  #held = new Uint8Array();
  #mark: Uint8Array | undefined;
  #found: (() => void) | undefined;

  /** `output` gets what programs printed; bytes outside any program are dropped. */
  constructor(output: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#output = output;
  }

  /** From now on the stream is a program's; resolves when its end was found. */
  next(mark: string): Promise<void> {
    this.#mark = new TextEncoder().encode(`\0${mark}`);
    return new Promise((resolve) => this.#found = resolve);
  }

  /** Takes some bytes. */
  add(bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#mark) return;
    let rest = bytes;
    if (this.#held.length > 0) {
      rest = new Uint8Array(this.#held.length + bytes.length);
      rest.set(this.#held);
      rest.set(bytes, this.#held.length);
      this.#held = new Uint8Array();
    }
    const at = indexOfStart(rest, this.#mark);
    if (at > 0) this.#output(rest.subarray(0, at));
    if (rest.length - at >= this.#mark.length) this.end();
    else this.#held = rest.slice(at);
  }

  /** The stream is over: what was held back was no mark. */
  end(): void {
    if (this.#held.length > 0) this.#output(this.#held);
    this.#held = new Uint8Array();
    this.#mark = undefined;
    this.#found?.();
    this.#found = undefined;
  }
}

/** Where the mark stands or may begin to; the length of `bytes` if nowhere. */
function indexOfStart(bytes: Uint8Array, mark: Uint8Array): number {
  for (let at = bytes.indexOf(mark[0]!); at >= 0; at = bytes.indexOf(mark[0]!, at + 1)) {
    const end = Math.min(mark.length, bytes.length - at);
    let same = 1;
    while (same < end && bytes[at + same] === mark[same]) same++;
    if (same === end) return at;
  }
  return bytes.length;
}
