/**
 * What one thing costs must not grow with how many others there are.
 *
 * Sizes are measured in turn and compared by ratio, the fastest of several rounds each, with room
 * for a busy machine: a table that is searched is slower by a hundred times here, not by four.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  type FakeRouter,
  fakeRouter,
  type FakeWorker,
  triggersSentTo,
} from "../fakes/fake_router.ts";

/** How much longer a thing may take among ten times as many; searching takes ten times as long. */
const ROOM = 4;
const ROUNDS = 3;

/** Milliseconds that each size takes, the fastest of several rounds that take turns. */
function fastest(sizes: readonly number[], run: (size: number) => number): number[] {
  const best = sizes.map(() => Infinity);
  for (let round = 0; round < ROUNDS; round++) {
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

function assertFlat(what: string, [few, many]: readonly number[]): void {
  assert.ok(many! < few! * ROOM, `${what}: ${many} ms among ten times as many, not ${few}`);
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

Deno.test("thousands of equal triggers are one for the engine, until the last worker leaves", () => {
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
