import assert from "node:assert/strict";
import { span } from "../../../../../tests/fakes/samples.ts";
import {
  ancestorsOf,
  attributeNumber,
  durationOf,
  failedRow,
  functionOf,
  matchingRows,
  readSpan,
  serviceColours,
  spanTree,
  startTimes,
  visibleRows,
} from "./span_tree.ts";

const STORED = {
  trace_id: "0af7651916cd43dd8448eb211c80319c",
  span_id: "00f067aa0ba902b7",
  parent_span_id: "b7ad6b7169203331",
  name: "shop::buy",
  start_time_unix_nano: "1700000000000500000",
  end_time_unix_nano: 1700000000002500000,
  status: "error",
  status_description: "No such product",
  service_name: "shop",
  attributes: [["engine.function_id", "shop::buy"], ["engine.kind", "call"], [
    "engine.queued_ms",
    1.5,
  ], ["engine.error_code", "not_found"]],
};

Deno.test("readSpan() reads a stored span, nanoseconds as digits or as a number", () => {
  const span = readSpan(STORED);

  assert.equal(span.id, "00f067aa0ba902b7");
  assert.equal(span.parentId, "b7ad6b7169203331");
  assert.equal(span.startMs, 1700000000000.5);
  assert.equal(durationOf(span, 0), 2);
  assert.equal(span.kind, "call");
  assert.deepEqual([span.failed, span.errorCode, span.errorMessage], [
    true,
    "not_found",
    "No such product",
  ]);
  assert.equal(functionOf(span), "shop::buy");
  assert.equal(attributeNumber(span, "engine.queued_ms"), 1.5);
});

Deno.test("readSpan() of a span without an end is running", () => {
  for (const end of [undefined, null, 0, "0"]) {
    const span = readSpan({ ...STORED, end_time_unix_nano: end ?? null });
    assert.equal(span.endMs, null);
    assert.equal(durationOf(span, 1700000000010.5), 10);
  }
  assert.equal(readSpan({ ...STORED, pending: true }).endMs, null);
});

Deno.test("readSpan() distinguishes calls, handlers and other work", () => {
  const handler = { ...STORED, name: "execute shop::buy", attributes: [] };
  const work = { ...STORED, name: "SELECT", attributes: [["db.system", "sqlite"]] };

  assert.equal(readSpan(handler).kind, "handler");
  assert.equal(readSpan(work).kind, "work");
});

Deno.test("readSpan() reads any value", () => {
  const odd = [null, 7, "span", [], {}, {
    name: 5,
    attributes: [null, [], ["a"], [1, 2]],
    status: { code: "ERROR", message: "broken" },
    start_time_unix_nano: "soon",
    end_time_unix_nano: { high: 1 },
  }];

  for (const raw of odd) {
    const span = readSpan(raw);
    assert.equal(typeof span.name, "string");
    assert.ok(Number.isFinite(span.startMs) && Number.isFinite(durationOf(span, 5)));
  }
  assert.equal(readSpan(odd.at(-1)!).errorMessage, "broken");
});

Deno.test("readSpan() never lets a span end before it starts", () => {
  const span = readSpan({ ...STORED, end_time_unix_nano: 1 });

  assert.equal(durationOf(span, 0), 0);
});

Deno.test("attributeNumber() is 0 for what is missing or no number", () => {
  const span = readSpan({ ...STORED, attributes: [["a", "soon"]] });

  assert.equal(attributeNumber(span, "a"), 0);
  assert.equal(attributeNumber(span, "b"), 0);
});

Deno.test("spanTree() places children below their parent, by start", () => {
  const tree = spanTree([
    span({ id: "c", parentId: "a", startMs: 30 }),
    span({ id: "d", parentId: "b", startMs: 20 }),
    span({ id: "a", startMs: 0, endMs: 100 }),
    span({ id: "b", parentId: "a", startMs: 10 }),
  ]);

  const rows = tree.rows.map(({ span, depth, parent }) => [span.id, depth, parent]);
  assert.deepEqual(rows, [["a", 0, -1], ["b", 1, 0], ["d", 2, 1], ["c", 1, 0]]);
  assert.deepEqual([tree.startMs, tree.endMs], [0, 100]);
});

Deno.test("spanTree() counts descendants and their errors", () => {
  const tree = spanTree([
    span({ id: "a" }),
    span({ id: "b", parentId: "a" }),
    span({ id: "c", parentId: "b", failed: true }),
    span({ id: "d", parentId: "a", failed: true }),
  ]);

  const counts = tree.rows.map((row) => [row.children, row.descendants, row.errorsBelow]);
  assert.deepEqual(counts, [[2, 3, 2], [1, 1, 1], [0, 0, 0], [0, 0, 0]]);
});

Deno.test("failedRow() is the span that an error came from, not one that passed it on", () => {
  const tree = spanTree([
    span({ id: "a", failed: true }),
    span({ id: "b", parentId: "a", startMs: 1 }),
    span({ id: "c", parentId: "a", startMs: 2, failed: true }),
    span({ id: "d", parentId: "c", startMs: 3, failed: true }),
    span({ id: "e", parentId: "a", startMs: 4, failed: true }),
  ]);

  assert.equal(failedRow(tree)?.span.id, "d");
  assert.equal(failedRow(spanTree([span({ id: "a" })])), undefined);
});

Deno.test("spanTree() makes a span with a missing parent a root", () => {
  const tree = spanTree([span({ id: "b", parentId: "gone" }), span({ id: "a" })]);

  assert.deepEqual(tree.rows.map(({ depth }) => depth), [0, 0]);
});

Deno.test("spanTree() contains each span of a cycle once", () => {
  const tree = spanTree([
    span({ id: "a", parentId: "b" }),
    span({ id: "b", parentId: "a" }),
    span({ id: "self", parentId: "self" }),
  ]);

  assert.deepEqual(tree.rows.map(({ span }) => span.id).sort(), ["a", "b", "self"]);
});

Deno.test("spanTree() prefers the ended version of a span", () => {
  const ended = span({ id: "a", endMs: 5 });
  const running = span({ id: "a", endMs: null });

  for (const spans of [[ended, running], [running, ended]]) {
    const tree = spanTree(spans);
    assert.equal(tree.rows.length, 1);
    assert.equal(tree.isPending, false);
  }
});

Deno.test("spanTree() folds a handler's span into its call, and keeps its children", () => {
  const tree = spanTree([
    span({ id: "call", name: "shop::buy", kind: "call", attributes: fn("shop::buy") }),
    span({
      id: "run",
      parentId: "call",
      name: "execute shop::buy",
      kind: "handler",
      startMs: 2,
      endMs: 8,
    }),
    span({ id: "nested", parentId: "run", name: "state::get", kind: "call" }),
  ]);

  assert.deepEqual(tree.rows.map(({ span, depth }) => [span.id, depth]), [
    ["call", 0],
    ["nested", 1],
  ]);
  assert.deepEqual(tree.rows[0]!.handler, { id: "run", startMs: 2, endMs: 8 });
});

Deno.test("spanTree() keeps a handler's span without its call", () => {
  const tree = spanTree([
    span({ id: "x", name: "execute lost::one", kind: "handler", parentId: "gone" }),
    span({ id: "call", kind: "call", attributes: fn("shop::buy") }),
    span({ id: "y", name: "execute shop::other", kind: "handler", parentId: "call" }),
  ]);

  assert.equal(tree.rows.length, 3);
});

Deno.test("spanTree() of no spans is empty", () => {
  assert.deepEqual(spanTree([]), { rows: [], startMs: 0, endMs: 0, isPending: false });
});

Deno.test("spanTree() handles a chain of 100,000 calls without recursion", () => {
  const spans = Array.from(
    { length: 100_000 },
    (_, i) => span({ id: `${i}`, parentId: i === 0 ? null : `${i - 1}`, startMs: i }),
  );

  const tree = spanTree(spans);

  assert.equal(tree.rows.at(-1)!.depth, 99_999);
  assert.equal(tree.rows[0]!.descendants, 99_999);
});

Deno.test("visibleRows() leaves out all descendants of a collapsed row", () => {
  const tree = spanTree([
    span({ id: "a" }),
    span({ id: "b", parentId: "a", startMs: 1 }),
    span({ id: "c", parentId: "b", startMs: 2 }),
    span({ id: "d", parentId: "a", startMs: 3 }),
  ]);

  const shown = (closed: string[]) =>
    visibleRows(tree, new Set(closed)).map((i) => tree.rows[i]!.span.id);
  assert.deepEqual(shown([]), ["a", "b", "c", "d"]);
  assert.deepEqual(shown(["b"]), ["a", "b", "d"]);
  assert.deepEqual(shown(["a", "b"]), ["a"]);
});

Deno.test("ancestorsOf() returns the rows above, the nearest first", () => {
  const tree = spanTree([
    span({ id: "a" }),
    span({ id: "b", parentId: "a" }),
    span({ id: "c", parentId: "b" }),
  ]);

  assert.deepEqual(ancestorsOf(tree, 2), [1, 0]);
  assert.deepEqual(ancestorsOf(tree, 0), []);
});

Deno.test("startTimes() never precede the start of the parent", () => {
  const tree = spanTree([
    span({ id: "a", startMs: 5 }),
    span({ id: "b", parentId: "a", startMs: 4 }),
    span({ id: "c", parentId: "b", startMs: 9 }),
  ]);

  assert.deepEqual(startTimes(tree), [5, 5, 9]);
});

Deno.test("matchingRows() searches names and services, ignoring case, and finds nothing for no text", () => {
  const tree = spanTree([
    span({ id: "a", name: "shop::Buy" }),
    span({ id: "b", name: "get", service: "Buyers", startMs: 1 }),
    span({ id: "c", name: "get", startMs: 2 }),
  ]);

  assert.deepEqual(matchingRows(tree, " BUY "), [0, 1]);
  assert.deepEqual(matchingRows(tree, "  "), []);
});

function fn(id: string): Record<string, string> {
  return { "engine.function_id": id };
}

Deno.test("serviceColours() gives each service one colour, and reuses them in turn", () => {
  const services = ["a", "b", "a", "c", "d", "e", "f", "g"];
  const tree = spanTree(services.map((service, i) => span({ id: `${i}`, service, startMs: i })));

  const colours = [...serviceColours(tree)];

  assert.deepEqual(colours, [["a", 1], ["b", 2], ["c", 3], ["d", 4], ["e", 5], ["f", 6], ["g", 1]]);
});
