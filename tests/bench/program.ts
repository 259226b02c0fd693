/**
 * A program that is started for a measurement and ended behind it.
 *
 * @module
 */

/** One that runs, and has said what it was waited for. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** What the first group of each pattern found in its output. */
  readonly found: readonly string[];
  /** Writes a line to its standard input and waits for the next line of its output. */
  ask(line: string): Promise<string>;
  /** Waits for the next line of its output. */
  next(): Promise<string>;
}

const START_MS_MAX = 30_000;
/** Time for the reply to one line. */
const ANSWER_MS_MAX = 60_000;
/** Between being asked to end and being ended. */
const END_MS_MAX = 5_000;

/**
 * Starts a program and returns when every pattern was found in its output.
 *
 * @throws {Error} With what it printed, when it ends before or takes too long.
 */
export async function startProgram(
  command: string,
  args: readonly string[],
  patterns: readonly RegExp[],
): Promise<Program> {
  const child = new Deno.Command(command, {
    args: [...args],
    env: { NO_COLOR: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const output = new Output();
  const reading = Promise.all([output.read(child.stdout), output.read(child.stderr)]);
  const status = child.status.then(() => reading).then(() => output.end());
  const input = child.stdin.getWriter();
  // A measurement that is ended from outside leaves no process behind.
  const end = (): void => signal(child);
  Deno.addSignalListener("SIGTERM", end);
  const program: Program = {
    pid: child.pid,
    found: [],
    async ask(line) {
      const answer = output.next();
      // If the program has gone, the answer says so.
      void input.write(new TextEncoder().encode(`${line}\n`)).catch(() => {});
      return await inTime(answer, ANSWER_MS_MAX, () => `no answer to ${line}:\n${output.text}`);
    },
    next: () => inTime(output.next(), ANSWER_MS_MAX, () => `nothing came:\n${output.text}`),
    async [Symbol.asyncDispose]() {
      const kill = setTimeout(() => child.kill("SIGKILL"), END_MS_MAX);
      end();
      await status;
      Deno.removeSignalListener("SIGTERM", end);
      clearTimeout(kill);
      await input.close().catch(() => {}); // The program has gone, and its pipe with it.
    },
  };
  try {
    const wanted = output.until((text) => patterns.every((pattern) => pattern.test(text)));
    const name = [command, ...args].join(" ");
    await inTime(wanted, START_MS_MAX, () => `${name} did not start:\n${output.text}`);
  } catch (error) {
    await program[Symbol.asyncDispose]();
    throw error;
  }
  return { ...program, found: patterns.map((pattern) => pattern.exec(output.text)![1]!) };
}

/** All that a program prints, for those who wait for some of it. */
class Output {
  text = "";
  #isOver = false;
  #waiting: { holds: (text: string) => boolean; done: PromiseWithResolvers<void> }[] = [];

  async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      this.text += text;
      this.#look();
    }
  }

  end(): void {
    this.#isOver = true;
    this.#look();
  }

  async until(holds: (text: string) => boolean): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#waiting.push({ holds, done });
    this.#look();
    await done.promise;
  }

  /** The next line that begins after what was printed so far. */
  async next(): Promise<string> {
    const start = this.text.length;
    await this.until((text) => text.indexOf("\n", start) >= 0);
    return this.text.slice(start, this.text.indexOf("\n", start));
  }

  #look(): void {
    this.#waiting = this.#waiting.filter(({ holds, done }) => {
      if (holds(this.text)) done.resolve();
      else if (this.#isOver) done.reject(new Error(`it has ended:\n${this.text}`));
      else return true;
      return false;
    });
  }
}

function signal(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGTERM");
  } catch {
    // It has ended by itself.
  }
}

async function inTime<Value>(
  promise: Promise<Value>,
  ms: number,
  explain: () => string,
): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(explain())), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
