/**
 * A run of the quickstart: a project of a template, an engine, and commands whose outcome is
 * checked. Which commands those are is the matter of a {@linkcode Walkthrough}.
 *
 * @module
 */
import { type Isolation, isProcessDead, type WorkerStatus } from "../../engine/mod.ts";
import type { JsonObject } from "../../mod.ts";
import { CommandError } from "../failure.ts";
import { compactJson, renderDuration } from "../render.ts";
import {
  checkPort,
  checkPython,
  type LiveProcess,
  LiveShell,
  type Outcome,
  requestUntilServed,
  within,
} from "./machine.ts";

/** How long a worker may take to restart after an edit or a restart of the engine. */
const RESTART_MS = { process: 60_000, microvm: 600_000 };
/** How long an engine may take to end. */
const END_MS = { process: 30_000, microvm: 90_000 };
/** How long Ctrl-C, which a terminal sends to all processes, may take to reach the engine. */
const CTRL_C_MS = 500;
/** Longest body of a response that is shown. */
const SHOWN_CHARS_MAX = 1_000;

/** A response to a request. */
export interface HttpOutcome {
  readonly status: number;
  readonly text: string;
}

/** A port that a run takes. */
export interface RunPort {
  readonly port: number;
  /** The option that chooses another one, such as `--http-port`. */
  readonly option: string;
  /** Name and address for people, such as `http` and `http://127.0.0.1:3111`. */
  readonly name: string;
  readonly url: string;
}

/** The steps that show one template, each with what is expected of it. */
export interface Walkthrough {
  /** Name of the template. */
  readonly template: string;
  /** What it takes besides the port of workers. */
  ports(options: QuickstartOptions): readonly RunPort[];
  /**
   * Runs all steps in order, from an empty directory on.
   *
   * @throws {CommandError} At the first result that is not as expected.
   */
  run(run: QuickstartRun): Promise<void>;
}

/** Where and how the quickstart runs. */
export interface QuickstartOptions {
  /** The program `engine`. */
  readonly main: URL;
  readonly walkthrough: Walkthrough;
  /** Absolute; created by the first step. */
  readonly directory: string;
  /** Whether the directory is removed after success. */
  readonly isTemporary: boolean;
  readonly port: number;
  readonly httpPort: number;
  readonly streamPort: number;
  /** Isolation of the workers; microVMs may be slow, so all timeouts are longer. */
  readonly isolation: Isolation;
  say(line: string): void;
}

/** One run, from an empty directory to the end of its engine. */
export class QuickstartRun {
  /** Where and how it runs. */
  readonly options: QuickstartOptions;
  /** Runs commands in the directory of the project. */
  readonly inside: LiveShell;
  readonly #began = performance.now();
  readonly #outside: LiveShell;
  #engine: LiveProcess | undefined;
  #isAbandoned = false;

  constructor(options: QuickstartOptions) {
    this.options = options;
    const env: Record<string, string> = { NO_COLOR: "1" };
    if (!this.#usesDefaultPort) env["ENGINE_URL"] = this.#url;
    const shell = (directory: string) =>
      new LiveShell({
        name: "engine",
        command: [Deno.execPath(), "run", "-A", "--quiet", options.main.href],
        directory,
        env,
        say: options.say,
      });
    this.#outside = shell(parentOf(options.directory));
    this.inside = shell(options.directory);
  }

  /**
   * Checks the machine, then runs all steps in order.
   *
   * @throws {CommandError} At the first result that is not as expected.
   */
  async steps(): Promise<void> {
    const { port, walkthrough, directory } = this.options;
    checkPort(port, "--port");
    for (const taken of walkthrough.ports(this.options)) checkPort(taken.port, taken.option);
    await checkPython();
    this.say(`The quickstart, in ${directory}`);
    if (this.options.isolation === "microvm") await this.#checkMachines();
    await walkthrough.run(this);
  }

  /** Prints the directory and the addresses, for `--keep`. */
  printAddresses(): void {
    const { directory, walkthrough } = this.options;
    this.title("Everything keeps running; Ctrl-C ends it");
    this.say(`  project  ${directory}`);
    this.say(`  workers  ${this.#url}`);
    for (const { name, url } of walkthrough.ports(this.options)) {
      this.say(`  ${name.padEnd(9)}${url}`);
    }
    if (!this.#usesDefaultPort) this.say(`  For other terminals: export ENGINE_URL=${this.#url}`);
  }

  /**
   * The process ids of the workers that the engine started, by name.
   *
   * @throws {CommandError} The engine cannot be asked.
   */
  async workerPids(): Promise<ReadonlyMap<string, number>> {
    const args = ["worker", "list", "--json"];
    const { stdout } = await this.succeeds(this.inside.run(args, { quiet: true }));
    const workers = JSON.parse(stdout) as readonly WorkerStatus[];
    const own = workers.filter(({ kind }) => kind === "directory");
    return new Map(own.flatMap(({ name, pid }) => pid === null ? [] : [[name, pid]]));
  }

  /**
   * Stops the engine, and checks that it and the workers with these pids have ended.
   *
   * @param afterCtrlC The user pressed Ctrl-C, so that the engine may be stopping already.
   * @throws {CommandError} A process does not end.
   */
  async finish(pids: Iterable<number>, afterCtrlC: boolean): Promise<void> {
    this.title("Stop");
    this.say("$ kill -INT <engine>");
    const outcome = await this.#stopEngine(this.engine, afterCtrlC);
    this.expect(outcome?.code === 0, "the engine ends with 0", `${outcome?.code ?? "no end"}`);
    const left = [...pids].filter((pid) => !isProcessDead(pid));
    this.expect(left.length === 0, "no worker is left", `processes ${left.join(", ")}`);
    if (this.options.isTemporary) {
      await Deno.remove(parentOf(this.options.directory), { recursive: true });
    } else this.say(`The project stays in ${this.options.directory}`);
    const took = renderDuration(performance.now() - this.#began);
    this.say(`\nAll as expected, in ${took}`);
  }

  /** Stops everything after a failure; prints the end of the log unless the user interrupted. */
  async abandon(afterCtrlC: boolean): Promise<void> {
    this.#isAbandoned = true;
    const engine = this.#engine;
    if (!engine) return;
    await this.#stopEngine(engine, afterCtrlC);
    engine.kill("SIGKILL");
    await engine.ended;
    if (!afterCtrlC) {
      this.say("\nWhat the engine logged last:");
      for (const line of engine.printed.trimEnd().split("\n").slice(-15)) this.say(`  ${line}`);
    }
    this.say(`The project is left in ${this.options.directory}`);
  }

  /** The engine that runs, or ran last. */
  get engine(): LiveProcess {
    return this.#engine!;
  }

  /** How long a worker may take to restart after an edit or a restart of the engine. */
  get restartMs(): number {
    return RESTART_MS[this.options.isolation];
  }

  /** A first installation in software emulation may take longer than the default. */
  get timeout(): readonly string[] {
    return this.options.isolation === "microvm" ? ["--timeout", "15m"] : [];
  }

  /** The arguments that add a worker. */
  addOf(path: string): string[] {
    return ["worker", "add", path, "--isolation", this.options.isolation, ...this.timeout];
  }

  /** Makes the project, whose engine then has the port of this run. */
  async createProject(): Promise<void> {
    const { directory, port, walkthrough } = this.options;
    this.title("1. Make a project");
    const name = directory.slice(parentOf(directory).length).replace("/", "");
    const args = ["create", "--template", walkthrough.template, "--directory", name];
    await this.succeeds(this.#outside.run(args));
    this.say(`$ cd ${directory}`);
    if (this.#usesDefaultPort) return;
    await this.edit(
      "config.yaml",
      (text) => `engine:\n  port: ${port}\n${text}`,
      `engine.port is ${port}`,
    );
    this.say(`$ export ENGINE_URL=${this.#url}`);
  }

  /** Starts the engine, and waits until it listens. */
  async startEngine(title: string): Promise<void> {
    if (this.#isAbandoned) throw new CommandError("the quickstart has ended");
    this.title(title);
    this.#engine = this.inside.start(["--config", "config.yaml"], { outOnly: true });
    const isUp = await within(this.restartMs, this.#engine.sees(this.#url));
    this.expect(isUp === true, `the engine serves ${this.#url}`, this.#engine.printed);
  }

  /** Kills the engine, as a machine that loses its power does, and starts it again. */
  async restartKilled(title: string): Promise<void> {
    this.say(`\n   … and an engine that is killed\n$ kill -9 ${this.engine.pid}`);
    this.engine.kill("SIGKILL");
    await this.engine.ended;
    await this.startEngine(title);
  }

  /** Edits a file of the project, and says how. */
  async edit(path: string, change: (text: string) => string, what: string): Promise<void> {
    const file = `${this.options.directory}/${path}`;
    await Deno.writeTextFile(file, change(await Deno.readTextFile(file)));
    this.say(`# edited ${path}: ${what}`);
  }

  /**
   * Sends a request to the HTTP port, as `curl` does, once its route is there: a GET, or a POST of
   * a JSON text. Shows the head of the response, and its body unless it is long.
   */
  async curl(path: string, sent?: string): Promise<HttpOutcome> {
    const { httpPort } = this.options;
    const url = `localhost:${httpPort}${path}`;
    const post = `-X POST ${url} -H 'Content-Type: application/json' -d '${sent}'`;
    this.say(`$ curl -i ${sent === undefined ? url : post}`);
    const headers = { "Content-Type": "application/json" };
    const request = sent === undefined ? {} : { method: "POST", headers, body: sent };
    const response = await requestUntilServed(`http://${url}`, request, this.restartMs);
    const text = await response.text();
    this.say(`  HTTP/1.1 ${response.status} ${response.statusText}`);
    this.say(`  content-type: ${response.headers.get("content-type")}`);
    this.say(text.length > SHOWN_CHARS_MAX ? `  (${text.length} characters)` : `  ${text}`);
    return { status: response.status, text };
  }

  /** Calls a function, and checks its result. */
  async returns(args: readonly string[], result: JsonObject): Promise<void> {
    const { stdout } = await this.succeeds(this.inside.run(["trigger", ...args]));
    this.expect(
      compactJson(JSON.parse(stdout)) === compactJson(result),
      compactJson(result),
      stdout,
    );
  }

  /** The outcome of a command, which has to be exit code 0. */
  async succeeds(running: Promise<Outcome>): Promise<Outcome> {
    const outcome = await running;
    this.expect(outcome.code === 0, "exit code 0", `${outcome.code}\n${outcome.stderr}`);
    return outcome;
  }

  /** Fails the run unless something holds. */
  expect(holds: boolean, wanted: string, found: string): asserts holds {
    if (!holds) throw new CommandError(`expected ${wanted}, received ${found.trim()}`);
  }

  /** Prints the title of a step. */
  title(text: string): void {
    this.say(`\n${text}`);
  }

  /** Prints a line. */
  say(line: string): void {
    this.options.say(line);
  }

  /** Sends a signal only if the engine has got none: a second one would abort running calls. */
  async #stopEngine(engine: LiveProcess, afterCtrlC: boolean): Promise<Outcome | undefined> {
    const isStopping = afterCtrlC &&
      await within(CTRL_C_MS, engine.sees("Stopping; running calls"));
    if (!isStopping) engine.kill("SIGINT");
    return await within(END_MS[this.options.isolation], engine.ended);
  }

  get #url(): string {
    return `ws://127.0.0.1:${this.options.port}`;
  }

  get #usesDefaultPort(): boolean {
    return this.options.port === 49134;
  }

  async #checkMachines(): Promise<void> {
    this.title("Workers run in microVMs; without KVM each start takes tens of seconds");
    const { code } = await this.#outside.run(["vm", "status"]);
    if (code !== 0) {
      throw new CommandError("this machine has no microVMs yet; run: engine vm setup");
    }
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
