/**
 * @module
 */
import assert from "node:assert/strict";
import { CALL_TIMEOUT_MS } from "../../../../sdk/typescript/wire/limits.ts";
import type { ConsoleSocket } from "./connection.ts";
import { ANSWER_GRACE_MS, CallFailure, itemKey, Live, patchItems } from "./live.ts";

interface Sent {
  readonly type: string;
  readonly id: number;
  readonly [name: string]: unknown;
}

const QUERY = { function_id: "engine::workers::list", items: "workers", key: ["id"] };
const ON = [{ type: "engine::workers-available" }];

function setup() {
  const sent: Sent[] = [];
  const timers = new Set<{ ms: number; run: () => void }>();
  const socket: ConsoleSocket = {
    send: (text) => sent.push(JSON.parse(text)),
    close: () => {},
    onopen: null,
    onmessage: null,
    onclose: null,
  };
  const live = new Live({
    open: () => socket,
    token: () => "t",
    later: (ms, run) => {
      const timer = { ms, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    now: () => 1_000,
  });
  const say = (message: object) => socket.onmessage?.({ data: JSON.stringify(message) });
  live.connect();
  socket.onopen?.();
  say({ type: "welcome", version: "0.1.0", engine_url: "ws://e", operator: false });
  const last = () => sent.at(-1)!;
  const runTimers = () => [...timers].forEach((timer) => timers.delete(timer) && timer.run());
  return { live, say, sent, last, timers, runTimers, socket };
}

Deno.test("Live.call() resolves with the result", async () => {
  const { live, say, last } = setup();

  const result = live.call("math::add", { a: 1 }, { namespace: "n", timeout_ms: 9 });
  const { id } = last();
  say({ type: "result", id, result: { sum: 3 }, duration_ms: 2, trace_id: "t" });

  assert.deepEqual(await result, { sum: 3 });
  assert.deepEqual(last(), {
    type: "call",
    id,
    function_id: "math::add",
    payload: { a: 1 },
    namespace: "n",
    timeout_ms: 9,
  });
});

Deno.test("Live.callFully() reports duration and progress", async () => {
  const { live, say, last } = setup();
  const seen: unknown[] = [];

  const outcome = live.callFully("a::b", undefined, { onProgress: (data) => seen.push(data) });
  const { id } = last();
  say({ type: "progress", id, data: 0.5 });
  say({ type: "result", id, duration_ms: 2, trace_id: "abc" });

  assert.deepEqual(await outcome, { result: null, duration_ms: 2, trace_id: "abc" });
  assert.deepEqual(seen, [0.5]);
});

Deno.test("Live.call() rejects with the code of the error", async () => {
  const { live, say, last, timers } = setup();

  const call = live.call("a::b");
  const error = { code: "out_of_stock", message: "Only 2 left", details: { left: 2 } };
  say({ type: "error", id: last().id, error, duration_ms: 7, trace_id: "abc" });

  await assert.rejects(call, (thrown) => {
    assert.ok(thrown instanceof CallFailure);
    assert.deepEqual([thrown.code, thrown.message], ["out_of_stock", "Only 2 left"]);
    assert.deepEqual([thrown.body, thrown.duration_ms], [error, 7]);
    return true;
  });
  assert.equal(timers.size, 0);
});

Deno.test("Live.call() fails when no answer arrives in time", async () => {
  const { live, last, timers, runTimers } = setup();

  const call = live.call("a::b");
  assert.deepEqual([...timers].map(({ ms }) => ms), [CALL_TIMEOUT_MS + ANSWER_GRACE_MS]);
  runTimers();

  await assert.rejects(call, { code: "timeout" });
  assert.equal(last().type, "end");
});

Deno.test("Live.call() is cancelled by its signal, before and while it runs", async () => {
  const { live, last, sent } = setup();
  const abort = new AbortController();

  const call = live.call("a::b", null, { signal: abort.signal });
  abort.abort();

  await assert.rejects(call, { code: "cancelled" });
  assert.equal(last().type, "end");
  const count = sent.length;
  await assert.rejects(live.call("a::b", null, { signal: abort.signal }), { code: "cancelled" });
  assert.deepEqual(sent.slice(count).map(({ type }) => type), ["call", "end"]);
});

Deno.test("Live.watch() asks again for a query that failed and lost its users", () => {
  const { live, say, sent, last } = setup();
  const error = { code: "function_not_found", message: "Function a::b not found" };
  const state = live.watch(QUERY, ON);
  const asked = () => sent.filter(({ type }) => type === "watch_query").length;
  say({ type: "error", id: last().id, error, duration_ms: 0, trace_id: null });
  assert.equal(state.value.status, "failed");

  live.watch(QUERY, ON); // A second user sees the failure of the first.
  assert.equal(asked(), 1);
  live.release(QUERY, ON);
  live.release(QUERY, ON);
  live.watch(QUERY, ON);

  assert.deepEqual([asked(), state.value.status], [2, "loading"]);
});

Deno.test("Live.http() resolves with the response", async () => {
  const { live, say, last } = setup();

  const answer = live.http({ method: "GET", path: "/x", headers: {} });
  const { id } = last();
  const rest = { headers: [], body: "hi", binary: false, duration_ms: 1, trace_id: null };
  say({ type: "http_answer", id, status: 404, ...rest });

  assert.equal((await answer).status, 404);
});

Deno.test("Live.watch() starts with a snapshot and applies patches", () => {
  const { live, say, last } = setup();
  const state = live.watch(QUERY, ON);
  assert.equal(state.value.status, "loading");
  const { id } = last();

  say({ type: "snapshot", id, items: [{ id: "a", n: 1 }, { id: "b", n: 1 }] });
  const before = state.value.items;
  say({ type: "patch", id, set: [{ id: "b", n: 2 }, { id: "c", n: 1 }], gone: ['["a"]'] });

  assert.equal(state.value.status, "ready");
  assert.deepEqual(state.value.items, [{ id: "b", n: 2 }, { id: "c", n: 1 }]);
  assert.equal(before.length, 2);
});

Deno.test("Live.watch() of a query without items tracks its value", () => {
  const { live, say, last } = setup();
  const state = live.watch({ function_id: "engine::config::list" }, []);

  say({ type: "value", id: last().id, value: { path: null } });

  assert.deepEqual(state.value.value, { path: null });
});

Deno.test("Live.watch() shares equal queries, and ends a moment after the last release", () => {
  const { live, sent, last, runTimers } = setup();

  const first = live.watch(QUERY, ON);
  const second = live.watch({ ...QUERY }, [...ON]);
  assert.equal(first, second);
  assert.equal(sent.filter(({ type }) => type === "watch_query").length, 1);

  live.release(QUERY, ON);
  runTimers();
  assert.notEqual(last().type, "end");
  live.release(QUERY, ON);
  assert.notEqual(last().type, "end");
  runTimers();
  assert.equal(last().type, "end");
});

Deno.test("Live.watch() within that moment keeps the state", () => {
  const { live, say, last, timers } = setup();
  live.watch(QUERY, ON);
  say({ type: "snapshot", id: last().id, items: [{ id: "a" }] });
  live.release(QUERY, ON);

  const state = live.watch(QUERY, ON);

  assert.equal(state.value.items.length, 1);
  assert.equal(timers.size, 0);
});

Deno.test("a failed query has its error, and is retried on demand and when the engine is back", () => {
  const { live, say, sent, last } = setup();
  const state = live.watch(QUERY, ON);
  const fail = () => {
    const error = { code: "FORBIDDEN", message: "no" };
    say({ type: "error", id: last().id, error, duration_ms: 0, trace_id: null });
  };
  const requests = () => sent.filter(({ type }) => type === "watch_query").length;

  fail();
  assert.equal(state.value.status, "failed");
  assert.equal(state.value.error?.code, "FORBIDDEN");
  live.retry(QUERY, ON);
  assert.deepEqual([state.value.status, requests()], ["loading", 2]);
  fail();
  say({ type: "engine", connected: true, since_ms: 1 });
  assert.equal(requests(), 3);
});

Deno.test("Live.onTrigger() reports firings, misses and failure", () => {
  const { live, say, last } = setup();
  const received: unknown[] = [];
  live.onTrigger({ type: "log" }, (payload) => received.push(payload), {
    missed: (count) => received.push(count),
    failed: ({ code }) => received.push(code),
  });
  const { id } = last();

  say({ type: "fired", id, payload: { a: 1 } });
  say({ type: "missed", id, count: 7 });
  say({ type: "error", id, error: { code: "x", message: "" }, duration_ms: 0, trace_id: null });

  assert.deepEqual(received, [{ a: 1 }, 7, "x"]);
});

Deno.test("Live.status tracks connection, engine and rights", () => {
  const { live, say, socket } = setup();

  assert.deepEqual(live.status.value, {
    connection: "open",
    engine: null,
    since_ms: 1_000,
    version: "0.1.0",
    engine_url: "ws://e",
    operator: false,
  });
  say({ type: "engine", connected: false, since_ms: 77 });
  assert.deepEqual([live.status.value.engine, live.status.value.since_ms], [false, 77]);
  socket.onclose?.({ code: 1006 });
  assert.deepEqual([live.status.value.connection, live.status.value.engine], ["lost", null]);
});

for (
  const [item, members, key] of [
    [{ id: "a" }, ["id"], '["a"]'],
    [{ n: "x", id: 'a"b' }, ["n", "id"], '["x","a\\"b"]'],
    [{ n: 1 }, ["id"], "[null]"],
    [null, ["id"], undefined],
    ["text", ["id"], undefined],
    [[1], ["id"], undefined],
  ] as const
) {
  Deno.test(`the key of ${JSON.stringify(item)} by ${members} is ${key}`, () => {
    assert.equal(itemKey(item as never, members), key);
  });
}

Deno.test("patchItems() keeps the order, changes in place and appends new items", () => {
  const items = [{ id: 1, v: "a" }, { id: 2, v: "b" }, { id: 3, v: "c" }];

  const after = patchItems(items, ["id"], [{ id: 4, v: "d" }, { id: 2, v: "B" }], ["[1]"]);

  assert.deepEqual(after, [{ id: 2, v: "B" }, { id: 3, v: "c" }, { id: 4, v: "d" }]);
  assert.equal(items.length, 3);
});

Deno.test("patchItems() keeps one item per key, even if set twice or gone and set", () => {
  const after = patchItems([{ id: 1 }], ["id"], [{ id: 2, v: 1 }, { id: 2, v: 2 }, { id: 1 }], [
    "[1]",
    "[9]",
  ]);

  assert.deepEqual(after, [{ id: 1 }, { id: 2, v: 2 }]);
});

Deno.test("patchItems() keeps unchanged items identical", () => {
  const items = Array.from({ length: 10_000 }, (_, id) => ({ id }));

  const after = patchItems(items, ["id"], [{ id: 5, v: 1 }], []);

  assert.equal(after[9_999], items[9_999]);
  assert.deepEqual(after[5], { id: 5, v: 1 });
});
