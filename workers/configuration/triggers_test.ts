import assert from "node:assert/strict";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { CONFIGURATION_TRIGGERS } from "./triggers.ts";

const read = (config: Json) => {
  return CONFIGURATION_TRIGGERS.read(
    { id: "t", trigger_type: "configuration", function_id: "f", config } as TriggerInstance,
  );
};
const [REGISTERED, UPDATED, DELETED] = ["registered", "updated", "deleted"]
  .map((name) => `configuration:${name}`);

Deno.test("a trigger may name an entry, events and a condition", () => {
  assert.deepEqual(read({}), { filter: [undefined, null], condition: undefined });
  assert.deepEqual(
    read({ configuration_id: "a", event_types: [UPDATED!], condition_function_id: "c" }),
    { filter: ["a", UPDATED], condition: "c" },
  );
  assert.deepEqual(read({ event_types: [UPDATED!, REGISTERED!] }).filter, [undefined, null]);
  assert.deepEqual(read({ event_types: [REGISTERED!, DELETED!] }).filter, [undefined, REGISTERED]);
  assert.deepEqual(read({ event_types: [DELETED!] }).filter, [undefined, DELETED]);
});

Deno.test("a config that does not fit is refused with its problems", () => {
  assert.throws(() => read({ event_types: ["updated"] }), /event_types/);
  assert.throws(() => read({ configuration_id: "" }), /configuration_id/);
  assert.throws(() => read({ configuration_id: "A b" }), /configuration_id: expected an id: 1 to/);
});
