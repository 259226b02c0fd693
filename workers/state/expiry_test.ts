import assert from "node:assert/strict";
import type { Store } from "../../engine/ports/store.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { recordingLog } from "../../tests/fakes/fake_http.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { StateEntries } from "./entries.ts";
import { Expiry } from "./expiry.ts";
import { state } from "./mod.ts";

async function setup(store: Store = new MemoryStore()) {
  const clock = new FakeClock(1_000);
  const engine = new LocalEngine({ clock, store });
  const stop = await engine.start(state);
  const worker = await engine.connect("caller", { timeoutMs: 600_000_000 });
  const events: string[] = [];
  worker.registerFunction<JsonObject>("test::seen", ({ event_type, key, old_value }) => {
    events.push(`${event_type} ${key} ${JSON.stringify(old_value)}`);
  });
  worker.registerTrigger({ type: "state", function_id: "test::seen" });
  await engine.settle();
  const call = (name: string, payload: JsonObject) =>
    worker.trigger<Json | undefined>({
      function_id: `state::${name}`,
      payload: { scope: "s", key: "k", ...payload },
    });
  const set = (key: string, ttl_ms?: number) =>
    call("set", { key, value: key, ...ttl_ms !== undefined && { ttl_ms } });
  const tick = async (ms: number) => {
    clock.tick(ms);
    await engine.settle();
  };
  const days = async () => (await store.list(["state_expiry"], 1_000)).length;
  const close = () => engine[Symbol.asyncDispose]();
  return {
    clock,
    engine,
    store,
    events,
    call,
    set,
    tick,
    days,
    stop,
    [Symbol.asyncDispose]: close,
  };
}

Deno.test("An expired entry is missing for every function, also before it is removed", async () => {
  const store = new MemoryStore();
  await using at = await setup({
    stats: store.stats,
    status: store.status,
    get: (key) => store.get(key),
    list: async (prefix, limit, after) =>
      prefix[0] === "state_expiry" ? [] : await store.list(prefix, limit, after),
    write: (changes) => store.write(changes),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
  await at.set("gone", 100);
  await at.set("stays");

  await at.tick(100);

  const place = { key: "gone" };
  assert.ok(await store.get(["state", "s", "gone"]));
  assert.equal(await at.call("get", place), undefined);
  assert.equal(await at.call("entry", place), undefined);
  assert.deepEqual(await at.call("list", {}), ["stays"]);
  const { entries } = await at.call("list_entries", {}) as { entries: JsonObject[] };
  assert.deepEqual(entries.map(({ key }) => key), ["stays"]);
  assert.equal(await at.call("delete", place), undefined);
  assert.equal(await store.get(["state", "s", "gone"]), undefined);
  assert.equal(at.events.at(-1), 'state:deleted gone "gone"');
});

Deno.test("An entry exists until it expires, then it is removed and state:deleted fires", async () => {
  await using at = await setup();
  await at.set("k", 100);

  await at.tick(99);
  assert.equal(await at.call("get", {}), "k");
  await at.tick(1);

  assert.equal(await at.store.get(["state", "s", "k"]), undefined);
  assert.deepEqual(at.events, ["state:created k null", 'state:deleted k "k"']);
  assert.deepEqual(await at.call("list_groups", {}), { groups: [] });
  assert.equal(await at.days(), 0);
});

Deno.test("state::set without ttl_ms removes the expiry, state::update preserves it", async () => {
  await using at = await setup();
  await at.call("set", { key: "freed", value: {}, ttl_ms: 100 });
  await at.call("set", { key: "kept", value: {}, ttl_ms: 100 });
  await at.call("set", { key: "freed", value: {} });
  await at.call("update", { key: "kept", ops: [{ type: "set", path: "a", value: 1 }] });

  await at.tick(100);

  assert.deepEqual(await at.call("get", { key: "freed" }), {});
  assert.equal(await at.call("get", { key: "kept" }), undefined);
});

Deno.test("The last ttl_ms applies, longer or shorter than the previous one", async () => {
  await using at = await setup();
  await at.set("longer", 100);
  await at.set("longer", 1_000);
  await at.set("shorter", 1_000);
  await at.set("shorter", 100);

  await at.tick(100);
  assert.equal(await at.call("get", { key: "longer" }), "longer");
  assert.equal(await at.store.get(["state", "s", "shorter"]), undefined);
  await at.tick(900);

  assert.equal(await at.store.get(["state", "s", "longer"]), undefined);
  assert.equal(await at.days(), 0);
});

Deno.test("Repeated renewals leave one expiry record", async () => {
  await using at = await setup();

  for (let i = 0; i < 50; i++) {
    await at.set("k", 1_000);
    await at.tick(10);
  }

  assert.equal(await at.days(), 1);
});

Deno.test("A recreated key expires at its new time", async () => {
  await using at = await setup();
  await at.set("k", 100);
  await at.call("delete", {});
  await at.set("k", 500);

  await at.tick(100);
  assert.equal(await at.call("get", {}), "k");
  await at.tick(400);

  assert.equal(await at.store.get(["state", "s", "k"]), undefined);
});

Deno.test("ttl_ms 0 stores an entry that has expired already", async () => {
  await using at = await setup();

  await at.set("k", 0);
  assert.equal(await at.call("get", {}), undefined);
  await at.tick(0);

  assert.equal(await at.store.get(["state", "s", "k"]), undefined);
});

Deno.test("A write over an expired entry starts anew: version 0, new place in the order", async () => {
  await using at = await setup();
  await at.set("a", 100);
  await at.set("b");
  await at.stop();
  at.clock.tick(100);
  await at.engine.start(state, null);
  await at.engine.settle();
  await at.call("set", { key: "a", value: "new", expected_version: 0 });

  assert.deepEqual(await at.call("list", {}), ["b", "new"]);
});

Deno.test("An entry that expired while the engine was stopped is removed at the next start", async () => {
  const store = new MemoryStore();
  {
    await using at = await setup(store);
    await at.set("old", 100);
    await at.set("young", 100_000);
  }
  await using at = await setup(store);
  await at.tick(100);

  assert.equal(await store.get(["state", "s", "old"]), undefined);
  await at.tick(99_900);
  assert.equal(await store.get(["state", "s", "young"]), undefined);
});

Deno.test("Many entries that expire at once are all removed", async () => {
  await using at = await setup();
  await Promise.all(Array.from({ length: 350 }, (_, i) => at.set(`k${i}`, 100)));

  await at.tick(100);
  await at.engine.settle();

  assert.equal((await at.store.list(["state"], 1_000)).length, 0);
  assert.equal(at.events.filter((event) => event.startsWith("state:deleted")).length, 350);
});

Deno.test("A failed sweep is retried", async () => {
  const store = new MemoryStore();
  let isBroken = false;
  const breakable: Store = {
    stats: store.stats,
    status: store.status,
    get: (key) => store.get(key),
    list: (...query) => store.list(...query),
    write: (changes) => isBroken ? Promise.reject(new Error("disk full")) : store.write(changes),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  await using at = await setup(breakable);
  await at.set("k", 100);
  isBroken = true;
  await at.tick(100);
  assert.equal(at.engine.lines.at(-1)?.fields.reason, "disk full");

  isBroken = false;
  await at.tick(60_000);

  assert.equal(await store.get(["state", "s", "k"]), undefined);
});

Deno.test("Expiry has one timer for the earliest record, and none once disposed", async () => {
  const clock = new FakeClock(1_000);
  const store = new MemoryStore();
  const changed = () => {};
  const entries = new StateEntries({ store, clock, changed, expires: (at) => expiry.schedule(at) });
  const expiry = new Expiry({ clock, log: recordingLog([]), entries });
  const set = (key: string, end?: number) =>
    entries.write({ scope: "s", key }, () => ({ value: 1, expires_at_ms: end }), end);

  await set("stays");
  assert.equal(clock.waiting, 0);
  await set("late", 31_000);
  await set("early", 11_000);
  await set("later", 51_000);
  assert.deepEqual([clock.waiting, clock.nextIn], [1, 10_000]);
  await expiry[Symbol.asyncDispose]();
  await set("never", 2_000);

  assert.equal(clock.waiting, 0);
});

Deno.test("Expiry checks the clock every minute, however far the next record is", async () => {
  const clock = new FakeClock(1_000);
  const store = new MemoryStore();
  const changed = () => {};
  const entries = new StateEntries({ store, clock, changed, expires: () => {} });
  await using expiry = new Expiry({ clock, log: recordingLog([]), entries });
  const end = 1_000 + 10 * 365 * 86_400_000;
  await entries.write({ scope: "s", key: "k" }, () => ({ value: 1, expires_at_ms: end }), end);

  await expiry.sweep();

  assert.equal(clock.nextIn, 60_000);
  clock.tick(60_000);
  assert.equal(clock.nextIn, 60_000);
});
