/**
 * What people do not ask about is known, also after functions have come and gone.
 *
 * @module
 */
import assert from "node:assert/strict";
import { LocalEngine } from "../../../tests/fakes/local_engine.ts";
import { InternalFunctions } from "./spans_internal.ts";

Deno.test("InternalFunctions are the engine's own and those that say so, while they say so", async () => {
  await using local = new LocalEngine();
  const listeners = new Set<(event: { type: "functions_changed" }) => void>();
  using it = new InternalFunctions({
    directory: local.router.directory,
    onEvent: (listener) => {
      listeners.add(listener as never);
      return () => void listeners.delete(listener as never);
    },
  });
  const worker = await local.connect("w");
  const registration = worker.registerFunction("a::b", () => 1, { metadata: { internal: true } });
  worker.registerFunction("a::c", () => 1);
  await local.settle();

  assert.equal(it.has("default", "engine::anything"), true);
  assert.equal(it.has("default", "a::b"), true);
  assert.equal(it.has("default", "a::c"), false);
  assert.equal(it.has("default", "a::nobody"), false);

  registration.unregister();
  worker.registerFunction("a::b", () => 1);
  await local.settle();
  for (const hear of listeners) hear({ type: "functions_changed" });

  assert.equal(it.has("default", "a::b"), false);
  it[Symbol.dispose]();
  assert.equal(listeners.size, 0);
});
