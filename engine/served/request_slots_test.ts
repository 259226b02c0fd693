import assert from "node:assert/strict";
import { RequestSlots } from "./request_slots.ts";

const never = new AbortController().signal;

/** Records when requests start, by name. */
function setup(bounds: Partial<ConstructorParameters<typeof RequestSlots>[0]> = {}) {
  const slots = new RequestSlots({
    running: 3,
    runningPerHost: 2,
    waiting: 3,
    waitingPerHost: 2,
    ...bounds,
  });
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = async (name: string, host: string, signal = never): Promise<void> => {
    ends.set(name, await slots.acquire(host, signal));
    started.push(name);
  };
  const end = async (name: string): Promise<void> => {
    ends.get(name)!();
    await settle();
  };
  return { slots, started, ask, end };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await Promise.resolve();
}

Deno.test("RequestSlots starts as many requests per host, and in whole, as it has places", async () => {
  const { slots, started, ask, end } = setup();
  for (const name of ["a1", "a2", "a3", "b1", "b2"]) void ask(name, name[0]!);
  await settle();

  assert.deepEqual(started, ["a1", "a2", "b1"]);
  assert.deepEqual(slots.load, { running: 3, waiting: 2 });
  await end("b1");
  assert.deepEqual(started, ["a1", "a2", "b1", "b2"], "a has no room");
  await end("a1");
  assert.deepEqual(started.at(-1), "a3");
  for (const name of ["a2", "b2", "a3"]) await end(name);
  assert.deepEqual(slots.load, { running: 0, waiting: 0 });
});

Deno.test("RequestSlots lets waiting hosts take turns", async () => {
  const { started, ask, end } = setup({ running: 1, runningPerHost: 1, waiting: 9 });
  for (const name of ["a1", "a2", "a3", "b1", "b2"]) void ask(name, name[0]!);
  await settle();
  for (const name of ["a1", "a2", "b1", "a3"]) await end(name);

  assert.deepEqual(started, ["a1", "a2", "b1", "a3", "b2"]);
});

Deno.test("RequestSlots refuses what waits beyond its bounds", async () => {
  const { ask } = setup();
  for (const name of ["a1", "a2", "a3", "a4"]) void ask(name, "a");
  await settle();

  await assert.rejects(ask("a5", "a"), { code: "overloaded", retryable: true, message: /for a;/ });
  for (const name of ["b1", "b2"]) void ask(name, "b");
  await settle();
  await assert.rejects(ask("c1", "c"), { code: "overloaded", message: /served by HTTP/ });
});

Deno.test("RequestSlots forgets a request that ends while it waits", async () => {
  const { slots, started, ask, end } = setup({ running: 1, runningPerHost: 1 });
  void ask("a1", "a");
  const gone = new AbortController();
  const waiting = ask("a2", "a", gone.signal);
  void ask("a3", "a");
  await settle();

  gone.abort(new Error("cancelled"));

  await assert.rejects(waiting, { message: "cancelled" });
  await assert.rejects(ask("a4", "a", gone.signal), { message: "cancelled" });
  await end("a1");
  assert.deepEqual(started, ["a1", "a3"]);
  await end("a3");
  assert.deepEqual(slots.load, { running: 0, waiting: 0 });
});

Deno.test("a place is returned once, however often that is asked", async () => {
  const slots = new RequestSlots({ running: 1, runningPerHost: 1, waiting: 1, waitingPerHost: 1 });
  const release = await slots.acquire("a", never);

  release();
  release();

  assert.deepEqual(slots.load, { running: 0, waiting: 0 });
});
