/**
 * Replicas of functions, and which one gets the next call.
 *
 * @module
 */
import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Random } from "../../tests/fakes/random.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { compareEntries, FunctionTable, type LoadBounds } from "./function_table.ts";
import { Peer } from "./peer.ts";

const BOUNDS: LoadBounds = {
  max_inflight_calls_per_worker: 10_000,
  max_inflight_bytes_per_worker: 256 * 1024 * 1024,
};

function peer(id: string, builtin: string | null = null): Peer {
  const info = { address: null, launch_id: null, builtin };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

const CALLER = peer("caller");

function register(table: FunctionTable, worker: Peer, id: string, namespace?: string): void {
  table.add(worker, { type: "registerfunction", id, ...(namespace ? { namespace } : {}) });
}

function pick(table: FunctionTable, id: string, bounds = BOUNDS): string | undefined {
  return table.pick(table.find(id)!, 10, bounds, CALLER)?.peer.id;
}

Deno.test("FunctionTable.pick() alternates between equally busy workers", () => {
  const table = new FunctionTable();
  for (const id of ["a", "b", "c"]) register(table, peer(id), "math::add");

  const turns = [1, 2, 3, 4, 5].map(() => pick(table, "math::add"));

  assert.deepEqual(turns, ["a", "b", "c", "a", "b"]);
});

Deno.test("FunctionTable.pick() prefers the worker that executes the fewest calls", () => {
  const table = new FunctionTable();
  const [a, b] = [peer("a"), peer("b")];
  register(table, a, "math::add");
  register(table, b, "math::add");
  a.inflightCalls = 2;
  b.inflightCalls = 1;

  assert.deepEqual([pick(table, "math::add"), pick(table, "math::add")], ["b", "b"]);
});

Deno.test("FunctionTable.pick() skips workers at their limit, until all are", () => {
  const table = new FunctionTable();
  const [a, b] = [peer("a"), peer("b")];
  register(table, a, "math::add");
  register(table, b, "math::add");
  const bounds = { ...BOUNDS, max_inflight_calls_per_worker: 1 };

  a.inflightCalls = 1;
  assert.equal(pick(table, "math::add", bounds), "b");
  b.inflightCalls = 1;
  assert.equal(pick(table, "math::add", bounds), undefined);
});

Deno.test("FunctionTable.pick() counts unanswered and unread bytes of a worker", () => {
  const table = new FunctionTable();
  const worker = peer("a");
  register(table, worker, "math::add");
  const bounds = { ...BOUNDS, max_inflight_bytes_per_worker: 100 };

  worker.inflightBytes = 60;
  assert.equal(pick(table, "math::add", bounds), "a");
  (worker.connection as FakeConnection).queuedBytes = 31;
  assert.equal(pick(table, "math::add", bounds), undefined);
});

Deno.test("FunctionTable.pick() gives an idle worker one payload above the limit", () => {
  const table = new FunctionTable();
  register(table, peer("a"), "math::add");

  const bounds = { ...BOUNDS, max_inflight_bytes_per_worker: 1 };
  assert.equal(pick(table, "math::add", bounds), "a");
});

Deno.test("FunctionTable.pick() keeps its round-robin order when a worker disconnects", () => {
  const table = new FunctionTable();
  const [a, b, c] = [peer("a"), peer("b"), peer("c")];
  for (const worker of [a, b, c]) register(table, worker, "math::add");
  pick(table, "math::add");
  pick(table, "math::add");

  table.removePeer(a);

  assert.deepEqual([1, 2, 3].map(() => pick(table, "math::add")), ["c", "b", "c"]);
});

Deno.test("a function is removed with its last replica", () => {
  const table = new FunctionTable();
  const [a, b] = [peer("a"), peer("b")];
  register(table, a, "math::add");
  register(table, b, "math::add");
  register(table, a, "math::sub");

  assert.deepEqual(table.removePeer(a), { registered: 2, removed: 1 });
  assert.equal(pick(table, "math::add"), "b");
  assert.equal(table.find("math::sub"), undefined);
  assert.deepEqual(table.removePeer(b), { registered: 1, removed: 1 });
  assert.equal(table.find("math::add"), undefined);
  assert.deepEqual([...table.entries()], []);
});

Deno.test("FunctionTable.remove() removes only the sender's own replica", () => {
  const table = new FunctionTable();
  const [a, b] = [peer("a"), peer("b")];
  register(table, a, "math::add");

  assert.equal(table.remove(b, "math::add"), undefined);
  assert.equal(table.remove(a, "math::other"), undefined);
  assert.equal(table.remove(a, "math::add", "eu"), undefined);
  assert.deepEqual(table.remove(a, "math::add"), { gone: true });
  assert.equal(table.remove(a, "math::add"), undefined);
});

Deno.test("FunctionTable.add() replaces the worker's earlier replica, which becomes the newest", () => {
  const table = new FunctionTable();
  const [a, b] = [peer("a"), peer("b")];
  register(table, a, "math::add");
  register(table, b, "math::add");

  const added = table.add(a, { type: "registerfunction", id: "math::add", description: "new" });

  const { replicas } = table.find("math::add")!;
  assert.equal(added.isNew, false);
  assert.deepEqual(replicas.map((replica) => replica.peer.id), ["b", "a"]);
  assert.equal(replicas.at(-1)?.registration.description, "new");
  assert.equal(table.countOf(a), 1);
});

Deno.test("the same id in two namespaces is two functions", () => {
  const table = new FunctionTable();
  register(table, peer("a"), "math::add");
  register(table, peer("b"), "math::add", "eu");

  assert.equal(table.find("math::add", "eu")?.replicas[0]?.peer.id, "b");
  assert.equal(table.find("math::add")?.replicas[0]?.peer.id, "a");
  assert.equal(table.find("math::add", "us"), undefined);
});

Deno.test("a worker cannot replace a built-in function", () => {
  const table = new FunctionTable();
  const engine = peer("engine", "engine-state");
  register(table, engine, "state::get");

  const added = table.add(peer("a"), { type: "registerfunction", id: "state::get" });

  assert.deepEqual(added, { isReserved: true, isNew: false, displaced: [] });
  assert.equal(pick(table, "state::get"), "engine");
});

Deno.test("a built-in function displaces the replicas of workers", () => {
  const table = new FunctionTable();
  const worker = peer("a");
  register(table, worker, "state::get");

  const engine = peer("engine", "engine-state");
  const added = table.add(engine, { type: "registerfunction", id: "state::get" });

  assert.deepEqual(added.displaced, [worker]);
  assert.equal(pick(table, "state::get"), "engine");
  assert.equal(table.countOf(worker), 0);
});

Deno.test("FunctionTable.version changes only with the set of ids", () => {
  const table = new FunctionTable();
  const [a, b] = [peer("a"), peer("b")];
  const versions = [table.version];
  register(table, a, "math::add");
  versions.push(table.version);
  register(table, b, "math::add");
  table.removePeer(a);
  versions.push(table.version);
  table.removePeer(b);
  versions.push(table.version);

  assert.equal(versions[1], versions[2]);
  assert.equal(new Set(versions).size, 3);
});

Deno.test("FunctionTable.mark is equal for equal sets of ids, whatever happened in between", () => {
  const [one, other] = [new FunctionTable(), new FunctionTable()];
  const [a, b] = [peer("a"), peer("b")];
  for (const id of ["f", "g", "h"]) register(one, a, id);
  for (const id of ["h", "x", "f", "g"]) register(other, b, id);
  assert.notEqual(one.mark, other.mark);

  other.remove(b, "x");
  register(one, b, "g");

  assert.equal(one.mark, other.mark);
  one.removePeer(a);
  assert.notEqual(one.mark, other.mark);
});

Deno.test("FunctionTable.visibleIds() omits internal functions", () => {
  const table = new FunctionTable();
  const worker = peer("a");
  register(table, worker, "math::add");
  table.add(worker, { type: "registerfunction", id: "hidden", metadata: { internal: true } });
  table.add(worker, { type: "registerfunction", id: "shown", metadata: { internal: "true" } });

  assert.deepEqual([...table.visibleIds("default")], ["math::add", "shown"]);
  assert.deepEqual([...table.visibleIds("eu")], []);
});

Deno.test("FunctionTable.pick() skips draining workers and alternates between the others", () => {
  const table = new FunctionTable();
  const [a, b, c, d] = ["a", "b", "c", "d"].map((id) => peer(id));
  for (const worker of [a, b, c, d]) register(table, worker!, "math::add");

  table.drain(b!);
  const turns = [1, 2, 3, 4].map(() => pick(table, "math::add"));
  table.removePeer(a!);
  const later = [1, 2].map(() => pick(table, "math::add"));

  assert.deepEqual(turns, ["a", "c", "d", "a"]);
  assert.deepEqual(later, ["c", "d"]);
});

Deno.test("a function whose replicas are all draining stays registered, and a new replica gets its calls", () => {
  const table = new FunctionTable();
  const [a, b] = [peer("a"), peer("b")];
  register(table, a, "math::add");
  table.drain(a);
  register(table, a, "math::sub");

  assert.deepEqual([pick(table, "math::add"), pick(table, "math::sub")], [undefined, undefined]);
  assert.deepEqual(table.entriesOf(a).map(({ id }) => id), ["math::add", "math::sub"]);
  register(table, b, "math::add");
  assert.deepEqual([pick(table, "math::add"), pick(table, "math::add")], ["b", "b"]);
  table.removePeer(b);
  assert.equal(pick(table, "math::add"), undefined);
});

Deno.test("FunctionTable.sorted() lists what is registered, after any additions and removals", () => {
  const table = new FunctionTable();
  const worker = peer("a");
  const random = new Random(1);
  const ids = Array.from({ length: 40 }, (_, i) => `f${i}`);
  for (let step = 0; step < 5_000; step++) {
    const id = random.pick(ids);
    if (random.once(2)) register(table, worker, id);
    else table.remove(worker, id);
    if (!random.once(20)) continue;
    const registered = [...table.entries()].sort(compareEntries);

    assert.deepEqual(table.sorted().map((entry) => entry.id), registered.map(({ id }) => id));
  }
});

Deno.test("FunctionTable keeps nothing of functions that come and go, though no list is sorted", async () => {
  const table = new FunctionTable();
  const worker = peer("a");
  register(table, worker, "stays");
  const gone = Array.from({ length: 3 }, (_, i) => {
    register(table, worker, `gone${i}`);
    const reference = new WeakRef(table.find(`gone${i}`)!);
    table.remove(worker, `gone${i}`);
    return reference;
  });
  register(table, worker, "after");
  await new Promise((resolve) => setTimeout(resolve, 0)); // A new WeakRef holds for its job.
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();

  assert.deepEqual(gone.map((reference) => reference.deref()), gone.map(() => undefined));
  assert.deepEqual(table.sorted().map(({ id }) => id), ["after", "stays"]);
});
