/**
 * The steps of the template `quickstart`: two workers in two languages, state and HTTP, as the
 * section "Quickstart, step by step" of docs/tutorial/first_system.md has them.
 *
 * @module
 */
import { CommandError } from "../failure.ts";
import { compactJson } from "../render.ts";
import type { Outcome } from "./machine.ts";
import type { QuickstartRun, Walkthrough } from "./run.ts";

/** Two workers that call each other. */
export const callsWalkthrough: Walkthrough = {
  template: "quickstart",
  ports: ({ httpPort }) => [{
    port: httpPort,
    option: "--http-port",
    name: "http",
    url: `http://127.0.0.1:${httpPort}`,
  }],
  run: (run) => new CallsSteps(run).all(),
};

class CallsSteps {
  readonly #run: QuickstartRun;
  #total = 0;

  constructor(run: QuickstartRun) {
    this.#run = run;
  }

  async all(): Promise<void> {
    await this.#run.createProject();
    await this.#run.startEngine("2. Start the engine");
    await this.#addPythonWorker();
    await this.#addTypescriptWorker();
    await this.#keepTotal();
    await this.#surviveRestarts();
    await this.#serveHttp();
  }

  async #addPythonWorker(): Promise<void> {
    const run: QuickstartRun = this.#run;
    run.title("3. Add a worker in Python");
    const adding = run.inside.start(run.addOf("./workers/math-worker"));
    await adding.sees("added to");
    const early = await run.inside.run(["trigger", "math::add", "a=2", "b=3"]);
    const isEarly = early.stderr.includes("Function math::add not found") && early.code === 1;
    if (isEarly) run.say("  (not ready yet: that was expected)");
    else run.expect(early.code === 0, "Function math::add not found, or its result", early.stderr);
    const { stdout } = await run.succeeds(adding.ended);
    run.expect(/math-worker is ready: pid \d+/.test(stdout), "math-worker is ready", stdout);
    await run.returns(["math::add", "a=2", "b=3"], { c: 5 });
    await run.returns(["--function-id=math::add", '--payload={"a":2,"b":3}'], { c: 5 });
  }

  async #addTypescriptWorker(): Promise<void> {
    const run: QuickstartRun = this.#run;
    run.title("4. Add a worker in TypeScript that calls the one in Python");
    await run.succeeds(run.inside.run(run.addOf("./workers/caller-worker")));
    await run.returns(["math::add_two_numbers", "a=2", "b=3"], { c: 5 });
  }

  async #keepTotal(): Promise<void> {
    const run: QuickstartRun = this.#run;
    run.title("5. Add state while everything runs");
    await run.succeeds(run.inside.run(["worker", "add", "engine-state"]));
    await this.#uncomment("workers/math-worker/math_worker.py", "state");
    await this.#totalComes(5);
    await this.#addsTo(["math::add", "a=2", "b=3"], 5);
    await this.#addsTo(["math::add_two_numbers", "a=10", "b=20"], 30);
  }

  async #surviveRestarts(): Promise<void> {
    const run: QuickstartRun = this.#run;
    run.title("   The total survives a restart of the worker …");
    await run.succeeds(run.inside.run(["worker", "restart", "math-worker", ...run.timeout]));
    await this.#addsTo(["math::add", "a=2", "b=3"], 5);
    await run.restartKilled("   Start it again");
    await this.#totalComes(5);
    await this.#addsTo(["math::add_two_numbers", "a=2", "b=3"], 5, run.restartMs);
  }

  async #serveHttp(): Promise<void> {
    const run: QuickstartRun = this.#run;
    const { httpPort } = run.options;
    run.title("6. Add HTTP while everything runs");
    const config = httpPort === 3111 ? [] : [`port=${httpPort}`];
    await run.succeeds(run.inside.run(["worker", "add", "engine-http", ...config]));
    await this.#uncomment("workers/caller-worker/worker.ts", "http");
    const sent = '{"a": 100, "b": 200}';
    const { status, text } = await run.curl("/math/add-two-numbers", sent);
    this.#total += 300;
    const wanted = compactJson({ c: 300, running_total: this.#total });
    run.expect(status === 200 && text === wanted, `200 with ${wanted}`, text);
    await run.succeeds(run.inside.run(["worker", "list"]));
  }

  async #uncomment(path: string, block: string): Promise<void> {
    await this.#run.edit(
      path,
      (text) => uncommentBlock(text, block),
      `the ${block} block is uncommented, and the file saved`,
    );
  }

  /** Waits for the first result with a total, from a worker that is restarting. */
  async #totalComes(c: number): Promise<void> {
    const { inside, restartMs } = this.#run;
    const has = ({ stdout }: Outcome) => stdout.includes("running_total");
    const args = ["trigger", "math::add", "a=2", "b=3"];
    const outcome = await inside.runUntil(args, has, restartMs).catch((thrown) => {
      throw new CommandError(`expected a running_total from math::add: ${thrown.message}`);
    });
    this.#checkTotal(outcome, c);
  }

  async #addsTo(args: readonly string[], c: number, limitMs?: number): Promise<void> {
    const { inside } = this.#run;
    const call = ["trigger", ...args];
    const outcome = limitMs === undefined
      ? await inside.run(call)
      : await inside.runUntil(call, ({ code }) => code === 0, limitMs);
    this.#checkTotal(outcome, c);
  }

  #checkTotal(outcome: Outcome, c: number): void {
    this.#total += c;
    const wanted = `{ "c": ${c}, "running_total": ${this.#total} }`;
    this.#run.expect(outcome.stdout.trim() === wanted, wanted, outcome.stdout + outcome.stderr);
  }
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
