/**
 * @module
 */
import assert from "node:assert/strict";
import type { ConfigValue } from "../../engine/ports/config.ts";
import type { Handler } from "../../sdk/typescript/options.ts";
import { Offers } from "./offers.ts";
import { offerSettings } from "./settings.ts";

Deno.test("engine::config::list tells each value with its source, and the file's path", async () => {
  const settings: ConfigValue[] = [{
    key: "engine.port",
    value: 49134,
    default: 49134,
    source: "default",
    line: null,
    variable: null,
    needs_restart: true,
  }];
  const functions = new Map<string, Handler>();
  const worker = {
    registerFunction: (id: string, handler: Handler) => {
      functions.set(id, handler);
      return { id, unregister() {} };
    },
  };
  const supervision = { info: () => ({ config_path: "/project/config.yaml" }) };
  offerSettings(new Offers(worker as never), {
    configuration: () => settings,
    supervision: supervision as never,
  });

  const answer = await functions.get("engine::config::list")!(null, undefined, {} as never);

  assert.deepEqual(answer, { settings, path: "/project/config.yaml" });
});
