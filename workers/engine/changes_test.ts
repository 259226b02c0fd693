/**
 * @module
 */
import assert from "node:assert/strict";
import { CHANGES_DEBOUNCE_MS, CHANGES_NAMED_MAX } from "../limits.ts";
import type { CallRequest, TriggerHandlers } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { Changes } from "./changes.ts";

/** Changes with one trigger of each type, and what was fired. */
function setup() {
  const clock = new FakeClock();
  const fired: CallRequest[] = [];
  const types = new Map<string, TriggerHandlers>();
  const worker = {
    trigger: (request: CallRequest<unknown>) => {
      fired.push(request as CallRequest);
      return Promise.resolve(undefined as never);
    },
    registerTriggerType: ({ id }: { id: string }, handlers: TriggerHandlers) => {
      types.set(id, handlers);
      return { id, unregister() {} };
    },
  };
  const changes = new Changes(worker as never, clock);
  changes.offer(worker as never);
  const watch = (trigger_type: string, metadata?: Json): void =>
    void types.get(trigger_type)!.registerTrigger({
      id: `of ${trigger_type}`,
      trigger_type,
      function_id: `hear::${trigger_type.split("::")[1]}`,
      config: {},
      metadata,
      namespace: undefined,
    });
  return { clock, changes, fired, types, watch };
}

Deno.test("engine::triggers-available tells a heap once, with the workers it is about", () => {
  const { clock, changes, fired, watch } = setup();
  watch("engine::triggers-available", { why: "test" });

  changes.hear({ type: "triggers_changed", worker_id: "w1" });
  clock.tick(CHANGES_DEBOUNCE_MS - 1);
  changes.hear({ type: "triggers_changed", worker_id: "w2" });
  changes.hear({ type: "triggers_changed", worker_id: "w1" });
  assert.equal(fired.length, 0);
  clock.tick(1);

  assert.deepEqual(fired, [{
    function_id: "hear::triggers-available",
    payload: { event: "triggers_changed", worker_ids: ["w1", "w2"] },
    action: { type: "void" },
    metadata: { why: "test" },
  }]);
});

Deno.test("engine::supervisor-changed names the workers that fare otherwise", () => {
  const { clock, changes, fired, watch } = setup();
  watch("engine::supervisor-changed");

  changes.hear({ type: "supervised_changed", name: "shop" });
  changes.hear({ type: "supervised_changed", name: "mail" });
  clock.tick(CHANGES_DEBOUNCE_MS);
  changes.hear({ type: "supervised_changed", name: "shop" });
  clock.tick(CHANGES_DEBOUNCE_MS);

  const payloads = fired.map(({ payload }) => payload);
  assert.deepEqual(payloads, [{ names: ["shop", "mail"] }, { names: ["shop"] }]);
});

Deno.test("engine::config-changed says that another configuration is in force", () => {
  const { clock, changes, fired, watch } = setup();
  watch("engine::config-changed");

  changes.hear({ type: "config_changed" });
  clock.tick(CHANGES_DEBOUNCE_MS);

  assert.deepEqual(fired.map(({ payload }) => payload), [{ event: "config_changed" }]);
});

Deno.test("Changes keeps kinds apart and tells nothing of other events", () => {
  const { clock, changes, fired, watch } = setup();
  watch("engine::config-changed");

  changes.hear({ type: "triggers_changed", worker_id: "w1" });
  changes.hear({ type: "worker_connected", worker_id: "w1", address: null });
  changes.hear({ type: "functions_changed", worker_id: "w1", ids_changed: true });
  clock.tick(CHANGES_DEBOUNCE_MS);

  assert.deepEqual(fired, []);
});

Deno.test("Changes names so many at most, however large the heap", () => {
  const { clock, changes, fired, watch } = setup();
  watch("engine::supervisor-changed");

  for (let i = 0; i < CHANGES_NAMED_MAX + 50; i++) {
    changes.hear({ type: "supervised_changed", name: `w${i}` });
  }
  clock.tick(CHANGES_DEBOUNCE_MS);

  const { names } = fired[0]!.payload as { names: string[] };
  assert.equal(names.length, CHANGES_NAMED_MAX);
});

Deno.test("Changes fires neither triggers that ended nor after stop()", () => {
  const { clock, changes, fired, types, watch } = setup();
  watch("engine::config-changed");
  watch("engine::supervisor-changed");

  const id = "of engine::config-changed";
  void types.get("engine::config-changed")!.unregisterTrigger({ id, trigger_type: "" });
  changes.hear({ type: "config_changed" });
  clock.tick(CHANGES_DEBOUNCE_MS);
  changes.hear({ type: "supervised_changed", name: "shop" });
  changes.stop();
  clock.tick(CHANGES_DEBOUNCE_MS);

  assert.deepEqual([fired, clock.waiting], [[], 0]);
});
