/**
 * The steps of the template `jobs`: a job that waits for its worker, progress that is followed
 * live, workers and engines that die meanwhile, and a report at times.
 *
 * @module
 */
import { CommandError } from "../failure.ts";
import { renderJson } from "../render.ts";
import { type Outcome, within } from "./machine.ts";
import type { QuickstartOptions, QuickstartRun, RunPort, Walkthrough } from "./run.ts";

/** How many primes there are below the numbers of the jobs. */
const PRIMES: Readonly<Record<number, number>> = {
  100_000: 9_592,
  400_000: 33_860,
  2_000_000: 148_933,
};
/** The first job, which is quick. */
const SHORT = 100_000;
/** Of the jobs that are interrupted: they take seconds, also on a fast machine. */
const LONG = { process: 2_000_000, microvm: 400_000 };
/** How long a job may take. */
const JOB_MS = { process: 120_000, microvm: 600_000 };
/** How long the report may take, which comes every ten seconds. */
const REPORT_MS = 30_000;

/** Background jobs with a page that shows their progress. */
export const jobsWalkthrough: Walkthrough = {
  template: "jobs",
  ports: portsOf,
  run: (run) => new JobsSteps(run).all(),
};

function portsOf({ httpPort, streamPort }: QuickstartOptions): RunPort[] {
  const page = `http://127.0.0.1:${httpPort}/`;
  const streams = `ws://127.0.0.1:${streamPort}/`;
  return [
    { port: httpPort, option: "--http-port", name: "page", url: page },
    { port: streamPort, option: "--stream-port", name: "streams", url: streams },
  ];
}

/** The item of a job. */
interface JobItem {
  readonly below: number;
  readonly done: number;
  readonly primes: number;
}

class JobsSteps {
  readonly #run: QuickstartRun;

  constructor(run: QuickstartRun) {
    this.#run = run;
  }

  async all(): Promise<void> {
    const run: QuickstartRun = this.#run;
    await run.createProject();
    await this.#choosePorts();
    await run.startEngine("2. Start the engine, with the built-in workers of config.yaml");
    await this.#addWebWorker();
    const id = await this.#waitForWorker();
    await this.#addPythonWorker(id);
    await this.#surviveDeaths();
    await this.#report();
  }

  async #choosePorts(): Promise<void> {
    const { httpPort, streamPort } = this.#run.options;
    const usual = { "engine-http": 3111, "engine-stream": 3112 };
    const chosen = { "engine-http": httpPort, "engine-stream": streamPort };
    for (const name of ["engine-http", "engine-stream"] as const) {
      const port = chosen[name];
      if (port === usual[name]) continue;
      const change = (text: string) =>
        text.replace(
          new RegExp(`- name: ${name}\\b.*`),
          `- name: ${name}\n    config: { port: ${port} }`,
        );
      await this.#run.edit("config.yaml", change, `port of ${name} is ${port}`);
    }
  }

  async #addWebWorker(): Promise<void> {
    const run: QuickstartRun = this.#run;
    run.title("3. Add the worker in TypeScript, which serves the page");
    await run.succeeds(run.inside.run(run.addOf("./workers/web-worker")));
    const page = await run.curl("/");
    run.expect(
      page.status === 200 && page.text.includes("<title>Jobs</title>"),
      "a page",
      page.text,
    );
    const client = await run.curl("/engine_sdk_browser.js");
    run.expect(client.text.includes("connectStreams"), "the client of streams", client.text);
    const { text } = await run.curl("/streams");
    const wanted = `{"port":"${run.options.streamPort}"}`;
    run.expect(text === wanted, wanted, text);
  }

  /** Adds a job that no worker can do yet. */
  async #waitForWorker(): Promise<string> {
    const run: QuickstartRun = this.#run;
    run.title("4. Add a job: it waits in the queue, since no worker can do it yet");
    const id = await this.#addJob(SHORT);
    const { stdout } = await run.succeeds(run.inside.run(["queue", "list"]));
    run.expect(/^primes +1 +0 /m.test(stdout), "one job that waits", stdout);
    return id;
  }

  async #addPythonWorker(id: string): Promise<void> {
    const run: QuickstartRun = this.#run;
    run.title("5. Add the worker in Python, and follow the progress as the page does");
    const following = run.inside.start(["stream", "follow", "jobs", "primes"]);
    await following.sees("Following");
    await run.succeeds(run.inside.run(run.addOf("./workers/prime-worker")));
    const end = following.sees(`"done":${SHORT}`);
    await within(JOB_MS[run.options.isolation], end);
    following.kill("SIGINT");
    const { stdout } = await following.ended;
    const parts = stdout.split("\n").filter((line) => line.includes(`${id} update`)).length;
    run.expect(parts > 1, "the progress of the job in parts", stdout);
    await this.#finishes(id, SHORT);
  }

  async #surviveDeaths(): Promise<void> {
    const run: QuickstartRun = this.#run;
    const below = LONG[run.options.isolation];
    run.title("6. A job outlives a worker that is killed, and continues where it was …");
    const first = await this.#addJob(below);
    await this.#isRunning(first);
    const pid = (await run.workerPids()).get("prime-worker");
    run.expect(pid !== undefined, "a process of prime-worker", "none");
    run.say(`$ kill -9 ${pid}`);
    Deno.kill(pid, "SIGKILL");
    await this.#finishes(first, below);
    await this.#hasGoneOn();
    const second = await this.#addJob(below);
    await this.#isRunning(second);
    await run.restartKilled("   Start it again");
    await this.#finishes(second, below);
    await this.#hasGoneOn();
  }

  async #report(): Promise<void> {
    const run: QuickstartRun = this.#run;
    run.title("7. A function reports every ten seconds");
    const { stdout } = await run.succeeds(run.inside.run(["cron", "list"]));
    run.expect(stdout.includes("jobs::report"), "the trigger of jobs::report", stdout);
    const args = ["stream", "get", "jobs", "reports", "latest"];
    const isDone = ({ stdout }: Outcome) => stdout.includes('"finished": 3 }');
    await this.#until(args, isDone, REPORT_MS, "a report of 3 finished jobs");
    await run.succeeds(run.inside.run(["queue", "list"]));
    await run.succeeds(run.inside.run(["worker", "list"]));
  }

  /** Adds a job as the page does, and returns its id. */
  async #addJob(below: number): Promise<string> {
    const { status, text } = await this.#run.curl("/jobs", `{"below": ${below}}`);
    const { id } = status === 202 ? JSON.parse(text) as { id: string } : { id: "" };
    this.#run.expect(id !== "", "202 with an id", text);
    return id;
  }

  async #isRunning(id: string): Promise<void> {
    const isBegun = ({ done, below }: JobItem) => done > 0 && done < below;
    await this.#itemBecomes(id, isBegun, "a job that is running");
  }

  async #finishes(id: string, below: number): Promise<void> {
    const wanted = { below, done: below, primes: PRIMES[below]! };
    const isFinished = (item: JobItem) => item.done === below;
    const { stdout } = await this.#itemBecomes(id, isFinished, "a job that is finished");
    this.#run.expect(stdout.trim() === renderJson(wanted), renderJson(wanted), stdout);
  }

  /** The last job of the worker did not begin with 0. */
  async #hasGoneOn(): Promise<void> {
    const args = ["worker", "logs", "prime-worker", "--tail", "1"];
    const { stdout } = await this.#run.succeeds(this.#run.inside.run(args));
    this.#run.expect(/"from": [1-9]/.test(stdout), "a job that goes on where it was", stdout);
  }

  async #itemBecomes(
    id: string,
    accept: (item: JobItem) => boolean,
    what: string,
  ): Promise<Outcome> {
    const args = ["stream", "get", "jobs", "primes", id];
    const fits = ({ code, stdout }: Outcome) => code === 0 && accept(JSON.parse(stdout));
    return await this.#until(args, fits, JOB_MS[this.#run.options.isolation], what);
  }

  async #until(
    args: readonly string[],
    accept: (outcome: Outcome) => boolean,
    limitMs: number,
    what: string,
  ): Promise<Outcome> {
    return await this.#run.inside.runUntil(args, accept, limitMs).catch((thrown) => {
      throw new CommandError(`expected ${what}: ${thrown.message}`);
    });
  }
}
