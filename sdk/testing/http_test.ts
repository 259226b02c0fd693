import assert from "node:assert/strict";
import type { JsonObject } from "../typescript/wire/protocol.ts";
import { startTestEngine, type TestEngine } from "./engine.ts";
import { registerWorker } from "../typescript/register_worker.ts";

/** An engine with routes to functions, which return what they got. */
function setup(routes: Record<string, JsonObject>) {
  const engine = startTestEngine();
  const worker = registerWorker();
  for (const [function_id, config] of Object.entries(routes)) {
    worker.registerFunction(function_id, (payload: JsonObject) => ({ ...payload, function_id }));
    worker.registerTrigger({ type: "http", function_id, config });
  }
  return engine;
}

/** Sends a request and returns what the function got. */
async function got(engine: TestEngine, ...args: Parameters<TestEngine["http"]>) {
  const { body } = await engine.http(...args);
  // The handler's result has a body, which is that of the response.
  return body;
}

Deno.test("a route gets the request as the engine sends it", async () => {
  await using engine = startTestEngine();
  let seen: unknown;
  registerWorker().registerFunction("orders::change", (payload) => void (seen = payload));
  const config = { api_path: "orders/:id", http_method: "post" };
  registerWorker().registerTrigger({ type: "http", function_id: "orders::change", config });

  const path = "/orders/a%2Fb?x=1&x=2&y=3";
  const response = await engine.http("POST", path, { body: { qty: 3 }, headers: { "X-A": "b" } });

  assert.deepEqual(response, {
    status: 200,
    headers: { "content-type": "application/json" },
    body: {},
  });
  assert.deepEqual(seen, {
    path: "orders/:id",
    method: "POST",
    path_params: { id: "a/b" },
    query_params: { x: "2", y: "3" },
    query_string: "x=1&x=2&y=3",
    query_params_all: { x: ["1", "2"], y: ["3"] },
    headers: { host: "localhost", "content-type": "application/json", "x-a": "b" },
    body: { qty: 3 },
    trigger: { type: "http", path: "orders/:id", method: "POST" },
  });
});

Deno.test("literal segments win over parameters, those over the wildcard", async () => {
  await using engine = setup({
    "r::wild": { api_path: "/a/*" },
    "r::param": { api_path: "/a/:id" },
    "r::literal": { api_path: "/a/b" },
  });

  for (const path of ["/a/b", "/a/c", "/a/c/d"]) await got(engine, "GET", path);

  const called = ["r::literal", "r::param", "r::wild"].map((id) => engine.calls(id).length);
  assert.deepEqual(called, [1, 1, 1]);
  assert.equal((await engine.http("GET", "/a")).status, 404);
  assert.equal((await engine.http("POST", "/a/b")).status, 404);
});

Deno.test("a response has the parts of the result, or is the result", async () => {
  await using engine = startTestEngine();
  const results: Record<string, unknown> = {
    parts: { status_code: 201, headers: { "X-A": ["1", "2"] }, body: { ok: true } },
    text: "hi",
    html: { headers: ["Content-Type: text/html"], body: "<p>" },
    json: { headers: { "content-type": "application/json" }, body: "[1]" },
    bytes: { body_base64: btoa("abc") },
    list: [1],
  };
  const worker = registerWorker();
  for (const [name, result] of Object.entries(results)) {
    worker.registerFunction(`r::${name}`, () => result);
    const config = { api_path: `/${name}` };
    worker.registerTrigger({ type: "http", function_id: `r::${name}`, config });
  }

  const found = [];
  for (const name of Object.keys(results)) found.push(await engine.http("GET", `/${name}`));

  const json = { "content-type": "application/json" };
  assert.deepEqual(found, [
    { status: 201, headers: { ...json, "x-a": "1, 2" }, body: { ok: true } },
    { status: 200, headers: { "content-type": "text/plain" }, body: "hi" },
    { status: 200, headers: { "content-type": "text/html" }, body: "<p>" },
    { status: 200, headers: json, body: [1] },
    {
      status: 200,
      headers: { "content-type": "application/octet-stream" },
      body: new TextEncoder().encode("abc"),
    },
    { status: 200, headers: json, body: [1] },
  ]);
});

Deno.test("errors, conditions and queues answer with their statuses", async () => {
  await using engine = setup({
    "r::conditional": { api_path: "/c", condition_function_id: "r::allowed" },
    "r::missing": { api_path: "/q", enqueue: "default" },
  });
  const config = { api_path: "/gone" };
  registerWorker().registerTrigger({ type: "http", function_id: "r::gone", config });
  engine.fake("r::allowed", false);

  const statuses = [];
  for (const path of ["/c", "/q", "/gone"]) statuses.push((await engine.http("GET", path)).status);

  assert.deepEqual(statuses, [422, 202, 503]);
  await engine.settle();
  assert.equal(engine.jobs()[0]!.state, "done");
});
