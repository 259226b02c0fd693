import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { until } from "../../tests/fakes/until.ts";
import type { ErrorBody, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import type { Connection, ConnectionEvents } from "../ports/connection.ts";
import { HttpFunctions, type HttpFunctionsOptions } from "./http_functions.ts";
import { TickBudget } from "../transport/tick_budget.ts";
import { signature } from "./request_headers.ts";
import { SLOT_BOUNDS } from "./request_slots.ts";

const SETTINGS = {
  allow: ["http://127.0.0.1:*", "http://*.test:*"],
  allow_private: true,
  auth_env: ["TOKEN"],
};
const LINE = '{"type":"invokefunction","invocation_id":';

interface Outcome {
  readonly result?: string | undefined;
  readonly error?: ErrorBody | undefined;
}

/** A connection for one worker, whose functions are `invocations`. */
function setup(more: Partial<HttpFunctionsOptions> = {}) {
  const clock = new FakeClock();
  const memory = createMemoryBudget(256 * 1024 * 1024);
  const functions = new HttpFunctions({
    clock,
    turns: new TickBudget(),
    memory,
    settings: SETTINGS,
    maxMessageBytes: 1_000_000,
    variables: () => (name) => name === "TOKEN" ? "secret" : undefined,
    resolve: () => Promise.resolve(["127.0.0.1"]),
    ...more,
  });
  const invocations: Record<string, JsonObject> = {};
  const results = new Map<string, Outcome>();
  const texts: string[] = [];
  let line: Connection | undefined;
  const receive = (text: string): void => {
    texts.push(text);
    const { invocation_id, error } = JSON.parse(text) as {
      invocation_id: string;
      error: ErrorBody;
    };
    results.set(invocation_id, { result: /"result":(.*)}$/s.exec(text)?.[1], error });
  };
  functions.open((id) => invocations[id], (connection) => {
    line = connection;
    return {
      text: receive,
      textBytes: (bytes, start, end) =>
        receive(new TextDecoder().decode(bytes.subarray(start, end))),
    } as Partial<ConnectionEvents> as ConnectionEvents;
  });
  const send = (id: string, function_id: string, data?: string, fields: JsonObject = {}): void => {
    const rest = JSON.stringify({ function_id, ...fields }).slice(1, -1);
    const tail = data === undefined ? "}" : `,"data":${data}}`;
    const bytes = new TextEncoder().encode(`${LINE}"${id}",${rest}${tail}`);
    line!.forward(new Uint8Array(), 0, bytes, 0, bytes.length);
    bytes.fill(0); // The core uses the memory again.
  };
  const call = async (function_id: string, data?: string, fields: JsonObject = {}) => {
    const id = crypto.randomUUID();
    send(id, function_id, data, fields);
    await until(() => results.has(id));
    return results.get(id)!;
  };
  const cancel = (invocation_id: string): void =>
    line!.send(JSON.stringify({ type: "cancelinvocation", invocation_id, reason: "enough" }));
  return { functions, clock, memory, invocations, results, texts, send, call, cancel, line: line! };
}

interface Seen {
  readonly method: string;
  readonly headers: Headers;
  readonly body: string;
}

/** A server on this machine; `answer` says what it answers. */
function serve(answer: (seen: Seen) => Response | Promise<Response> = () => new Response("{}")) {
  const seen: Seen[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const { method, headers } = request;
    seen.push({ method, headers, body: await request.text() });
    return answer(seen.at(-1)!);
  });
  const url = `http://127.0.0.1:${server.addr.port}/`;
  return { seen, url, port: server.addr.port, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** A server that answers nothing. */
function silent() {
  const [arrived, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  let connections = 0;
  const accept = async (): Promise<void> => {
    for await (const connection of listener) {
      connections++;
      await connection.read(new Uint8Array(1_000));
      arrived.resolve();
      while (await connection.read(new Uint8Array(1_000)).catch(() => null) !== null);
      connection.close();
      left.resolve();
    }
  };
  const done = accept();
  return {
    url: `http://127.0.0.1:${listener.addr.port}/`,
    arrived: arrived.promise,
    left: left.promise,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      await done;
    },
  };
}

Deno.test("a call is a request, and the JSON of the answer its result, byte for byte", async () => {
  await using server = serve(() => new Response('{"cents": 12345678901234567890}'));
  const { functions, invocations, memory, call } = setup();
  using _closing = functions;
  invocations["legacy::quote"] = { url: server.url, headers: { "X-Tenant": "a" } };

  const fields = { traceparent: "00-1-2-03", baggage: "tenant=a" };
  const { result } = await call("legacy::quote", '{"sku": 1.0,"big":12345678901234567890}', fields);

  assert.equal(result, '{"cents": 12345678901234567890}');
  const [{ method, headers, body }] = server.seen as [Seen];
  assert.deepEqual([method, body], ["POST", '{"sku": 1.0,"big":12345678901234567890}']);
  assert.equal(headers.get("content-type"), "application/json");
  assert.equal(headers.get("x-engine-function-path"), "legacy::quote");
  assert.match(headers.get("x-engine-invocation-id")!, /^[\da-f-]{36}$/);
  assert.match(headers.get("x-engine-timestamp")!, /^\d{10}$/);
  assert.equal(headers.get("x-tenant"), "a");
  assert.equal(headers.get("traceparent"), "00-1-2-03");
  assert.equal(headers.get("baggage"), "tenant=a");
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a payload of null is a body, except with GET and DELETE", async () => {
  await using server = serve(() => new Response(null, { status: 204 }));
  const { functions, invocations, call } = setup();
  using _closing = functions;
  for (const method of ["POST", "PUT", "PATCH", "GET", "DELETE"]) {
    invocations.f = { url: server.url, method };
    assert.deepEqual(await call("f"), { result: undefined, error: undefined });
    await call("f", "[1]");
  }

  // Deno's server does not read the body of a GET; its length says that it was sent.
  const bodies = server.seen.map(({ method, headers }) =>
    `${method} ${headers.get("content-length") ?? "none"}`
  );
  assert.deepEqual(bodies, [
    ...["POST 4", "POST 3", "PUT 4", "PUT 3", "PATCH 4", "PATCH 3"],
    ...["GET none", "GET 3", "DELETE none", "DELETE 3"],
  ]);
});

Deno.test("a signature covers the body as it was sent", async () => {
  await using server = serve();
  const { functions, invocations, call } = setup();
  using _closing = functions;
  const invocation = { url: server.url, auth: { type: "hmac", secret_key: "TOKEN" } };
  invocations.f = invocation;
  functions.problem({ type: "registerfunction", id: "f", invocation }, { isLimited: false });

  await call("f", '{"a":"ä"}');

  const [{ headers, body }] = server.seen as [Seen];
  const timestamp = headers.get("x-engine-timestamp")!;
  const expected = signature("secret", timestamp, new TextEncoder().encode(body));
  assert.equal(headers.get("x-engine-signature"), expected);
});

Deno.test("a large payload arrives whole", async () => {
  await using server = serve(({ body }) => new Response(String(body.length)));
  const { functions, invocations, memory, call } = setup();
  using _closing = functions;
  invocations.f = { url: server.url };
  const text = JSON.stringify("ä".repeat(1_000_000));

  assert.equal((await call("f", text)).result, String(text.length));
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a function ends with its own time limit, and the request with it", async () => {
  await using server = silent();
  const { functions, clock, invocations, results, send } = setup();
  using _closing = functions;
  invocations.f = { url: server.url, timeout_ms: 800 };

  send("a", "f");
  await server.arrived;
  clock.tick(799);
  assert.equal(results.size, 0);
  clock.tick(1);
  await until(() => results.has("a"));

  const { error } = results.get("a")!;
  assert.equal(error!.code, "timeout");
  assert.equal(error!.message, "Invocation of f timed out after 800 ms");
  assert.match(JSON.stringify(error!.details), /did not answer within the timeout_ms/);
  await server.left;
});

Deno.test("a cancelled call ends its request, at once and without a result", async () => {
  await using server = silent();
  const { functions, invocations, memory, texts, send, cancel } = setup();
  using _closing = functions;
  invocations.f = { url: server.url };

  send("early", "f");
  cancel("early"); // Before the call was even read.
  send("running", "f");
  await server.arrived;
  cancel("running");
  cancel("unknown");

  await server.left;
  await until(() => memory.usedBytes === 0);
  assert.deepEqual([texts, server.connections], [[], 1]);
});

Deno.test("when the worker leaves, its requests end without results", async () => {
  await using server = silent();
  const { functions, invocations, memory, texts, send, line } = setup();
  using _closing = functions;
  invocations.f = { url: server.url };
  send("a", "f");
  await server.arrived;
  send("b", "f"); // Not read yet when the connection closes.

  line.close(1000, "the worker closed");

  await server.left;
  await until(() => memory.usedBytes === 0);
  assert.deepEqual(texts, []);
});

Deno.test("what is registered or allowed no longer is not requested", async () => {
  await using server = serve();
  const { functions, invocations, call } = setup();
  using _closing = functions;
  assert.equal((await call("gone")).error!.code, "function_not_found");
  invocations.f = { url: server.url };
  functions.applySettings({ ...SETTINGS, allow: ["api.example.com"] });

  const { error } = await call("f");

  assert.equal(error!.code, "http_request_failed");
  assert.match(error!.message, /^f is not requested: .*http_functions\.allow/);
  functions.applySettings({ ...SETTINGS, allow_private: false });
  assert.match((await call("f")).error!.message, /a private address/);
  assert.equal(server.seen.length, 0);
});

Deno.test("failures of the request and of its answer are errors of the call", async () => {
  await using server = serve(({ body }) => {
    if (body === "1") return new Response("hello");
    if (body === "2") return Response.json({ error: { code: "overloaded" } }, { status: 503 });
    return new Response(new Uint8Array(1_000_001));
  });
  const { functions, invocations, memory, call } = setup();
  using _closing = functions;
  invocations.f = { url: server.url };
  invocations.closed = { url: "http://127.0.0.1:1/" };

  assert.equal((await call("f", "1")).error!.code, "invalid_response");
  const remote = (await call("f", "2")).error!;
  assert.deepEqual([remote.code, remote.retryable], ["overloaded", undefined]);
  assert.match((await call("f", "3")).error!.message, /more than 1000000 bytes/);
  const { code, message } = (await call("closed")).error!;
  assert.equal(code, "http_request_failed");
  assert.match(message, /^http:\/\/127\.0\.0\.1:1 refuses the connection/);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a payload that is nested too deeply is refused", async () => {
  const { functions, invocations, call } = setup();
  using _closing = functions;
  invocations.f = { url: "http://127.0.0.1:1/" };

  const { error } = await call("f", "[".repeat(200) + "]".repeat(200));

  assert.equal(error!.code, "invalid_payload");
});

Deno.test("a call for which there is no memory is overloaded", async () => {
  const { functions, invocations, call } = setup({ memory: createMemoryBudget(1_024) });
  using _closing = functions;
  invocations.f = { url: "http://127.0.0.1:1/" };

  const { error } = await call("f", JSON.stringify("a".repeat(2_000)));

  assert.deepEqual([error!.code, error!.retryable], ["overloaded", true]);
});

Deno.test("a slow host has only so many requests, and the rest of them waits or is refused", async () => {
  const open = Promise.withResolvers<void>();
  let [running, most] = [0, 0];
  await using server = serve(async () => {
    most = Math.max(most, ++running);
    await open.promise;
    running--;
    return new Response("1");
  });
  await using other = serve(() => new Response("2"));
  const { functions, invocations, results, send, call } = setup();
  using _closing = functions;
  invocations.slow = { url: server.url };
  invocations.fast = { url: other.url };
  const { runningPerHost, waitingPerHost } = SLOT_BOUNDS;
  const count = runningPerHost + waitingPerHost;
  for (let i = 0; i <= count; i++) send(`${i}`, "slow");

  await until(() => running === runningPerHost && results.has(`${count}`));
  const { error } = results.get(`${count}`)!;
  assert.deepEqual([error!.code, error!.retryable], ["overloaded", true]);
  assert.equal((await call("fast")).result, "2");
  open.resolve();
  await until(() => results.size === count + 2);

  assert.equal(most, runningPerHost);
  assert.equal([...results.values()].filter(({ result }) => result === "1").length, count);
});

Deno.test("problem() says why a function cannot be served", () => {
  let reads = 0;
  const variables = () => {
    reads++;
    return (name: string) => name === "TOKEN" ? "secret" : undefined;
  };
  const { functions } = setup({ variables });
  using _closing = functions;
  const problem = (invocation: JsonObject, isLimited = false) =>
    functions.problem({ type: "registerfunction", id: "f", invocation }, { isLimited });
  const auth = { type: "bearer", token_key: "TOKEN" };

  assert.equal(problem({ url: "http://a.test:1/" }), undefined);
  assert.equal(reads, 0, "no auth, no variables");
  assert.equal(problem({ url: "http://a.test:1/", auth }), undefined);
  assert.match(problem({ url: "http://a.test:1/", auth }, true)!, /access rules apply/);
  assert.match(problem({ url: "https://a.test/" })!, /add "a\.test"/);
  assert.match(problem({})!, /url/);
  const other = { type: "bearer", token_key: "OTHER" };
  assert.match(problem({ url: "http://a.test:1/", auth: other })!, /auth_env/);
});
