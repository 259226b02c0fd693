/**
 * The state of several engines: processes on real servers.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { EngineProcess } from "../fakes/engine_process.ts";
import { TriggerAction, type Worker } from "../../mod.ts";
import { until } from "../fakes/until.ts";
import { startEngine } from "./cluster_process.ts";
import { startNats, startPostgres, withoutNats, withoutPostgres } from "./servers.ts";

const test = { sanitizeOps: false, sanitizeResources: false };

/** Which of some engines keeps the state, by what they logged. */
function keeperOf(engines: readonly EngineProcess[]): EngineProcess | undefined {
  return engines.find(({ stderr }) =>
    stderr.lastIndexOf("this engine keeps the state") >
      stderr.lastIndexOf("stops keeping the state")
  );
}

function set(worker: Worker, key: string, value: number): Promise<unknown> {
  return worker.trigger({ function_id: "state::set", payload: { scope: "s", key, value } });
}

function get(worker: Worker, key: string): Promise<unknown> {
  return worker.trigger({ function_id: "state::get", payload: { scope: "s", key } });
}

/** Waits until the state can be read. */
function untilServed(worker: Worker): Promise<void> {
  return until(() => get(worker, "none").then(() => true));
}

/** State goes through any engine, and on when its keeper is killed. */
async function keepsState(options: { nats: readonly string[]; log: string }): Promise<void> {
  await using a = await startEngine("a", options);
  await using b = await startEngine("b", options);
  const engines = [a, b];
  const workers = [a.connect("one"), b.connect("two")];
  for (const worker of workers) await untilServed(worker);
  for (let i = 0; i < 20; i++) await set(workers[i % 2]!, `k${i}`, i);
  for (let i = 0; i < 20; i++) assert.equal(await get(workers[(i + 1) % 2]!, `k${i}`), i);
  const keeper = keeperOf(engines)!;
  const other = keeper === a ? workers[1]! : workers[0]!;

  await keeper.kill("SIGKILL");

  // Calls on their way to the dead engine end with it; those behind wait for the next keeper.
  const codes = new Set<string>();
  await until(() =>
    set(other, "k0", 100).then(() => true, ({ code }) => {
      codes.add(code);
      return false;
    })
  );
  assert.ok(codes.isSubsetOf(new Set(["invocation_stopped"])), [...codes].join());
  assert.equal(await get(other, "k0"), 100);
  assert.equal(await get(other, "k19"), 19);
  await keeper.start();
  await untilServed(keeper === a ? workers[0]! : workers[1]!);
  assert.equal(await get(keeper === a ? workers[0]! : workers[1]!, "k0"), 100);
  for (const worker of workers) await worker.shutdown();
}

Deno.test({
  name: "state on JetStream is one for two engines, and outlives its keeper",
  ignore: withoutNats,
  ...test,
  async fn() {
    await using nats = await startNats({ count: 3 });
    await keepsState({ nats: nats.urls, log: "jetstream" });
  },
});

Deno.test({
  name: "state on Postgres is one for two engines, and outlives its keeper",
  ignore: withoutNats || withoutPostgres,
  ...test,
  async fn() {
    await using nats = await startNats({ jetstream: false });
    await using postgres = await startPostgres();
    await keepsState({ nats: nats.urls, log: postgres.url });
  },
});

Deno.test({
  name: "jobs whose receipt came at any engine are done, over kills of the keeper",
  ignore: withoutNats,
  ...test,
  async fn() {
    await using nats = await startNats({ count: 3 });
    const workers =
      "  - { name: engine-queue, config: { queues: { jobs: { concurrency: 5 } } } }\n";
    const options = { nats: nats.urls, log: "jetstream", workers };
    await using a = await startEngine("a", { ...options, settings: "    keeper: false\n" });
    await using b = await startEngine("b", options);
    await using c = await startEngine("c", options);
    await using worker = a.connect("producer");
    const done = new Set<unknown>();
    worker.registerFunction("jobs::do", (job: unknown) => void done.add(job));
    await until(() =>
      worker.trigger({ function_id: "engine::queue::list", payload: {} }).then(() => true)
    );

    const acknowledged: number[] = [];
    for (let job = 0; job < 300; job++) {
      if (job === 100) await keeperOf([b, c])!.kill("SIGKILL");
      const action = TriggerAction.Enqueue({ queue: "jobs" });
      await worker.trigger({ function_id: "jobs::do", payload: job, action })
        .then(() => acknowledged.push(job), () => {});
    }

    await until(() => acknowledged.every((job) => done.has(job)), () => b.stderr + c.stderr);
    assert.ok(acknowledged.length > 290, `${acknowledged.length} acknowledged`);
  },
});

Deno.test({
  name: "a backup of any engine is restored while all engines run",
  ignore: withoutNats,
  ...test,
  async fn() {
    await using nats = await startNats({ count: 3 });
    const options = { nats: nats.urls, log: "jetstream" };
    await using a = await startEngine("a", { ...options, settings: "    keeper: false\n" });
    await using b = await startEngine("b", options);
    await using worker = a.connect("one");
    await untilServed(worker);
    for (let i = 0; i < 50; i++) await set(worker, `k${i}`, i);
    const file = `${a.directory}/backup.sqlite`;
    // This engine follows the one that keeps the state.
    await until(async () => {
      const { stdout } = await a.command("state", "backup", file, "--json");
      return JSON.parse(stdout).records >= 50;
    });
    await set(worker, "k0", 100);
    await set(worker, "later", 1);

    const { code, stdout, stderr } = await a.command("state", "restore", file);

    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Restored \d+ /);
    await until(async () => await get(worker, "k0") === 0, () => b.stderr);
    assert.equal(await get(worker, "later"), undefined);
    await set(worker, "k0", 7);
    assert.equal(await get(worker, "k0"), 7);
    const check = await b.command("state", "check");
    assert.match(check.stdout, /is intact/, check.stderr);
  },
});
