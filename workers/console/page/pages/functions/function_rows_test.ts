import assert from "node:assert/strict";
import {
  type FunctionItem,
  type FunctionRow,
  functionRows,
  type FunctionView,
  isInternal,
} from "./function_rows.ts";
import type { FunctionTraffic } from "../metrics/samples.ts";

const ALL: FunctionView = {
  search: "",
  worker: "",
  order: "name",
  descending: false,
  closed: new Set(),
};

function item(function_id: string, more: Partial<FunctionItem> = {}): FunctionItem {
  return { function_id, namespace: "default", worker_name: "shop", ...more };
}

function say(rows: readonly FunctionRow[]): string[] {
  return rows.map((row) =>
    row.kind === "group" ? `${row.title} (${row.count})` : `  ${row.item.function_id}`
  );
}

const traffic = (calls_per_s: number, p99_ms: number | null): FunctionTraffic => ({
  calls_per_s,
  errors_per_s: 0,
  p50_ms: null,
  p99_ms,
});

Deno.test("functionRows() by name groups by the first part of the id", () => {
  const items = [
    item("orders::b"),
    item("alone"),
    item("orders-old::a"),
    item("orders::a::deep"),
    item("engine::workers::list"),
    item("orders::z", { namespace: "eu" }),
  ];

  const { rows, count } = functionRows(items, ALL, () => undefined);

  assert.equal(count, 6);
  assert.deepEqual(say(rows), [
    "alone (1)",
    "  alone",
    "orders (2)",
    "  orders::a::deep",
    "  orders::b",
    "orders-old (1)",
    "  orders-old::a",
    "engine (1)",
    "  engine::workers::list",
    "eu / orders (1)",
    "  orders::z",
  ]);
});

Deno.test("functionRows() descending keeps headers above their functions", () => {
  const items = [item("a::x"), item("a::y"), item("b::z")];

  const { rows } = functionRows(items, { ...ALL, descending: true }, () => undefined);

  assert.deepEqual(say(rows), ["b (1)", "  b::z", "a (2)", "  a::y", "  a::x"]);
});

Deno.test("functionRows() hides the functions of a collapsed group, unless searched", () => {
  const items = [item("a::x"), item("a::y")];
  const view = { ...ALL, closed: new Set(["default/a"]) };

  assert.deepEqual(say(functionRows(items, view, () => undefined).rows), ["a (2)"]);
  const searched = functionRows(items, { ...view, search: "y" }, () => undefined);
  assert.deepEqual(say(searched.rows), ["a (1)", "  a::y"]);
});

Deno.test("functionRows() needs every word in id, description, worker or namespace", () => {
  const items = [
    item("mail::send", { description: "Sends a letter", worker_name: "Post" }),
    item("mail::read", { worker_name: "post" }),
    item("mail::sort", { namespace: "eu" }),
  ];
  const found = (search: string, worker = "") =>
    functionRows(items, { ...ALL, search, worker, order: "worker" }, () => undefined).count;

  assert.equal(found("MAIL"), 3);
  assert.equal(found("letter post"), 1);
  assert.equal(found("mail nothing"), 0);
  assert.equal(found(" eu "), 1);
  assert.equal(found("", "post"), 1);
});

Deno.test("functionRows() by a value has no groups, and missing values last in both directions", () => {
  const items = [item("a::none"), item("b::slow"), item("c::quick")];
  const measured = new Map([
    ["default/b::slow", traffic(1, 90)],
    ["default/c::quick", traffic(5, 2)],
  ]);
  const by = (order: FunctionView["order"], descending: boolean) =>
    say(functionRows(items, { ...ALL, order, descending }, (key) => measured.get(key)).rows);

  assert.deepEqual(by("p99", true), ["  b::slow", "  c::quick", "  a::none"]);
  assert.deepEqual(by("p99", false), ["  c::quick", "  b::slow", "  a::none"]);
  assert.deepEqual(by("calls", true), ["  c::quick", "  b::slow", "  a::none"]);
  assert.deepEqual(by("calls", false), ["  a::none", "  b::slow", "  c::quick"]);
});

Deno.test("functionRows() separates equal ids in two namespaces", () => {
  const items = [item("a::x"), item("a::x", { namespace: "eu" })];

  const { rows } = functionRows(items, ALL, () => undefined);

  assert.equal(new Set(rows.map(({ key }) => key)).size, rows.length);
});

Deno.test("functionRows() makes an id that begins with the separator its own group", () => {
  assert.deepEqual(say(functionRows([item("::x")], ALL, () => undefined).rows), [
    "::x (1)",
    "  ::x",
  ]);
});

Deno.test("isInternal() holds for functions that their worker marks as internal", () => {
  assert.equal(isInternal(item("a::b", { metadata: { internal: true } })), true);
  for (const metadata of [{ internal: "yes" }, { team: "shop" }, null, "internal"]) {
    assert.equal(isInternal(item("a::b", { metadata })), false);
  }
  assert.equal(isInternal(item("a::b")), false);
});
