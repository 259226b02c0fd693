/**
 * What becomes of one request, from the way in to the answer, without a port or an engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { failure, fakeHttp, json, settle } from "../../tests/fakes/fake_http.ts";

Deno.test("A request reaches its handler with all its parts", async () => {
  const { route, fetch, calls } = fakeHttp({}, { "orders::put": () => ({ body: "ok" }) });
  route("PUT orders/:id/*", "orders::put");

  await fetch("PUT /orders/4%202/x/y?dry=1&dry=2&q=a%26b", {
    body: '{"qty":3}',
    headers: { "Content-Type": "application/json; charset=utf-8", "X-A": "1" },
  });

  assert.deepEqual(calls[0]!.payload, {
    path: "orders/:id/*",
    method: "PUT",
    path_params: { id: "4 2", "*": "x/y" },
    query_params: { dry: "2", q: "a&b" },
    query_params_all: { dry: ["1", "2"], q: ["a&b"] },
    query_string: "dry=1&dry=2&q=a%26b",
    headers: { "content-type": "application/json; charset=utf-8", "x-a": "1" },
    body: { qty: 3 },
    trigger: { type: "http", path: "orders/:id/*", method: "PUT" },
  });
  assert.equal(calls[0]!.timeout_ms, 30_000);
});

Deno.test("A request's metadata and namespace are those of its trigger", async () => {
  const { types, fetch, calls } = fakeHttp({}, { f: () => ({}) });
  types.registerTrigger({
    id: "t",
    trigger_type: "http",
    function_id: "f",
    config: { api_path: "/f" },
    metadata: { why: "demo" },
    namespace: "blue",
  });

  await fetch("GET /f");

  assert.deepEqual(calls[0]!.metadata, { why: "demo" });
  assert.equal(calls[0]!.namespace, "blue");
});

Deno.test("A handler's status, headers and body are answered", async () => {
  const { route, fetch } = fakeHttp({}, {
    f: () => ({ status_code: 201, headers: { "X-Made": "yes" }, body: { c: 5 } }),
  });
  route("POST /f", "f");

  const response = await fetch("POST /f");

  assert.equal(response.status, 201);
  assert.equal(response.headers.get("x-made"), "yes");
  assert.equal(response.headers.get("content-type"), "application/json");
  assert.equal(response.headers.get("vary"), "Origin");
  assert.equal(await response.text(), '{"c":5}');
});

Deno.test("A route with enqueue puts the call into its queue and answers 202 with the receipt", async () => {
  let isKnown = true;
  const { types, fetch, calls } = fakeHttp({}, {
    "orders::place": () => {
      if (!isKnown) throw failure("enqueue_error", "Queue 'orders' not found");
      return { messageReceiptId: "r" };
    },
  });
  types.registerTrigger({
    id: "t",
    trigger_type: "http",
    function_id: "orders::place",
    config: { api_path: "/orders", http_method: "POST", enqueue: "orders" },
    metadata: undefined,
    namespace: undefined,
  });

  const response = await fetch("POST /orders", json('{"sku":"A1"}'));

  assert.equal(response.status, 202);
  assert.deepEqual(await response.json(), { messageReceiptId: "r" });
  const call = calls[0]! as unknown as { action: Json; payload: Record<string, Json> };
  assert.deepEqual(call.action, { type: "enqueue", queue: "orders" });
  assert.deepEqual(call.payload.body, { sku: "A1" });
  assert.equal("response" in call.payload, false);

  isKnown = false;
  assert.equal((await fetch("POST /orders", json("{}"))).status, 500);
});

Deno.test("HEAD runs the GET handler and leaves the body out", async () => {
  const { route, fetch, calls } = fakeHttp({}, { f: () => ({ body: "héllo" }), own: () => ({}) });
  route("GET /f", "f");
  route("GET /g", "f");
  route("HEAD /g", "own");

  const response = await fetch("HEAD /f");
  await fetch("HEAD /g");

  assert.equal(response.status, 200);
  assert.equal(await response.text(), "");
  const { method, trigger } = calls[0]!.payload as { method: string; trigger: Json };
  assert.equal(method, "HEAD");
  assert.deepEqual(trigger, { type: "http", path: "/f", method: "GET" });
  assert.equal(calls[1]!.function_id, "own");
});

Deno.test("A path without a route is answered with 404", async () => {
  const { fetch } = fakeHttp();

  const response = await fetch("GET /nowhere");

  assert.equal(response.status, 404);
  assert.deepEqual(await response.json(), { error: { code: "NOT_FOUND", message: "Not Found" } });
});

Deno.test("A known path with another method is answered with 405 and what it allows", async () => {
  const { route, fetch } = fakeHttp();
  route("GET /f", "f");
  route("DELETE /f", "f");

  const response = await fetch("POST /f");

  assert.equal(response.status, 405);
  assert.equal(response.headers.get("allow"), "DELETE, GET, HEAD");
  assert.equal(await response.text(), "");
});

Deno.test("A handler's error is answered without its stack, and logged with the same id", async () => {
  const { route, fetch, lines } = fakeHttp({}, {
    f: () => {
      throw failure("invocation_failed", "no such sku", { stacktrace: "at secret.ts:1" });
    },
  });
  route("GET /f", "f");

  const response = await fetch("GET /f");

  const text = await response.text();
  const { error } = JSON.parse(text);
  assert.equal(response.status, 500);
  assert.equal(error.code, "invocation_failed");
  assert.equal(error.message, "no such sku");
  assert.match(error.error_id, /^[0-9a-f-]{36}$/);
  assert.ok(!text.includes("secret.ts"));
  const line = lines.find(({ level }) => level === "warn")!;
  assert.equal(line.fields.error_id, error.error_id);
  assert.equal(line.fields.stacktrace, "at secret.ts:1");
  assert.equal(line.fields.function_id, "f");
});

for (
  const [code, status] of [
    ["function_not_found", 503],
    ["invocation_stopped", 503],
    ["overloaded", 429],
    ["invalid_payload", 500],
    ["out_of_stock", 500],
    ["NOT_FOUND", 500],
    ["constructor", 500],
  ] as const
) {
  Deno.test(`An error ${code} is answered with ${status}`, async () => {
    const { route, fetch } = fakeHttp({}, {
      f: () => {
        throw failure(code, "why");
      },
    });
    route("GET /f", "f");

    const response = await fetch("GET /f");

    assert.equal(response.status, status);
    const { error } = await response.json();
    assert.equal(error.code, code);
    assert.equal(error.message, "why");
  });
}

Deno.test("An error that names its status and headers is answered with them", async () => {
  const headers = { "retry-after": "30" };
  const { route, fetch, lines } = fakeHttp({}, {
    f: () => {
      throw failure("busy", "come back", { details: { status_code: 429, headers } });
    },
  });
  route("GET /f", "f");

  const response = await fetch("GET /f");

  assert.deepEqual([response.status, response.headers.get("retry-after")], [429, "30"]);
  const { error } = await response.json();
  assert.deepEqual([error.code, error.message], ["busy", "come back"]);
  assert.ok(lines.every(({ level }) => level === "debug"));
});

Deno.test("a route's own token and rate come before its middleware and function", async () => {
  const functions = { f: () => ({}), m: () => null };
  const { route, fetch, calls, clock, running } = fakeHttp({}, functions);
  const rate_limit = { requests: 2, per_s: 10, key: "header:x-key" };
  route("GET /f", "f", { auth_token: "s3cret", rate_limit, middleware_function_ids: ["m"] });
  route("GET /open", "f");
  const headers = { authorization: "Bearer s3cret", "x-key": "1" };

  const answers = [];
  for (const init of [{}, { headers }, { headers }, { headers }, {}, {}]) {
    const response = await fetch("GET /f", init);
    answers.push([response.status, response.headers.get("retry-after")]);
  }
  const statusOf = async (line: string): Promise<number> => (await fetch(line, { headers })).status;
  const open = await statusOf("GET /open");
  clock.tick(5_000);
  const later = await statusOf("GET /f");

  assert.deepEqual(answers, [
    [401, null],
    [200, null],
    [200, null],
    [429, "5"],
    [401, null],
    [429, "5"],
  ]);
  assert.deepEqual([open, later], [200, 200]);
  assert.equal(calls.length, 7);
  assert.equal(running.size, 0);
});

Deno.test("a refused request says its code, and a client without a token which header", async () => {
  const { route, fetch, lines } = fakeHttp();
  route("GET /f", "f", { auth_token: "s3cret", rate_limit: { requests: 1, per_s: 60 } });

  const first = await fetch("GET /f");
  const second = await fetch("GET /f");

  assert.equal(first.headers.get("www-authenticate"), "Bearer");
  assert.equal((await first.json()).error.code, "unauthorized");
  const { error } = await second.json();
  assert.equal(error.code, "rate_limited");
  assert.equal(error.message, "At most 1 requests in 60 s; try again in 60 s");
  assert.ok(lines.every(({ level }) => level === "debug"));
});

Deno.test("a route's own time is that of its requests, shorter or longer", async () => {
  const { route, fetch, clock, calls } = fakeHttp({ timeout_ms: 1_000 }, {
    f: () => new Promise(() => {}),
  });
  route("GET /short", "f", { timeout_ms: 200 });
  route("GET /long", "f", { timeout_ms: 5_000 });
  // The engine ends calls at their deadline; here nothing does.
  void fetch("GET /short");
  void fetch("GET /long");
  await settle();

  assert.deepEqual(calls.map(({ timeout_ms }) => timeout_ms), [200, 5_000]);
  clock.tick(1);
});

for (const code of ["timeout", "TIMEOUT"]) {
  Deno.test(`An error ${code} is answered with 504 and nothing else`, async () => {
    const { route, fetch } = fakeHttp({}, {
      f: () => {
        throw failure(code, "late");
      },
    });
    route("GET /f", "f");

    const response = await fetch("GET /f");

    assert.equal(response.status, 504);
    assert.equal(await response.text(), "");
  });
}

Deno.test("an internal error is answered with 500, and only the log says what it is", async () => {
  const { route, fetch, lines } = fakeHttp({}, {
    f: () => {
      throw new TypeError("secret of ours");
    },
  });
  route("GET /f", "f");

  const response = await fetch("GET /f");

  const text = await response.text();
  assert.equal(response.status, 500);
  assert.equal(JSON.parse(text).error.code, "invocation_error");
  assert.ok(!text.includes("secret"));
  assert.match(String(lines[0]!.fields.problem), /secret of ours/);
});

Deno.test("A handler that returns nothing keeps its client waiting until the timeout", async () => {
  const { route, fetch, clock, lines, running } = fakeHttp({ timeout_ms: 1_000 }, {
    "f::null": () => null,
    "f::nothing": () => undefined,
  });
  route("GET /null", "f::null");
  route("GET /nothing", "f::nothing");

  for (const path of ["/null", "/nothing", "/nothing"]) {
    const answered = fetch(`GET ${path}`);
    await settle();
    clock.tick(900);
    assert.equal(running.size, 1);
    clock.tick(200);

    const response = await answered;
    assert.equal(response.status, 504);
    assert.equal(await response.text(), "");
  }

  const warnings = lines.filter(({ text }) => text.startsWith("a handler returned nothing"));
  assert.deepEqual(warnings.map(({ fields }) => fields.function_id), ["f::null", "f::nothing"]);
  assert.equal(running.size, 0);
});

Deno.test("Middleware that is too slow is named also when the deadline is noticed first", async () => {
  let tooLate = () => {};
  const { route, fetch, clock } = fakeHttp({ timeout_ms: 1_000 }, {
    f: () => ({}),
    slow: () =>
      new Promise((_, reject) => {
        tooLate = () => reject(failure("timeout", "Invocation of slow timed out after 1000 ms"));
      }),
  });
  route("GET /f", "f", { middleware_function_ids: ["slow"] });

  const answered = fetch("GET /f");
  await settle();
  clock.tick(1_100);
  tooLate();
  const response = await answered;

  assert.equal(response.status, 504);
  assert.equal((await response.json()).error.code, "MIDDLEWARE_TIMEOUT");
});

Deno.test("while draining, new requests get 503 and running ones finish", async () => {
  let finish = () => {};
  const { route, fetch, handler } = fakeHttp({}, {
    f: () => new Promise((resolve) => finish = () => resolve({})),
  });
  route("GET /f", "f");
  const running = fetch("GET /f");
  await settle();

  handler.drain();
  const late = await fetch("GET /f");
  finish();

  assert.equal(late.status, 503);
  assert.equal((await running).status, 200);
});

Deno.test("A very deep JSON body does no harm", async () => {
  const { route, fetch } = fakeHttp({}, {
    f: ({ payload }) => ({ body: JSON.stringify(payload).length }),
  });
  route("POST /f", "f");

  const response = await fetch("POST /f", json("[".repeat(100_000) + "]".repeat(100_000)));

  assert.ok([200, 400, 500].includes(response.status));
  assert.equal((await fetch("POST /f", json("{}"))).status, 200);
});
