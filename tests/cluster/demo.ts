/**
 * Three engines and three NATS nodes as plain processes, of which one of each is killed while
 * calls, jobs and HTTP requests go on: `deno task cluster-demo`.
 *
 * Ports are free ones, data lies in temporary folders, and all that was started ends with it, by
 * process id. Each step prints what it shows.
 *
 * @module
 */
import { type InvocationError, registerWorker, type Worker } from "../../mod.ts";
import { type EngineProcess, freePort } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";
import { startEngine } from "./cluster_process.ts";
import { type Nats, startNats, withoutNats } from "./servers.ts";

const NAMES = ["a", "b", "c"] as const;
/** Between two calls, requests and jobs. */
const PACE_MS = 20;
/** Answers that are to come after a death before the next step. */
const ANSWERS = 50;
/** What a job may meet while no engine keeps the state: it is put again, with the same id. */
const JOB_TRIES_MAX = 200;

/** What went on over a step. */
export interface Traffic {
  readonly ok: number;
  /** How often each error was met. */
  readonly errors: Readonly<Record<string, number>>;
  /** The longest time between two answers. */
  readonly gap_ms: number;
}

/** What a step showed. */
export interface Step {
  readonly what: string;
  /** Of a function that a worker of this engine offers, too. */
  readonly calls: Traffic;
  /** Of a function that only workers of the other engines offer. */
  readonly far: Traffic;
  readonly http: Traffic;
  readonly jobs: Traffic;
}

/** What the demonstration showed. */
export interface Demo {
  readonly steps: readonly Step[];
  /** Jobs that were accepted; that ran; that ran more than once. */
  readonly jobs: { readonly put: number; readonly ran: number; readonly again: number };
}

/** Runs it. */
export async function showCluster(print: (line: string) => void): Promise<Demo> {
  print("Starting three nodes of NATS with JetStream, each a process with its data on disk");
  await using nats = await startNats({ count: 3 });
  for (const { url } of nats.nodes) print(`  ${url}`);
  print("Starting three engines; each serves HTTP on a port of its own");
  await using shop = await Shop.open(nats);
  for (const line of await shop.status(0)) print(`  ${line}`);
  const steps: Step[] = [];
  const show = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    print(what);
    const step = await shop.watch(what, act);
    steps.push(step);
    for (const line of stepLines(step)) print(`  ${line}`);
  };
  const keeper = await shop.keeper();
  const witness = (keeper + 1) % NAMES.length;
  shop.begin(witness);
  print(`Calls, jobs and HTTP requests go to engine ${NAMES[witness]} from now on`);
  await show("All run", () => Promise.resolve());
  await show(
    `Killing engine ${NAMES[keeper]} with SIGKILL: it keeps the state, and runs a worker`,
    () => shop.engines[keeper]!.kill("SIGKILL"),
  );
  await show(`Starting engine ${NAMES[keeper]} again`, () => shop.engines[keeper]!.start());
  const node = nats.nodes[1]!;
  await show(`Killing NATS node ${node.url} with SIGKILL`, () => node.kill());
  await show("Starting it again", () => node.start());
  await shop.end();
  const jobs = { put: shop.accepted.size, ran: shop.ran.size, again: shop.again };
  print(`Of ${jobs.put} accepted jobs, ${jobs.ran} ran, ${jobs.again} more than once`);
  print(`Now engine ${NAMES[witness]} says:`);
  for (const line of await shop.status(witness)) print(`  ${line}`);
  return { steps, jobs };
}

function stepLines({ calls, far, http, jobs }: Step): string[] {
  const kinds = [["calls", calls], ["calls of others", far], ["HTTP", http], [
    "jobs",
    jobs,
  ]] as const;
  return kinds.map(([what, traffic]) => {
    const errors = Object.entries(traffic.errors).map(([code, times]) => `${times} ${code}`);
    const failed = errors.length === 0 ? "none failed" : `failed: ${errors.join(", ")}`;
    return `${what.padEnd(15)}  ${traffic.ok} went well, ${failed}; ` +
      `longest pause ${Math.round(traffic.gap_ms)} ms`;
  });
}

/** Counts outcomes of one kind. */
class Counter {
  ok = 0;
  #errors: Record<string, number> = {};
  #gap = 0;
  #last = performance.now();

  add(error?: string): void {
    if (error !== undefined) {
      this.#errors[error] = (this.#errors[error] ?? 0) + 1;
      return;
    }
    const now = performance.now();
    this.#gap = Math.max(this.#gap, now - this.#last);
    this.#last = now;
    this.ok++;
  }

  take(): Traffic {
    const taken = { ok: this.ok, errors: this.#errors, gap_ms: this.#gap };
    this.ok = this.#gap = 0;
    this.#errors = {};
    this.#last = performance.now();
    return taken;
  }
}

/** The engines, a worker at each, and a caller. */
class Shop implements AsyncDisposable {
  readonly engines: EngineProcess[] = [];
  readonly accepted = new Set<string>();
  readonly ran = new Set<string>();
  again = 0;
  readonly #ports: number[] = [];
  readonly #workers: Worker[] = [];
  readonly #stack = new AsyncDisposableStack();
  readonly #ending = new AbortController();
  readonly #counters = {
    calls: new Counter(),
    far: new Counter(),
    http: new Counter(),
    jobs: new Counter(),
  };
  #flows: Promise<unknown> = Promise.resolve();

  static async open(nats: Nats): Promise<Shop> {
    await using opening = new AsyncDisposableStack();
    const shop = opening.use(new Shop());
    const settings = `    monitor: ${JSON.stringify(nats.monitors)}\n`;
    for (const name of NAMES) {
      const port = freePort();
      const workers = `  - name: engine-http\n    config: { port: ${port} }\n` +
        "  - name: engine-queue\n    config: { queues: { bills: { backoff_ms: 100 } } }\n";
      const options = { nats: nats.urls, log: "jetstream", workers, settings };
      const engine = shop.#stack.use(await startEngine(name, options));
      shop.engines.push(engine);
      shop.#ports.push(port);
      shop.#offer(engine, name);
    }
    await until(() => shop.#isWhole());
    opening.move();
    return shop;
  }

  /** What a person sees of it, at one of the engines. */
  async status(at: number): Promise<string[]> {
    const { stdout } = await this.engines[at]!.command("cluster", "status");
    return stdout.trimEnd().split("\n");
  }

  /** The engine that keeps the state. */
  async keeper(): Promise<number> {
    const { engines } = await this.#ask<{ engines: { name: string; keeper: boolean }[] }>(
      "engine::cluster::engines",
    );
    return NAMES.findIndex((name) => engines.some((one) => one.name === name && one.keeper));
  }

  /** Begins to call, to request and to put jobs at one of the engines. */
  begin(at: number): void {
    const caller = this.#connect(this.engines[at]!, "caller");
    const url = `http://127.0.0.1:${this.#ports[at]}/price`;
    for (const [i, worker] of this.#workers.slice(0, NAMES.length).entries()) {
      if (i !== at) worker.registerFunction("shop::stock", () => NAMES[i]);
    }
    const { calls, far, http } = this.#counters;
    this.#flows = Promise.all([
      this.#flow(calls, () => caller.trigger({ function_id: "shop::price", payload: 1 })),
      this.#flow(far, () => caller.trigger({ function_id: "shop::stock", payload: 1 })),
      this.#flow(http, () => request(url)),
      this.#putJobs(caller),
    ]);
  }

  /** Does something, and waits until each kind of traffic went well again for a while. */
  async watch(what: string, act: () => Promise<unknown>): Promise<Step> {
    const { calls, far, http, jobs } = this.#counters;
    const all = [calls, far, http, jobs];
    for (const counter of all) counter.take();
    await act();
    const before = all.map(({ ok }) => ok);
    await until(() => all.every((counter, i) => counter.ok >= before[i]! + ANSWERS));
    const taken = { calls: calls.take(), far: far.take() };
    return { what, ...taken, http: http.take(), jobs: jobs.take() };
  }

  /** Stops the traffic and waits for the jobs. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.#flows;
    await until(() => this.accepted.isSubsetOf(this.ran), () => `${this.ran.size} jobs ran`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#flows;
    await Promise.all(this.#workers.map((worker) => worker.shutdown()));
    await this.#stack.disposeAsync();
  }

  #connect({ url }: EngineProcess, workerName: string): Worker {
    const reconnect = { firstMs: 50, maxMs: 200 };
    const worker = registerWorker(url, { workerName, reconnect, onError: () => {} });
    this.#workers.push(worker);
    return worker;
  }

  #offer(engine: EngineProcess, name: string): void {
    const worker = this.#connect(engine, `shop-${name}`);
    worker.registerFunction("shop::price", () => ({ status_code: 200, body: { by: name } }));
    worker.registerTrigger({
      type: "http",
      function_id: "shop::price",
      config: { api_path: "/price", http_method: "GET" },
    });
    worker.registerFunction("shop::bill", ({ id }: { id: string }) => {
      if (this.ran.has(id)) this.again++;
      this.ran.add(id);
      return null;
    });
  }

  /** Whether the engines are linked, and one keeps the state. */
  async #isWhole(): Promise<boolean> {
    for (const worker of this.#workers) {
      const { engines } = await this.#ask<{ engines: { keeper: boolean }[] }>(
        "engine::cluster::engines",
        worker,
      );
      if (engines.length < NAMES.length || !engines.some(({ keeper }) => keeper)) return false;
    }
    return true;
  }

  async #ask<Answer>(function_id: string, worker = this.#workers[0]!): Promise<Answer> {
    return await worker.trigger<unknown, Answer>({ function_id, payload: {}, timeoutMs: 5_000 });
  }

  async #flow(counter: Counter, act: () => Promise<unknown>): Promise<void> {
    while (!this.#ending.signal.aborted) {
      await act().then(() => counter.add(), (thrown) => counter.add(codeOf(thrown)));
      await pause();
    }
  }

  /** Puts job after job; one whose answer is an error, or none, is put again. */
  async #putJobs(caller: Worker): Promise<void> {
    const { jobs } = this.#counters;
    for (let number = 1; !this.#ending.signal.aborted; number++) {
      const id = `job-${number}`;
      const options = { function_id: "shop::bill", payload: { id }, queue: "bills", id };
      for (let tries = 0; tries < JOB_TRIES_MAX && !this.accepted.has(id); tries++) {
        await caller.enqueue(options).then(
          () => {
            this.accepted.add(id);
            jobs.add();
          },
          (thrown) => jobs.add(codeOf(thrown)),
        );
        await pause();
        if (this.#ending.signal.aborted) break;
      }
    }
  }
}

async function request(url: string): Promise<void> {
  const response = await fetch(url, { signal: AbortSignal.timeout(30_000) });
  await response.body?.cancel();
  if (!response.ok) throw Object.assign(new Error(), { code: String(response.status) });
}

function codeOf(thrown: unknown): string {
  return (thrown as Partial<InvocationError>).code ?? String(thrown);
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PACE_MS));
}

if (import.meta.main && !withoutNats) await showCluster((line) => console.log(line));
