/**
 * Open calls, found by either side's id.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { Invocations } from "./invocations.ts";
import { type Invocation, Peer } from "./peer.ts";
import { bytesOf, textOf, viewOf } from "./wire/bytes.ts";
import { callerIdOf, callHashOf, UUID_BYTES } from "./wire/frame_parts.ts";

const SECRET = "00000000-0000-4000-9000-aabbccddeeff";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/;

function peer(id: string): Peer {
  const info = { address: null, launch_id: null, builtin: null };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

function open(table: Invocations, caller: Peer, callerId: string, callee = peer("w")): Invocation {
  const subject = { function_id: "f", namespace: "default" };
  const call = { function_id: "f", subject, timeout_ms: 1, since: 0, bytes: 10, onEnd: undefined };
  return table.open({ caller, ids: callerIdOf(callerId), callee, ...call });
}

/** The engine's id of a call. */
function idOf({ ids, idAt }: Invocation): string {
  return textOf(ids, idAt, idAt + UUID_BYTES);
}

/** The caller's id of a call. */
function callerIdIn({ callerId, callerIdAt, callerIdBytes }: Invocation): string {
  return textOf(callerId, callerIdAt, callerIdAt + callerIdBytes);
}

function find(table: Invocations, id: string): Invocation | undefined {
  const view = viewOf(bytesOf(id));
  return table.find(view, 0, view.byteLength);
}

/** Two ids with equal hashes. */
function idsOfOneHash(): [string, string] {
  const found = new Map<number, string>();
  for (let i = 0;; i++) {
    const id = `call-${i}`;
    const { hash } = callerIdOf(id);
    const other = found.get(hash);
    if (other !== undefined) return [other, id];
    found.set(hash, id);
  }
}

Deno.test("an engine's id looks like a UUID and finds its call at any offset", () => {
  const table = new Invocations(SECRET);
  const call = open(table, peer("c"), "i1");

  assert.match(idOf(call), UUID);
  assert.equal(find(table, idOf(call)), call);
  assert.equal(table.find(viewOf(bytesOf(`"${idOf(call)}"`)), 1, 37), call);
});

Deno.test("an id finds nothing after its call has ended, even if the record is reused", () => {
  const table = new Invocations(SECRET);
  const caller = peer("c");
  const first = idOf(open(table, caller, "i1"));
  table.close(find(table, first)!);
  assert.equal(find(table, first), undefined, "while the record is free");
  const second = idOf(open(table, caller, "i2"));

  assert.equal(find(table, first), undefined);
  assert.notEqual(first, second);
  assert.equal(callerIdIn(find(table, second)!), "i2");
  assert.equal(table.size, 1);
});

Deno.test("Invocations.find() finds nothing for invented ids", () => {
  const table = new Invocations(SECRET);
  const id = idOf(open(table, peer("c"), "i1"));

  const forged = [
    "",
    "x",
    id.slice(1),
    `${id}0`,
    id.toUpperCase().replace(/0/g, "F"),
    id.replace(/^0/, "9"),
    id.replace(/.$/, "0"),
    "zzzzzzzz" + id.slice(8),
    "é" + id.slice(2),
    "ffffffff" + id.slice(8),
  ];
  for (const text of forged) assert.equal(find(table, text), undefined, text);
  for (let at = 0; at < id.length; at++) {
    const other = id.slice(0, at) + (id[at] === "e" ? "d" : "e") + id.slice(at + 1);
    assert.equal(find(table, other), undefined, other);
  }
  // The bytes after the id have no influence.
  for (let end = 0; end < 36; end++) {
    assert.equal(table.find(viewOf(bytesOf(id)), 0, end), undefined);
    assert.equal(table.find(viewOf(bytesOf(id)), end + 1, 36), undefined);
  }
});

Deno.test("equal ids of two callers are two calls", () => {
  const table = new Invocations(SECRET);
  const [a, b] = [peer("a"), peer("b")];
  const [first, second] = [open(table, a, "same"), open(table, b, "same")];

  assert.equal(table.findOfCaller(a, callerIdOf("same")), first);
  assert.equal(table.findOfCaller(b, callerIdOf("same")), second);
  table.close(first);
  assert.equal(table.findOfCaller(a, callerIdOf("same")), undefined);
  assert.equal(table.findOfCaller(b, callerIdOf("same")), second);
});

Deno.test("ids of a caller that share a hash are kept apart, whichever have ended", () => {
  const ids = idsOfOneHash();
  assert.equal(callerIdOf(ids[0]!).hash, callerIdOf(ids[1]!).hash);
  // More equal hashes than can be found quickly: the hash is given.
  const all = [...ids, "third", "of another length", "ö"];
  const { hash } = callerIdOf(ids[0]!);
  const named = (id: string) => ({ ...callerIdOf(id), hash });
  for (const order of [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]]) {
    const table = new Invocations(SECRET);
    const caller = peer("c");
    const subject = { function_id: "f", namespace: "default" };
    const none = { callee: undefined, onEnd: undefined };
    const about = { ...none, function_id: "f", subject, timeout_ms: 1, since: 0 };
    const calls = all.map((id) => table.open({ caller, ids: named(id), ...about, bytes: 10 }));
    const running = new Set(all);

    assert.deepEqual(table.ofCaller(caller), calls);
    for (const i of order) {
      table.close(calls[i]!);
      running.delete(all[i]!);
      for (const [at, id] of all.entries()) {
        assert.equal(
          table.findOfCaller(caller, named(id)),
          running.has(id) ? calls[at] : undefined,
        );
      }
    }
    assert.equal(caller.waiting.size, 0);
  }
});

Deno.test("a caller's ids that differ only far from their end are kept apart", () => {
  const table = new Invocations(SECRET);
  const caller = peer("c");
  const ids = Array.from({ length: 50 }, (_, i) => `${i}-${"x".repeat(40)}`);
  const calls = ids.map((id) => open(table, caller, id));

  for (const [i, id] of ids.entries()) {
    assert.equal(table.findOfCaller(caller, callerIdOf(id)), calls[i]);
  }
  for (const [i, id] of ids.entries()) {
    table.close(calls[i]!);
    assert.equal(table.findOfCaller(caller, callerIdOf(id)), undefined);
  }
  assert.equal(caller.waiting.size, 0);
});

Deno.test("a caller's ids that differ only in their middle do not share a hash", () => {
  const ids = Array.from({ length: 1_000 }, (_, i) => `request-${i + 1_000}-of-orders-a`);

  const hashes = new Set(ids.map((id) => callerIdOf(id).hash));

  assert.ok(hashes.size > 990, `${hashes.size} hashes`);
});

Deno.test("ids as long as a UUID whose two ends are alike do not share a hash", () => {
  const digits = Array.from({ length: 1_000 }, (_, i) => `${i}`.padStart(8, "0"));
  const hashes = digits.map((end) => callerIdOf(`${end}-1234-1234-1234-1234${end}`).hash);

  assert.ok(hashes.every((hash) => hash >= 0 && hash < 2 ** 30));
  assert.ok(new Set(hashes).size > 990, `${new Set(hashes).size} hashes`);
});

Deno.test("a caller's id may have any length, and is copied from the frame", () => {
  const table = new Invocations(SECRET);
  const caller = peer("c");
  const ids = [1, 2, 35, 36, 37, 64, 128, 3_000].map((length) => "x".repeat(length));
  ids.push("é".repeat(18), "東".repeat(40), "😀");
  const subject = { function_id: "f", namespace: "default" };
  const none = { callee: undefined, onEnd: undefined };
  const about = { ...none, function_id: "f", subject, timeout_ms: 1, since: 0 };

  for (let round = 0; round < 3; round++) {
    const calls = ids.map((id) => {
      const memory = bytesOf(`""${id}""`);
      const [idStart, idEnd] = [2, memory.length - 2];
      const view = viewOf(memory);
      const hash = callHashOf(view, idStart, idEnd);
      const call = table.open({
        caller,
        ids: { view, idStart, idEnd, hash },
        ...about,
        bytes: 1,
      });
      memory.fill(0);
      return call;
    });
    for (const [i, id] of ids.entries()) {
      assert.equal(callerIdIn(calls[i]!), id);
      assert.equal(table.findOfCaller(caller, callerIdOf(id)), calls[i]);
      assert.equal(table.findOfCaller(caller, callerIdOf(`${id}x`)), calls[ids.indexOf(`${id}x`)]);
    }
    for (const call of calls.toReversed()) table.close(call);
    assert.equal(caller.waiting.size, 0);
    // A free record keeps no memory of its own.
    for (const call of calls) assert.equal(call.callerId, call.ids);
  }
});

Deno.test("a void call has no caller id, even if its record had one before", () => {
  const table = new Invocations(SECRET);
  const first = open(table, peer("c"), "i1");
  table.close(first);
  const subject = { function_id: "f", namespace: "default" };
  const none = { callee: undefined, onEnd: undefined };
  const about = { ...none, function_id: "f", subject, timeout_ms: 1, since: 0 };
  const second = table.open({ caller: undefined, ids: callerIdOf("i2"), ...about, bytes: 1 });

  assert.equal(second, first);
  assert.equal(second.callerIdBytes, 0);
  table.close(second);
  assert.equal(table.size, 0);
});

Deno.test("the load of a worker is its unanswered calls", () => {
  const table = new Invocations(SECRET);
  const [caller, worker] = [peer("c"), peer("w")];
  const calls = [open(table, caller, "1", worker), open(table, caller, "2", worker)];

  assert.deepEqual([worker.inflightCalls, worker.inflightBytes], [2, 20]);
  table.close(calls[0]!);
  assert.deepEqual([worker.inflightCalls, worker.inflightBytes], [1, 10]);
});

Deno.test("a worker's calls are found from the oldest on, whichever have ended", () => {
  const table = new Invocations(SECRET);
  const [caller, worker] = [peer("c"), peer("w")];
  const calls = ["0", "1", "2", "3", "4"].map((id) => open(table, caller, id, worker));
  const ring = () => {
    const ids: string[] = [];
    for (let call = worker.firstCall; call; call = call.after) {
      if (ids.includes(callerIdIn(call))) break;
      ids.push(callerIdIn(call));
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

Deno.test("ten thousand open calls have distinct ids", () => {
  const table = new Invocations(SECRET);
  const caller = peer("c");
  const ids = new Set<string>();
  for (let round = 0; round < 3; round++) {
    const calls = Array.from({ length: 10_000 }, (_, i) => open(table, caller, `${i}`));
    for (const call of calls) {
      ids.add(idOf(call));
      table.close(call);
    }
  }

  assert.equal(ids.size, 30_000);
  assert.equal(table.size, 0);
});

Deno.test("idOf() returns the id of any use of a record", () => {
  const table = new Invocations(SECRET);
  const call = open(table, peer("c"), "i1");

  assert.equal(table.idOf(call.slot, call.uses), idOf(call));
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

Deno.test("more digits of an id change after 65,536 uses, and late ids find nothing", () => {
  const table = new Invocations(SECRET);
  const caller = peer("c");
  const others = [open(table, caller, "other")];
  const seen = new Set<string>();
  const turns = new Set<string>();
  for (let use = 1; use <= 2 * 0x10000 + 10; use++) {
    const call = open(table, caller, "i");
    const id = idOf(call);
    turns.add(id.slice(13));
    // Checking every use would take too long: those around each overflow, and some between.
    if ((use & 0xffff) < 3 || (use & 0xffff) > 0xfffd || use % 997 === 0) {
      assert.equal(id, table.idOf(call.slot, call.uses));
      assert.match(id, UUID);
      assert.ok(!seen.has(id), id);
      seen.add(id);
    }
    table.close(call);
  }

  assert.equal(turns.size, 3);
  const last = open(table, caller, "i");
  for (const id of seen) assert.equal(find(table, id), undefined, id);
  assert.equal(find(table, idOf(last)), last);
  assert.equal(find(table, idOf(others[0]!)), others[0]);
});
