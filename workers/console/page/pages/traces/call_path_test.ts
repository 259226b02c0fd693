import assert from "node:assert/strict";
import { span } from "../../../../../tests/fakes/samples.ts";
import { callPath, readPayload } from "./call_path.ts";
import { spanTree } from "./span_tree.ts";

Deno.test("callPath() orders calls and answers by time", () => {
  const path = callPath(spanTree([
    span({ id: "r", name: "POST /orders", service: "engine-http", startMs: 0, endMs: 100 }),
    call("a", "r", "engine-http", "shop", 10, 90),
    call("b", "a", "shop", "engine-state", 20, 30),
    call("c", "a", "shop", "mail", 25, 80),
  ]));

  assert.deepEqual(path.participants, ["outside", "engine-http", "shop", "engine-state", "mail"]);
  const said = path.steps.map(({ type, from, to, label, atMs }) =>
    `${atMs} ${path.participants[from]} ${type === "call" ? ">" : "<"} ${
      path.participants[to]
    } ${label}`
  );
  assert.deepEqual(said, [
    "0 outside > engine-http POST /orders",
    "10 engine-http > shop a",
    "20 shop > engine-state b",
    "25 shop > mail c",
    "30 engine-state < shop b",
    "80 mail < shop c",
    "90 shop < engine-http a",
    "100 engine-http < outside POST /orders",
  ]);
});

Deno.test("callPath() nests calls of the same moment", () => {
  const path = callPath(spanTree([
    call("a", null, "web", "shop", 5, 5),
    call("b", "a", "shop", "stock", 5, 5),
    call("c", "b", "stock", "disk", 5, 5),
    call("d", "a", "shop", "mail", 5, 5),
  ]));

  const said = path.steps.map(({ type, label }) => `${type} ${label}`);
  assert.deepEqual(said, [
    "call a",
    "call b",
    "call c",
    "answer c",
    "answer b",
    "call d",
    "answer d",
    "answer a",
  ]);
});

Deno.test("callPath() has no answer of a running call, and no work within a worker", () => {
  const path = callPath(spanTree([
    { ...call("a", null, "web", "shop", 0, 1), endMs: null },
    span({ id: "sql", name: "SELECT", parentId: "a" }),
  ]));

  assert.deepEqual(path.steps.map(({ type }) => type), ["call"]);
});

Deno.test("callPath() keeps payloads, codes and queue times", () => {
  const failing = {
    ...call("a", null, "web", "shop", 0, 7),
    failed: true,
    errorCode: "no_stock",
    attributes: {
      "engine.caller": "web",
      "engine.request": '{"id":1}',
      "engine.response": '{"a":',
      "engine.queued_ms": 3,
    },
  };

  const [asked, answered] = callPath(spanTree([failing])).steps;

  assert.deepEqual(readPayload(asked!.payload), { type: "json", value: { id: 1 } });
  assert.equal(asked!.queuedMs, 3);
  assert.deepEqual(readPayload(answered!.payload), { type: "text", text: '{"a":' });
  assert.deepEqual([answered!.tookMs, answered!.errorCode], [7, "no_stock"]);
});

Deno.test("readPayload() of an empty text is missing, not null", () => {
  assert.deepEqual(readPayload(""), { type: "missing" });
  assert.deepEqual(readPayload("null"), { type: "json", value: null });
});

function call(
  id: string,
  parentId: string | null,
  from: string,
  to: string,
  startMs: number,
  endMs: number,
) {
  const attributes = { "engine.caller": from };
  return span({ id, parentId, kind: "call", service: to, startMs, endMs, attributes });
}
