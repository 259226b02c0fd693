import assert from "node:assert/strict";
import type { WorkerState, WorkerStatus } from "../../../engine/ports/supervision.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { supervisedWorker } from "../../../tests/fakes/fake_metrics.ts";
import { READY_CHECK_MS, READY_STORE_MS, ReadyCheck } from "./mod.ts";

interface Given {
  get?: () => Promise<undefined>;
  list?: () => Promise<WorkerStatus[]>;
  problem?: string;
}

function setup(given: Given = {}) {
  const clock = new FakeClock();
  let looks = 0;
  const draining = new AbortController();
  const check = new ReadyCheck({
    clock,
    draining: draining.signal,
    disk: { read: () => Promise.resolve({ free_bytes: 1, problem: given.problem ?? null }) },
    store: { get: given.get ?? (() => Promise.resolve(undefined)) },
    supervision: {
      list: () => {
        looks++;
        return given.list?.() ?? Promise.resolve([]);
      },
    },
  });
  return { clock, check, draining, looks: () => looks };
}

const withWorker = (state: WorkerState, kind: "builtin" | "directory" = "directory") =>
  setup({ list: () => Promise.resolve([supervisedWorker("math", { state, kind })]) });

Deno.test("An engine whose store answers and whose workers run is ready", async () => {
  const { check, clock } = setup();

  assert.deepEqual(await check.read(), { ready: true, reasons: [] });
  assert.equal(clock.waiting, 0);
});

Deno.test("A full disk is a reason", async () => {
  const problem = "the disk of the data directory is full: 1 MiB are free";

  assert.deepEqual(await setup({ problem }).check.read(), { ready: false, reasons: [problem] });
});

Deno.test("An engine that stops is not ready, also if it just was", async () => {
  const { check, draining } = setup();
  assert.equal((await check.read()).ready, true);

  draining.abort();

  assert.deepEqual(await check.read(), { ready: false, reasons: ["the engine is stopping"] });
});

Deno.test("A store that cannot be read is a reason", async () => {
  const { check } = setup({ get: () => Promise.reject(new Error("secret path")) });

  assert.deepEqual(await check.read(), { ready: false, reasons: ["the store cannot be read"] });
});

Deno.test("A store that does not answer in time is a reason", async () => {
  const { check, clock } = setup({ get: () => new Promise(() => {}) });
  const answer = check.read();
  clock.tick(READY_STORE_MS);

  assert.deepEqual((await answer).reasons, ["the store does not answer"]);
});

for (
  const [kind, state, reason] of [
    ["directory", "failed", "worker math has failed"],
    ["builtin", "failed", "worker math has failed"],
    ["builtin", "starting", "built-in worker math is starting"],
  ] as const
) {
  Deno.test(`A ${kind} worker that is ${state} is a reason`, async () => {
    assert.deepEqual((await withWorker(state, kind).check.read()).reasons, [reason]);
  });
}

for (
  const [kind, state] of [
    ["directory", "installing"],
    ["directory", "stopped"],
    ["builtin", "stopped"],
    ["builtin", "ready"],
  ] as const
) {
  Deno.test(`A ${kind} worker that is ${state} is not a reason`, async () => {
    assert.equal((await withWorker(state, kind).check.read()).ready, true);
  });
}

Deno.test("An engine that cannot list its workers is not ready", async () => {
  const { check } = setup({ list: () => Promise.reject(new Error("starting")) });

  assert.equal((await check.read()).ready, false);
});

Deno.test("ReadyCheck reuses a recent answer", async () => {
  const { check, clock, looks } = setup();
  await Promise.all([check.read(), check.read()]);
  clock.tick(READY_CHECK_MS - 1);
  await check.read();
  assert.equal(looks(), 1);

  clock.tick(1);
  await check.read();
  assert.equal(looks(), 2);
});

Deno.test("A required worker that is not ready makes the engine not ready, another one does not", async () => {
  const starting = (name: string, required: boolean) => ({
    ...supervisedWorker(name),
    state: "starting" as const,
    required,
  });
  const { check } = setup({
    list: () => Promise.resolve([starting("shop", true), starting("mail", false)]),
  });

  assert.deepEqual(await check.read(), {
    ready: false,
    reasons: ["required worker shop is starting"],
  });
});
