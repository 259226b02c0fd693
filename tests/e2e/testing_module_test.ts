/**
 * `engine-sdk/testing` of the built package, as a project on Node uses it with `node:test`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { findNode } from "../fakes/programs.ts";

const PACKAGE = new URL("../../sdk/npm/", import.meta.url).pathname;
const hasNode = await findNode("tests/e2e/testing_module_test.ts");

const WORKER = `import { registerWorker } from "engine-sdk";
const worker = registerWorker();
worker.registerFunction("orders::create", async ({ body }) => {
  await worker.enqueue({ function_id: "mail::send", payload: { to: body.to } });
  return { status_code: 201, body: { ok: true } };
});
worker.registerTrigger({
  type: "http",
  function_id: "orders::create",
  config: { api_path: "/orders", http_method: "POST" },
});
`;

const TEST = `import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestEngine } from "engine-sdk/testing";

const engine = startTestEngine();
await import("./worker.js");

test("an order is confirmed by mail", async () => {
  let attempts = 0;
  engine.fake("mail::send", () => {
    if (++attempts < 2) throw new Error("busy");
  });
  const response = await engine.http("POST", "/orders", { body: { to: "a@b.c" } });
  assert.equal(response.status, 201);
  await engine.advance(1_000);
  engine.assertCalled("mail::send", { to: "a@b.c" });
  assert.equal(engine.jobs("default")[0].state, "done");
});
`;

Deno.test({
  name: "a project on Node tests its worker with node:test, without an engine",
  ignore: !hasNode,
  async fn() {
    const directory = await Deno.makeTempDir();
    try {
      await Deno.mkdir(`${directory}/node_modules`);
      await Deno.symlink(PACKAGE, `${directory}/node_modules/engine-sdk`);
      await Deno.writeTextFile(`${directory}/package.json`, '{ "type": "module" }');
      await Deno.writeTextFile(`${directory}/worker.js`, WORKER);
      await Deno.writeTextFile(`${directory}/orders.test.js`, TEST);

      const { code, stdout, stderr } = await new Deno.Command("node", {
        args: ["--test", "orders.test.js"],
        cwd: directory,
      }).output();

      const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
      assert.equal(code, 0, text);
      assert.match(text, /# pass 1/);
      assert.doesNotMatch(text, /Cannot reach/);
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  },
});
