/**
 * What the quickstart does on the machine: checks ports and programs, runs and shows commands,
 * sends HTTP requests.
 *
 * @module
 */
import { shellWord } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { printable } from "../render.ts";

/**
 * Checks that a port of this machine is free.
 *
 * @throws {CommandError} It is taken; the message names the option for another one.
 */
export function checkPort(port: number, option: string): void {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
  } catch {
    // For whatever reason, the engine could not listen there either.
    throw new CommandError(
      `Port ${port} is taken; stop the other program, or choose another port with ${option}`,
    );
  }
}

/**
 * Checks that there is a Python that workers can use.
 *
 * @throws {CommandError} There is none, it is too old, or it has no pip.
 */
export async function checkPython(program = "python3"): Promise<void> {
  const code = "import sys, pip; sys.exit(sys.version_info < (3, 10))";
  try {
    const command = new Deno.Command(program, { args: ["-c", code], stderr: "null" });
    if ((await command.output()).success) return;
  } catch {
    // No such program: the same advice as for one that is too old.
  }
  throw new CommandError(`One worker is in Python: install ${program} 3.10 or newer, with pip`);
}

/** The value of the promise; `undefined` if it takes longer than `ms` milliseconds. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/**
 * Sends a request until the route exists, and returns its response.
 *
 * @throws {CommandError} The route does not exist within `limitMs`.
 */
export async function requestUntilServed(
  url: string,
  request: RequestInit,
  limitMs: number,
): Promise<Response> {
  const end = performance.now() + limitMs;
  for (;;) {
    const response = await fetch(url, request).catch(() => undefined);
    if (response && ![404, 503].includes(response.status)) return response;
    await response?.body?.cancel();
    if (performance.now() > end) {
      const found = response?.status ?? "nothing";
      throw new CommandError(`expected ${url} to answer, received ${found}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** How {@linkcode LiveShell} runs and shows a program. */
export interface LiveShellOptions {
  /** Name that is shown for the program, such as `engine`. */
  readonly name: string;
  /** The program and its first arguments. */
  readonly command: readonly string[];
  readonly directory: string;
  /** Added to the environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Shows a line. */
  say(line: string): void;
}

/** What a program printed and how it ended. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running program. */
export interface LiveProcess {
  readonly pid: number;
  /** What it has printed so far to both streams. */
  readonly printed: string;
  /** How it ended; never rejects. */
  readonly ended: Promise<Outcome>;
  /** Resolves with `true` when it has printed the text, with `false` when it ends without. */
  sees(text: string): Promise<boolean>;
  /** Sends a signal, unless it has ended. */
  kill(signal: Deno.Signal): void;
}

/** How much of a program is shown. */
export interface Shown {
  /** Nothing, for polling. Default `false`. */
  readonly quiet?: boolean;
  /** Standard output only: what a program logs is kept, not shown. Default `false`. */
  readonly outOnly?: boolean;
}

/** Runs a program and shows each command with its output, which is also kept for checks. */
export class LiveShell {
  readonly #options: LiveShellOptions;

  constructor(options: LiveShellOptions) {
    this.#options = options;
  }

  /** Runs the program to its end. */
  async run(args: readonly string[], shown: Shown = {}): Promise<Outcome> {
    return await this.start(args, shown).ended;
  }

  /**
   * Runs the program until `accept` returns `true` for its outcome; shows only the first command
   * and the last outcome.
   *
   * @throws {Error} When `limitMs` have passed, with the last outcome.
   */
  async runUntil(
    args: readonly string[],
    accept: (outcome: Outcome) => boolean,
    limitMs: number,
  ): Promise<Outcome> {
    this.#sayCommand(args);
    const end = performance.now() + limitMs;
    for (;;) {
      const outcome = await this.run(args, { quiet: true });
      if (accept(outcome) || performance.now() > end) {
        for (const line of linesOf(outcome.stderr + outcome.stdout)) this.#say(line);
        if (accept(outcome)) return outcome;
        throw new Error(`no other outcome within ${limitMs / 1_000} s`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Starts the program without waiting for its end. */
  start(args: readonly string[], shown: Shown = {}): LiveProcess {
    const { command: [program, ...first], directory, env } = this.#options;
    if (!shown.quiet) this.#sayCommand(args);
    const child = new Deno.Command(program!, {
      args: [...first, ...args],
      cwd: directory,
      env: { ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const printed = { stdout: "", stderr: "" };
    const watchers = new Set<() => void>();
    const read = async (stream: "stdout" | "stderr"): Promise<void> => {
      const isShown = !shown.quiet && !(shown.outOnly && stream === "stderr");
      for await (const line of readLines(child[stream])) {
        printed[stream] += `${line}\n`;
        if (isShown) this.#say(line);
        for (const look of [...watchers]) look();
      }
    };
    let hasEnded = false;
    const ended = Promise.all([child.status, read("stdout"), read("stderr")])
      .then(([{ code }]): Outcome => {
        hasEnded = true;
        return { code, ...printed };
      });
    const all = (): string => printed.stdout + printed.stderr;
    return {
      pid: child.pid,
      get printed() {
        return all();
      },
      ended,
      sees: (text) => {
        const seen = Promise.withResolvers<boolean>();
        const look = () => all().includes(text) && seen.resolve(true);
        watchers.add(look);
        look();
        void ended.then(() => seen.resolve(all().includes(text)));
        return seen.promise.finally(() => watchers.delete(look));
      },
      kill: (signal) => {
        if (!hasEnded) child.kill(signal);
      },
    };
  }

  #sayCommand(args: readonly string[]): void {
    this.#options.say(`$ ${[this.#options.name, ...args].map(shellWord).join(" ")}`);
  }

  #say(line: string): void {
    this.#options.say(`  ${printable(line)}`);
  }
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

async function* readLines(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== "") yield rest;
}
