/**
 * @module
 */
import assert from "node:assert/strict";
import { parseConsoleConfig } from "./mod.ts";

Deno.test("parseConsoleConfig() fills in what is left out", () => {
  const defaults = { host: "127.0.0.1", port: 3113, token: "" };

  assert.deepEqual(parseConsoleConfig(undefined), defaults);
  assert.deepEqual(parseConsoleConfig({ port: 0 }), { ...defaults, port: 0 });
});

Deno.test("parseConsoleConfig() takes an address for other machines with a token only", () => {
  const config = { host: "0.0.0.0", port: 1, token: "secret" };

  assert.deepEqual(parseConsoleConfig(config), config);
  assert.throws(() => parseConsoleConfig({ host: "0.0.0.0" }), /other machines can reach/);
});

for (const raw of [{ port: "3113" }, { port: 70_000 }, { host: "" }, { token: 1 }, { ports: 1 }]) {
  Deno.test(`parseConsoleConfig() refuses ${JSON.stringify(raw)}`, () => {
    assert.throws(() => parseConsoleConfig(raw), { name: "SchemaError" });
  });
}
