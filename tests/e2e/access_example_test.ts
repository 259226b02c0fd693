/**
 * The example of the page about access rules, as it is written there.
 *
 * @module
 */
import assert from "node:assert/strict";
import { startEngine } from "../../engine/mod.ts";
import { registerWorker } from "../../mod.ts";
import { exampleWith } from "../docs/pages.ts";
import { RawWsClient } from "../fakes/raw_ws_client.ts";
import { until } from "../fakes/until.ts";
import { WireClient } from "../fakes/wire_engine.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

Deno.test("the listener of the documents lets in who has the key, with a prefix", async () => {
  await using stack = new AsyncDisposableStack();
  const directory = await Deno.makeTempDir({ prefix: "access-example-" });
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  const yaml = (await exampleWith("yaml", "auth_function_id: auth::partners")).replace(
    "port: 49200",
    "port: 0",
  );
  await Deno.writeTextFile(`${directory}/config.yaml`, yaml);
  await Deno.writeTextFile(`${directory}/auth.ts`, await exampleWith("ts", "auth::partners"));
  const engine = await startEngine({ directory, port: 0, logLevel: "error" });
  stack.defer(() => engine.stop({ drain: false }));
  const urlOf = (name: string) => engine.endpoints.find((each) => each.name === name)!.url;
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--quiet",
      "--no-check",
      `--config=${ROOT}deno.json`,
      `${directory}/auth.ts`,
    ],
    env: { ENGINE_URL: urlOf("workers"), ENGINE_TOKEN: "" },
  }).spawn();
  stack.defer(async () => {
    child.kill("SIGKILL");
    await child.status;
  });
  const shop = registerWorker(urlOf("workers"), { workerName: "shop" });
  stack.defer(() => shop.shutdown());
  const list = { function_id: "engine::functions::list", payload: { prefix: "orders::" } };
  await until(async () => {
    const { functions } = await shop.trigger<unknown, { functions: unknown[] }>(list);
    return functions.length === 1;
  }, "the worker of the example is connected");
  const port = Number(new URL(urlOf("workers:partners")).port);

  using stranger = await RawWsClient.connect(port);
  const { error } = JSON.parse(await stranger.nextText() ?? "null");
  assert.deepEqual(error, {
    code: "AUTH_ERROR",
    message: "The connection is not authorised: The header x-api-key is missing or wrong",
  });
  const headers = { "x-api-key": "acme-key" };
  const guest = stack.use(await WireClient.connect(port, { headers }));
  assert.deepEqual(await guest.value("orders::list", {}), [{ id: 1 }]);
  assert.equal((await guest.failure("auth::partners", {})).code, "FORBIDDEN");
  await guest.offer("stock::get");
  const info = { function_id: "acme::stock::get" };
  const found = { function_id: "engine::functions::info", payload: info };
  assert.equal((await shop.trigger<unknown, typeof info>(found)).function_id, "acme::stock::get");
});
