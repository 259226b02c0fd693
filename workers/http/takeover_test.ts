/**
 * A trigger on a route that another one serves already: who reads the log learns of it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { systemClock } from "../../engine/platform/system_clock.ts";
import { fakeHttp } from "../../tests/fakes/fake_http.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { http } from "./mod.ts";

Deno.test("A trigger that takes over a route is named in the log with the one before", () => {
  const { route, lines, types } = fakeHttp();
  route("GET /f", "old");
  route("POST /f", "other");
  assert.deepEqual(lines, []);

  const id = route("GET f", "new");
  types.unregisterTrigger({ id, trigger_type: "http" });

  assert.deepEqual(lines, [{
    level: "warn",
    text: "a trigger takes over a route; the one before serves again when it leaves",
    fields: { method: "GET", path: "/f", before: "old", now: "new" },
  }]);
});

Deno.test("An equal trigger of a replica takes nothing over, a different one does", async () => {
  await using local = new LocalEngine({ clock: systemClock });
  await local.start(http, { port: 0 });
  const register = async (api_path: string): Promise<void> => {
    const worker = await local.connect("shop");
    worker.registerTrigger({
      type: "http",
      function_id: "shop::list",
      config: { http_method: "GET", api_path },
    });
    await local.settle();
  };

  await register("/f");
  await register("/f");
  assert.deepEqual(local.lines, []);
  await register("f");

  assert.deepEqual(local.lines.map(({ level }) => level), ["warn"]);
});
