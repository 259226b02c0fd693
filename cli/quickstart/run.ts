/**
 * The steps of the quickstart, each with what is expected of it.
 *
 * @module
 */
import type { Isolation, WorkerStatus } from "../../engine/mod.ts";
import type { JsonObject } from "../../mod.ts";
import { CommandError } from "../failure.ts";
import { compactJson, renderDuration } from "../render.ts";
import {
  checkPort,
  checkPython,
  isRunning,
  type LiveProcess,
  LiveShell,
  type Outcome,
  postUntilServed,
  within,
} from "./machine.ts";

/** How long a worker may take to restart after an edit or a restart of the engine. */
const RESTART_MS = { process: 60_000, microvm: 600_000 };
/** How long an engine may take to end. */
const END_MS = { process: 30_000, microvm: 90_000 };
/** How long Ctrl-C, which a terminal sends to all processes, may take to reach the engine. */
const CTRL_C_MS = 500;

/** Where and how the quickstart runs. */
export interface QuickstartOptions {
  /** The program `engine`. */
  readonly main: URL;
  /** Absolute; created by the first step. */
  readonly directory: string;
  /** Whether the directory is removed after success. */
  readonly isTemporary: boolean;
  readonly port: number;
  readonly httpPort: number;
  /** Isolation of the workers; microVMs may be slow, so all timeouts are longer. */
  readonly isolation: Isolation;
  say(line: string): void;
}

/** One run of the quickstart, from an empty directory to an HTTP request. */
export class QuickstartRun {
  readonly #options: QuickstartOptions;
  readonly #began = performance.now();
  readonly #outside: LiveShell;
  readonly #inside: LiveShell;
  #engine: LiveProcess | undefined;
  #isAbandoned = false;
  #total = 0;

  constructor(options: QuickstartOptions) {
    this.#options = options;
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
    this.#inside = shell(options.directory);
  }

  /**
   * Runs all steps in order.
   *
   * @throws {CommandError} At the first result that is not as expected.
   */
  async steps(): Promise<void> {
    const { port, httpPort, directory } = this.#options;
    checkPort(port, "--port");
    checkPort(httpPort, "--http-port");
    await checkPython();
    this.#say(`The quickstart, in ${directory}`);
    if (this.#options.isolation === "microvm") await this.#checkMachines();
    await this.#createProject();
    await this.#startEngine("2. Start the engine");
    await this.#addPythonWorker();
    await this.#addTypescriptWorker();
    await this.#keepTotal();
    await this.#surviveRestarts();
    await this.#serveHttp();
  }

  /** Prints the directory and the addresses, for `--keep`. */
  printAddresses(): void {
    const { directory, httpPort } = this.#options;
    this.#title("Everything keeps running; Ctrl-C ends it");
    this.#say(`  project  ${directory}`);
    this.#say(`  workers  ${this.#url}`);
    this.#say(`  http     http://127.0.0.1:${httpPort}`);
    if (!this.#usesDefaultPort) this.#say(`  For other terminals: export ENGINE_URL=${this.#url}`);
  }

  /**
   * The process ids of the workers, for {@linkcode QuickstartRun.finish}.
   *
   * @throws {CommandError} The engine cannot be asked.
   */
  async workerPids(): Promise<readonly number[]> {
    const args = ["worker", "list", "--json"];
    const { stdout } = await this.#succeeds(this.#inside.run(args, { quiet: true }));
    const workers = JSON.parse(stdout) as readonly WorkerStatus[];
    const own = workers.filter(({ kind }) => kind === "directory").map(({ pid }) => pid);
    return own.filter((pid) => pid !== null);
  }

  /**
   * Stops the engine, and checks that it and the workers with these pids have ended.
   *
   * @param afterCtrlC The user pressed Ctrl-C, so that the engine may be stopping already.
   * @throws {CommandError} A process does not end.
   */
  async finish(pids: readonly number[], afterCtrlC: boolean): Promise<void> {
    this.#title("Stop");
    this.#say("$ kill -INT <engine>");
    const outcome = await this.#stopEngine(this.#engine!, afterCtrlC);
    this.#expect(outcome?.code === 0, "the engine ends with 0", `${outcome?.code ?? "no end"}`);
    const left = pids.filter(isRunning);
    this.#expect(left.length === 0, "no worker is left", `processes ${left.join(", ")}`);
    if (this.#options.isTemporary) {
      await Deno.remove(parentOf(this.#options.directory), { recursive: true });
    } else this.#say(`The project stays in ${this.#options.directory}`);
    const took = renderDuration(performance.now() - this.#began);
    this.#say(`\nAll as expected, in ${took}`);
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
      this.#say("\nWhat the engine logged last:");
      for (const line of engine.printed.trimEnd().split("\n").slice(-15)) this.#say(`  ${line}`);
    }
    this.#say(`The project is left in ${this.#options.directory}`);
  }

  /** Sends a signal only if the engine has got none: a second one would abort running calls. */
  async #stopEngine(engine: LiveProcess, afterCtrlC: boolean): Promise<Outcome | undefined> {
    const isStopping = afterCtrlC &&
      await within(CTRL_C_MS, engine.sees("Stopping; running calls"));
    if (!isStopping) engine.kill("SIGINT");
    return await within(END_MS[this.#options.isolation], engine.ended);
  }

  get #url(): string {
    return `ws://127.0.0.1:${this.#options.port}`;
  }

  get #restartMs(): number {
    return RESTART_MS[this.#options.isolation];
  }

  /** A first installation in software emulation may take longer than the default. */
  get #timeout(): string[] {
    return this.#options.isolation === "microvm" ? ["--timeout", "15m"] : [];
  }

  #addOf(path: string): string[] {
    return ["worker", "add", path, "--isolation", this.#options.isolation, ...this.#timeout];
  }

  get #usesDefaultPort(): boolean {
    return this.#options.port === 49134;
  }

  async #checkMachines(): Promise<void> {
    this.#title("Workers run in microVMs; without KVM each start takes tens of seconds");
    const { code } = await this.#outside.run(["vm", "status"]);
    if (code !== 0) {
      throw new CommandError("this machine has no microVMs yet; run: engine vm setup");
    }
  }

  async #createProject(): Promise<void> {
    const { directory, port } = this.#options;
    this.#title("1. Make a project");
    const name = directory.slice(parentOf(directory).length).replace("/", "");
    const args = ["create", "--template", "quickstart", "--directory", name];
    await this.#succeeds(this.#outside.run(args));
    this.#say(`$ cd ${directory}`);
    if (this.#usesDefaultPort) return;
    const path = `${directory}/config.yaml`;
    const text = await Deno.readTextFile(path);
    await Deno.writeTextFile(path, `engine:\n  port: ${port}\n${text}`);
    this.#say(`# edited config.yaml: engine.port is ${port}`);
    this.#say(`$ export ENGINE_URL=${this.#url}`);
  }

  async #startEngine(title: string): Promise<void> {
    if (this.#isAbandoned) throw new CommandError("the quickstart has ended");
    this.#title(title);
    this.#engine = this.#inside.start(["--config", "config.yaml"], { outOnly: true });
    const isUp = await within(this.#restartMs, this.#engine.sees(this.#url));
    this.#expect(isUp === true, `the engine serves ${this.#url}`, this.#engine.printed);
  }

  async #addPythonWorker(): Promise<void> {
    this.#title("3. Add a worker in Python");
    const args = this.#addOf("./workers/math-worker");
    const adding = this.#inside.start(args);
    await adding.sees("added to");
    const early = await this.#inside.run(["trigger", "math::add", "a=2", "b=3"]);
    const isEarly = early.stderr.includes("Function math::add not found") && early.code === 1;
    if (isEarly) this.#say("  (not ready yet: that was expected)");
    else {this.#expect(
        early.code === 0,
        "Function math::add not found, or its result",
        early.stderr,
      );}
    const { stdout } = await this.#succeeds(adding.ended);
    this.#expect(/math-worker is ready: pid \d+/.test(stdout), "math-worker is ready", stdout);
    await this.#returns(["math::add", "a=2", "b=3"], { c: 5 });
    await this.#returns(["--function-id=math::add", '--payload={"a":2,"b":3}'], { c: 5 });
  }

  async #addTypescriptWorker(): Promise<void> {
    this.#title("4. Add a worker in TypeScript that calls the one in Python");
    await this.#succeeds(this.#inside.run(this.#addOf("./workers/caller-worker")));
    await this.#returns(["math::add_two_numbers", "a=2", "b=3"], { c: 5 });
  }

  async #keepTotal(): Promise<void> {
    this.#title("5. Add state while everything runs");
    await this.#succeeds(this.#inside.run(["worker", "add", "engine-state"]));
    await this.#uncomment("workers/math-worker/math_worker.py", "state");
    await this.#totalComes(5);
    await this.#addsTo(["math::add", "a=2", "b=3"], 5);
    await this.#addsTo(["math::add_two_numbers", "a=10", "b=20"], 30);
  }

  async #surviveRestarts(): Promise<void> {
    this.#title("   The total survives a restart of the worker …");
    await this.#succeeds(this.#inside.run(["worker", "restart", "math-worker", ...this.#timeout]));
    await this.#addsTo(["math::add", "a=2", "b=3"], 5);
    const engine = this.#engine!;
    this.#say(`\n   … and an engine that is killed\n$ kill -9 ${engine.pid}`);
    engine.kill("SIGKILL");
    await engine.ended;
    await this.#startEngine("   Start it again");
    await this.#totalComes(5);
    await this.#addsTo(["math::add_two_numbers", "a=2", "b=3"], 5, this.#restartMs);
  }

  async #serveHttp(): Promise<void> {
    const { httpPort } = this.#options;
    this.#title("6. Add HTTP while everything runs");
    const config = httpPort === 3111 ? [] : [`port=${httpPort}`];
    await this.#succeeds(this.#inside.run(["worker", "add", "engine-http", ...config]));
    await this.#uncomment("workers/caller-worker/worker.ts", "http");
    const url = `localhost:${httpPort}/math/add-two-numbers`;
    const sent = '{"a": 100, "b": 200}';
    this.#say(`$ curl -i -X POST ${url} -H 'Content-Type: application/json' -d '${sent}'`);
    const response = await postUntilServed(`http://${url}`, sent, this.#restartMs);
    const text = await response.text();
    this.#say(`  HTTP/1.1 ${response.status} ${response.statusText}`);
    this.#say(`  content-type: ${response.headers.get("content-type")}`);
    this.#say(`  ${text}`);
    this.#total += 300;
    const wanted = compactJson({ c: 300, running_total: this.#total });
    this.#expect(response.status === 200 && text === wanted, `200 with ${wanted}`, text);
    await this.#succeeds(this.#inside.run(["worker", "list"]));
  }

  async #uncomment(path: string, block: string): Promise<void> {
    const file = `${this.#options.directory}/${path}`;
    await Deno.writeTextFile(file, uncommentBlock(await Deno.readTextFile(file), block));
    this.#say(`# edited ${path}: the ${block} block is uncommented, and the file saved`);
  }

  /** Waits for the first result with a total, from a worker that is restarting. */
  async #totalComes(c: number): Promise<void> {
    const has = ({ stdout }: Outcome) => stdout.includes("running_total");
    const args = ["trigger", "math::add", "a=2", "b=3"];
    const outcome = await this.#inside.runUntil(args, has, this.#restartMs).catch((thrown) => {
      throw new CommandError(`expected a running_total from math::add: ${thrown.message}`);
    });
    this.#checkTotal(outcome, c);
  }

  async #addsTo(args: readonly string[], c: number, limitMs?: number): Promise<void> {
    const call = ["trigger", ...args];
    const outcome = limitMs === undefined
      ? await this.#inside.run(call)
      : await this.#inside.runUntil(call, ({ code }) => code === 0, limitMs);
    this.#checkTotal(outcome, c);
  }

  #checkTotal(outcome: Outcome, c: number): void {
    this.#total += c;
    const wanted = `{ "c": ${c}, "running_total": ${this.#total} }`;
    this.#expect(outcome.stdout.trim() === wanted, wanted, outcome.stdout + outcome.stderr);
  }

  async #returns(args: readonly string[], result: JsonObject): Promise<void> {
    const { stdout } = await this.#succeeds(this.#inside.run(["trigger", ...args]));
    this.#expect(
      compactJson(JSON.parse(stdout)) === compactJson(result),
      compactJson(result),
      stdout,
    );
  }

  async #succeeds(running: Promise<Outcome>): Promise<Outcome> {
    const outcome = await running;
    this.#expect(outcome.code === 0, "exit code 0", `${outcome.code}\n${outcome.stderr}`);
    return outcome;
  }

  #expect(holds: boolean, wanted: string, found: string): asserts holds {
    if (!holds) throw new CommandError(`expected ${wanted}, received ${found.trim()}`);
  }

  #title(text: string): void {
    this.#say(`\n${text}`);
  }

  #say(line: string): void {
    this.#options.say(line);
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/**
 * Removes the comment signs of a block, which stands between lines with `NAME: begin` and
 * `NAME: end`.
 *
 * @throws {Error} The markers are missing, or a line of the block is no comment.
 */
export function uncommentBlock(text: string, name: string): string {
  const lines = text.split("\n");
  const begin = lines.findIndex((line) => line.includes(`${name}: begin`));
  const end = lines.findIndex((line, i) => i > begin && isEnd(line, name));
  if (begin < 0 || end < 0) throw new Error(`There is no block between ${name}: begin and end`);
  const block = lines.slice(begin + 1, end).map((line) => {
    const parts = /^(\s*)(?:#|\/\/) ?(.*)$/.exec(line);
    if (!parts) throw new Error(`The block ${name} is uncommented already`);
    return `${parts[1]}${parts[2]}`.trimEnd();
  });
  return [...lines.slice(0, begin + 1), ...block, ...lines.slice(end)].join("\n");
}

function isEnd(line: string, name: string): boolean {
  return line.trim().replace(/^(#|\/\/)\s*/, "") === `${name}: end`;
}
