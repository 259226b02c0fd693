import assert from "node:assert/strict";
import { subscribeTo } from "./subscriptions.ts";
import type { Handler, TriggerInput, WorkerCalls } from "../options.ts";

Deno.test("a subscription is a function of its own with a trigger, which end together", () => {
  const registered: string[] = [];
  const ended: string[] = [];
  let trigger: TriggerInput | undefined;
  const registration = (id: string) => {
    registered.push(id);
    return { id, unregister: () => void ended.push(id) };
  };
  const worker = {
    registerFunction: (id: string, _handler: Handler) => registration(id),
    registerTrigger: (input: TriggerInput) => {
      trigger = input;
      return registration("trigger");
    },
  } as unknown as WorkerCalls;

  const first = subscribeTo(worker, "orders.*", () => {});
  const { function_id, type, config } = trigger!;
  subscribeTo(worker, "orders.*", () => {});
  first.unregister();

  assert.match(function_id, /^subscription::/);
  assert.deepEqual([type, config], ["subscribe", { topic: "orders.*" }]);
  assert.equal(new Set(registered.filter((id) => id !== "trigger")).size, 2);
  assert.deepEqual(ended, ["trigger", function_id]);
  assert.throws(() => subscribeTo(worker, "", () => {}), { code: "INVALID_ARGUMENTS" });
});
