/**
 * A real engine in a process and a project directory of its own, for tests from end to end.
 *
 * @module
 */
import { registerWorker, type Worker } from "../../mod.ts";
import { until } from "./until.ts";

/** The program as it lies in the sources, in words behind `deno`. */
const SOURCES = ["run", "-A", "--quiet", new URL("../../cli/main.ts", import.meta.url).pathname];

/** What a command printed and how it ended. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Bounds that the system keeps for the engine's process. */
export interface ProcessBounds {
  /** Files that it may have open. */
  readonly descriptors?: number | undefined;
  /** Size that a file may reach, in KiB; a write beyond it fails. */
  readonly fileKib?: number | undefined;
}

/** An engine that runs as a program. */
export class EngineProcess implements AsyncDisposable {
  readonly directory: string;
  readonly port: number;
  readonly #program: readonly string[];
  readonly #bounds: ProcessBounds;
  #child: Deno.ChildProcess | undefined;
  #output: Promise<void> = Promise.resolve();
  /** All that the engine wrote to standard error, over all its starts. */
  stderr = "";

  private constructor(
    directory: string,
    port: number,
    program: readonly string[],
    bounds: ProcessBounds,
  ) {
    this.directory = directory;
    this.port = port;
    this.#program = program;
    this.#bounds = bounds;
  }

  /**
   * Writes config.yaml with a free port, these workers and further lines below `engine:`, and
   * starts an engine on it, within the bounds if there are some.
   */
  static async start(
    workers = "",
    settings = "",
    program: readonly string[] = SOURCES,
    bounds: ProcessBounds = {},
  ): Promise<EngineProcess> {
    const directory = await Deno.makeTempDir({ prefix: "engine-e2e-" });
    const engine = new EngineProcess(directory, freePort(), program, bounds);
    await Deno.writeTextFile(
      `${directory}/config.yaml`,
      `engine:\n  port: ${engine.port}\n${settings}workers:\n  - name: engine-state\n${workers}`,
    );
    await engine.start();
    return engine;
  }

  /** Starts an engine on a copy of a project's directory; all ports of its config.yaml are free ones. */
  static async startCopy(project: string): Promise<EngineProcess> {
    const directory = await Deno.realPath(await Deno.makeTempDir({ prefix: "engine-e2e-" }));
    const engine = new EngineProcess(directory, freePort(), SOURCES, {});
    await copyProject(project, directory);
    const config = `${directory}/config.yaml`;
    const text = (await Deno.readTextFile(config)).replaceAll(/\bport: \d+/g, "port: 0");
    const head = `engine:\n  port: ${engine.port}\n`;
    const withPort = /^engine:\n/m.test(text) ? text.replace(/^engine:\n/m, head) : head + text;
    await Deno.writeTextFile(config, withPort);
    await engine.start();
    return engine;
  }

  /** Where it listens for workers. */
  get url(): string {
    return `ws://127.0.0.1:${this.port}`;
  }

  /** Process id of the engine. */
  get pid(): number {
    return this.#child!.pid;
  }

  /** Starts the engine, again if need be, and returns when it listens. */
  async start({ descriptors, fileKib }: ProcessBounds = this.#bounds): Promise<void> {
    const words = [Deno.execPath(), ...this.#program, "--config", `${this.directory}/config.yaml`];
    const limits = [
      ...descriptors === undefined ? [] : [`ulimit -n ${descriptors}`],
      // Without the trap the signal would end the process.
      ...fileKib === undefined ? [] : ["trap '' XFSZ", `ulimit -f ${fileKib}`],
    ];
    if (limits.length > 0) words.unshift("bash", "-c", `${limits.join("; ")}; exec "$@"`, "bash");
    const [command = "", ...args] = words;
    this.#child = new Deno.Command(command, {
      args,
      cwd: this.directory,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#output = this.#read(this.#child.stderr);
    await until(async () => {
      (await Deno.connect({ hostname: "127.0.0.1", port: this.port })).close();
      return true;
    }, () => this.stderr);
  }

  /** Ends the engine with a signal and waits until it is gone. */
  async kill(signal: Deno.Signal): Promise<Deno.CommandStatus> {
    const child = this.#child!;
    this.#child = undefined;
    child.kill(signal);
    const status = await child.status;
    await this.#output;
    return status;
  }

  /** Runs the `engine` command against this engine. */
  async command(...args: string[]): Promise<CommandResult> {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [...this.#program, ...args],
      cwd: this.directory,
      env: { ENGINE_URL: this.url, NO_COLOR: "1" },
      stdin: "null",
    }).output();
    const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
    return { code, stdout: text(stdout), stderr: text(stderr) };
  }

  /** Connects a worker of the test's own process. */
  connect(name = "test"): Worker {
    return registerWorker(this.url, { workerName: name, reconnect: { firstMs: 50, maxMs: 200 } });
  }

  /** Writes a file below the project. */
  async write(path: string, text: string): Promise<void> {
    const full = `${this.directory}/${path}`;
    await Deno.mkdir(full.slice(0, full.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(full, text);
  }

  /** Stops the engine and removes the project. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child) await this.kill("SIGTERM");
    await Deno.remove(this.directory, { recursive: true });
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) this.stderr += text;
  }
}

/** Copies a project without what an engine or a worker wrote there. */
async function copyProject(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (name.startsWith(".") || name === "data" || name === "__pycache__") continue;
    if (isDirectory) await copyProject(`${from}/${name}`, `${to}/${name}`);
    else await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

/** Whether a process lives. */
export function isAlive(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGCONT");
    return true;
  } catch {
    return false; // There is no such process.
  }
}

/** A port below those that the system gives to connections, so that none of them takes it. */
export function freePort(): number {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch {
      // Another program uses it.
    }
  }
}
