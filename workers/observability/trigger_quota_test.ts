/**
 * No worker takes all places of a trigger type.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { TriggerView, WorkerView } from "../../engine/ports/directory.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import {
  TELEMETRY_TRIGGERS_MAX,
  TELEMETRY_TRIGGERS_PER_WORKER_MAX,
  TriggerQuota,
} from "./trigger_quota.ts";

/** Triggers whose ids begin with the id of their worker; `b…` are built-in. */
function setup() {
  const owners = new Map<string, string>();
  const quota = new TriggerQuota({
    trigger: (id) => {
      const worker_id = owners.get(id) ?? id.split(":")[0]!;
      return { worker_id, worker_name: `name of ${worker_id}` } as TriggerView;
    },
    worker: (id) => ({ builtin: id.startsWith("b") }) as WorkerView,
  });
  const take = (id: string): void =>
    quota.take({ id, trigger_type: "log" } as unknown as TriggerInstance);
  const fill = (worker: string, count = TELEMETRY_TRIGGERS_PER_WORKER_MAX): void => {
    for (let n = 0; n < count; n++) take(`${worker}:${n}`);
  };
  return { owners, quota, take, fill };
}

Deno.test("one worker has a part of the places, and others go on", () => {
  const { quota, take, fill } = setup();
  fill("w1");

  assert.throws(() => take("w1:more"), {
    code: "trigger_registration_failed",
    message: /^Worker name of w1 has 100 triggers of type log, the maximum; remove/,
  });
  take("w2:1");
  take("w1:5"); // Registered once more, as after an edit.
  quota.give("w1:7");
  quota.give("w1:7");
  take("w1:more");
  assert.throws(() => take("w1:again"), { code: "trigger_registration_failed" });
});

Deno.test("a trigger that comes back on another connection is counted there", () => {
  const { owners, take, fill } = setup();
  fill("w1");
  for (let n = 0; n < 60; n++) owners.set(`w1:${n}`, "w2");
  for (let n = 0; n < 60; n++) take(`w1:${n}`);

  for (let n = 0; n < 60; n++) take(`w1:new ${n}`);
  assert.throws(() => take("w1:more"), { code: "trigger_registration_failed" });
  for (let n = 0; n < 40; n++) take(`w2:${n}`);
  assert.throws(() => take("w2:more"), { code: "trigger_registration_failed" });
});

Deno.test("all workers together have a bound, which is the only one of built-in workers", () => {
  const { quota, take, fill } = setup();
  fill("w1");
  fill("b1", TELEMETRY_TRIGGERS_MAX - TELEMETRY_TRIGGERS_PER_WORKER_MAX);

  for (const id of ["b1:more", "w2:1"]) {
    assert.throws(() => take(id), {
      code: "trigger_registration_failed",
      message: /^There are 1000 triggers of type log/,
    });
  }
  take("b1:3");
  quota.give("b1:3");
  take("w2:1");
});
