/**
 * Running calls, found by either side's id.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { type Invocation, Invocations } from "./invocations.ts";
import { Peer } from "./peer.ts";

const SECRET = "00000000-0000-4000-9000-aabbccddeeff";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/;

function peer(id: string): Peer {
  const info = { address: null, launch_id: null, builtin: null };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

function open(table: Invocations, caller: Peer, callerId: string, callee = peer("w")): Invocation {
  const subject = { function_id: "f", namespace: "default" };
  const call = { function_id: "f", subject, timeout_ms: 1, since: 0, bytes: 10 };
  return table.open({ caller, callerId, callee, ...call });
}

Deno.test("an id of the engine looks like a UUID and finds its call wherever it stands", () => {
  const table = new Invocations(SECRET);
  const call = open(table, peer("c"), "i1");

  assert.match(call.id, UUID);
  assert.equal(table.find(call.id), call);
  assert.equal(table.find(`"${call.id}"`, 1, 37), call);
});

Deno.test("an id means nothing once its call is over, also when the record serves another", () => {
  const table = new Invocations(SECRET);
  const caller = peer("c");
  const first = open(table, caller, "i1").id;
  table.close(table.find(first)!);
  const second = open(table, caller, "i2").id;

  assert.equal(table.find(first), undefined);
  assert.notEqual(first, second);
  assert.equal(table.find(second)?.callerId, "i2");
  assert.equal(table.size, 1);
});

Deno.test("Invocations.find() knows no id that is made up", () => {
  const table = new Invocations(SECRET);
  const { id } = open(table, peer("c"), "i1");

  const forged = [
    "",
    "x",
    id.slice(1),
    `${id}0`,
    id.toUpperCase().replace(/0/g, "F"),
    id.replace(/^0/, "9"),
    id.replace(/.$/, "0"),
    "zzzzzzzz" + id.slice(8),
  ];
  for (const text of forged) assert.equal(table.find(text), undefined, text);
});

Deno.test("equal ids of two callers are two calls", () => {
  const table = new Invocations(SECRET);
  const [a, b] = [peer("a"), peer("b")];
  const [first, second] = [open(table, a, "same"), open(table, b, "same")];

  assert.equal(table.findOfCaller(a, "same"), first);
  assert.equal(table.findOfCaller(b, "same"), second);
  table.close(first);
  assert.equal(table.findOfCaller(a, "same"), undefined);
  assert.equal(table.findOfCaller(b, "same"), second);
});

Deno.test("ids of a caller that share a hash are kept apart", () => {
  const table = new Invocations(SECRET);
  const caller = peer("c");
  // In a hash to base 31 these two syllables weigh the same.
  const ids = ["AaAa", "BBBB", "AaBB", "BBAa"];
  const calls = ids.map((id) => open(table, caller, id));

  assert.equal(caller.waiting.size, 1);
  for (const [i, id] of ids.entries()) assert.equal(table.findOfCaller(caller, id), calls[i]);
  table.close(calls[1]!);
  table.close(calls[3]!);
  assert.deepEqual(
    ids.map((id) => table.findOfCaller(caller, id)?.callerId),
    ["AaAa", undefined, "AaBB", undefined],
  );
  table.close(calls[0]!);
  table.close(calls[2]!);
  assert.equal(caller.waiting.size, 0);
});

Deno.test("a worker's load is what it has not answered", () => {
  const table = new Invocations(SECRET);
  const [caller, worker] = [peer("c"), peer("w")];
  const calls = [open(table, caller, "1", worker), open(table, caller, "2", worker)];

  assert.deepEqual([worker.inflightCalls, worker.inflightBytes], [2, 20]);
  table.close(calls[0]!);
  assert.deepEqual([worker.inflightCalls, worker.inflightBytes], [1, 10]);
});

Deno.test("a worker's calls are found from the first on, whichever are over", () => {
  const table = new Invocations(SECRET);
  const [caller, worker] = [peer("c"), peer("w")];
  const calls = ["0", "1", "2", "3", "4"].map((id) => open(table, caller, id, worker));
  const ring = () => {
    const ids: string[] = [];
    for (let call = worker.firstCall; call; call = call.after) {
      if (ids.includes(call.callerId)) break;
      ids.push(call.callerId);
    }
    return ids.join("");
  };

  const rings = [2, 0, 4, 1, 3].map((i) => {
    table.close(calls[i]!);
    return ring();
  });

  assert.deepEqual(rings, ["0134", "134", "13", "3", ""]);
  calls[0] = open(table, caller, "5", worker);
  assert.equal(ring(), "5");
});

Deno.test("ten thousand calls at once have ids of their own", () => {
  const table = new Invocations(SECRET);
  const caller = peer("c");
  const ids = new Set<string>();
  for (let round = 0; round < 3; round++) {
    const calls = Array.from({ length: 10_000 }, (_, i) => open(table, caller, `${i}`));
    for (const call of calls) {
      ids.add(call.id);
      table.close(call);
    }
  }

  assert.equal(ids.size, 30_000);
  assert.equal(table.size, 0);
});

Deno.test("idOf() says the id that a record has, also of uses long past", () => {
  const table = new Invocations(SECRET);
  const call = open(table, peer("c"), "i1");

  assert.equal(table.idOf(call.slot, call.uses), call.id);
  assert.equal(
    table.idOf(0x1f, 0x89abcdef12),
    "0000001f-ef12-4bcd-889a-aabbccddeeff",
  );
});

Deno.test("the ids of a record are all different", () => {
  const table = new Invocations(SECRET);
  const uses = [0, 1, 0xff, 0x100, 0xffff, 0x10000, 0x10001, 0xfffffff, 0x10000000, 2 ** 39];
  const ids = uses.map((count) => table.idOf(3, count));

  assert.equal(new Set(ids).size, uses.length);
  for (const id of ids) assert.match(id, UUID);
});
