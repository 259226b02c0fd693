/**
 * What lists need of a span is the same as what the whole span says.
 *
 * @module
 */
import assert from "node:assert/strict";
import { callSpan, NOON, storedSpan } from "../../../tests/fakes/spans.ts";
import { factOfCall, factOfSpan } from "./spans_fact.ts";
import { spanOfCall } from "./spans_made.ts";

for (
  const [what, changes] of [
    ["ended well", {}],
    ["failed", { error_code: "oops", namespace: "eu" }],
    ["was run by nobody", { callee: null, error_code: "function_not_found" }],
    ["still runs", { end_ms: null }],
  ] as const
) {
  Deno.test(`A call that ${what} is known the same from its record and from its span`, () => {
    const call = callSpan(changes);

    assert.deepEqual(factOfCall(call), factOfSpan(spanOfCall(call, null)));
  });
}

Deno.test("factOfSpan() bears spans that say nothing of themselves", () => {
  const { kind, error_code, function_id, namespace, caller, worker, start_ms } = factOfSpan(
    storedSpan({ status: "error" }, { "engine.function_id": 5 }),
  );

  assert.deepEqual([kind, error_code, function_id, namespace, caller, worker, start_ms], [
    "work",
    "error",
    null,
    "default",
    null,
    null,
    NOON,
  ]);
});
