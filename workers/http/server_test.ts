/**
 * The port with real sockets, and the middleware in front of all routes.
 *
 * @module
 */
import assert from "node:assert/strict";
import { DRAIN_MS } from "../kit/define.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { until } from "../../tests/fakes/until.ts";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import {
  fakeHttp,
  json,
  type LogLine,
  recordingLog,
  responseOf,
  servedRequest,
} from "../../tests/fakes/fake_http.ts";
import type { ServedRequest, ServedResponse } from "../kit/http/response.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { parseHttpConfig } from "./config.ts";
import { HttpListener, makeApp } from "./server.ts";

/** A listener whose responses wait until the test releases them. */
function setup(at = { host: "127.0.0.1", port: 0 }) {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const running = new Set<object>();
  let whenEmpty = (): void => {};
  const waiting: (() => void)[] = [];
  const heard: string[] = [];
  const respond = (body: string) => ({ status: 200, headers: [], body });
  const log = recordingLog(lines);
  const options = { ...at, clock, log, memory: UNLIMITED_MEMORY, socketsMax: 100 };
  const listener = new HttpListener(options, {
    fetch: (request) => {
      if (heard.includes("drain")) return { ...respond("draining"), status: 503 };
      if (request.target.endsWith("/now")) return respond("now");
      running.add(request);
      return new Promise((resolve) =>
        waiting.push(() => {
          resolve(respond("later"));
          running.delete(request);
          if (running.size === 0) whenEmpty();
        })
      );
    },
    drain: () => {
      heard.push("drain");
      if (running.size === 0) return Promise.resolve();
      return new Promise((resolve) => whenEmpty = resolve);
    },
    stop: () => {
      heard.push("stop");
      waiting.forEach((finish) => finish());
    },
  });
  return { clock, waiting, heard, listener };
}

Deno.test("HttpListener says on which port it is", async () => {
  const { listener } = setup();

  const response = await fetch(`${listener.url}/now`);

  assert.match(listener.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.equal(await response.text(), "now");
  await listener[Symbol.asyncDispose]();
});

Deno.test("HttpListener puts an IPv6 address in brackets", async () => {
  const { listener } = setup({ host: "::1", port: 0 });

  assert.match(listener.url, /^http:\/\/\[::1\]:\d+$/);
  assert.equal(await (await fetch(`${listener.url}/now`)).text(), "now");
  await listener[Symbol.asyncDispose]();
});

Deno.test("HttpListener says that a port is taken and what to do", async () => {
  const { listener } = setup();
  const port = Number(new URL(listener.url).port);

  assert.throws(() => setup({ host: "127.0.0.1", port }), {
    code: "address_in_use",
    message: `Port ${port} is taken; stop the other program or set port of engine-http`,
    details: { host: "127.0.0.1", port },
  });
  await listener[Symbol.asyncDispose]();
});

Deno.test("HttpListener says that an address is not this machine's", () => {
  assert.throws(() => setup({ host: "203.0.113.7", port: 0 }), { code: "address_not_available" });
});

Deno.test("HttpListener closes at once when only idle clients are left", async () => {
  const { listener, clock } = setup();
  const { hostname, port } = new URL(listener.url);
  const idle = await Deno.connect({ hostname, port: Number(port) });
  await idle.write(new TextEncoder().encode("GET /now HTTP/1.1\r\nhost: a\r\n\r\n"));
  await idle.read(new Uint8Array(1_000));

  await listener[Symbol.asyncDispose]();

  assert.equal(clock.waiting, 0);
  idle.close();
  await assert.rejects(Deno.connect({ hostname, port: Number(port) }));
});

Deno.test("HttpListener lets running requests finish and refuses new ones with 503", async () => {
  const { listener, waiting, heard } = setup();
  const running = fetch(`${listener.url}/later`);
  await until(() => waiting.length === 1);

  const closed = listener[Symbol.asyncDispose]();
  const refused = await fetch(`${listener.url}/now`);
  assert.equal(refused.status, 503);
  assert.equal(await refused.text(), "draining");
  waiting[0]!();

  assert.equal(await (await running).text(), "later");
  await closed;
  assert.deepEqual(heard, ["drain", "stop"]);
});

Deno.test("HttpListener ends requests that outlive the drain", async () => {
  const { listener, waiting, heard, clock } = setup();
  const running = fetch(`${listener.url}/later`);
  await until(() => waiting.length === 1);

  const closed = listener[Symbol.asyncDispose]();
  clock.tick(DRAIN_MS - 1);
  assert.deepEqual(heard, ["drain"]);
  clock.tick(1);

  assert.equal(await (await running).text(), "later");
  await closed;
  assert.deepEqual(heard, ["drain", "stop", "stop"]);
});

Deno.test("HttpListener does not wait for a client that stops in the middle of its head", async () => {
  const { listener } = setup();
  const { hostname, port } = new URL(listener.url);
  const stuck = await Deno.connect({ hostname, port: Number(port) });
  await stuck.write(new TextEncoder().encode("GET /now HTTP/1.1\r\nhost:"));
  await fetch(`${listener.url}/now`).then((response) => response.text());

  await listener[Symbol.asyncDispose]();

  stuck.close();
});

Deno.test("HttpListener does not wait for a client that never sends its whole body", async () => {
  const { listener } = setup();
  const { hostname, port } = new URL(listener.url);
  const stuck = await Deno.connect({ hostname, port: Number(port) });
  const head = "POST /now HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nabc";
  await stuck.write(new TextEncoder().encode(head));
  await stuck.read(new Uint8Array(1_000));

  await listener[Symbol.asyncDispose]();

  await assert.rejects(Deno.connect({ hostname, port: Number(port) }));
  stuck.close();
});

Deno.test("HttpListener drains and closes once, however often it is asked", async () => {
  const { listener, heard } = setup();

  void listener.drain();
  void listener.drain();
  await Promise.all([listener[Symbol.asyncDispose](), listener[Symbol.asyncDispose]()]);

  assert.ok(heard.includes("drain"));
});

const ORIGIN = "https://a.example";
const CORS_HEADERS = ["access-control-allow-origin", "vary"];

/** Routes that respond in many ways. */
function setupRoutes(config: JsonObject = {}) {
  const it = fakeHttp(config, {
    plain: ({ payload }) => ({ body: payload }),
    rich: () => ({ headers: ["x-a: 1", "set-cookie: a=1", "set-cookie: b=2"], status_code: 201 }),
    text: () => ({ headers: { "content-type": "text/plain" }, body: "héllo" }),
    none: () => ({ status_code: 204 }),
    fail: () => {
      throw new Error("no");
    },
  });
  for (const path of ["plain", "rich", "text", "none", "fail"]) it.route(`GET /${path}`, path);
  it.route("POST /plain/:id", "plain");
  it.traces.configure({
    enabled: true,
    ratio: 1,
    rules: [],
    memory_bytes: 1024 * 1024,
    payload_chars: 100,
  });
  return it;
}

/** The parts of a response that do not depend on the origin; ids differ each time. */
async function outcome(response: Response) {
  const headers = [...response.headers].filter(([name]) => !CORS_HEADERS.includes(name))
    .map(([name, value]) => [name, name === "traceparent" ? "" : value]);
  const text = (await response.text()).replace(/"error_id":"[^"]+"/, "")
    .replace(/,?"origin":"[^"]+"/, "");
  return { status: response.status, headers, text };
}

for (
  const [line, init] of [
    ["GET /plain?a=1", {}],
    ["POST /plain/7", json('{"qty":3}')],
    ["POST /plain/7", json("{'")],
    ["POST /plain/7", { body: "text" }],
    ["GET /rich", {}],
    ["GET /text", {}],
    ["HEAD /text", {}],
    ["HEAD /rich", {}],
    ["GET /none", {}],
    ["HEAD /none", {}],
    ["GET /fail", {}],
    ["GET /nowhere", {}],
    ["HEAD /nowhere", {}],
    ["DELETE /plain", {}],
    ["TRACES /plain", {}],
  ] as [string, RequestInit][]
) {
  const what = `${line}${init.body === undefined ? "" : ` with ${init.body}`}`;
  Deno.test(`${what} from a page differs only in the headers that CORS adds`, async () => {
    const { fetch } = setupRoutes({ cors: { origins: ["*"] } });

    const plain = await fetch(line, init);
    const page = await fetch(line, { ...init, headers: { ...init.headers, origin: ORIGIN } });

    assert.equal(page.headers.get("access-control-allow-origin"), "*");
    assert.deepEqual(await outcome(page), await outcome(plain));
  });
}

Deno.test("the token and the limit of concurrency hold for pages too", async () => {
  const closed = setupRoutes({ auth_token: "secret" });
  const full = setupRoutes({ concurrency_max: 1 });
  full.running.add(servedRequest(new Request("http://a")));

  for (const { fetch } of [closed, full]) {
    const plain = await fetch("GET /plain");
    const page = await fetch("GET /plain", { headers: { origin: ORIGIN } });

    assert.ok(plain.status === 401 || plain.status === 429, `${plain.status}`);
    assert.deepEqual(await outcome(page), await outcome(plain));
  }
});

Deno.test("a handler gets the same request from a page and from any other client", async () => {
  const { fetch, calls } = setupRoutes();

  await fetch("POST /plain/7?a=1", json('{"qty":3}'));
  const { headers } = json("") as { headers: Record<string, string> };
  await fetch("POST /plain/7?a=1", { body: '{"qty":3}', headers: { ...headers, origin: ORIGIN } });

  const [plain, page] = calls.map(({ payload }) => structuredClone(payload)) as [
    { headers: Record<string, string> },
    { headers: Record<string, string> },
  ];
  assert.equal(page.headers.origin, ORIGIN);
  delete page.headers.origin;
  assert.deepEqual(page, plain);
});

/** The app in front of a handler that always gives `response`; `handled` is what reached it. */
function setupApp(response: ServedResponse, cors: { origins?: string[] } = {}) {
  const handled: ServedRequest[] = [];
  const config = parseHttpConfig({ cors: { origins: [ORIGIN], methods: ["GET"], ...cors } });
  const refused: string[] = [];
  const fetch = makeApp(config, {
    handle(request) {
      handled.push(request);
      return Promise.resolve(response);
    },
  }, (origin) => refused.push(origin));
  const send = (method: string, headers: HeadersInit = {}, path = "/f") => {
    const request = new Request(`http://a${path}`, { method, headers });
    return Promise.resolve(fetch(servedRequest(request)));
  };
  return { send, handled, refused };
}

const RESPONSE: ServedResponse = { status: 200, headers: [["x-b", "1"]], body: "text" };

for (const method of ["GET", "POST", "HEAD"]) {
  Deno.test(`a ${method} gets the response of the handler, and a page's the headers of CORS`, async () => {
    const { send } = setupApp(RESPONSE);

    assert.equal(await send(method), RESPONSE);
    assert.deepEqual(await send(method, { origin: ORIGIN }), {
      ...RESPONSE,
      headers: [["x-b", "1"], ["access-control-allow-origin", ORIGIN], ["vary", "Origin"]],
    });
  });
}

Deno.test("an Origin, even an empty one, gets the headers of CORS", async () => {
  for (const origin of [ORIGIN, "null", ""]) {
    const { send } = setupApp(RESPONSE, { origins: ["*"] });

    const { headers } = responseOf(await send("GET", { origin }), "GET");

    assert.equal(headers.get("access-control-allow-origin"), "*");
  }
});

/** What a page of an origin may read of an engine that is reached by a `Host`. */
const MATRIX: readonly [origin: string, host: string, isAllowed: boolean][] = [
  ["http://localhost:5173", "localhost:3111", true],
  ["http://127.0.0.1:8000", "localhost:3111", true],
  ["http://[::1]:8000", "127.0.0.1:3111", true],
  ["https://localhost", "10.0.0.5:3111", true],
  ["http://10.0.0.5:8080", "10.0.0.5:3111", true],
  ["http://10.0.0.6:8080", "10.0.0.5:3111", false],
  ["https://shop.example", "localhost:3111", false],
  ["http://localhost.shop.example", "localhost:3111", false],
  ["http://127.0.0.1.shop.example", "127.0.0.1:3111", false],
  ["null", "localhost:3111", false],
  ["file://localhost/x", "localhost:3111", false],
  ["chrome-extension://abcdef", "localhost:3111", false],
  ["", "localhost:3111", false],
];

for (const [origin, host, isAllowed] of MATRIX) {
  Deno.test(`a page of ${origin || "no origin"} ${isAllowed ? "may" : "may not"} read ${host}`, async () => {
    const { send } = setupApp(RESPONSE, { origins: [] });

    for (const method of ["GET", "OPTIONS"]) {
      const { headers } = responseOf(await send(method, { origin, host }), method);

      assert.equal(headers.get("access-control-allow-origin"), isAllowed ? origin : null);
    }
  });
}

for (
  const [host, allowed_hosts, status] of [
    ["localhost:3111", [], 200],
    ["LOCALHOST.:3111", [], 200],
    ["app.localhost", [], 200],
    ["192.168.1.7:3111", [], 200],
    ["[fe80::1]:3111", [], 200],
    ["rebound.example", [], 403],
    ["rebound.example:3111", [], 403],
    ["localhost.rebound.example", [], 403],
    ["127.0.0.1.rebound.example", [], 403],
    ["user@localhost", [], 403],
    ["", [], 403],
    ["api.example:80", ["api.example"], 200],
    ["API.example", ["api.example"], 200],
    ["a.api.example", ["api.example"], 403],
    ["a.api.example", ["*.api.example"], 200],
    ["api.example", ["*.api.example"], 403],
    ["any.thing", ["*"], 200],
  ] as const
) {
  const where = allowed_hosts.length > 0 ? ` with allowed_hosts ${allowed_hosts}` : "";
  Deno.test(`a request for ${host || "an empty host"} gets ${status}${where}`, async () => {
    const { route, fetch, calls } = fakeHttp({ allowed_hosts: [...allowed_hosts] }, {
      f: () => ({}),
    });
    route("GET /f", "f");

    const response = await fetch("GET /f", { headers: { host } });

    assert.equal(response.status, status);
    assert.equal(calls.length, status === 200 ? 1 : 0);
    if (status === 200) return;
    const { error } = await response.json();
    assert.equal(error.code, "FORBIDDEN");
    assert.match(error.message, /add ".*" to allowed_hosts of engine-http/);
  });
}

Deno.test("the handler gets each request as it came, whatever its path", async () => {
  for (const path of ["/", "/a//b/", "/%zz", "/*", "/:id?x=1", "/cors"]) {
    for (const headers of [{}, { origin: ORIGIN }]) {
      const { send, handled } = setupApp(RESPONSE);

      await send("GET", headers, path);

      assert.deepEqual(handled.map(({ target }) => target), [path]);
    }
  }
});

Deno.test("OPTIONS does not reach the handler", async () => {
  const { send, handled } = setupApp({ ...RESPONSE, body: "response" });

  const sent = await send("OPTIONS", {
    origin: "https://b.example",
    "access-control-request-headers": "x-a",
  });
  const given = responseOf(sent, "OPTIONS");

  assert.equal(given.status, 200);
  assert.equal(await given.text(), "");
  assert.deepEqual([...given.headers], [
    ["access-control-allow-headers", "x-a"],
    ["access-control-allow-methods", "GET"],
    ["access-control-max-age", "600"],
    ["vary", "Origin, Access-Control-Request-Headers"],
  ]);
  assert.deepEqual(handled, []);
});

Deno.test("CORS keeps the headers that the handler set about origins", async () => {
  const { send } = setupApp({
    status: 200,
    headers: [["access-control-allow-origin", "https://mine.example"], ["vary", "accept"]],
    body: "response",
  });

  const given = responseOf(await send("GET", { origin: ORIGIN }), "GET");

  assert.equal(given.headers.get("access-control-allow-origin"), "https://mine.example");
  assert.equal(given.headers.get("vary"), "accept, Origin");
  assert.equal(await given.text(), "response");
});

for (
  const [origins, name, value] of [
    [["*"], "access-control-allow-origin", "*"],
    [[ORIGIN], "vary", "Origin"],
  ] as const
) {
  Deno.test(`a cacheable response to no page says ${name}: ${value}`, async () => {
    const functions = { f: () => ({ headers: { "cache-control": "max-age=60" } }), g: () => ({}) };
    const { route, fetch } = fakeHttp({ cors: { origins: [...origins] } }, functions);
    route("GET /f", "f");
    route("GET /g", "g");

    assert.equal((await fetch("GET /f")).headers.get(name), value);
    assert.equal((await fetch("GET /g")).headers.get(name), null);
  });
}

Deno.test("OPTIONS is answered for every path with what pages may send", async () => {
  const { fetch } = fakeHttp({ cors: { origins: ["*"] } });

  const response = await fetch("OPTIONS /any/path", {
    headers: { origin: "https://a.example", "access-control-request-headers": "x-a, x-b" },
  });

  assert.equal(response.status, 200);
  assert.equal(await response.text(), "");
  assert.equal(response.headers.get("access-control-allow-origin"), "*");
  assert.match(response.headers.get("access-control-allow-methods")!, /POST.*OPTIONS/);
  assert.equal(response.headers.get("access-control-allow-headers"), "x-a,x-b");
});

Deno.test("Only configured origins are allowed when there are some", async () => {
  const cors = { origins: ["https://a.example"], methods: ["get"] };
  const { route, fetch } = fakeHttp({ cors }, { f: () => ({}) });
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

for (
  const [origin, cors, status] of [
    ["https://other.example", {}, 403],
    ["null", {}, 403],
    ["http://localhost:8080", {}, 200],
    ["https://shop.example", { origins: ["https://shop.example"] }, 200],
    ["https://other.example", { origins: ["https://shop.example"] }, 403],
    ["https://other.example", { origins: ["*"] }, 200],
  ] as [string, Json, number][]
) {
  Deno.test(`a form of a page of ${origin} with ${JSON.stringify(cors)} gets ${status}`, async () => {
    const { fetch, calls } = setupRoutes({ cors });

    for (const type of ["application/x-www-form-urlencoded", "text/plain"]) {
      const response = await fetch("POST /plain/7", {
        body: "a=1",
        headers: { "content-type": type, origin },
      });
      assert.equal(response.status, status);
      if (status === 403) assert.equal((await response.json()).error.code, "FORBIDDEN");
    }
    assert.equal(calls.length, status === 200 ? 2 : 0);
  });
}

Deno.test("A handler's own CORS header is not doubled", async () => {
  const headers = { "access-control-allow-origin": "https://mine.example" };
  const { route, fetch } = fakeHttp({}, { f: () => ({ headers }) });
  route("GET /f", "f");

  const response = await fetch("GET /f");

  assert.equal(response.headers.get("access-control-allow-origin"), "https://mine.example");
});

Deno.test("A handler's own vary does not hide that the answer depends on the origin", async () => {
  const cors = { origins: ["https://a.example"] };
  const { route, fetch } = fakeHttp({ cors }, { f: () => ({ headers: { vary: "accept" } }) });
  route("GET /f", "f");

  const response = await fetch("GET /f", { headers: { origin: "https://a.example" } });

  assert.equal(response.headers.get("vary"), "accept, Origin");
});

Deno.test("A token is asked for where one is configured, in the header or the query", async () => {
  const { route, fetch } = fakeHttp({ auth_token: "s3cret" }, { f: () => ({}) });
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

for (
  const [what, method, headers] of [
    ["request", "GET", {}],
    ["preflight request", "OPTIONS", { "access-control-request-method": "PUT" }],
    ["form", "POST", { "content-type": "text/plain" }],
  ] as const
) {
  Deno.test(`a ${what} of a page whose origin is not listed is reported`, async () => {
    const { send, refused } = setupApp(RESPONSE);

    for (const origin of [ORIGIN, "http://localhost:5173", "http://127.0.0.1"]) {
      await send(method, { ...headers, origin, host: "127.0.0.1" });
    }
    assert.deepEqual(refused, []);
    await send(method, { ...headers, origin: "https://elsewhere.example", host: "127.0.0.1" });

    assert.deepEqual([...new Set(refused)], ["https://elsewhere.example"]);
  });
}
