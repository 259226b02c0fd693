/**
 * PROTOCOL 2.2 from the other end of the wire: functions whose implementation is a URL.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { until } from "../fakes/until.ts";
import { proveOnWire, type WireClient } from "../fakes/wire_engine.ts";

const SECRET_VARIABLE = "ENGINE_TEST_QUOTES_SECRET";
const SECRET = "a secret of this test";
Deno.env.set(SECRET_VARIABLE, SECRET);

const SETTINGS = {
  engine: [
    "http_functions:",
    '  allow: ["http://127.0.0.1:*", "http://169.254.169.254", "api.example.com"]',
    "  allow_private: true",
    `  auth_env: [${SECRET_VARIABLE}]`,
  ],
};

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

/** A service on this machine, with what it was asked. */
function service(answer: (seen: Seen) => Response | Promise<Response>) {
  const seen: Seen[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const { method, headers } = request;
    const path = new URL(request.url).pathname;
    seen.push({ method, path, headers, body: await request.text() });
    return answer(seen.at(-1)!);
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  return { seen, url, [Symbol.asyncDispose]: () => server.shutdown() };
}

async function rejection(client: WireClient, id: string, invocation: JsonObject): Promise<string> {
  await client.send({ type: "registerfunction", id, invocation });
  const { message, ...rejected } = await client.receive();
  assert.deepEqual(rejected, {
    type: "registrationrejected",
    code: "FUNCTION_NAMESPACE_CONFLICT",
    namespace: "default",
    function_id: id,
    owner_worker_id: "engine",
  });
  assert.equal((await client.failure(id)).code, "function_not_found");
  return String(message);
}

proveOnWire("functions served by HTTP", {
  "a call is a request with the headers of the protocol, its payload the body": async (
    { open },
  ) => {
    await using quotes = service(() => Response.json({ cents: 7 }));
    const [owner, caller] = [await open(), await open()];
    const headers = { "X-Tenant": "a" };
    await owner.offer({ id: "web::quote", invocation: { url: `${quotes.url}/quote`, headers } });

    assert.deepEqual(await caller.value("web::quote", { sku: "A1" }), { cents: 7 });

    await owner.receivesNothing();
    const [asked] = quotes.seen;
    assert.deepEqual([asked!.method, asked!.path, asked!.body], ["POST", "/quote", '{"sku":"A1"}']);
    assert.equal(asked!.headers.get("content-type"), "application/json");
    assert.equal(asked!.headers.get("x-engine-function-path"), "web::quote");
    assert.match(asked!.headers.get("x-engine-invocation-id")!, /^[\da-f-]{36}$/);
    const age = Date.now() / 1_000 - Number(asked!.headers.get("x-engine-timestamp"));
    assert.ok(age > -5 && age < 300);
    assert.equal(asked!.headers.get("x-tenant"), "a");
  },

  "hmac signs the timestamp and the body": async ({ open }) => {
    await using quotes = service(() => new Response("1"));
    const owner = await open();
    const auth = { type: "hmac", secret_key: SECRET_VARIABLE };
    await owner.offer({ id: "web::signed", invocation: { url: quotes.url, auth } });

    await owner.value("web::signed", { a: "ä" });

    const { headers, body } = quotes.seen[0]!;
    const text = `${headers.get("x-engine-timestamp")}:${
      new TextEncoder().encode(body).toBase64()
    }`;
    const mac = createHmac("sha256", SECRET).update(text).digest("hex");
    assert.equal(headers.get("x-engine-signature"), `sha256=${mac}`);
  },

  "bearer and api_key send the value of the variable": async ({ open }) => {
    await using quotes = service(() => new Response("1"));
    const owner = await open();
    const bearer = { type: "bearer", token_key: SECRET_VARIABLE };
    const key = { type: "api_key", header: "X-Key", value_key: SECRET_VARIABLE };
    await owner.offer(
      { id: "web::bearer", invocation: { url: quotes.url, auth: bearer } },
      { id: "web::key", invocation: { url: quotes.url, auth: key } },
    );

    await owner.value("web::bearer", null);
    await owner.value("web::key", null);

    const [one, other] = quotes.seen;
    assert.equal(one!.headers.get("authorization"), `Bearer ${SECRET}`);
    assert.equal(other!.headers.get("x-key"), SECRET);
  },

  "2xx: JSON is the result, nothing is no result, anything else an error": async ({ open }) => {
    await using quotes = service(({ path }) =>
      new Response(path === "/text" ? "hello" : path === "/big" ? "12345678901234567890" : null)
    );
    const owner = await open();
    for (const name of ["text", "big", "empty"]) {
      await owner.offer({ id: `web::${name}`, invocation: { url: `${quotes.url}/${name}` } });
    }

    assert.equal((await owner.failure("web::text")).code, "invalid_response");
    const empty = await owner.call("web::empty", null);
    assert.ok(!("result" in empty) && !("error" in empty));
    assert.equal(await owner.value("web::big", null), 12345678901234567890);
  },

  "status 400 and above: the error of the body, else http_error": async ({ open }) => {
    await using quotes = service(({ path }) => {
      const error = { code: "out_of_stock", message: "Only 2 left" };
      if (path === "/own") return Response.json({ error }, { status: 409 });
      return new Response("<html>", { status: 500 });
    });
    const owner = await open();
    await owner.offer(
      { id: "web::own", invocation: { url: `${quotes.url}/own` } },
      { id: "web::down", invocation: { url: `${quotes.url}/down` } },
    );

    const own = await owner.failure("web::own");
    assert.deepEqual([own.code, own.message], ["out_of_stock", "Only 2 left"]);
    const down = await owner.failure("web::down");
    assert.deepEqual([down.code, down.message], ["http_error", "HTTP 500"]);
  },

  "a network failure is http_request_failed, and names the host": async ({ open }) => {
    const owner = await open();
    await owner.offer({ id: "web::gone", invocation: { url: "http://127.0.0.1:1/secret" } });

    const { code, message } = await owner.failure("web::gone");

    assert.equal(code, "http_request_failed");
    assert.match(String(message), /^http:\/\/127\.0\.0\.1:1 refuses the connection/);
  },

  "the shorter of both time limits ends the call": async ({ open }) => {
    const slow = Promise.withResolvers<void>();
    await using quotes = service(async () => {
      await slow.promise;
      return new Response("1");
    });
    const owner = await open();
    const { url } = quotes;
    await owner.offer(
      { id: "web::own_limit", invocation: { url, timeout_ms: 100 } },
      { id: "web::limit_of_call", invocation: { url, timeout_ms: 60_000 } },
    );

    const own = await owner.failure("web::own_limit");
    assert.equal(own.code, "timeout");
    assert.equal(own.message, "Invocation of web::own_limit timed out after 100 ms");
    await owner.send({
      type: "invokefunction",
      invocation_id: "limited",
      function_id: "web::limit_of_call",
      timeout_ms: 50,
    });
    const { error } = await owner.receive();
    assert.equal((error as JsonObject).code, "timeout");
    slow.resolve();
  },

  "the caller cancels a call, and its request ends": async ({ open }) => {
    const arrived = Promise.withResolvers<AbortSignal>();
    const ended = new AbortController();
    const server = Deno.serve({
      port: 0,
      hostname: "127.0.0.1",
      signal: ended.signal,
      onListen() {},
    }, ({ signal }) => {
      arrived.resolve(signal);
      return new Promise<Response>(() => {});
    });
    const owner = await open();
    const url = `http://127.0.0.1:${server.addr.port}/`;
    await owner.offer({ id: "web::cancelled", invocation: { url } });
    const id = { invocation_id: "cancelled" };
    await owner.send({ type: "invokefunction", ...id, function_id: "web::cancelled" });
    const signal = await arrived.promise;

    await owner.send({ type: "cancelinvocation", ...id, reason: "enough" });

    assert.equal(((await owner.receive()).error as JsonObject).code, "cancelled");
    await until(() => signal.aborted);
    ended.abort();
    await server.finished;
  },

  "the function goes with its worker, and its calls end": async ({ open }) => {
    const arrived = Promise.withResolvers<void>();
    const ended = new AbortController();
    const server = Deno.serve({
      port: 0,
      hostname: "127.0.0.1",
      signal: ended.signal,
      onListen() {},
    }, () => {
      arrived.resolve();
      return new Promise<Response>(() => {});
    });
    const [owner, caller] = [await open(), await open()];
    const url = `http://127.0.0.1:${server.addr.port}/`;
    await owner.offer({ id: "web::left", invocation: { url } });
    await caller.send({ type: "invokefunction", invocation_id: "1", function_id: "web::left" });
    await arrived.promise;

    await owner[Symbol.asyncDispose]();

    assert.equal(((await caller.receive()).error as JsonObject).code, "invocation_stopped");
    assert.equal((await caller.failure("web::left")).code, "function_not_found");
    ended.abort();
    await server.finished;
  },

  "a function may be replaced by a handler, unregistered, and be a replica": async ({ open }) => {
    await using quotes = service(() => new Response('"url"'));
    const [owner, other, caller] = [await open(), await open(), await open()];
    await owner.offer({ id: "web::both", invocation: { url: quotes.url } });
    await other.offer("web::both");
    for (let n = 0; n < 2; n++) {
      await caller.send({
        type: "invokefunction",
        invocation_id: `${n}`,
        function_id: "web::both",
      });
    }
    await other.run({ result: "handler" });
    const results = [(await caller.receive()).result, (await caller.receive()).result];
    assert.deepEqual(new Set(results), new Set(["url", "handler"]));

    await other.send({ type: "unregisterfunction", id: "web::both" });
    await owner.offer("web::both");
    await other.receivesNothing();
    await caller.send({ type: "invokefunction", invocation_id: "2", function_id: "web::both" });
    await owner.run({ result: "mine" });
    assert.equal((await caller.receive()).result, "mine");
    await owner.send({ type: "unregisterfunction", id: "web::both" });
    await owner.receivesNothing();
    assert.equal((await caller.failure("web::both")).code, "function_not_found");
  },

  "hosts, addresses, headers and variables that are not allowed are rejected": async ({ open }) => {
    const client = await open();
    const url = "http://127.0.0.1:1/";
    const auth = { type: "bearer", token_key: "HOME" };

    const reject = (name: string, invocation: JsonObject) =>
      rejection(client, `refused::${name}`, invocation);
    assert.match(
      await reject("host", { url: "https://other.example.com/" }),
      /add "other\.example\.com"/,
    );
    assert.match(await reject("http", { url: "http://api.example.com/" }), /add "http:\/\/api/);
    assert.match(await reject("metadata", { url: "http://169.254.169.254/" }), /never requested/);
    assert.match(await reject("variable", { url, auth }), /auth_env/);
    assert.match(await reject("header", { url, headers: { host: "a.test" } }), /header host/);
    assert.match(await reject("method", { url, method: "HEAD" }), /method/);
    assert.match(await reject("none", {}), /url/);
  },

  "listings show the origin of the URL, and nothing else of it": async ({ open }) => {
    const [owner, caller] = [await open(), await open()];
    const invocation = {
      url: "http://127.0.0.1:1/hook/secret?key=secret",
      headers: { a: "secret" },
    };
    await owner.offer({ id: "listed::f", invocation, description: "d" });

    const { functions } = await caller.value<{ functions: JsonObject[] }>(
      "engine::functions::list",
      { prefix: "listed::" },
    );
    const info = await caller.value("engine::functions::info", { function_id: "listed::f" });

    assert.equal(functions[0]!.served_by, "http://127.0.0.1:1");
    assert.equal((info as JsonObject).served_by, "http://127.0.0.1:1");
    assert.ok(!JSON.stringify([functions, info]).includes("secret"));
  },

  "a redirect to another host is not followed unless that is allowed": async ({ open }) => {
    await using quotes = service(({ path }) =>
      new Response(null, {
        status: 307,
        headers: { location: path === "/meta" ? "http://169.254.169.254/" : "http://10.0.0.1/" },
      })
    );
    const owner = await open();
    for (const name of ["meta", "private"]) {
      await owner.offer({ id: `web::to_${name}`, invocation: { url: `${quotes.url}/${name}` } });
      assert.equal((await owner.failure(`web::to_${name}`)).code, "http_request_failed");
    }
  },
}, SETTINGS);

proveOnWire("functions served by HTTP, as nothing is configured", {
  "every URL is rejected, and the message says what to add": async ({ open }) => {
    const message = await rejection(await open(), "web::one", { url: "https://api.example.com/" });

    assert.match(message, /add "api\.example\.com" to engine\.http_functions\.allow/);
  },
});
