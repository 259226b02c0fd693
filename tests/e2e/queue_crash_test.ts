/**
 * Jobs whose receipt came are done after the engine was killed, each at least once; only those that
 * ran when it died are done twice.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type Json, TriggerAction, type Worker } from "../../mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const QUEUES = "  - { name: engine-queue, config: { queues: { crash: { concurrency: 5 } } } }";
const JOBS = 2_000;
const KILLS = 4;
/** Jobs that are sent at the same time. */
const IN_FLIGHT = 64;
const CONCURRENCY = 5;

Deno.test("an engine killed while jobs come and go loses none that it acknowledged", async () => {
  await using engine = await EngineProcess.start(QUEUES);
  const done = new Map<number, number>();
  await using worker = engine.connect();
  worker.registerFunction("crash::job", async (payload: Json) => {
    const job = payload as number;
    await new Promise((resolve) => setTimeout(resolve, 1));
    done.set(job, (done.get(job) ?? 0) + 1);
  });
  const acknowledged = new Set<number>();
  let next = 0;
  const isUp = () => worker.trigger({ function_id: "engine::queue::list" }).then(() => true);
  await until(isUp, () => engine.stderr);

  for (let kill = 1; kill <= KILLS; kill++) {
    const enough = JOBS * kill / KILLS;
    const producers = Array.from({ length: IN_FLIGHT }, async () => {
      while (acknowledged.size < enough) {
        const job = next++;
        if (await enqueue(worker, job)) acknowledged.add(job);
        else return;
      }
    });
    await until(() => acknowledged.size >= enough - IN_FLIGHT, () => engine.stderr);
    await engine.kill("SIGKILL");
    await Promise.all(producers);
    await engine.start();
    await until(isUp, () => engine.stderr);
  }
  await until(() => [...acknowledged].every((job) => done.has(job)), () => engine.stderr);

  const twice = [...done.values()].reduce((sum, times) => sum + times - 1, 0);
  assert.ok(acknowledged.size > JOBS / 2, `${acknowledged.size} acknowledged`);
  assert.ok(twice <= KILLS * CONCURRENCY, `${twice} done again`);
});

/** Whether the receipt came. */
function enqueue(worker: Worker, payload: number): Promise<boolean> {
  const action = TriggerAction.Enqueue({ queue: "crash" });
  return worker.trigger({ function_id: "crash::job", payload, action })
    .then(() => true, () => false);
}
