/**
 * A terminal that records its output, with a screen that obeys the control sequences of the command
 * line, in front of an engine made of plain functions.
 *
 * Time moves only when a command waits, so commands that poll end at once.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { CallOptions, EngineAddress } from "../../cli/connect.ts";
import type { FoundEngine } from "../../cli/find_engine.ts";
import { runCommandLine, runProgram } from "../../cli/program.ts";
import type { Screen } from "../../cli/screen.ts";
import type { Terminal, TerminalInput } from "../../cli/terminal.ts";
import { InvocationError, type Json, type JsonObject } from "../../mod.ts";

/** Answers the calls of one function; may throw an {@linkcode InvocationError}. */
export type Answer = (
  payload: JsonObject,
  options: CallOptions,
) => Json | undefined | Promise<Json | undefined>;

/** Parts that a test provides to commands. */
export interface FakeOptions {
  /** Function id to what it answers; others are not found. */
  readonly functions?: Readonly<Record<string, Answer>>;
  /** Path, as commands write it, to text. */
  readonly files?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Pieces of standard input in order, each read once; a terminal unless `isPiped`. */
  readonly typed?: { readonly pieces: readonly string[]; readonly isPiped?: boolean };
  readonly directory?: string;
  /** Thrown by connect(). */
  readonly unreachable?: Error;
  /** Standard error is this terminal; standard output is the same one. */
  readonly screen?: FakeScreen;
  /** Variables of the environment. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Called with the time whenever a command waits. */
  readonly onWait?: (nowMs: number) => void;
}

/** A call as the engine got it. */
export interface SeenCall {
  readonly function_id: string;
  readonly payload: Json;
  readonly timeout_ms?: number;
}

/** A subscription of a command. */
export interface FakeSubscription {
  readonly topic: string;
  /** The config of its trigger. */
  readonly config: JsonObject;
  /** Delivers a message. */
  hear(data: Json): void;
  /** The connection is lost. */
  lose(error: Error): void;
}

export class FakeTerminal implements Terminal {
  readonly outLines: string[] = [];
  readonly errLines: string[] = [];
  readonly calls: SeenCall[] = [];
  readonly addresses: EngineAddress[] = [];
  /** What was written byte for byte, in order. */
  readonly pieces: [stream: "stdout" | "stderr", bytes: Uint8Array][] = [];
  readonly directory: string;
  readonly screen: FakeScreen | undefined;
  readonly #options: FakeOptions;
  readonly #listeners = new Set<() => void>();
  /** What a command subscribed to. */
  readonly subscribed = Promise.withResolvers<FakeSubscription>();
  /** Open connections to the engine. */
  openConnections = 0;
  #nowMs = 1_000;
  #piecesRead = 0;

  constructor(options: FakeOptions = {}) {
    this.#options = options;
    this.screen = options.screen;
    this.directory = options.directory ?? "/project";
  }

  /** Runs a command line as `engine` would and returns its exit code. */
  async run(...args: string[]): Promise<number> {
    return await runCommandLine(args, this);
  }

  /** The same for a program that a test has put together. */
  async runWith(program: Command, ...args: string[]): Promise<number> {
    return await runProgram(program, this, args);
  }

  get outText(): string {
    return this.outLines.join("\n");
  }

  get errText(): string {
    return this.errLines.join("\n");
  }

  out(text: string): void {
    this.outLines.push(...text.split("\n"));
    this.screen?.print(text);
  }

  err(text: string): void {
    this.errLines.push(...text.split("\n"));
    this.screen?.print(text);
  }

  bytes(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    this.pieces.push([stream, bytes]);
  }

  env(name: string): string | undefined {
    return this.#options.variables?.[name];
  }

  readonly readFile = (path: string): Promise<string> => {
    const text = this.#options.files?.[path];
    if (text !== undefined) return Promise.resolve(text);
    return Promise.reject(new Error(`No such file: ${path}`));
  };

  /** What commands wrote, by path. */
  readonly written: Map<string, string> = new Map();

  readonly writeFile = (path: string, text: string): Promise<void> => {
    this.written.set(path, text);
    return Promise.resolve();
  };

  /** What setRaw() was called with, in order. */
  readonly rawModes: boolean[] = [];

  get input(): TerminalInput {
    const { typed } = this.#options;
    return {
      isTerminal: typed !== undefined && !typed.isPiped,
      read: () => {
        const piece = typed?.pieces[this.#piecesRead++];
        return Promise.resolve(piece === undefined ? null : new TextEncoder().encode(piece));
      },
      setRaw: (isRaw) => void this.rawModes.push(isRaw),
    };
  }

  readonly readInput = (): Promise<string> => Promise.resolve(this.#options.input ?? "");

  locate({ url, token }: EngineAddress): Promise<FoundEngine> {
    const given = token ?? this.env("ENGINE_TOKEN");
    return Promise.resolve({
      url: url ?? this.env("ENGINE_URL") ?? "ws://127.0.0.1:49134",
      ...given !== undefined && { token: given },
    });
  }

  connect(address: EngineAddress) {
    this.addresses.push(address);
    if (this.#options.unreachable) return Promise.reject(this.#options.unreachable);
    this.openConnections++;
    return Promise.resolve({
      call: (function_id: string, payload: Json, options: CallOptions = {}) =>
        this.#answer(function_id, payload, options),
      subscribe: (topic: string, hear: (data: Json) => void) => this.#follow({ topic }, hear),
      follow: (_type: string, config: JsonObject, hear: (data: Json) => void) =>
        this.#follow(config, hear),
      [Symbol.asyncDispose]: () => {
        this.openConnections--;
        return Promise.resolve();
      },
    });
  }

  #follow(config: JsonObject, hear: (data: Json) => void) {
    const { promise: lost, reject: lose } = Promise.withResolvers<never>();
    this.subscribed.resolve({ topic: String(config.topic), config, hear, lose });
    return Promise.resolve({ lost });
  }

  now(): number {
    return this.#nowMs;
  }

  wall(): number {
    return 1_700_000_000_000 + this.#nowMs;
  }

  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    this.#nowMs += ms;
    this.#options.onWait?.(this.#nowMs);
    for (let i = 0; i < 20; i++) await Promise.resolve(); // All pending microtasks run.
  }

  /** Receives what a test throws outside of any await. */
  fault: ((thrown: unknown) => boolean) | undefined;
  /** The longest time until the process ends. */
  exitMs: number | undefined;

  onFault(listener: (thrown: unknown) => boolean): () => void {
    this.fault = listener;
    return () => void (this.fault = undefined);
  }

  exitWithin(ms: number): void {
    this.exitMs = ms;
  }

  onInterrupt(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** As if Ctrl-C had been pressed. */
  interrupt(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** The listeners for Ctrl-C. */
  get interruptListeners(): number {
    return this.#listeners.size;
  }

  async #answer(function_id: string, payload: Json, options: CallOptions) {
    const { timeout_ms } = options;
    this.calls.push({ function_id, payload, ...timeout_ms === undefined ? {} : { timeout_ms } });
    const answer = this.#options.functions?.[function_id];
    if (!answer) {
      const body = { code: "function_not_found", message: `Function ${function_id} not found` };
      throw new InvocationError(body, function_id);
    }
    return await answer(payload as JsonObject, options);
  }
}

/** What a person would see, and how the terminal was left. */
export class FakeScreen implements Screen {
  /** All lines from the first one written, also those that have scrolled away. */
  readonly lines: string[] = [""];
  /** Every state that was seen, as text. */
  readonly frames: string[] = [];
  /** Letters that were dimmed when they were written. */
  dimmed = "";
  #row = 0;
  #column = 0;
  #isDim = false;
  #wraps = true;
  #columns: number;
  #rows: number;

  constructor(columns = 100, rows = 24) {
    this.#columns = columns;
    this.#rows = rows;
  }

  /** The size from now on. */
  resize(columns: number, rows: number): void {
    this.#columns = columns;
    this.#rows = rows;
  }

  size(): { columns: number; rows: number } {
    return { columns: this.#columns, rows: this.#rows };
  }

  write(text: string): void {
    // deno-lint-ignore no-control-regex
    for (const [part] of text.matchAll(/\x1b\[[?0-9]*[A-Za-z]|[\s\S]/gu)) this.#obey(part);
    this.frames.push(this.text);
  }

  /** Lines as they come from elsewhere, such as standard output on the same terminal. */
  print(text: string): void {
    this.write(`${text}\n`);
  }

  /** The visible text, without the empty line of the cursor. */
  get text(): string {
    return this.lines.map((line) => line.trimEnd()).join("\n").trimEnd();
  }

  /** Whether further output appears as on a fresh terminal. */
  get isRestored(): boolean {
    return this.#wraps && !this.#isDim && this.#column === 0 && this.#row === this.lines.length - 1;
  }

  #obey(part: string): void {
    if (part === "\n") return this.#newLine();
    if (part === "\r") return void (this.#column = 0);
    // deno-lint-ignore no-control-regex
    const [, number, letter] = /^\x1b\[(\??\d*)(\w)$/.exec(part) ?? [];
    if (letter === undefined) return this.#put(part);
    switch (`${letter}${letter === "A" ? "" : number}`) {
      case "A":
        this.#row = Math.max(this.lines.length - this.#rows, this.#row - Number(number || 1), 0);
        return;
      case "K":
        return this.#clearLine();
      case "J":
        this.#clearLine();
        this.lines.length = this.#row + 1;
        return;
      case "l?7":
        return void (this.#wraps = false);
      case "h?7":
        return void (this.#wraps = true);
      case "m2":
        return void (this.#isDim = true);
      case "m0":
        return void (this.#isDim = false);
      default:
        throw new Error(`this terminal does not know ${JSON.stringify(part)}`);
    }
  }

  #put(letter: string): void {
    if (this.#column >= this.#columns) {
      if (!this.#wraps) return;
      this.#newLine();
    }
    const line = [...this.lines[this.#row]!.padEnd(this.#column)];
    line[this.#column] = letter;
    this.lines[this.#row] = line.join("");
    if (this.#isDim) this.dimmed += letter;
    this.#column++;
  }

  #newLine(): void {
    this.#column = 0;
    this.#row++;
    if (this.#row === this.lines.length) this.lines.push("");
  }

  #clearLine(): void {
    this.lines[this.#row] = [...this.lines[this.#row]!].slice(0, this.#column).join("");
  }
}
