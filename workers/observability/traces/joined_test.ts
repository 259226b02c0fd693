import assert from "node:assert/strict";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { joinLists, joinTrees } from "./joined.ts";

const node = (span_id: string, parent: string | null, at: number, ...children: JsonObject[]) => ({
  span_id,
  parent_span_id: parent,
  start_time_unix_nano: at,
  children,
});
const from = (engine: string, ...roots: JsonObject[]) => {
  return { engine, life: engine, result: { roots } };
};

/** Names of spans with those below them, and the engines they came from. */
function shape(roots: unknown): unknown[] {
  return (roots as (JsonObject & { children: JsonObject[] })[]).map(
    ({ span_id, engine, children }) => [`${span_id}${engine ?? ""}`, ...shape(children)],
  );
}

Deno.test("what ran at another engine is below the call that led there, by start", () => {
  const own = { roots: [node("call", null, 1, node("late", "call", 9))], storage: "memory" };

  const joined = joinTrees(own, [from("-b", node("run", "call", 2, node("inner", "run", 3)))]);

  assert.deepEqual(shape(joined.roots), [["call", ["run-b", ["inner-b"]], ["late"]]]);
  assert.equal(joined.storage, "memory");
});

Deno.test("a root here may be below a span of another engine, and calls go back and forth", () => {
  const own = { roots: [node("back", "run", 3)] };

  const joined = joinTrees(own, [
    from("-b", node("run", "call", 2), node("end", "back", 4)),
    from("-c", node("call", null, 1)),
  ]);

  assert.deepEqual(shape(joined.roots), [["call-c", ["run-b", ["back", ["end-b"]]]]]);
});

Deno.test("spans that two engines have, and cycles, end nothing", () => {
  const own = { roots: [node("x", "y", 1), node("same", null, 2)] };

  const joined = joinTrees(own, [from("-b", node("y", "x", 1), node("same", null, 2))]);

  assert.deepEqual(shape(joined.roots).flat(5).sort(), ["same", "x", "y-b"]);
});

Deno.test("without answers, or with strange ones, the own tree stays", () => {
  const own = { roots: [node("call", null, 1)] };

  assert.equal(joinTrees(own, []), own);
  const strange = { engine: "b", life: "b", result: { roots: "none" } };
  assert.deepEqual(joinTrees(own, [strange]), own);
});

Deno.test("lists have each span once, those of other engines with their names", () => {
  const own = { spans: [{ span_id: "a" }], total: 1, offset: 0 };
  const answers = [
    { engine: "b", life: "b", result: { spans: [{ span_id: "a" }, { span_id: "b" }] } },
    { engine: "c", life: "c", result: {} },
  ];

  assert.deepEqual(joinLists(own, answers), {
    spans: [{ span_id: "a" }, { span_id: "b", engine: "b" }],
    total: 2,
    offset: 0,
  });
});
