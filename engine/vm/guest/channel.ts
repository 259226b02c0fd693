/**
 * The channels of a guest. Each runs one program after the other and collects their output.
 *
 * A program has ended when the guest has reported its exit and both streams have reached their end
 * marks, so no output is lost. If a guest sends no end marks, the channel stops waiting for them
 * once the streams are silent.
 *
 * @module
 */
import type { Ended, OutputChunk } from "../../ports/launcher.ts";
import { OutputTurns } from "../../process/output_turns.ts";
import { type Channel, type ControlConnection, type GuestMessage, signalName } from "./control.ts";
import { type GuestInput, InputFeeder } from "./input.ts";

/** How long the streams of an exited program may be silent before the channel gives them up. */
const SILENT_MS = 10_000;
/** Bytes per read. */
const READ_BYTES = 16 * 1024;

/** Connections and properties of a channel. */
export interface ChannelParts {
  readonly number: Channel;
  readonly stdout: Deno.Conn;
  readonly stderr: Deno.Conn;
  /** Takes the input of programs; the channel of the main program has none. */
  readonly stdin?: Pick<Deno.Conn, "write">;
  readonly control: Pick<ControlConnection, "send">;
  /** Memory of the machine, for messages. */
  readonly memoryMb: number;
  /** The budget of what programs print. Default: one of its own. */
  readonly turns?: OutputTurns;
}

/** A guest's report on how a program ended. */
export type Exit = Extract<GuestMessage, { type: "exit" }>;

/** The program that runs on a channel. */
interface Current {
  readonly output: (chunk: OutputChunk) => void;
  readonly started: PromiseWithResolvers<void>;
  readonly exit: PromiseWithResolvers<Exit | undefined>;
}

/** A program that was started on a channel. */
export interface StartedProgram {
  /** Resolves when the program has a process, or has ended. */
  readonly started: Promise<void>;
  /** How it ended; `undefined` if the machine ended. Never rejects. */
  readonly ended: Promise<Ended | undefined>;
}

/** Runs one program at a time. */
export class GuestChannel {
  readonly #parts: ChannelParts;
  readonly #turns: OutputTurns;
  readonly #feeder: InputFeeder | undefined;
  readonly #streams: readonly { readonly marks: EndMarks; readonly done: Promise<void> }[];
  #current: Current | undefined;
  #lastByteMs = 0;

  /** Reads both streams from now on, until they end. */
  constructor(parts: ChannelParts) {
    this.#parts = parts;
    this.#turns = parts.turns ?? new OutputTurns();
    this.#feeder = parts.stdin && new InputFeeder(parts.stdin);
    this.#streams = [this.#read(parts.stdout, "stdout"), this.#read(parts.stderr, "stderr")];
  }

  /** Whether no program runs on the channel. */
  get isFree(): boolean {
    return this.#current === undefined;
  }

  /** Starts a script; the channel must be free. Both promises resolve if the machine ends. */
  start(
    script: number,
    output: (chunk: OutputChunk) => void,
    input?: GuestInput,
  ): StartedProgram {
    const endMark = crypto.randomUUID();
    const started = Promise.withResolvers<void>();
    const exit = Promise.withResolvers<Exit | undefined>();
    this.#current = { output, started, exit };
    const marked = this.#streams.map(({ marks }) => marks.next(endMark));
    const { control, memoryMb, number: channel } = this.#parts;
    control.send({ type: "run", channel, script, endMark, ...input && { hasInput: true } });
    if (input) this.#feeder?.feed(script, input);
    const ended = exit.promise.then(async (exit) => {
      this.#feeder?.end();
      await this.#unlessSilent(Promise.all(marked));
      for (const { marks } of this.#streams) marks.end();
      this.#current = undefined;
      return exit === undefined ? undefined : endedOf(exit, memoryMb);
    });
    return { started: started.promise, ended };
  }

  /** Sends a signal to the running program once it has a process. */
  async signal(name: "TERM" | "KILL"): Promise<void> {
    const current = this.#current;
    if (!current) return;
    await current.started.promise;
    const { control, number: channel } = this.#parts;
    if (current === this.#current) control.send({ type: "signal", channel, name });
  }

  /** Handles a guest's message about this channel. */
  receive(message: Exit | Extract<GuestMessage, { type: "started" }>): void {
    this.#current?.started.resolve();
    if (message.type === "exit") this.#current?.exit.resolve(message);
  }

  /** Ends the running program after the machine is gone and its remaining output is read. */
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
        const bytes = buffer.slice(0, count); // A copy, because the receiver may keep it.
        await this.#turns.pass(bytes, (piece) => marks.add(piece));
      }
      marks.end();
    };
    return { marks, done: pump() };
  }

  /** Waits for a promise, but no longer than {@linkcode SILENT_MS} without output. */
  async #unlessSilent(promise: Promise<unknown>): Promise<void> {
    this.#lastByteMs = performance.now();
    const silent = Promise.withResolvers<void>();
    const timer = setInterval(() => {
      if (performance.now() - this.#lastByteMs >= SILENT_MS) silent.resolve();
    }, SILENT_MS / 10);
    await Promise.race([promise, silent.promise]);
    clearInterval(timer);
  }
}

/** The channels for programs that run in addition to the main one. */
export class ChannelPool {
  readonly channels: readonly GuestChannel[];
  #freed = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(channels: readonly GuestChannel[]) {
    this.channels = channels;
  }

  /**
   * Waits for a free channel and calls `use` with it, which must start a program synchronously.
   * Returns `undefined` if the guest ends or the signal aborts first.
   */
  async start<T>(use: (channel: GuestChannel) => T, signal: AbortSignal): Promise<T | undefined> {
    const aborted = Promise.withResolvers<void>();
    const abort = (): void => aborted.resolve();
    signal.addEventListener("abort", abort);
    try {
      while (!this.#isClosed && !signal.aborted) {
        const channel = this.channels.find(({ isFree }) => isFree);
        // No await in between: another caller could start on the same channel.
        if (channel) return use(channel);
        await Promise.race([this.#freed.promise, aborted.promise]);
      }
      return undefined;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Lets waiting callers look for a free channel; called when a program has ended. */
  wake(): void {
    this.#freed.resolve();
    this.#freed = Promise.withResolvers();
  }

  /** Ends all waits, because the guest is gone. */
  close(): void {
    this.#isClosed = true;
    this.wake();
  }
}

/**
 * Splits one stream into the output of consecutive programs.
 *
 * The guest ends the output of each with a zero byte and an unguessable mark. Bytes that cannot
 * belong to the mark pass on immediately, so a line is never delayed until the next one.
 */
export class EndMarks {
  readonly #output: (bytes: Uint8Array<ArrayBuffer>) => void;
  /** Bytes that may be the start of the mark. */
  #held = new Uint8Array();
  #mark: Uint8Array | undefined;
  #found: (() => void) | undefined;

  /** Calls `output` with the output of programs; drops bytes between two programs. */
  constructor(output: (bytes: Uint8Array<ArrayBuffer>) => void) {
    this.#output = output;
  }

  /** Starts the output of the next program; resolves when its end mark was found. */
  next(mark: string): Promise<void> {
    this.#mark = new TextEncoder().encode(`\0${mark}`);
    return new Promise((resolve) => this.#found = resolve);
  }

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

  /** Ends the output of the program without a mark: held bytes pass on. */
  end(): void {
    if (this.#held.length > 0) this.#output(this.#held);
    this.#held = new Uint8Array();
    this.#mark = undefined;
    this.#found?.();
    this.#found = undefined;
  }
}

function endedOf({ code, signal, outOfMemory }: Exit, memoryMb: number): Ended {
  const ended: Ended = { code, signal: signal === null ? null : signalName(signal) };
  return outOfMemory ? { ...ended, reason: `out of memory (${memoryMb} MiB)` } : ended;
}

/** Index at which the mark, or a part of it at the end, starts; else the length of `bytes`. */
function indexOfStart(bytes: Uint8Array, mark: Uint8Array): number {
  for (let at = bytes.indexOf(mark[0]!); at >= 0; at = bytes.indexOf(mark[0]!, at + 1)) {
    const end = Math.min(mark.length, bytes.length - at);
    let same = 1;
    while (same < end && bytes[at + same] === mark[same]) same++;
    if (same === end) return at;
  }
  return bytes.length;
}
