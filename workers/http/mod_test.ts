/**
 * Triggers of type `http`, as their originators see them.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { EngineError } from "../../sdk/typescript/errors.ts";
import { fakeHttp } from "../../tests/fakes/fake_http.ts";

Deno.test("Two triggers on one route: the newer serves, and the older when it has left", async () => {
  const { route, fetch, types } = fakeHttp({}, {
    old: () => ({ body: "old" }),
    new: () => ({ body: "new" }),
  });
  route("GET /f", "old");
  const id = route("GET f", "new");

  assert.equal(await (await fetch("GET /f")).json(), "new");
  types.unregisterTrigger({ id, trigger_type: "http" });
  assert.equal(await (await fetch("GET /f")).json(), "old");
});

Deno.test("A trigger whose parameters are named otherwise is refused", () => {
  const { route } = fakeHttp();
  route("GET /u/:id", "f");

  assert.throws(() => route("GET /u/:name", "g"), (error: EngineError) => {
    return error.code === "trigger_registration_failed" &&
      error.message.includes("conflicts with already-registered route");
  });
});

Deno.test("A trigger with unknown keys is taken, and the keys are named in the log", () => {
  const { route, lines } = fakeHttp();

  route("GET /f", "f", { method: "POST" });

  assert.equal(lines[0]!.level, "warn");
  assert.equal(lines[0]!.fields.keys, "method");
});
