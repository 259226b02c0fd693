/**
 * What becomes of one request, from the way in to the answer, without a port or an engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import {
  failure,
  type FakeFunction,
  fakeHttp,
  json,
  type LogLine,
  recordingLog,
  settle,
} from "../../tests/fakes/fake_http.ts";
import { ResultWarnings, WARNINGS_MAX } from "./handler.ts";

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

const MIDDLEWARE = [{ function_id: "late", priority: 5 }, { function_id: "early", priority: -1 }];

/** A route whose steps note that they ran. */
function setup(functions: Record<string, FakeFunction> = {}) {
  const steps = {
    early: () => ({ action: "continue" }),
    late: () => null,
    condition: () => true,
    own: () => undefined,
    handler: () => ({ body: "handled" }),
    ...functions,
  };
  const fake = fakeHttp({ middleware: MIDDLEWARE }, steps);
  fake.route("POST /f/:id", "handler", {
    condition_function_id: "condition",
    middleware_function_ids: ["own"],
  });
  const ran = (): string[] => fake.calls.map(({ function_id }) => function_id);
  const send = () => fake.fetch("POST /f/1?q=2", json('{"a":1}'));
  return { ...fake, ran, send };
}

Deno.test("Steps run in order: global middleware, condition, own middleware, handler", async () => {
  const { send, ran } = setup();

  const response = await send();

  assert.equal(await response.json(), "handled");
  assert.deepEqual(ran(), ["early", "late", "condition", "own", "handler"]);
});

Deno.test("Middleware sees the request without its body, the condition all of it", async () => {
  const { send, calls } = setup();

  await send();

  const request = {
    path_params: { id: "1" },
    query_params: { q: "2" },
    headers: { "content-type": "application/json" },
    method: "POST",
  };
  assert.deepEqual(calls[0]!.payload, { phase: "preHandler", request, context: {} });
  assert.deepEqual(calls[3]!.payload, calls[0]!.payload);
  assert.deepEqual(calls[2]!.payload, calls[4]!.payload);
  assert.deepEqual((calls[2]!.payload as { body: Json }).body, { a: 1 });
});

for (const name of ["early", "own"]) {
  Deno.test(`Middleware ${name} answers instead of the handler`, async () => {
    const response = { status_code: 401, body: { who: "you" }, headers: { "x-a": "1" } };
    const { send, ran } = setup({ [name]: () => ({ action: "respond", response }) });

    const answer = await send();

    assert.equal(answer.status, 401);
    assert.equal(answer.headers.get("x-a"), "1");
    assert.deepEqual(await answer.json(), { who: "you" });
    assert.equal(ran().at(-1), name);
  });
}

for (const said of [null, undefined, true, 0, "", "false", {}, [], { a: false }]) {
  Deno.test(`A condition that returns ${JSON.stringify(said)} lets the request pass`, async () => {
    const { send } = setup({ condition: () => said });

    assert.equal((await send()).status, 200);
  });
}

Deno.test("A condition that returns false is answered with 422", async () => {
  const { send, ran } = setup({ condition: () => false });

  const response = await send();

  assert.equal(response.status, 422);
  assert.deepEqual(await response.json(), {
    error: { code: "CONDITION_NOT_MET", message: "Request condition not met" },
    skipped: true,
  });
  assert.equal(ran().at(-1), "condition");
});

for (
  const [step, code, status] of [
    ["early", "invocation_failed", 500],
    ["early", "function_not_found", 500],
    ["own", "own_code", 500],
    ["own", "overloaded", 429],
    ["condition", "invocation_failed", 500],
    ["condition", "function_not_found", 500],
  ] as const
) {
  Deno.test(`An error ${code} of ${step} is answered with ${status}`, async () => {
    const { send, ran } = setup({
      [step]: () => {
        throw failure(code, "broken");
      },
    });

    const response = await send();

    assert.equal(response.status, status);
    const { error } = await response.json();
    assert.equal(error.code, code);
    assert.equal(error.message, "broken");
    assert.equal(ran().at(-1), step);
  });
}

for (const step of ["early", "condition", "own"]) {
  Deno.test(`An error of ${step} that names its status is answered with it`, async () => {
    const { send, ran } = setup({
      [step]: () => {
        const headers = { "www-authenticate": "Bearer" };
        throw failure("unauthorized", "who?", { details: { status_code: 401, headers } });
      },
    });

    const response = await send();

    assert.deepEqual([response.status, response.headers.get("www-authenticate")], [401, "Bearer"]);
    assert.equal((await response.json()).error.message, "who?");
    assert.equal(ran().at(-1), step);
  });
}

Deno.test("Middleware that is too slow is answered with 504 and says which", async () => {
  const { send } = setup({
    own: () => {
      throw failure("timeout", "late");
    },
  });

  const response = await send();

  assert.equal(response.status, 504);
  const { error } = await response.json();
  assert.equal(error.code, "MIDDLEWARE_TIMEOUT");
  assert.equal(error.message, "Middleware own did not answer in time");
});

Deno.test("A condition that is too slow is answered with 504", async () => {
  const { send } = setup({
    condition: () => {
      throw failure("timeout", "late");
    },
  });

  assert.equal((await send()).status, 504);
});

for (const said of [{}, { action: "allow" }, { action: null }, true, "continue", []]) {
  Deno.test(`Middleware that returns ${JSON.stringify(said)} lets no request pass`, async () => {
    const { send, ran } = setup({ early: () => said });

    const response = await send();

    assert.equal(response.status, 500);
    assert.match((await response.json()).error.message, /must return/);
    assert.deepEqual(ran(), ["early"]);
  });
}

Deno.test("All steps share the time of the request", async () => {
  const fake = setup({
    early: () => {
      fake.clock.tick(10_000);
      return null;
    },
  });

  await fake.send();

  assert.deepEqual(fake.calls.map(({ timeout_ms }) => timeout_ms), [
    30_000,
    20_000,
    20_000,
    20_000,
    20_000,
  ]);
});

Deno.test("A broken body is found before the condition, but after global middleware", async () => {
  const { fetch, ran } = setup();

  const response = await fetch("POST /f/1", json("{"));

  assert.equal(response.status, 400);
  assert.deepEqual(ran(), ["early", "late"]);
});

Deno.test("ResultWarnings.warn() warns once per text, function and subject", () => {
  const lines: LogLine[] = [];
  const warnings = new ResultWarnings(recordingLog(lines));

  for (let i = 0; i < 3; i++) {
    warnings.warn("odd", "f", "x-a");
    warnings.warn("odd", "g", "x-a");
    warnings.warn("odd", "g", "x-b");
  }

  assert.equal(lines.length, 3);
  assert.deepEqual(lines[2], {
    level: "warn",
    text: "odd",
    fields: { function_id: "g", about: "x-b" },
  });
});

Deno.test("ResultWarnings.warn() logs at most WARNINGS_MAX", () => {
  const lines: LogLine[] = [];
  const warnings = new ResultWarnings(recordingLog(lines));

  for (let i = 0; i < WARNINGS_MAX + 10; i++) warnings.warn("odd", "f", `${i}`);

  assert.equal(lines.length, WARNINGS_MAX);
});
