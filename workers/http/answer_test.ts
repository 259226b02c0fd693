/**
 * What becomes of one request, from the way in to the answer, without a port and without an engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type EngineError, InvocationError } from "../../sdk/typescript/errors.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/protocol.ts";
import type {
  CallRequest,
  TriggerHandlers,
  TriggerTypeInput,
} from "../../sdk/typescript/options.ts";
import type { Log, LogFields } from "../../engine/ports/log.ts";
import { parseHttpConfig } from "./config.ts";
import { assemble, makeApp, provideRoutes } from "./mod.ts";

type Fake = (request: CallRequest) => Json | undefined | Promise<Json | undefined>;

/** Everything of `engine-http` but the port, with functions that are plain closures. */
function setup(config: Json = {}, functions: Record<string, Fake> = {}) {
  const clock = new FakeClock();
  const lines: { level: string; text: string; fields: LogFields }[] = [];
  const write = (level: string) => (text: string, fields: LogFields = {}) => {
    lines.push({ level, text, fields });
  };
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };
  const calls: CallRequest[] = [];
  const worker = {
    // deno-lint-ignore no-explicit-any
    async trigger(request: CallRequest<any>): Promise<any> {
      calls.push(request);
      if (request.signal?.aborted) throw failure("cancelled", "Invocation cancelled");
      const run = functions[request.function_id];
      if (!run) throw failure("function_not_found", `Function ${request.function_id} not found`);
      return await run(request);
    },
    registerTriggerType(_: TriggerTypeInput, handlers: TriggerHandlers) {
      registered = handlers;
      return { id: "http", unregister() {} };
    },
  };
  let registered: TriggerHandlers | undefined;
  // deno-lint-ignore no-explicit-any
  const loose = worker as any;
  const parts = assemble(loose, parseHttpConfig(config), { clock, log });
  provideRoutes(loose, parts.routes, { log });
  const app = makeApp(parts.answers);
  let count = 0;
  const route = (line: string, function_id: string, more: Record<string, Json> = {}) => {
    const [http_method, api_path] = line.split(" ");
    const id = `t${++count}`;
    registered!.registerTrigger({
      id,
      trigger_type: "http",
      function_id,
      config: { http_method: http_method!, api_path: api_path!, ...more },
      metadata: undefined,
      namespace: undefined,
    });
    return id;
  };
  const fetch = async (line: string, init: RequestInit = {}): Promise<Response> => {
    const [method, path] = line.split(" ");
    return await app.fetch(
      new Request(`http://localhost:3111${path}`, { method: method!, ...init }),
    );
  };
  return { clock, lines, calls, route, fetch, registered: registered!, ...parts };
}

function failure(code: string, message: string, more: Partial<ErrorBody> = {}): InvocationError {
  return new InvocationError({ code, message, ...more }, "some::function");
}

/** Lets everything happen that waits for nothing but its turn. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

function post(body: string): RequestInit {
  return { body, headers: { "content-type": "application/json" } };
}

Deno.test("A request reaches its handler with all its parts", async () => {
  const { route, fetch, calls } = setup({}, { "orders::put": () => ({ body: "ok" }) });
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
    headers: { "content-type": "application/json; charset=utf-8", "x-a": "1" },
    body: { qty: 3 },
    trigger: { type: "http", path: "orders/:id/*", method: "PUT" },
  });
  assert.equal(calls[0]!.timeout_ms, 30_000);
});

Deno.test("A request's metadata and namespace are those of its trigger", async () => {
  const { registered, fetch, calls } = setup({}, { f: () => ({}) });
  registered.registerTrigger({
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

Deno.test("A body that is not JSON by its content type is null and not read", async () => {
  const { route, fetch, calls } = setup({}, { f: () => ({}) });
  route("POST /f", "f");

  await fetch("POST /f", { body: "{not json", headers: { "content-type": "text/plain" } });
  await fetch("POST /f", {
    body: '{"a":1}',
    headers: { "content-type": "application/problem+json" },
  });
  await fetch("POST /f");

  assert.deepEqual(calls.map(({ payload }) => (payload as { body: Json }).body), [
    null,
    null,
    null,
  ]);
});

Deno.test("An empty JSON body is null", async () => {
  const { route, fetch, calls } = setup({}, { f: () => ({}) });
  route("POST /f", "f");

  const response = await fetch("POST /f", post(""));

  assert.equal(response.status, 200);
  assert.equal((calls[0]!.payload as { body: Json }).body, null);
});

for (const body of ["{", "{'a':1}", "undefined", "{} {}", " ", "[1,]", '"\n"']) {
  Deno.test(`A JSON body ${JSON.stringify(body)} is answered with 400`, async () => {
    const { route, fetch, calls } = setup({}, { f: () => ({}) });
    route("POST /f", "f");

    const response = await fetch("POST /f", post(body));

    assert.equal(response.status, 400);
    const { error } = await response.json();
    assert.equal(error.code, "invalid_json");
    assert.match(error.message, /^Request body is not JSON: /);
    assert.equal(calls.length, 0);
  });
}

Deno.test("A broken JSON body is null on a lenient route", async () => {
  const { route, fetch, calls } = setup({}, { f: () => ({}) });
  route("POST /f", "f", { lenient_body: true });

  const response = await fetch("POST /f", post("{"));

  assert.equal(response.status, 200);
  assert.equal((calls[0]!.payload as { body: Json }).body, null);
});

Deno.test("A body is refused by its declared length before it is read", async () => {
  const { route, fetch, calls } = setup({ body_bytes_max: 10 }, { f: () => ({}) });
  route("POST /f", "f");

  const response = await fetch("POST /f", {
    body: "{}",
    headers: { "content-type": "application/json", "content-length": "11" },
  });

  assert.equal(response.status, 413);
  assert.equal((await response.json()).error.code, "body_too_large");
  assert.equal(calls.length, 0);
});

Deno.test("A body of unknown length is refused when it passes the limit, and cut off", async () => {
  const { route, fetch, calls } = setup({ body_bytes_max: 10 }, { f: () => ({}) });
  route("POST /f", "f");
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (stream) => stream.enqueue(new Uint8Array(4)),
    cancel() {
      cancelled = true;
    },
  });

  const response = await fetch("POST /f", { body });

  assert.equal(response.status, 413);
  assert.equal(cancelled, true);
  assert.equal(calls.length, 0);
});

Deno.test("A body exactly at the limit passes", async () => {
  const { route, fetch } = setup({ body_bytes_max: 7 }, { f: () => ({}) });
  route("POST /f", "f");

  assert.equal((await fetch("POST /f", post('{"a":1}'))).status, 200);
  assert.equal((await fetch("POST /f", post('{"a":10}'))).status, 413);
});

Deno.test("A handler's status, headers and body are answered", async () => {
  const { route, fetch } = setup({}, {
    f: () => ({ status_code: 201, headers: { "X-Made": "yes" }, body: { c: 5 } }),
  });
  route("POST /f", "f");

  const response = await fetch("POST /f");

  assert.equal(response.status, 201);
  assert.equal(response.headers.get("x-made"), "yes");
  assert.equal(response.headers.get("content-type"), "application/json");
  assert.equal(response.headers.get("access-control-allow-origin"), "*");
  assert.equal(await response.text(), '{"c":5}');
});

Deno.test("HEAD runs the GET handler and leaves the body out", async () => {
  const { route, fetch, calls } = setup({}, { f: () => ({ body: "héllo" }), own: () => ({}) });
  route("GET /f", "f");
  route("GET /g", "f");
  route("HEAD /g", "own");

  const response = await fetch("HEAD /f");
  await fetch("HEAD /g");

  assert.equal(response.status, 200);
  assert.equal(await response.text(), "");
  assert.equal(response.headers.get("content-length"), "8");
  const { method, trigger } = calls[0]!.payload as { method: string; trigger: Json };
  assert.equal(method, "HEAD");
  assert.deepEqual(trigger, { type: "http", path: "/f", method: "GET" });
  assert.equal(calls[1]!.function_id, "own");
});

Deno.test("A path without a route is answered with 404", async () => {
  const { fetch } = setup();

  const response = await fetch("GET /nowhere");

  assert.equal(response.status, 404);
  assert.deepEqual(await response.json(), { error: { code: "NOT_FOUND", message: "Not Found" } });
});

Deno.test("A known path with another method is answered with 405 and what it allows", async () => {
  const { route, fetch } = setup();
  route("GET /f", "f");
  route("DELETE /f", "f");

  const response = await fetch("POST /f");

  assert.equal(response.status, 405);
  assert.equal(response.headers.get("allow"), "DELETE, GET, HEAD");
  assert.equal(await response.text(), "");
});

Deno.test("A handler's error is answered without its stack, and logged with the same id", async () => {
  const { route, fetch, lines } = setup({}, {
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
    const { route, fetch } = setup({}, {
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

for (const code of ["timeout", "TIMEOUT"]) {
  Deno.test(`An error ${code} is answered with 504 and nothing else`, async () => {
    const { route, fetch } = setup({}, {
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

Deno.test("A mistake inside the engine is answered with 500 and told to the log only", async () => {
  const { route, fetch, lines } = setup({}, {
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

Deno.test("A handler that returns nothing keeps its client waiting until the time-out", async () => {
  const { route, fetch, clock, lines, running } = setup({ timeout_ms: 1_000 }, {
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

  const remarks = lines.filter(({ text }) => text.startsWith("a handler returned nothing"));
  assert.deepEqual(remarks.map(({ fields }) => fields.function_id), ["f::null", "f::nothing"]);
  assert.equal(running.size, 0);
});

Deno.test("A client that goes away cancels the call of its handler", async () => {
  let signal: AbortSignal | undefined;
  const { route, fetch, clock, running } = setup({}, {
    f: (request) =>
      new Promise((_, reject) => {
        signal = request.signal;
        signal!.addEventListener("abort", () => reject(failure("cancelled", "gone")));
      }),
  });
  route("GET /f", "f");
  const client = new AbortController();
  const answered = fetch("GET /f", { signal: client.signal });
  await settle();
  clock.tick(100);

  client.abort();
  const response = await answered;

  assert.equal(signal!.aborted, true);
  assert.equal(response.status, 499);
  assert.equal(running.size, 0);
});

Deno.test("A client that went away before anybody looked cancels the call as well", async () => {
  const { route, fetch, clock } = setup({}, {
    f: ({ signal }) =>
      new Promise((_, reject) => {
        signal!.addEventListener("abort", () => reject(failure("cancelled", "gone")));
      }),
  });
  route("GET /f", "f");
  const client = new AbortController();
  const answered = fetch("GET /f", { signal: client.signal });

  client.abort();
  clock.tick(100);

  assert.equal((await answered).status, 499);
});

Deno.test("A body that never ends is given up at the time-out", async () => {
  const { route, fetch, clock } = setup({ timeout_ms: 1_000 }, { f: () => ({}) });
  route("POST /f", "f");
  const answered = fetch("POST /f", { body: new ReadableStream<Uint8Array>({}) });

  clock.tick(1_100);

  assert.equal((await answered).status, 504);
});

Deno.test("Ten requests over the limit are answered with 429, and room comes back", async () => {
  const open: (() => void)[] = [];
  const { route, fetch, running } = setup({ concurrency_max: 5 }, {
    f: () => new Promise((resolve) => open.push(() => resolve({}))),
  });
  route("GET /f", "f");

  const answers = Array.from({ length: 15 }, () => fetch("GET /f"));
  const refused = await Promise.all(answers.slice(5));

  assert.equal(running.size, 5);
  for (const response of refused) {
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "1");
    assert.equal((await response.json()).error.code, "overloaded");
  }
  open.forEach((finish) => finish());
  for (const response of await Promise.all(answers.slice(0, 5))) assert.equal(response.status, 200);
  const later = fetch("GET /f");
  await settle();
  open[5]!();
  assert.equal((await later).status, 200);
});

Deno.test("OPTIONS is answered for every path with what pages may do", async () => {
  const { fetch } = setup();

  const response = await fetch("OPTIONS /any/path", {
    headers: { origin: "https://a.example", "access-control-request-headers": "x-a, x-b" },
  });

  assert.equal(response.status, 200);
  assert.equal(await response.text(), "");
  assert.equal(response.headers.get("access-control-allow-origin"), "*");
  assert.match(response.headers.get("access-control-allow-methods")!, /POST.*OPTIONS/);
  assert.equal(response.headers.get("access-control-allow-headers"), "x-a, x-b");
});

Deno.test("Only configured origins are allowed when there are some", async () => {
  const cors = { origins: ["https://a.example"], methods: ["get"] };
  const { route, fetch } = setup({ cors }, { f: () => ({}) });
  route("GET /f", "f");

  const known = await fetch("GET /f", { headers: { origin: "https://a.example" } });
  const other = await fetch("GET /f", { headers: { origin: "https://b.example" } });
  const ahead = await fetch("OPTIONS /f", { headers: { origin: "https://b.example" } });

  assert.equal(known.headers.get("access-control-allow-origin"), "https://a.example");
  assert.equal(known.headers.get("vary"), "Origin");
  assert.equal(other.headers.get("access-control-allow-origin"), null);
  assert.equal(ahead.headers.get("access-control-allow-origin"), null);
  assert.equal(ahead.headers.get("access-control-allow-methods"), "GET");
});

Deno.test("A handler's own CORS header is not doubled", async () => {
  const headers = { "access-control-allow-origin": "https://mine.example" };
  const { route, fetch } = setup({}, { f: () => ({ headers }) });
  route("GET /f", "f");

  const response = await fetch("GET /f");

  assert.equal(response.headers.get("access-control-allow-origin"), "https://mine.example");
});

Deno.test("A token is asked for where one is configured, in the header or the query", async () => {
  const { route, fetch } = setup({ auth_token: "s3cret" }, { f: () => ({}) });
  route("GET /f", "f");
  const with_ = (authorization: string) => fetch("GET /f", { headers: { authorization } });

  assert.equal((await fetch("GET /f")).status, 401);
  assert.equal((await fetch("GET /unknown")).status, 401);
  assert.equal((await with_("Bearer wrong")).status, 401);
  assert.equal((await with_("Bearer s3cret2")).status, 401);
  assert.equal((await with_("Basic s3cret")).status, 401);
  assert.equal((await with_("Bearer s3cret")).status, 200);
  assert.equal((await fetch("GET /f?token=s3cret")).status, 200);
  assert.equal((await fetch("GET /f?token=")).status, 401);
  assert.equal((await fetch("OPTIONS /f")).status, 200);
});

Deno.test("Once draining, requests are told to go elsewhere while running ones finish", async () => {
  let finish = () => {};
  const { route, fetch, answers } = setup({}, {
    f: () => new Promise((resolve) => finish = () => resolve({})),
  });
  route("GET /f", "f");
  const running = fetch("GET /f");
  await settle();

  answers.drain();
  const late = await fetch("GET /f");
  finish();

  assert.equal(late.status, 503);
  assert.equal((await running).status, 200);
});

Deno.test("Two triggers on one route: the newer serves, and the older when it has left", async () => {
  const { route, fetch, registered } = setup({}, {
    old: () => ({ body: "old" }),
    new: () => ({ body: "new" }),
  });
  route("GET /f", "old");
  const id = route("GET f", "new");

  assert.equal(await (await fetch("GET /f")).json(), "new");
  registered.unregisterTrigger({ id, trigger_type: "http" });
  assert.equal(await (await fetch("GET /f")).json(), "old");
});

Deno.test("A trigger whose parameters are named otherwise is refused", () => {
  const { route } = setup();
  route("GET /u/:id", "f");

  assert.throws(() => route("GET /u/:name", "g"), (error: EngineError) => {
    return error.code === "trigger_registration_failed" &&
      error.message.includes("conflicts with already-registered route");
  });
});

Deno.test("A trigger with unknown keys is taken, and the keys are named in the log", () => {
  const { route, lines } = setup();

  route("GET /f", "f", { method: "POST" });

  assert.equal(lines[0]!.level, "warn");
  assert.equal(lines[0]!.fields.keys, "method");
});

Deno.test("A very deep JSON body does no harm", async () => {
  const { route, fetch } = setup({}, {
    f: ({ payload }) => ({ body: JSON.stringify(payload).length }),
  });
  route("POST /f", "f");

  const response = await fetch("POST /f", post("[".repeat(100_000) + "]".repeat(100_000)));

  assert.ok([200, 400, 500].includes(response.status));
  assert.equal((await fetch("POST /f", post("{}"))).status, 200);
});
