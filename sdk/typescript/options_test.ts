import assert from "node:assert/strict";
import { TriggerAction } from "./options.ts";

Deno.test("TriggerAction creates the actions of the wire", () => {
  assert.deepEqual(TriggerAction.Void(), { type: "void" });
  assert.deepEqual(TriggerAction.Enqueue({ queue: "mail" }), { type: "enqueue", queue: "mail" });
});
