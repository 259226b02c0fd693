/**
 * What may happen in a cluster, and what has to hold when all has been quiet for a while.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { FakeEngine } from "../cluster/fake_engine.ts";
import {
  type ClusterWorld,
  FILE_TYPE,
  FUNCTIONS,
  SETTLED_MS,
  type SimWorker,
} from "./cluster_world.ts";

type Step = (world: ClusterWorld) => void;

/** Steps of workers, then of engines and the bus; each as often as it is listed. */
export const CLUSTER_STEPS: readonly Step[] = [
  ...times(2, (world) => void world.arrive()),
  ...times(4, offer),
  unregister,
  route,
  route,
  endRoute,
  provideFiles,
  watchFiles,
  (world) => withWorker(world, (worker) => world.leave(worker)),
  ...times(20, (world) => withWorker(world, (worker) => world.call(worker))),
  ...times(30, (world) => withWorker(world, (worker) => world.answer(worker))),
  ...times(2, (world) => withWorker(world, (worker) => world.cancel(worker))),
  ...times(20, (world) => world.cluster.clock.tick(world.random.below(20))),
  ...times(2, (world) => world.cluster.clock.tick(world.random.below(800))),
  disturb,
  ...times(3, heal),
  kill,
  stop,
  partition,
  away,
];

function times(count: number, step: Step): Step[] {
  return Array(count).fill(step);
}

function withWorker(world: ClusterWorld, act: (worker: SimWorker) => void): void {
  const worker = world.some();
  if (worker) act(worker);
}

function offer(world: ClusterWorld): void {
  withWorker(world, (worker) => world.offer(worker, world.random.pick(FUNCTIONS)));
}

function unregister(world: ClusterWorld): void {
  const worker = world.some(({ functions }) => functions.size > 0);
  if (!worker) return;
  const id = world.random.pick([...worker.functions]);
  worker.peer.say({ type: "unregisterfunction", id });
  worker.functions.delete(id);
}

/** Workers of all engines use the same few ids for routes. */
function route(world: ClusterWorld): void {
  withWorker(world, (worker) => {
    const id = `${worker.peer.worker_id.slice(-5)} r${world.random.below(3)}`;
    if (worker.routes.has(id)) return;
    const mark = `${worker.name} ${id}`;
    worker.routes.set(id, mark);
    const config = { mark };
    const of = { trigger_type: "http", function_id: "f" };
    worker.peer.say({ type: "registertrigger", id, ...of, config });
  });
}

function endRoute(world: ClusterWorld): void {
  const worker = world.some(({ routes }) => routes.size > 0);
  if (!worker) return;
  const id = world.random.pick([...worker.routes.keys()]);
  worker.routes.delete(id);
  worker.peer.say({ type: "unregistertrigger", id, trigger_type: "http" });
}

function provideFiles(world: ClusterWorld): void {
  if (world.workers.some(({ providesFiles }) => providesFiles)) return;
  withWorker(world, (worker) => {
    worker.providesFiles = true;
    worker.peer.say({ type: "registertriggertype", id: FILE_TYPE, description: "Files" });
  });
}

function watchFiles(world: ClusterWorld): void {
  withWorker(world, (worker) => {
    const id = `${worker.peer.worker_id.slice(-5)} w${world.random.below(2)}`;
    if (worker.files.has(id)) return;
    worker.files.set(id, `${worker.name} ${id}`);
    const of = { trigger_type: FILE_TYPE, function_id: "f" };
    const config = { mark: `${worker.name} ${id}` };
    worker.peer.say({ type: "registertrigger", id, ...of, config });
  });
}

/** From now on messages are late, lost or come twice. */
function disturb({ cluster: { network }, random }: ClusterWorld): void {
  const [late, lost, twice] = [random.below(60), random.pick([0, 30, 200]), random.pick([0, 10])];
  network.fate = () => ({
    delay_ms: random.below(late + 1),
    copies: lost > 0 && random.once(lost) ? 0 : twice > 0 && random.once(twice) ? 2 : 1,
  });
}

/** All is well with the bus. */
export function heal({ cluster: { network, engines } }: ClusterWorld): void {
  network.fate = () => ({ delay_ms: 1, copies: 1 });
  for (const { bus } of engines) {
    bus.side = 0;
    bus.connect(true);
  }
}

function kill(world: ClusterWorld): void {
  if (!world.random.once(3)) return;
  world.killEngine(world.random.pick(world.engines));
  world.startEngine();
}

function stop(world: ClusterWorld): void {
  if (!world.random.once(3)) return;
  world.stopEngine(world.random.pick(world.engines));
  world.startEngine();
}

function partition(world: ClusterWorld): void {
  for (const { bus } of world.engines) bus.side = world.random.below(2);
}

function away(world: ClusterWorld): void {
  const { bus } = world.random.pick(world.engines);
  bus.connect(!bus.isConnected);
}

/** All has been quiet for long: every engine knows what workers of all engines offer. */
export function checkSettled(world: ClusterWorld): void {
  heal(world);
  world.cluster.clock.tick(SETTLED_MS);
  assert.deepEqual([...world.open].map(({ mark }) => mark), [], "a call has no end");
  for (const engine of world.engines) {
    const others = world.engines.filter((one) => one !== engine).map(({ name }) => name).sort();
    assert.deepEqual(engine.others, others, `links of ${engine.name}`);
    checkFunctions(world, engine);
    checkRoutes(world, engine);
    assert.equal(engine.router.runningCalls, 0, `calls at ${engine.name}`);
    for (const link of engine.links.all) assert.equal(link.queuedBytes, 0);
  }
  checkFiles(world);
  for (const { mark, callee, answer, isCancelled } of world.calls.values()) {
    const isRunning = callee !== undefined && !callee.isGone && answer === undefined;
    assert.ok(!isRunning || isCancelled, `${mark} still runs, and no caller waits for it`);
  }
}

/** Promise 4: what is gone is gone everywhere, and what is there is known everywhere. */
function checkFunctions(world: ClusterWorld, engine: FakeEngine): void {
  const shown = engine.router.directory.functions().filter(({ worker_ids }) =>
    worker_ids.length > 0
  )
    .map(({ function_id, worker_ids }) => `${function_id} ${worker_ids.length}`).sort();
  const expected = FUNCTIONS.map((id) => {
    const offering = world.workers.filter(({ functions }) => functions.has(id));
    const near = offering.filter((worker) => worker.engine === engine).length;
    const engines = new Set(offering.map((worker) => worker.engine));
    engines.delete(engine);
    return [id, near + engines.size] as const;
  }).filter(([, count]) => count > 0).map(([id, count]) => `${id} ${count}`).sort();
  assert.deepEqual(shown, expected, `functions at ${engine.name}`);
}

/** Each route of the cluster is held once by the provider at each engine. */
function checkRoutes(world: ClusterWorld, engine: FakeEngine): void {
  const http = world.workers.find((worker) => worker.builtin && worker.engine === engine)!;
  const expected = world.workers.flatMap(({ routes }) => [...routes.values()]);
  assert.deepEqual([...http.held.values()].sort(), expected.sort(), `routes at ${engine.name}`);
}

/** Promise 5: the one provider of a type holds each trigger once. */
function checkFiles(world: ClusterWorld): void {
  const provider = world.workers.find(({ providesFiles }) => providesFiles);
  if (!provider) return;
  const expected = world.workers.flatMap(({ files }) => [...files.values()]);
  assert.deepEqual([...provider.held.values()].sort(), expected.sort(), "triggers of files");
}

/** All workers leave and all engines stop: nothing is left of them. */
export function checkEnd(world: ClusterWorld): void {
  for (const worker of [...world.workers]) if (!worker.builtin) world.leave(worker);
  world.cluster.clock.tick(SETTLED_MS);
  for (const engine of world.engines) {
    const { directory } = engine.router;
    const left = directory.functions().filter(({ worker_ids }) => worker_ids.length > 0);
    assert.deepEqual(left, []);
    assert.deepEqual(directory.triggers(), []);
  }
  world.cluster.stop();
  assert.equal(world.usedBytes, 0, "memory is not returned");
  world.cluster.clock.tick(2_000); // Requests of killed engines.
  assert.equal(world.cluster.clock.waiting, 0, "something is left on the clock");
}
