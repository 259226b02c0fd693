/**
 * What one engine kept becomes the state of a cluster, as docs/how-to/cluster.md says.
 *
 * @module
 */
import assert from "node:assert/strict";
import { TriggerAction, type Worker } from "../../mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";
import { startEngine } from "./cluster_process.ts";
import { startNats, startPostgres, withoutNats, withoutPostgres } from "./servers.ts";

const test = { sanitizeOps: false, sanitizeResources: false };
const WORKERS = "  - { name: engine-queue, config: { queues: { jobs: { concurrency: 5 } } } }\n" +
  "  - name: engine-cron\n  - name: engine-configuration\n" +
  "  - { name: engine-stream, config: { port: 0 } }\n";
const KEYS = 2_000;
const JOBS = 20;

function ask<Answer>(worker: Worker, function_id: string, payload: object = {}): Promise<Answer> {
  return worker.trigger<object, Answer>({ function_id, payload });
}

/** Gives an engine something of each kind to keep. */
async function fill(worker: Worker): Promise<void> {
  for (let i = 0; i < KEYS; i++) {
    await ask(worker, "state::set", {
      scope: "s",
      key: `k${i}`,
      value: { i, text: "x".repeat(50) },
    });
  }
  const item = { stream_name: "chat", group_id: "room", item_id: "m1", data: "hi" };
  await ask(worker, "stream::set", item);
  await ask(worker, "configuration::register", {
    id: "shop",
    name: "Shop",
    description: "What the shop charges",
    schema: { type: "object", properties: { rate: { type: "number" } } },
    initial_value: { rate: 7 },
  });
  worker.registerFunction("jobs::do", () => new Promise(() => {}));
  const action = TriggerAction.Enqueue({ queue: "jobs" });
  for (let job = 0; job < JOBS; job++) {
    await worker.trigger({ function_id: "jobs::do", payload: job, action });
  }
  worker.registerFunction("night::run", () => null);
  const config = { expression: "0 0 3 1 1 *" };
  worker.registerTrigger({ type: "cron", function_id: "night::run", config });
  let jobs: { job_id: string }[] = [];
  await until(async () => {
    ({ jobs } = await ask<{ jobs: typeof jobs }>(worker, "engine::cron::list"));
    return jobs.length === 1;
  });
}

/** Everything is there, and goes on. */
async function check(worker: Worker): Promise<void> {
  assert.deepEqual(await ask(worker, "state::get", { scope: "s", key: "k7" }), {
    i: 7,
    text: "x".repeat(50),
  });
  const found = await ask<unknown[]>(worker, "state::list", { scope: "s" });
  assert.equal(found.length, KEYS);
  const group = { stream_name: "chat", group_id: "room" };
  assert.deepEqual(await ask(worker, "stream::list", group), ["hi"]);
  const { value } = await ask<{ value: unknown }>(worker, "configuration::get", { id: "shop" });
  assert.deepEqual(value, { rate: 7 });
  const done = new Set<unknown>();
  worker.registerFunction("jobs::do", (job: unknown) => void done.add(job));
  await until(() => done.size === JOBS, () => `${done.size} jobs`);
}

async function move(options: { nats: readonly string[]; log: string }): Promise<void> {
  await using single = await EngineProcess.start(WORKERS);
  const before = single.connect("one");
  await fill(before);
  const file = `${single.directory}/before.state`;
  const backup = await single.command("state", "backup", file, "--json");
  assert.equal(backup.code, 0, backup.stderr);
  const { records } = JSON.parse(backup.stdout);
  await before.shutdown();
  await single.kill("SIGTERM");

  // The engine that there is, with the section of a cluster; then another one.
  const path = `${single.directory}/config.yaml`;
  const text = await Deno.readTextFile(path);
  const section = `  cluster:\n    name: test\n    nats: ${JSON.stringify(options.nats)}\n` +
    `    engine_name: a\n    log: ${options.log}\n`;
  await Deno.writeTextFile(path, text.replace("workers:\n", `${section}workers:\n`));
  await single.start();
  await until(() => single.stderr.includes("this engine keeps the state"), () => single.stderr);
  const restored = await single.command("state", "restore", file);

  assert.equal(restored.code, 0, restored.stderr);
  assert.match(restored.stdout, new RegExp(`^Restored ${records} records`));
  await using other = await startEngine("b", { ...options, workers: WORKERS });
  for (const engine of [single, other]) {
    await until(async () => {
      const { stdout } = await engine.command("state", "check", "--json");
      return JSON.parse(stdout).records === records;
    }, `${records} records at each engine`);
  }
  const worker = other.connect("two");
  await until(() => ask(worker, "state::get", { scope: "s", key: "k7" }).then((it) => it !== null));
  await check(worker);
  await worker.shutdown();
}

Deno.test({
  name: "the backup of one engine becomes the state of a cluster on JetStream",
  ignore: withoutNats,
  ...test,
  async fn() {
    await using nats = await startNats({ count: 3 });
    await move({ nats: nats.urls, log: "jetstream" });
  },
});

Deno.test({
  name: "the backup of one engine becomes the state of a cluster on Postgres",
  ignore: withoutNats || withoutPostgres,
  ...test,
  async fn() {
    await using nats = await startNats({ jetstream: false });
    await using postgres = await startPostgres();
    await move({ nats: nats.urls, log: postgres.url });
  },
});
