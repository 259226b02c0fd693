/**
 * @module
 */
import assert from "node:assert/strict";
import { consoleWorker } from "./mod.ts";

Deno.test("consoleWorker.parse() applies defaults", () => {
  const defaults = { host: "127.0.0.1", port: 3113, token: "", allowed_hosts: [] };

  assert.deepEqual(consoleWorker.parse(undefined), defaults);
  assert.deepEqual(consoleWorker.parse({ port: 0 }), { ...defaults, port: 0 });
});

Deno.test("consoleWorker.parse() accepts a public address only with a token", () => {
  const config = { host: "0.0.0.0", port: 1, token: "secret", allowed_hosts: ["console.example"] };

  assert.deepEqual(consoleWorker.parse(config), config);
  assert.throws(() => consoleWorker.parse({ host: "0.0.0.0" }), /other machines can reach/);
});

for (const raw of [{ port: "3113" }, { port: 70_000 }, { host: "" }, { token: 1 }, { ports: 1 }]) {
  Deno.test(`consoleWorker.parse() refuses ${JSON.stringify(raw)}`, () => {
    assert.throws(() => consoleWorker.parse(raw), { name: "SchemaError" });
  });
}
