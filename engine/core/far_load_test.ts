/**
 * Which replica gets a call where other engines offer the function, too.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { FunctionTable, type LoadBounds, type Replica } from "./function_table.ts";
import { Peer } from "./peer.ts";

const BOUNDS: LoadBounds = {
  max_inflight_calls_per_worker: 100,
  max_inflight_bytes_per_worker: 1_000_000,
};

function peer(id: string, more: { engine?: string; builtin?: string } = {}): Peer {
  const { engine, builtin = null } = more;
  const info = { address: null, launch_id: null, builtin, ...engine && { engine } };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

function setup(near: readonly string[], engines: readonly string[]) {
  const table = new FunctionTable();
  const peers = new Map<string, Peer>();
  const add = (one: Peer): void => {
    peers.set(one.id, one);
    table.add(one, { type: "registerfunction", id: "math::add" });
  };
  for (const id of near) add(peer(id));
  for (const id of engines) add(peer(id, { engine: id }));
  const caller = peer("caller");
  const pick = (from = caller, bounds = BOUNDS): Replica | undefined =>
    table.pick(table.find("math::add")!, 10, bounds, from);
  const picks = (count: number, from = caller): string[] =>
    Array.from({ length: count }, () => pick(from)?.peer.id ?? "none");
  return { table, peers, add, pick, picks };
}

Deno.test("a worker of this engine gets calls until it is busier by more than far_calls", () => {
  const { peers, pick } = setup(["w"], ["b"]);
  const bounds = { ...BOUNDS, cluster: { far_calls: 5 } };

  peers.get("w")!.inflightCalls = 5;
  assert.equal(pick(undefined, bounds)!.peer.id, "w");
  peers.get("w")!.inflightCalls = 6;
  assert.equal(pick(undefined, bounds)!.peer.id, "b");
  assert.equal(pick(undefined, bounds)!.peer.id, "w", "one call is at b now");
});

Deno.test("workers of this engine take turns beside other engines", () => {
  const { picks } = setup(["v", "w"], ["b", "c"]);

  assert.deepEqual(picks(4), ["v", "w", "v", "w"]);
});

Deno.test("calls that have ended at another engine do not count", () => {
  const { picks, pick, table } = setup([], ["b"]);
  picks(30);
  const { far } = table.find("math::add")!.replicas[0]!;
  assert.equal(far!.calls, 30);

  const ended = pick()!.far!;
  ended.ended();

  assert.equal(far!.calls, 30);
});

Deno.test("a call from another engine goes to a worker of this one, or nowhere", () => {
  const { peers, picks, add } = setup([], ["b", "c"]);
  const caller = peers.get("b")!;

  assert.deepEqual(picks(2, caller), ["none", "none"]);
  add(peer("w"));
  peers.get("w")!.inflightCalls = 99;
  assert.deepEqual(picks(1, caller), ["w"]);
});

Deno.test("what an engine reports of others' calls counts for each of its replicas", () => {
  const { table, peers, picks } = setup([], ["b", "c"]);
  const report = (id: string, replicas: number, running: number): void =>
    table.reportLoad(peers.get(id)!, "math::add", "default", { replicas, running });

  report("b", 2, 100);
  report("c", 10, 100);

  assert.deepEqual(new Set(picks(300)), new Set(["c"]));
  report("c", 10, 900); // Of which 300 are ours.
  assert.deepEqual(new Set(picks(10)), new Set(["b"]));
});

Deno.test("many calls are spread evenly over engines with equal reports", () => {
  const { picks } = setup([], ["b", "c", "d", "e"]);

  const counts = Map.groupBy(picks(400), (id) => id).values().map(({ length }) => length);

  for (const count of counts) assert.ok(count >= 90 && count <= 110, `${count} of 400`);
});

Deno.test("an engine at its bound is passed over, also when both that were picked are", () => {
  const { peers, picks } = setup([], ["b", "c", "d"]);
  peers.get("b")!.inflightCalls = peers.get("c")!.inflightCalls = 1_000;

  assert.deepEqual(new Set(picks(50)), new Set(["d"]));
});

Deno.test("a built-in worker of this engine is never passed over, and others stay behind it", () => {
  const { table, peers, add, picks } = setup([], ["b"]);
  const builtin = peer("own", { builtin: "engine-state" });

  add(builtin);
  builtin.inflightCalls = 99;
  assert.deepEqual(picks(1), ["own"]);
  add(peer("c", { engine: "c" }));
  assert.deepEqual(picks(1), ["own"]);
  add(peer("w"));
  assert.deepEqual(picks(1), ["own"], "a worker cannot take it over");

  table.removePeer(builtin);
  table.removePeer(peers.get("b")!);
  assert.deepEqual(picks(1), ["c"], "engines are there when it has left");
});

Deno.test("a draining engine gets no calls", () => {
  const { table, peers, picks } = setup([], ["b", "c"]);

  table.drain(peers.get("b")!);

  assert.deepEqual(new Set(picks(20)), new Set(["c"]));
});
