/**
 * Triggers of type `http`, as their originators see them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { systemClock } from "../../engine/platform/system_clock.ts";
import type { Clock } from "../../engine/ports/clock.ts";
import type { Handler } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { DRAIN_MS } from "../kit/define.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { fakeHttp } from "../../tests/fakes/fake_http.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { until } from "../../tests/fakes/until.ts";
import { http } from "./mod.ts";

Deno.test("Two triggers on one route: the newer serves, and the older when it has left", async () => {
  const { route, fetch, types } = fakeHttp({}, {
    old: () => ({ body: "old" }),
    new: () => ({ body: "new" }),
  });
  route("GET /f", "old");
  const id = route("GET f", "new");

  assert.equal(await (await fetch("GET /f")).json(), "new");
  types.unregisterTrigger({ id, trigger_type: "http" });
  assert.equal(await (await fetch("GET /f")).json(), "old");
});

Deno.test("A trigger whose parameters are named otherwise is refused", () => {
  const { route } = fakeHttp();
  route("GET /u/:id", "f");

  assert.throws(() => route("GET /u/:name", "g"), (error: EngineError) => {
    return error.code === "trigger_registration_failed" &&
      error.message.includes("conflicts with already-registered route");
  });
});

Deno.test("A trigger with unknown keys is taken, and the keys are named in the log", () => {
  const { route, lines } = fakeHttp();

  route("GET /f", "f", { method: "POST" });

  assert.equal(lines[0]!.level, "warn");
  assert.equal(lines[0]!.fields.keys, "method");
});

/** `engine-http` on a real port of a real router, and a worker that serves routes. */
async function onPort(config: JsonObject = {}, clock: Clock = systemClock) {
  const local = new LocalEngine({ clock });
  const end = await local.start(http, { port: 0, ...config });
  const worker = await local.connect("shop");
  const serve = async (route: string, handler: Handler, more: JsonObject = {}) => {
    const [http_method, api_path] = route.split(" ") as [string, string];
    worker.registerFunction(route, handler);
    const trigger = { type: "http", function_id: route };
    worker.registerTrigger({ ...trigger, config: { http_method, api_path, ...more } });
    await local.settle();
  };
  const { url } = local.endpoints[0]!;
  return {
    local,
    worker,
    serve,
    url,
    end,
    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  };
}

/** All that the server answers to raw bytes, until it ends the line or falls silent. */
async function raw(url: string, ...parts: string[]): Promise<string> {
  const { hostname, port } = new URL(url);
  using line = await Deno.connect({ hostname, port: Number(port) });
  for (const part of parts) await line.write(new TextEncoder().encode(part));
  let text = "";
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(65_536);
  while (!text.includes("\r\n\r\n") || !isWhole(text)) {
    const read = await line.read(buffer).catch(() => null);
    if (read === null) break;
    text += decoder.decode(buffer.subarray(0, read), { stream: true });
  }
  return text;
}

function isWhole(text: string): boolean {
  const [head, body] = text.split("\r\n\r\n") as [string, string];
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  return length === undefined || body.length >= Number(length) || head.includes("HEAD");
}

Deno.test("engine-http serves a worker's function on a real port", async () => {
  await using it = await onPort();
  await it.serve("POST /math/:what", (payload) => {
    const { body, path_params, headers } = payload as Record<string, Record<string, Json>>;
    const sum = Number(body!.a) + Number(body!.b);
    return {
      status_code: 201,
      headers: { "X-What": path_params!.what!, "X-Agent": headers!["x-agent"]! },
      body: { c: sum },
    };
  });

  const response = await fetch(`${it.url}/math/add?x=1`, {
    method: "POST",
    body: '{"a":100,"b":200}',
    headers: { "content-type": "application/json", "x-agent": "curl" },
  });

  assert.equal(response.status, 201);
  assert.equal(response.headers.get("x-what"), "add");
  assert.equal(response.headers.get("x-agent"), "curl");
  assert.deepEqual(await response.json(), { c: 300 });
  assert.deepEqual(it.local.endpoints, [{ name: "http", url: it.url }]);
});

Deno.test("HEAD on a real port has the length of the body and not the body", async () => {
  await using it = await onPort();
  await it.serve("GET /f", () => ({ body: "héllo", headers: { "content-type": "text/plain" } }));

  const text = await raw(
    it.url,
    "HEAD /f HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
  );

  assert.match(text, /^HTTP\/1\.1 200/);
  assert.match(text, /content-length: 6\r\n/i);
  assert.ok(text.endsWith("\r\n\r\n"));
});

Deno.test("A body over the limit on a real port is answered with 413, however it is sent", async () => {
  await using it = await onPort({ body_bytes_max: 1_000, streamed_body_bytes_max: 1_000 });
  let ran = 0;
  await it.serve("POST /f", () => (ran++, {}));
  const type = "content-type: application/json\r\n";
  const head = `POST /f HTTP/1.1\r\nhost: localhost\r\n${type}`;

  const declared = await raw(it.url, `${head}content-length: 1001\r\n\r\n{`);
  const chunk = `400\r\n${"x".repeat(1_024)}\r\n`;
  const chunked = await raw(it.url, `${head}transfer-encoding: chunked\r\n\r\n`, chunk);
  const large = await fetch(`${it.url}/f`, { method: "POST", body: "x".repeat(100_000) });

  assert.match(declared, /^HTTP\/1\.1 413/);
  assert.match(chunked, /^HTTP\/1\.1 413/);
  assert.equal(large.status, 413);
  assert.equal((await large.json()).error.code, "body_too_large");
  assert.equal(ran, 0);
});

Deno.test("A Host header on a real port cannot choose the route", async () => {
  await using it = await onPort();
  await it.serve("GET /hidden/f", () => ({}));

  const statuses = [];
  for (const host of ["localhost/hidden", "localhost?", "localhost#", "localhost"]) {
    const path = host === "localhost/hidden" ? "/f" : "/hidden/f";
    const answer = await raw(it.url, `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
    statuses.push(answer.slice(9, 12));
  }

  assert.deepEqual(statuses, ["400", "400", "400", "200"]);
});

Deno.test("JSON bodies on a real port: whole, empty, broken, and broken off", async () => {
  await using it = await onPort();
  const bodies: Json[] = [];
  await it.serve("POST /f", (payload) => {
    bodies.push((payload as JsonObject).body!);
    return {};
  });
  const head = "POST /f HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

  const statuses = [];
  for (
    const rest of [
      'content-length: 10\r\n\r\n{"a":"é"}',
      "content-length: 0\r\n\r\n",
      "\r\n",
      "content-length: 2\r\n\r\n{'",
      "content-length: 1\r\n\r\n ",
      'transfer-encoding: chunked\r\n\r\n2\r\n{"\r\n0\r\n\r\n',
    ]
  ) {
    const answer = await raw(it.url, head + rest);
    statuses.push(answer.slice(9, 12));
  }
  const { hostname, port } = new URL(it.url);
  const line = await Deno.connect({ hostname, port: Number(port) });
  await line.write(new TextEncoder().encode(`${head}content-length: 9\r\n\r\n{"a"`));
  line.close();

  assert.deepEqual(statuses, ["200", "200", "200", "400", "400", "400"]);
  assert.deepEqual(bodies, [{ a: "é" }, null, null]);
  assert.deepEqual(it.local.lines.filter(({ level }) => level === "warn"), []);
});

Deno.test("A client that goes away on a real port aborts the handler", async () => {
  await using it = await onPort();
  const aborted = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  await it.serve("GET /f", (_payload, _metadata, { signal }) => {
    started.resolve();
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        aborted.resolve();
        resolve({});
      });
    });
  });
  const client = new AbortController();
  const request = fetch(`${it.url}/f`, { signal: client.signal }).catch(() => "gone");
  await started.promise;

  client.abort();

  assert.equal(await request, "gone");
  await aborted.promise;
});

Deno.test("a timeout on a real port is answered with 504, and the handler is cancelled", async () => {
  await using it = await onPort({ timeout_ms: 50 });
  let given: number | undefined;
  const aborted = Promise.withResolvers<void>();
  await it.serve("GET /f", (_payload, _metadata, { signal, timeout_ms }) => {
    given = timeout_ms;
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        aborted.resolve();
        resolve({});
      });
    });
  });

  const response = await fetch(`${it.url}/f`);

  assert.equal(response.status, 504);
  assert.equal(await response.text(), "");
  assert.ok(given! <= 50, `the handler was given ${given} ms`);
  await aborted.promise;
});

Deno.test("a function without a worker is answered with 503", async () => {
  await using it = await onPort();
  const config = { api_path: "/f" };
  it.worker.registerTrigger({ type: "http", function_id: "not::there", config });
  await it.local.settle();

  const response = await fetch(`${it.url}/f`);

  assert.equal(response.status, 503);
  const { error } = await response.json();
  assert.equal(error.code, "function_not_found");
  assert.equal(error.message, "Function not::there not found");
});

Deno.test("A handler's own error code, stack and details stay where they belong", async () => {
  await using it = await onPort();
  await it.serve("GET /f", () => {
    throw new EngineError("out_of_stock", "Only 2 left", { details: { left: 2 } });
  });

  const response = await fetch(`${it.url}/f`);

  const text = await response.text();
  assert.equal(response.status, 500);
  assert.equal(JSON.parse(text).error.message, "Only 2 left");
  assert.ok(!text.includes("mod_test"), text);
  assert.match(String(it.local.lines[0]!.fields.stacktrace), /mod_test/);
});

Deno.test("A handler's cookies, bytes and error status reach the client of a real port", async () => {
  await using it = await onPort();
  const cookies = ["a=1; Path=/", "b=2"];
  const png = new Uint8Array([0, 255, 13, 10]);
  await it.serve("GET /png", () => {
    const headers = { "set-cookie": cookies, "content-type": "image/png" };
    return { body_base64: png.toBase64(), headers };
  });
  await it.serve("GET /plain", () => "hello");
  await it.serve("GET /gone", () => {
    const details = { status_code: 410, headers: { "x-since": "2026" } };
    throw new EngineError("gone", "No longer here", { details });
  });

  const image = await fetch(`${it.url}/png`);
  const plain = await fetch(`${it.url}/plain`);
  const gone = await fetch(`${it.url}/gone`);

  assert.deepEqual(new Uint8Array(await image.arrayBuffer()), png);
  assert.deepEqual(image.headers.getSetCookie(), cookies);
  assert.equal(await plain.text(), "hello");
  assert.deepEqual([gone.status, gone.headers.get("x-since")], [410, "2026"]);
  assert.equal((await gone.json()).error.code, "gone");
});

Deno.test("A route survives the replica that registered it last", async () => {
  await using it = await onPort();
  await it.serve("GET /f", () => ({ body: "first" }));
  const second = await it.local.connect("shop");
  second.registerFunction("GET /f", () => ({ body: "second" }));
  const config = { http_method: "GET", api_path: "/f" };
  second.registerTrigger({ type: "http", function_id: "GET /f", config });
  await it.local.settle();

  await second.shutdown();
  await it.local.settle();

  assert.equal(await (await fetch(`${it.url}/f`)).json(), "first");
});

Deno.test("A worker hears what is wrong with its trigger", async () => {
  await using it = await onPort();
  const errors: string[] = [];
  const worker = await it.local.connect("other", {
    onError: ({ message }) => errors.push(message),
  });
  await it.serve("GET /u/:id", () => ({}));

  worker.registerTrigger({ type: "http", function_id: "f", config: { http_method: "PSOT" } });
  worker.registerTrigger({ type: "http", function_id: "f", config: { api_path: "/u/:name" } });
  await it.local.settle();

  assert.equal(errors.length, 2);
  assert.match(errors[0]!, /config\.api_path: expected string.*config\.http_method: expected one/);
  assert.match(errors[1]!, /conflicts with already-registered route GET \/u\/:id/);
});

Deno.test("Many routes join and leave with the worker that serves them", async () => {
  await using it = await onPort();
  const many = await it.local.connect("many");
  many.registerFunction("many::f", (payload) => ({ body: (payload as JsonObject).path! }));
  for (let i = 0; i < 1_000; i++) {
    const config = { api_path: `/many/${i}/:x` };
    many.registerTrigger({ type: "http", function_id: "many::f", config });
  }
  await it.local.settle();

  assert.equal(await (await fetch(`${it.url}/many/999/a`)).json(), "/many/999/:x");
  await many.shutdown();
  await it.local.settle();
  const gone = await fetch(`${it.url}/many/999/a`);
  assert.equal(gone.status, 404);
  await gone.body?.cancel();
});

Deno.test("engine-http ends while a request waits for a handler that returned nothing", async () => {
  const clock = new FakeClock();
  await using it = await onPort({}, clock);
  const ran = Promise.withResolvers<void>();
  await it.serve("GET /f", () => ran.resolve());
  const waiting = fetch(`${it.url}/f`);
  await ran.promise;
  await it.local.settle();

  const ended = it.end();
  let response: Response | undefined;
  waiting.then((given) => response = given);
  await until(() => {
    clock.tick(DRAIN_MS / 10);
    return response !== undefined;
  });

  assert.equal(response!.status, 503);
  assert.equal((await response!.json()).error.code, "invocation_stopped");
  await ended;
  await assert.rejects(fetch(`${it.url}/f`));
});

Deno.test("A trigger that takes over a route is named in the log with the one before", () => {
  const { route, lines, types } = fakeHttp();
  route("GET /f", "old");
  route("POST /f", "other");
  assert.deepEqual(lines, []);

  const id = route("GET f", "new");
  types.unregisterTrigger({ id, trigger_type: "http" });

  assert.deepEqual(lines, [{
    level: "warn",
    text:
      "a trigger takes over a route; the previous trigger serves it again when this one is gone",
    fields: { method: "GET", path: "/f", before: "old", now: "new" },
  }]);
});

Deno.test("An equal trigger of a replica takes nothing over, a different one does", async () => {
  await using local = new LocalEngine({ clock: systemClock });
  await local.start(http, { port: 0 });
  const register = async (api_path: string): Promise<void> => {
    const worker = await local.connect("shop");
    worker.registerTrigger({
      type: "http",
      function_id: "shop::list",
      config: { http_method: "GET", api_path },
    });
    await local.settle();
  };

  await register("/f");
  await register("/f");
  assert.deepEqual(local.lines, []);
  await register("f");

  assert.deepEqual(local.lines.map(({ level }) => level), ["warn"]);
});
