/**
 * Configs of triggers are checked, and firings carry what the originator registered.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { CallRequest, TriggerInstance } from "../../sdk/typescript/options.ts";
import * as v from "./schema.ts";
import { fireTriggers, fitTrigger } from "./triggers.ts";

const trigger: TriggerInstance = {
  id: "t",
  trigger_type: "clock",
  function_id: "a::b",
  config: { every_ms: 5 },
  metadata: undefined,
  namespace: undefined,
};

Deno.test("fitTrigger() returns the parsed config; an absent one counts as empty", () => {
  const schema = v.object({ every_ms: v.optional(v.number(), 1_000) });

  assert.deepEqual(fitTrigger(schema, trigger), { every_ms: 5 });
  assert.deepEqual(fitTrigger(schema, { ...trigger, config: null }), { every_ms: 1_000 });
});

Deno.test("fitTrigger() names every problem", () => {
  const schema = v.object({ every_ms: v.string(), at: v.string() });

  assert.throws(() => fitTrigger(schema, trigger), {
    code: "trigger_registration_failed",
    message: "The config of the clock trigger does not fit: " +
      "every_ms: expected string, received 5; at: expected string, received nothing",
  });
});

Deno.test("fireTriggers() calls each function, and survives failing calls", async () => {
  const fired: CallRequest<unknown>[] = [];
  const worker = {
    trigger: (request: CallRequest<unknown>) => {
      fired.push(request);
      return Promise.reject(new Error("stopping"));
    },
  };

  const second = { ...trigger, function_id: "c::d", namespace: "eu", metadata: 1 };
  fireTriggers(worker as never, [trigger, second], { n: 1 });
  await Promise.resolve();

  const action = { type: "void" };
  assert.deepEqual(fired, [
    { function_id: "a::b", payload: { n: 1 }, action },
    { function_id: "c::d", payload: { n: 1 }, action, namespace: "eu", metadata: 1 },
  ]);
});
