import assert from "node:assert/strict";
import type { ListenerInfo } from "../../../engine/mod.ts";
import type { Json, JsonObject } from "../../../mod.ts";
import { checkListeners } from "./doctor_listeners.ts";

const LISTENER: ListenerInfo = {
  name: "partners",
  url: "wss://10.0.0.1:49200",
  asks_for_token: true,
  has_rules: true,
  functions: ["auth::partners"],
  auth_function_id: "auth::partners",
  middleware_function_id: null,
};

function engineWith(...known: string[]) {
  const asked: Json[] = [];
  const call = (_id: string, payload: Json): Promise<Json> => {
    const { function_ids } = payload as { function_ids: string[] };
    asked.push(function_ids);
    const functions = function_ids.map((function_id): JsonObject =>
      known.includes(function_id) ? { function_id } : { function_id, error: { code: "not_found" } }
    );
    return Promise.resolve({ functions });
  };
  return { asked, call, [Symbol.asyncDispose]: () => Promise.resolve() };
}

Deno.test("a listener is shown with its address and what it asks for", async () => {
  const plain = { ...LISTENER, name: "b", asks_for_token: false, has_rules: false, functions: [] };
  const engine = engineWith("auth::partners", "gate::check");
  const gated = { ...plain, auth_function_id: null, middleware_function_id: "gate::check" };

  const checks = await checkListeners({ listeners: [LISTENER, gated] }, engine);

  assert.deepEqual(checks.map(({ name, status, message }) => [name, status, message]), [
    [
      "listener partners",
      "ok",
      "wss://10.0.0.1:49200: asks for a token, auth::partners authorises connections",
    ],
    [
      "listener b",
      "ok",
      "wss://10.0.0.1:49200: asks for no token, calls go to gate::check, has no access rules",
    ],
  ]);
});

Deno.test("a listener whose auth function is absent is a warning", async () => {
  const [check] = await checkListeners({ listeners: [LISTENER] }, engineWith());

  assert.equal(check!.status, "warn");
  assert.equal(
    check!.message,
    "wss://10.0.0.1:49200: no worker offers auth::partners, so every connection is refused",
  );
  assert.match(check!.remedy!, /^Start the worker that offers it/);
});

Deno.test("functions are asked for in parts, and none where there are no listeners", async () => {
  const engine = engineWith();
  const functions = Array.from({ length: 40 }, (_, i) => `f${i}`);

  await checkListeners({ listeners: [{ ...LISTENER, functions }] }, engine);
  await checkListeners({}, engine);

  assert.deepEqual(engine.asked.map((ids) => (ids as Json[]).length), [32, 8]);
});
