/**
 * The engine under test: the real program in a temporary project, with a canary beside it.
 *
 * @module
 */
import { until } from "../fakes/until.ts";
import type { CanaryReport } from "./report.ts";

/** How an engine is to be started. */
export interface EngineSetup {
  /** Lines below `engine:` in config.yaml, beside the port. */
  readonly engine?: readonly string[];
  /** Lines of the configuration of `engine-http`, beside the port. */
  readonly http?: readonly string[];
  /** Lines of further entries of `workers`. */
  readonly workers?: readonly string[];
  /** Files and sockets that the process may open, as `ulimit -n`. */
  readonly files?: number;
  /** Directory of an earlier start, whose state is kept. */
  readonly directory?: string;
  /** The checkout it is of, with a slash at its end. */
  readonly tree: string;
}

const CANARY = new URL("canary_program.ts", import.meta.url).pathname;
const START_MS_MAX = 60_000;
/** Of standard error, for messages of failed tests. */
const OUTPUT_CHARS_MAX = 20_000;
const STOP_MS_MAX = 20_000;

/** Engines that run, for a campaign that is interrupted. */
const running = new Set<Engine>();

/** Ends all engines at once. */
export function killEngines(): void {
  for (const engine of running) engine.signal("SIGKILL");
}

/** An engine that runs as a program. */
export class Engine implements AsyncDisposable {
  readonly directory: string;
  readonly pid: number;
  /** Last part of what it wrote to standard error. */
  output = "";
  /** Set when the process has ended. */
  status: Deno.CommandStatus | undefined;
  readonly ended: Promise<Deno.CommandStatus>;
  readonly #child: Deno.ChildProcess;
  readonly #ports: Record<string, number> = {};
  readonly #reading: Promise<unknown>;
  readonly #keepsDirectory: boolean;

  private constructor(child: Deno.ChildProcess, directory: string, keepsDirectory: boolean) {
    this.#child = child;
    this.directory = directory;
    this.#keepsDirectory = keepsDirectory;
    this.pid = child.pid;
    this.#reading = Promise.all([this.#readAddresses(), this.#readOutput()]);
    running.add(this);
    this.ended = child.status.then((status) => {
      running.delete(this);
      return this.status = status;
    });
  }

  /** Starts an engine with state, HTTP and console; resolves when it listens. */
  static async start(setup: EngineSetup): Promise<Engine> {
    const directory = setup.directory ?? await Deno.makeTempDir({ prefix: "engine-torture-" });
    await Deno.writeTextFile(`${directory}/config.yaml`, configOf(setup));
    const limit = setup.files === undefined ? "" : `ulimit -n ${setup.files}; `;
    const program = [Deno.execPath(), "run", "-A", "--quiet", `${setup.tree}cli/main.ts`];
    const child = new Deno.Command("sh", {
      args: ["-c", `${limit}exec "$@"`, "sh", ...program, "--config", "config.yaml"],
      cwd: directory,
      env: { NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const engine = new Engine(child, directory, setup.directory !== undefined);
    try {
      await until(
        () => {
          if (engine.status) throw new Error(`the engine ended: ${engine.output}`);
          return "console" in engine.#ports;
        },
        () => engine.output,
        START_MS_MAX,
      );
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      throw error;
    }
    return engine;
  }

  /** Where workers connect. */
  get port(): number {
    return this.#ports.workers!;
  }

  /** Where a worker listens, by the name of its address. */
  portOf(name: string): number {
    return this.#ports[name]!;
  }

  /** Where `engine-http` listens. */
  get httpPort(): number {
    return this.#ports.http!;
  }

  /** Where the console listens. */
  get consolePort(): number {
    return this.#ports.console!;
  }

  /** Whether the process runs. */
  get isAlive(): boolean {
    return this.status === undefined;
  }

  /** Sends a signal; an engine that has ended ignores it. */
  signal(signal: Deno.Signal): void {
    try {
      this.#child.kill(signal);
    } catch {
      // It has ended by itself.
    }
  }

  /** Ends the process and removes its project. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGCONT");
    this.signal("SIGKILL");
    await this.ended;
    await this.#reading;
    if (!this.#keepsDirectory) await Deno.remove(this.directory, { recursive: true });
  }

  async #readAddresses(): Promise<void> {
    let text = "";
    for await (const part of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      text = (text + part).slice(-OUTPUT_CHARS_MAX);
      for (const [, name, port] of text.matchAll(/^(\w+) +\w+:\/\/[\d.]+:(\d+)\n/gm)) {
        this.#ports[name!] ??= Number(port);
      }
    }
  }

  async #readOutput(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.output = (this.output + text).slice(-OUTPUT_CHARS_MAX);
    }
  }
}

function configOf({ engine = [], http = [], workers = [] }: EngineSetup): string {
  return [
    "engine:",
    "  port: 0",
    ...engine.map((line) => `  ${line}`),
    "log:",
    "  level: warn",
    "workers:",
    "  - name: engine-state",
    "  - name: engine-http",
    "    config:",
    "      port: 0",
    ...http.map((line) => `      ${line}`),
    ...workers,
    "  - name: engine-console",
    "    config: { port: 0 }",
    "",
  ].join("\n");
}

/** The canary of an engine. */
export class Canary implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  #rest = "";

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.#lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    this.#input = child.stdin.getWriter();
  }

  /** Starts one and resolves when it makes calls. */
  static async start(engine: Engine): Promise<Canary> {
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", "--no-check", CANARY, `${engine.port}`, `${engine.pid}`],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const canary = new Canary(child);
    if (await canary.#line() !== "ready") throw new Error("the canary did not start");
    await canary.reset();
    return canary;
  }

  /** Forgets what was measured. */
  async reset(): Promise<void> {
    await this.#order("reset");
  }

  /** What was measured since the last reset. */
  async report(): Promise<CanaryReport> {
    await this.#order("report");
    return JSON.parse(await this.#line());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#input.close().catch(() => {}); // It has ended by itself.
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS_MAX);
    await this.#lines.cancel();
    await this.#child.status;
    clearTimeout(kill);
  }

  #order(order: string): Promise<void> {
    return this.#input.write(new TextEncoder().encode(`${order}\n`));
  }

  async #line(): Promise<string> {
    while (!this.#rest.includes("\n")) {
      const { value, done } = await this.#lines.read();
      if (done) throw new Error(`the canary ended: ${this.#rest}`);
      this.#rest += value;
    }
    const end = this.#rest.indexOf("\n");
    const line = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end + 1);
    return line;
  }
}
