import assert from "node:assert/strict";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { makeEvent } from "./items.ts";
import { STREAM_TRIGGERS } from "./triggers.ts";

function trigger(config: Json): TriggerInstance {
  return { id: "t", trigger_type: "stream", function_id: "f", config } as TriggerInstance;
}

Deno.test("a trigger needs a stream; group, item and condition may be left out", () => {
  assert.deepEqual(STREAM_TRIGGERS.read(trigger({ stream_name: "s", item_id: "i" })), {
    filter: ["s", undefined, "i"],
    condition: undefined,
  });
  for (const config of [{}, { stream_name: "" }, { stream_name: "s", group_id: 1 }]) {
    assert.throws(() => STREAM_TRIGGERS.read(trigger(config)), {
      code: "trigger_registration_failed",
    });
  }
});

Deno.test("an event without an item matches no trigger of an item", () => {
  const happening = { type: "event", event: { type: "t", data: 1 } } as const;
  const group = { stream_name: "s", group_id: "g" };

  assert.deepEqual(STREAM_TRIGGERS.filtersOf(makeEvent(group, null, 0, happening)), [
    ["s", null, null],
    ["s", "g", null],
  ]);
  assert.equal(STREAM_TRIGGERS.filtersOf(makeEvent(group, "i", 0, happening)).length, 4);
});
