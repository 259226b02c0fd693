/**
 * Restarts and edits of a real worker under load: no call is lost.
 *
 * The load is open: calls are sent by the clock, whether the ones before have been answered or not.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, Worker } from "../../mod.ts";
import type { WorkerStatus } from "../../engine/mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

/** Each call takes a moment, so that some run whenever a replica is stopped. */
const source = (version: number): string => `
import { registerWorker } from "engine-sdk";
registerWorker().registerFunction("echo::late", async ({ n }: { n: number }) => {
  await new Promise((resolve) => setTimeout(resolve, 20));
  return { n, version: ${version}, pid: Deno.pid };
});
`;

/** An engine that runs the worker `echo`, and a client of it. */
async function setup(replicas: number) {
  const engine = await EngineProcess.start();
  const write = (version: number): Promise<void> =>
    engine.write("workers/echo/main.ts", source(version));
  await engine.write(
    "workers/echo/engine.worker.yaml",
    `name: echo\nruntime: { kind: typescript, entry: main.ts }\nreplicas: ${replicas}\n`,
  );
  await engine.write(
    "workers/echo/deno.json",
    '{ "imports": { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" } }',
  );
  await write(1);
  const added = await engine.command("worker", "add", "./workers/echo", "--isolation", "process");
  assert.equal(added.code, 0, added.stderr + engine.stderr);
  const worker = engine.connect();
  const status = (): Promise<WorkerStatus> => statusOf(worker);
  const areReady = async (): Promise<boolean> =>
    (await status()).replicas.every(({ state }) => state === "ready");
  await until(areReady, () => engine.stderr);
  const end = async (): Promise<void> => {
    await worker.shutdown();
    await engine[Symbol.asyncDispose]();
  };
  return { engine, worker, write, status, areReady, [Symbol.asyncDispose]: end };
}

async function statusOf(worker: Worker): Promise<WorkerStatus> {
  const call = { function_id: "engine::supervisor::status", payload: { name: "echo" } };
  return await worker.trigger<Json, Json>(call) as unknown as WorkerStatus;
}

/** What a call brought. */
interface Answer {
  readonly n: number;
  readonly version: number;
  readonly pid: number;
}

/** Calls so often per second until end(). */
class Load {
  readonly #worker: Worker;
  readonly #perSecond: number;
  readonly #began = performance.now();
  readonly #calls: Promise<void>[] = [];
  readonly answers: Answer[] = [];
  readonly failures: string[] = [];
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(worker: Worker, perSecond: number) {
    this.#worker = worker;
    this.#perSecond = perSecond;
    this.#timer = setInterval(() => this.#catchUp(), 2);
  }

  /** Sends no more, and waits for what was sent. Gives the calls per second that were reached. */
  async end(): Promise<number> {
    clearInterval(this.#timer);
    const rate = this.#calls.length / (performance.now() - this.#began) * 1_000;
    await Promise.all(this.#calls);
    return rate;
  }

  get sent(): number {
    return this.#calls.length;
  }

  #catchUp(): void {
    const due = (performance.now() - this.#began) / 1_000 * this.#perSecond;
    while (this.#calls.length < due) this.#calls.push(this.#call(this.#calls.length));
  }

  async #call(n: number): Promise<void> {
    try {
      const call = { function_id: "echo::late", payload: { n }, timeout_ms: 60_000 };
      const answer = await this.#worker.trigger<Json, Json>(call) as unknown as Answer;
      assert.equal(answer.n, n);
      this.answers.push(answer);
    } catch (thrown) {
      this.failures.push(String(thrown));
    }
  }
}

/** Waits until what runs is new in every replica and ready; gives the states seen on the way. */
async function rolled(
  there: Awaited<ReturnType<typeof setup>>,
  before: readonly (number | null)[],
): Promise<Set<string>> {
  const states = new Set<string>();
  await until(async () => {
    const { state, replicas } = await there.status();
    states.add(state);
    return replicas.every(({ state, pid }) => state === "ready" && !before.includes(pid));
  }, () => there.engine.stderr);
  return states;
}

Deno.test("three replicas are restarted one after the other under 500 calls/s, and none fails", async () => {
  await using there = await setup(3);
  const before = (await there.status()).replicas.map(({ pid }) => pid);
  assert.equal(new Set(before).size, 3);
  const load = new Load(there.worker, 500);

  const restarted = there.engine.command("worker", "restart", "echo");
  const states = await rolled(there, before);
  const rate = await load.end();

  assert.deepEqual(load.failures, []);
  assert.equal(load.answers.length, load.sent);
  assert.ok(rate > 400, `${rate} calls/s`);
  assert.deepEqual([...states], ["ready"]);
  assert.ok(new Set(load.answers.map(({ pid }) => pid)).size >= 4);
  assert.equal((await restarted).code, 0);
});

Deno.test("a single worker is edited under 100 calls/s, and none fails", async () => {
  await using there = await setup(1);
  const before = (await there.status()).replicas.map(({ pid }) => pid);
  const load = new Load(there.worker, 100);
  await until(() => load.answers.length > 50);

  const saved = performance.now();
  await there.write(2);
  await until(() => load.answers.some(({ version }) => version === 2));
  const took = performance.now() - saved;
  await rolled(there, before);
  await load.end();

  assert.deepEqual(load.failures, []);
  assert.equal(load.answers.length, load.sent);
  assert.equal(load.answers.at(-1)!.version, 2);
  assert.ok(took < 30_000, `the new version answered ${took} ms after it was saved`);
});

for (const count of [1, 3]) {
  const who = count === 1 ? "the only replica" : `all ${count} replicas`;
  Deno.test(`an edit that does not run leaves ${who} running, and no call fails`, async () => {
    await using there = await setup(count);
    const pids = async () => (await there.status()).replicas.map(({ pid }) => pid);
    const before = await pids();
    const load = new Load(there.worker, 100);

    await there.engine.write("workers/echo/main.ts", "throw new Error('broken edit');");
    await until(async () => /^Reload failed/.test((await there.status()).reason ?? ""));
    const { state, reason } = await there.status();

    assert.equal(state, "ready");
    assert.match(
      reason!,
      /^Reload failed: It ended with exit code 1 before it was ready: .*broken edit.*version before/,
    );
    assert.deepEqual(await pids(), before);

    await there.write(3);
    await rolled(there, before);
    await load.end();
    assert.deepEqual(load.failures, []);
  });
}
