/**
 * Shapes of what listings show.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { TriggerView } from "../../engine/ports/directory.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { triggerSummary } from "./views.ts";

function summaryOf(config: Json): Json {
  const view: TriggerView = {
    id: "t",
    trigger_type: "http",
    trigger_namespace: "default",
    function_id: "f",
    namespace: "default",
    config,
    state: "offered",
    worker_id: "w",
    worker_name: "shop",
  };
  return triggerSummary(view).config_summary!;
}

Deno.test("triggerSummary() keeps a short configuration whole", () => {
  assert.equal(summaryOf({}), "{}");
  assert.equal(summaryOf("x".repeat(78)), `"${"x".repeat(78)}"`);
});

Deno.test("triggerSummary() cuts a long configuration after 80 characters", () => {
  const summary = summaryOf("x".repeat(79)) as string;

  assert.equal(summary, `"${"x".repeat(79)}…`);
});

Deno.test("triggerSummary() cuts between characters, not inside one", () => {
  const summary = summaryOf("😀".repeat(1_000)) as string;

  assert.equal([...summary].length, 81);
  assert.ok(summary.isWellFormed());
});
