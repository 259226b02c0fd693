/**
 * What one thing costs must not grow with how many others there are.
 *
 * Sizes are measured alternately and compared by ratio, the fastest of several rounds each, with room
 * for a busy machine: a table that is searched is slower by a hundred times here, not by four.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { engine } from "../../workers/engine/mod.ts";
import { FakeConnection, type FakePeer, fakePeer } from "../fakes/fake_connection.ts";
import { observe, type Observed } from "../fakes/local_engine.ts";
import {
  type FakeRouter,
  fakeRouter,
  type FakeWorker,
  triggersSentTo,
} from "../fakes/fake_router.ts";

/** How much longer a thing may take among ten times as many; searching takes ten times as long. */
const ROOM = 4;
const ROUNDS = 3;
/** On a busy machine it takes more of them until each size had a quiet moment. */
const ROUNDS_MAX = 12;

/** Milliseconds that each size takes, the fastest of several alternating rounds. */
function fastest(sizes: readonly number[], run: (size: number) => number): number[] {
  const best = sizes.map(() => Infinity);
  for (let round = 0; round < ROUNDS || !isFlat(best) && round < ROUNDS_MAX; round++) {
    sizes.forEach((size, i) => best[i] = Math.min(best[i]!, run(size)));
  }
  return best;
}

function timed(task: () => void): number {
  const start = performance.now();
  task();
  return performance.now() - start;
}

/** Makes workers that share a function and a trigger and have one of each of their own. */
function crowd(engine: FakeRouter, size: number): FakeWorker[] {
  return Array.from({ length: size }, (_, i) => {
    const worker = engine.open();
    for (const id of [`own${i}::f`, "shared::f"]) worker.say({ type: "registerfunction", id });
    for (const every of [0, i + 1]) {
      const type = "registertrigger";
      const id = `t${i}-${every === 0 ? "shared" : "own"}`;
      worker.say({ type, id, trigger_type: "tick", function_id: "shared::f", config: { every } });
    }
    worker.connection.take();
    return worker;
  });
}

/** An engine whose type `tick` is its own, so that equal triggers are one. */
function engineWithTicks(): FakeRouter & { readonly ticker: FakeWorker } {
  const engine = fakeRouter();
  const ticker = engine.openBuiltin("engine-tick");
  ticker.say({ type: "registertriggertype", id: "tick", description: "Ticks" });
  return { ...engine, ticker };
}

/** An engine with so many functions and triggers, of workers with 500 of each. */
function crowded(size: number): FakeRouter & { readonly callee: FakeWorker } {
  const engine = engineWithTicks();
  for (let first = 0; first < size; first += 500) {
    const worker = engine.open();
    for (let i = first; i < first + 500; i++) {
      worker.say({ type: "registerfunction", id: `group${i}::f` });
      const [trigger_type, function_id] = ["tick", `group${i}::f`];
      worker.say({
        type: "registertrigger",
        id: `t${i}`,
        trigger_type,
        function_id,
        config: { i },
      });
    }
  }
  engine.ticker.connection.take();
  const callee = engine.open();
  callee.say({ type: "registerfunction", id: "called::f" });
  return { ...engine, callee };
}

function isFlat([few, many]: readonly number[]): boolean {
  return many! < few! * ROOM;
}

function assertFlat(what: string, best: readonly number[]): void {
  const [few, many] = best;
  assert.ok(isFlat(best), `${what}: ${many} ms among ten times as many, not ${few}`);
}

Deno.test("workers join and leave in a time that is linear in their number", () => {
  const joined = new Map<number, FakeWorker[]>();
  const join = fastest([500, 5_000], (size) => {
    const engine = engineWithTicks();
    return timed(() => joined.set(size, crowd(engine, size))) / size;
  });
  const leave = fastest([500, 5_000], (size) => {
    const workers = crowd(engineWithTicks(), size);
    return timed(() => {
      for (const worker of workers) worker.cut();
    }) / size;
  });

  assertFlat("one joins", join);
  assertFlat("one leaves", leave);
});

Deno.test("among 100,000 functions and triggers, all is as fast as among 10,000", () => {
  const sizes = [10_000, 100_000];
  const engines = new Map(sizes.map((size) => [size, crowded(size)]));
  let made = 0;

  const call = fastest(sizes, (size) => {
    const { callee, open } = engines.get(size)!;
    const caller = open();
    return timed(() => {
      for (let i = 0; i < 500; i++) {
        const invocation_id = crypto.randomUUID();
        caller.say({ type: "invokefunction", invocation_id, function_id: "called::f", data: {} });
      }
    }) + (callee.connection.take(), caller.cut(), 0);
  });
  const register = fastest(sizes, (size) => {
    const worker = engines.get(size)!.open();
    return timed(() => {
      for (let i = 0; i < 500; i++) {
        const id = `new${++made}`;
        worker.say({ type: "registerfunction", id: `${id}::f` });
        const [trigger_type, function_id] = ["tick", `${id}::f`];
        worker.say({ type: "registertrigger", id, trigger_type, function_id, config: { made } });
        worker.say({ type: "unregistertrigger", id });
        worker.say({ type: "unregisterfunction", id: `${id}::f` });
      }
    }) + (worker.cut(), 0);
  });

  assertFlat("500 calls", call);
  assertFlat("500 functions and triggers that come and go", register);
});

Deno.test("thousands of equal triggers are one for the provider, until the last worker leaves", () => {
  const engine = engineWithTicks();
  const workers = crowd(engine, 1_000);
  const shared = () =>
    triggersSentTo(engine.ticker).filter((it) => /t0-shared|registertrigger t\d+-shared/.test(it));

  assert.deepEqual(shared(), ["registertrigger t0-shared"]);
  for (const worker of workers.slice(1)) worker.cut();
  assert.deepEqual(shared(), []);
  workers[0]!.cut();
  assert.deepEqual(shared(), ["unregistertrigger t0-shared"]);
});

/** The trigger types on which the console's pages query functions, workers and triggers again. */
const WATCHED = [
  "engine::functions-available",
  "engine::workers-available",
  "engine::triggers-available",
];

/** Subscribes to all of them; the result counts the firings by type. */
function watch(worker: Worker): ReadonlyMap<string, number> {
  const counts = new Map(WATCHED.map((type) => [type, 0]));
  WATCHED.forEach((type, i) => {
    const function_id = `watch::count${i}`;
    worker.registerFunction(function_id, () => void counts.set(type, counts.get(type)! + 1));
    worker.registerTrigger({ type, function_id, config: {} });
  });
  return counts;
}

/** A worker with a function and a trigger of its own. */
function join({ local: { router } }: Observed, i: number): FakePeer {
  const peer = { address: "127.0.0.1", launch_id: null, builtin: null };
  const connection = new FakeConnection(`connection ${i}`);
  const worker = fakePeer(connection, router.open(connection, peer));
  worker.say({ type: "registerfunction", id: `crowd${i}::f` });
  const config: Json = { every: i };
  const [trigger_type, function_id] = ["tick", `crowd${i}::f`];
  worker.say({ type: "registertrigger", id: `t${i}`, trigger_type, function_id, config });
  connection.take();
  return worker;
}

/** Milliseconds for each of so many workers to connect, be reported, leave and be reported. */
async function measureLives(
  size: number,
): Promise<{ each: number; counts: Record<string, number> }> {
  await using it = await observe();
  await it.local.start(engine);
  it.worker.registerTriggerType({ id: "tick", description: "Ticks" }, {
    registerTrigger: () => {},
    unregisterTrigger: () => {},
  });
  const counts = watch(it.worker);
  await it.pass(1_000);
  const before = new Map(counts);

  const began = performance.now();
  const workers = Array.from({ length: size }, (_, i) => join(it, i));
  await it.pass(1_000);
  for (const worker of workers) worker.cut();
  await it.pass(1_000);
  const each = (performance.now() - began) / size;

  return {
    each,
    counts: Object.fromEntries(
      WATCHED.map((type) => [type, counts.get(type)! - before.get(type)!]),
    ),
  };
}

Deno.test("with a subscriber to all changes, a worker connects and leaves as fast among thousands", async () => {
  const best = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS || !isFlat(best) && round < ROUNDS_MAX; round++) {
    best[0] = Math.min(best[0]!, (await measureLives(500)).each);
    best[1] = Math.min(best[1]!, (await measureLives(5_000)).each);
  }

  assertFlat("one worker", best);
});

Deno.test("many workers that connect and leave are reported in batches, except announcements", async () => {
  const { counts } = await measureLives(1_000);

  assert.deepEqual(counts, {
    "engine::functions-available": 2,
    "engine::workers-available": 2_000,
    "engine::triggers-available": 2,
  });
});
