/**
 * The console of a whole engine, over a connection of its own: what a page may request and receives, live.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../mod.ts";
import type { ConsoleMessage } from "../../workers/console/wire.ts";
import { ConsoleWorld } from "./console_browser.ts";
import { ConsoleClient, tokenIn } from "./console_client.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { OP, RawWsClient } from "../fakes/raw_ws_client.ts";
import { until } from "../fakes/until.ts";

const WORKER = `import { registerWorker } from "engine-sdk";
const worker = registerWorker();
worker.registerFunction("shop::pid", () => Deno.pid);
`;
const FILES = {
  "workers/shop/engine.worker.yaml": "name: shop\nruntime:\n  kind: typescript\n  entry: main.ts\n",
  "workers/shop/main.ts": WORKER,
  "workers/shop/deno.json":
    '{ "imports": { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" } }',
};
const SHOP = "  - name: shop\n    path: ./workers/shop\n    isolation: process\n";

/** Opens a line as the page of the engine's user has it, and waits until it is welcome. */
async function openLine(world: ConsoleWorld): Promise<ConsoleClient> {
  const client = await ConsoleClient.open(world.consoleUrl, { page: await world.operatorPath() });
  await client.next("engine");
  return client;
}

/** The items that a page has after all messages of a watch. */
function itemsOf(client: ConsoleClient, id: number, key: readonly string[]): JsonObject[] {
  const items = new Map<string, JsonObject>();
  const nameOf = (item: Json): string =>
    JSON.stringify(key.map((member) => (item as JsonObject)[member] ?? null));
  for (const message of client.heard as ConsoleMessage[]) {
    if (message.type === "snapshot" && message.id === id) {
      items.clear();
      for (const item of message.items) items.set(nameOf(item), item as JsonObject);
    }
    if (message.type !== "patch" || message.id !== id) continue;
    for (const item of message.set) items.set(nameOf(item), item as JsonObject);
    for (const name of message.gone) items.delete(name);
  }
  return [...items.values()];
}

Deno.test("a page sees functions of workers come and go while it looks", async () => {
  await using world = await ConsoleWorld.start();
  using client = await openLine(world);
  const key = ["namespace", "function_id"];
  client.say({
    type: "watch_query",
    id: 1,
    query: { function_id: "engine::functions::list", items: "functions", key },
    on: [{ type: "engine::functions-available" }],
  });
  await client.next("snapshot", 1);
  const ids = (): Json[] => itemsOf(client, 1, key).map((item) => item.function_id!);

  const math = await world.connect("math");
  math.registerFunction("math::add", () => 3);
  math.registerFunction("math::sub", () => 1);
  await until(() => ids().includes("math::add") && ids().includes("math::sub"));
  await math.shutdown();
  await until(() => !ids().includes("math::add"));

  await client.close();
});

Deno.test("a page sees triggers come and go, but not those of its own console", async () => {
  await using world = await ConsoleWorld.start();
  using client = await openLine(world);
  client.say({
    type: "watch_query",
    id: 1,
    query: {
      function_id: "engine::registered-triggers::list",
      items: "registered_triggers",
      key: ["id"],
    },
    on: [{ type: "engine::triggers-available" }],
  });
  await client.next("snapshot", 1);
  const shop = await world.connect("shop");
  shop.registerFunction("shop::buy", () => 1);

  const trigger = shop.registerTrigger({
    type: "http",
    function_id: "shop::buy",
    config: { api_path: "/buy" },
  });
  await until(() => itemsOf(client, 1, ["id"]).length === 1);
  assert.equal(itemsOf(client, 1, ["id"])[0]!.function_id, "shop::buy");
  trigger.unregister();
  await until(() => itemsOf(client, 1, ["id"]).length === 0);

  await client.close();
});

Deno.test("a page tries an HTTP trigger, and is shown the answer as it came", async () => {
  await using world = await ConsoleWorld.start();
  using client = await openLine(world);
  const shop = await world.connect("shop");
  shop.registerFunction(
    "shop::order",
    ({ path_params, query_params, body }: JsonObject) => ({
      status_code: 201,
      body: { path_params, query_params, body } as Json,
    }),
  );
  shop.registerTrigger({
    type: "http",
    function_id: "shop::order",
    config: { api_path: "/orders/:id", http_method: "POST" },
  });
  await until(async () => {
    const answer = await fetch(`${world.httpUrl}/orders/1`, { method: "POST" });
    await answer.body?.cancel();
    return answer.status === 201;
  });

  client.say({
    type: "http",
    id: 1,
    method: "POST",
    path: "/orders/4%2F2?a=b",
    headers: { "content-type": "application/json" },
    body: '{"n":1}',
  });
  const answer = await client.next("http_answer", 1);

  assert.equal(answer.status, 201);
  assert.deepEqual(JSON.parse(answer.body), {
    path_params: { id: "4/2" },
    query_params: { a: "b" },
    body: { n: 1 },
  });
  await client.close();
});

Deno.test("a page of the engine's user restarts a worker and sees it go and come", async () => {
  await using world = await ConsoleWorld.start({ workers: SHOP, files: FILES });
  using client = await openLine(world);
  client.say({
    type: "watch_query",
    id: 1,
    query: { function_id: "engine::supervisor::list", items: "workers", key: ["name"] },
    on: [{ type: "engine::supervisor-changed" }],
  });
  const shop = (): JsonObject | undefined =>
    itemsOf(client, 1, ["name"]).find(({ name }) => name === "shop");
  await until(() => shop()?.state === "ready");
  const { pid, launch } = shop()!;
  const payload = { name: "shop" };

  client.say({ type: "call", id: 2, function_id: "engine::supervisor::restart", payload });
  await client.next("result", 2);
  await until(() => shop()?.state === "ready" && shop()?.pid !== pid);
  assert.equal(shop()!.launch, Number(launch) + 1);
  client.say({ type: "call", id: 3, function_id: "engine::supervisor::stop", payload });
  await until(() => shop()?.state === "stopped");

  await client.close();
});

Deno.test("a page sees the configuration, and that it has been edited", async () => {
  await using world = await ConsoleWorld.start();
  using client = await openLine(world);
  client.say({
    type: "watch_query",
    id: 1,
    query: { function_id: "engine::config::list", items: "settings", key: ["key"] },
    on: [{ type: "engine::config-changed" }],
  });
  await client.next("snapshot", 1);
  const level = (): JsonObject | undefined =>
    itemsOf(client, 1, ["key"]).find(({ key }) => key === "engine.invocation_timeout_ms");
  assert.equal(level()?.source, "default");

  const text = await Deno.readTextFile(`${world.directory}/config.yaml`);
  const edited = text.replace("engine:\n", "engine:\n  invocation_timeout_ms: 1234\n");
  await Deno.writeTextFile(`${world.directory}/config.yaml`, edited);

  await until(() => level()?.value === 1234);
  assert.deepEqual([level()!.source, level()!.line], ["file", 2]);
  await client.close();
});

Deno.test("a page that is open while the engine restarts has a token that still holds", async () => {
  await using world = await ConsoleWorld.start();
  const token = await tokenIn(world.consoleUrl, await world.operatorPath());
  using before = await ConsoleClient.open(world.consoleUrl, { token });
  await before.next("welcome");

  await world.stopEngine();
  await before.closed;
  await world.startEngine();

  using after = await ConsoleClient.open(world.consoleUrl, { token });
  assert.equal((await after.next("welcome")).operator, true);
  await after.close();
});

Deno.test("a page that does not read misses firings, and learns how many", async () => {
  await using world = await ConsoleWorld.start();
  const port = Number(new URL(world.consoleUrl).port);
  const headers = { Origin: world.consoleUrl, Host: new URL(world.consoleUrl).host };
  using slow = await RawWsClient.connect(port, { path: "/live", headers });
  assert.equal(slow.status, 101);
  const say = (message: object): Promise<void> => slow.text(JSON.stringify(message));
  await say({ type: "hello", token: await tokenIn(world.consoleUrl) });
  await say({ type: "watch_trigger", id: 1, trigger: { type: "state", config: { scope: "s" } } });
  const shop = await world.connect("shop");
  const set = async (n: number): Promise<void> => {
    const payload = { scope: "s", key: "k", value: { n, pad: "x".repeat(200_000) } };
    await shop.trigger({ function_id: "state::set", payload });
  };
  await until(async () => {
    const types = await world.call("engine::registered-triggers::list", {
      include_internal: true,
    }) as { registered_triggers: { trigger_type: string }[] };
    return types.registered_triggers.some(({ trigger_type }) => trigger_type === "state");
  });

  for (let n = 0; n < 100; n++) await set(n); // 40 MB of firings: more than any buffer takes.
  let fired = 0;
  let missed = 0;
  while (fired + missed < 100) {
    const frame = await slow.next();
    assert.ok(frame, `the line is over after ${fired} and ${missed}`);
    if (frame.opcode !== OP.text) continue;
    const message = JSON.parse(new TextDecoder().decode(frame.payload)) as ConsoleMessage;
    if (message.type === "fired") fired++;
    if (message.type === "missed") missed += message.count;
  }

  assert.ok(missed > 0 && fired > 0, `${fired} came, ${missed} were missed`);
});

Deno.test("engine console is a program that stays with its engine and leaves it alone", async () => {
  await using engine = await EngineProcess.start();
  const main = new URL("../../cli/main.ts", import.meta.url).pathname;
  const program = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", main, "console", "--port", "0", "--url", engine.url],
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const lines = program.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let said = "";
  while (!said.includes("\n")) said += (await lines.read()).value ?? "\n";
  const { origin, pathname, search } = new URL(/console {2}(\S+)/.exec(said)![1]!);
  using client = await ConsoleClient.open(origin, { page: pathname + search });
  await client.next("engine");

  const heard = client.heard.length;
  await engine.kill("SIGKILL");
  assert.equal((await client.next("engine", undefined, heard)).connected, false);
  await engine.start();
  assert.equal((await client.next("engine", undefined, heard + 1)).connected, true);

  program.kill("SIGINT");
  assert.equal((await program.status).code, 0);
  await client.closed;
  await lines.cancel();
  const again = await engine.command("console", "--port", String(engine.port));
  assert.deepEqual([again.code, again.stdout], [1, ""]);
  assert.match(again.stderr, new RegExp(`Port ${engine.port} is taken`));
});
