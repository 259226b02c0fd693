import assert from "node:assert/strict";
import { MemoryStore } from "../../../engine/store/memory_store.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { FakeDial } from "../../../tests/fakes/fake_dial.ts";
import { LocalEngine } from "../../../tests/fakes/local_engine.ts";
import { state } from "../../../workers/state/mod.ts";
import type { StateChange } from "./state_watch.ts";
import { registerWorker } from "../register_worker.ts";
import type { Worker } from "../worker.ts";
import type { EngineError } from "../wire/errors.ts";
import type { ErrorBody, Json, JsonObject } from "../wire/protocol.ts";

/** A worker on an engine with state. */
async function live() {
  const clock = new FakeClock(1_000);
  const engine = new LocalEngine({ clock, store: new MemoryStore() });
  await engine.start(state, {});
  const worker = await engine.connect("shop");
  const call = (name: string, payload: JsonObject): Promise<Json> =>
    worker.trigger<JsonObject, Json>({ function_id: `state::${name}`, payload });
  const set = (key: string, value: Json) => call("set", { scope: "stock", key, value });
  const remove = (key: string) => call("delete", { scope: "stock", key });
  const stop = () => engine[Symbol.asyncDispose]();
  return { clock, engine, worker, call, set, remove, [Symbol.asyncDispose]: stop };
}

/** The next changes, as `key=value`. */
async function take(changes: AsyncIterator<StateChange>, count: number): Promise<string[]> {
  const taken: string[] = [];
  for (let i = 0; i < count; i++) {
    const { value } = await changes.next();
    taken.push(`${value!.key}=${JSON.stringify(value!.value)}`);
  }
  return taken;
}

/** What is still open after everything had its turn. */
async function isOpen(promise: Promise<unknown>): Promise<boolean> {
  let open = true;
  promise.then(() => open = false, () => open = false);
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setTimeout(resolve, 0));
  return open;
}

Deno.test("a watch of a scope has its entries, then each that changed", async () => {
  await using it = await live();
  await it.set("apples", 3);
  await it.set("pears", 4);
  await it.call("set", { scope: "other", key: "apples", value: 1 });
  const changes = it.worker.watchState({ scope: "stock" });

  assert.deepEqual(await take(changes, 2), ["apples=3", "pears=4"]);
  const next = changes.next();
  assert.ok(await isOpen(next), "nothing changed");
  await it.set("plums", 5);
  assert.equal((await next).value!.key, "plums");
  await it.remove("apples");
  const gone = (await changes.next()).value!;
  assert.deepEqual(gone, { key: "apples", value: undefined, version: 0 });
  await it.set("apples", 1);
  const again = (await changes.next()).value!;
  const { version } = await it.call("entry", { scope: "stock", key: "apples" }) as JsonObject;
  assert.deepEqual(again, { key: "apples", value: 1, version });
  await changes.return!();
});

Deno.test("a watch of a key begins with what it is, also nothing", async () => {
  await using it = await live();
  await it.set("pears", 4);
  const changes = it.worker.watchState({ scope: "stock", key: "apples" });

  assert.deepEqual((await changes.next()).value, { key: "apples", value: undefined, version: 0 });
  const next = changes.next();
  await it.set("pears", 5);
  assert.ok(await isOpen(next), "another key");
  await it.set("apples", 1);
  assert.equal((await next).value!.value, 1);
  await it.remove("apples");
  assert.deepEqual(await take(changes, 1), ["apples=undefined"]);
  await changes.return!();
});

Deno.test("a program that is slow gets the latest value of each key, once", async () => {
  await using it = await live();
  await it.set("a", 0);
  const changes = it.worker.watchState({ scope: "stock" });
  assert.deepEqual(await take(changes, 1), ["a=0"]);
  assert.ok(
    await isOpen(changes.next().then(() => assert.fail("nothing changed")).catch(() => {})),
  );
  await changes.return!();

  const slow = it.worker.watchState({ scope: "stock" });
  assert.deepEqual(await take(slow, 1), ["a=0"]);
  for (let i = 1; i <= 100; i++) {
    await it.set("a", i);
    await it.set("b", i);
  }
  await it.remove("a");

  const rest = await take(slow, 2);
  assert.deepEqual(rest.sort(), ["a=undefined", "b=100"]);
  assert.ok(await isOpen(slow.next()));
  await slow.return!();
});

Deno.test("a watch of thousands of entries has each of them once", async () => {
  await using it = await live();
  const count = 1_234;
  for (let i = 0; i < count; i++) await it.set(`k${i}`, i);
  const changes = it.worker.watchState<number>({ scope: "stock" });
  const seen = new Map<string, number>();

  for (let i = 0; i < count; i++) {
    const { key, value } = (await changes.next()).value!;
    assert.ok(!seen.has(key));
    seen.set(key, value!);
    if (i === 500) await it.set("k0", -1); // One that was seen changes meanwhile.
  }

  assert.equal(seen.size, count);
  assert.deepEqual(await take(changes as AsyncIterator<StateChange>, 1), ["k0=-1"]);
  await changes.return!();
});

Deno.test("an entry that expires is gone", async () => {
  await using it = await live();
  await it.call("set", { scope: "stock", key: "a", value: 1, ttl_ms: 500 });
  const changes = it.worker.watchState({ scope: "stock" });
  assert.deepEqual(await take(changes, 1), ["a=1"]);

  const next = changes.next();
  await isOpen(next);
  it.clock.tick(500);

  assert.deepEqual((await next).value, { key: "a", value: undefined, version: 0 });
  await changes.return!();
});

Deno.test("a watch ends with its signal, with its worker, and when it is returned", async () => {
  await using it = await live();
  const internal = () =>
    it.engine.router.directory.functions().filter(({ function_id }) =>
      function_id.startsWith("state-changed::")
    ).length;
  const ending = new AbortController();
  const one = it.worker.watchState({ scope: "stock" }, { signal: ending.signal });
  const two = it.worker.watchState({ scope: "stock" });
  const [first, second] = [one.next(), two.next()];
  assert.ok(await isOpen(first));
  assert.equal(internal(), 2);

  ending.abort();
  assert.deepEqual(await first, { done: true, value: undefined });
  await two.return!();
  assert.deepEqual(await second, { done: true, value: undefined });
  await isOpen(second);
  assert.equal(internal(), 0);

  const over = it.worker.watchState({ scope: "stock" }, { signal: ending.signal });
  assert.equal((await over.next()).done, true);
  const other: Worker = await it.engine.connect("other");
  const last = other.watchState({ scope: "stock" }).next();
  await isOpen(last);
  await other.shutdown();
  assert.equal((await last).done, true);
});

/** A worker, and an engine whose part the test takes. */
function setup() {
  const clock = new FakeClock();
  const fake = new FakeDial();
  const errors: EngineError[] = [];
  const onError = (error: EngineError): void => void errors.push(error);
  const worker = registerWorker("ws://local", { clock, dial: fake.dial, onError });
  let connections = 0;
  const connect = (): void => void fake.transport.open(`w-${++connections}`);
  connect();
  const answered = new Set<string>();
  /** Answers the oldest call of a function. */
  const answer = async (
    function_id: string,
    outcome: { result?: Json; error?: ErrorBody },
  ): Promise<JsonObject> => {
    await settle();
    const call = fake.transport.messages.find((each) =>
      each.function_id === function_id && each.invocation_id !== undefined &&
      !answered.has(each.invocation_id as string)
    );
    const invocation_id = call!.invocation_id as string;
    answered.add(invocation_id);
    fake.transport.deliver({ type: "invocationresult", invocation_id, function_id, ...outcome });
    await settle();
    return call!.data as JsonObject;
  };
  const fire = async (key: string): Promise<void> => {
    const frames = fake.transport.messages.filter(({ type }) => type === "registertrigger");
    const function_id = frames.at(-1)!.function_id as string;
    fake.transport.deliver({ type: "invokefunction", function_id, data: { key } });
    await settle();
  };
  const reconnect = (): void => {
    fake.transport.drop();
    clock.tick(2_000);
    connect();
  };
  return { clock, fake, errors, worker, answer, fire, reconnect };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 30; i++) await Promise.resolve();
}

const LIST = "state::list_entries";
const page = (...entries: [string, Json, number][]): { result: Json } => ({
  result: { entries: entries.map(([key, value, version]) => ({ key, value, version })) },
});

Deno.test("after a reconnect all entries are compared, and only differences are reported", async () => {
  const { fake, worker, answer, reconnect } = setup();
  const changes = worker.watchState({ scope: "stock" });
  const first = take(changes, 3);
  await answer(LIST, page(["a", 1, 1], ["b", 1, 2], ["c", 1, 3]));
  assert.deepEqual(await first, ["a=1", "b=1", "c=1"]);
  const rest = take(changes, 3);
  await settle();

  reconnect();
  await answer(LIST, page(["a", 1, 1], ["b", 2, 5], ["d", 1, 6]));
  const asked = await answer("state::entry", {});

  assert.deepEqual(asked, { scope: "stock", key: "c" });
  assert.deepEqual(await rest, ["b=2", "d=1", "c=undefined"]);
  const triggers = fake.transport.messages.filter(({ type }) => type === "registertrigger");
  assert.deepEqual(triggers.map(({ config }) => config), [{ scope: "stock" }]);
  await changes.return!();
  await worker.shutdown();
});

Deno.test("a first read that fails is thrown, a later one is reported once and tried again", async () => {
  const { clock, errors, worker, answer, fire } = setup();
  const error = { code: "function_not_found", message: "state::list_entries is not registered" };
  const failing = worker.watchState({ scope: "stock" }).next();
  failing.catch(() => {});
  await answer(LIST, { error });
  await assert.rejects(failing, { code: "function_not_found" });

  const changes = worker.watchState({ scope: "stock" });
  const first = take(changes, 1);
  await answer(LIST, page(["a", 1, 1]));
  await first;
  const next = changes.next();
  await fire("a");
  for (let i = 0; i < 3; i++) {
    await answer("state::entry", { error });
    await fire("a"); // A change does not hurry it.
    clock.tick(500 * 2 ** i);
    await settle();
  }
  await answer("state::entry", { result: { value: 2, version: 2, updated_at_ms: 1 } });

  assert.deepEqual((await next).value, { key: "a", value: 2, version: 2 });
  assert.equal(errors.length, 1);
  assert.match(errors[0]!.message, /^The watch of state stock waits: function_not_found: /);
  await changes.return!();
  await worker.shutdown();
});

Deno.test("a scope or key that is none is refused at once", async () => {
  const { worker } = setup();
  for (const place of [{ scope: "" }, { scope: "s", key: "" }, { scope: 5 as never }]) {
    assert.throws(() => worker.watchState(place), { code: "INVALID_ARGUMENTS" });
  }
  await worker.shutdown();
});
