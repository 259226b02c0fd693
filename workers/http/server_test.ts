/**
 * The port with real sockets, and the middleware in front of all routes.
 *
 * @module
 */
import assert from "node:assert/strict";
import { DRAIN_MS } from "../kit/define.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { until } from "../../tests/fakes/until.ts";
import { fakeHttp, json } from "../../tests/fakes/fake_http.ts";
import { parseHttpConfig } from "./config.ts";
import { FLUSH_MS, HttpListener, makeApp } from "./server.ts";

/** A listener whose responses wait until the test releases them. */
function setup(at = { host: "127.0.0.1", port: 0 }) {
  const clock = new FakeClock();
  const waiting: (() => void)[] = [];
  const heard: string[] = [];
  const listener = new HttpListener(at, clock, {
    fetch: (request) => {
      if (request.url.endsWith("/now")) return new Response("now");
      return new Promise((resolve) => waiting.push(() => resolve(new Response("later"))));
    },
    drain: () => void heard.push("drain"),
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

Deno.test("HttpListener lets running requests finish and takes no new ones", async () => {
  const { listener, waiting, heard } = setup();
  const running = fetch(`${listener.url}/later`);
  await until(() => waiting.length === 1);

  const closed = listener[Symbol.asyncDispose]();
  await assert.rejects(fetch(`${listener.url}/now`));
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

Deno.test("HttpListener gives up on a client that never sends its whole body", async () => {
  const { listener, clock } = setup();
  const { hostname, port } = new URL(listener.url);
  const stuck = await Deno.connect({ hostname, port: Number(port) });
  const head = "POST /now HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nabc";
  await stuck.write(new TextEncoder().encode(head));
  await stuck.read(new Uint8Array(1_000));

  const closed = listener[Symbol.asyncDispose]();
  await until(() => clock.waiting === 2);
  clock.tick(DRAIN_MS + FLUSH_MS);

  await closed;
  let again: HttpListener | undefined;
  await until(() => {
    try {
      again = setup({ host: hostname, port: Number(port) }).listener;
    } catch {
      // The port comes free a turn later.
    }
    return again !== undefined;
  });
  await again![Symbol.asyncDispose]();
  stuck.close();
  await listener.drain();
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
function setupRoutes(config: { auth_token?: string; concurrency_max?: number } = {}) {
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
    ["GET /plain", { headers: { host: "a/b" } }],
  ] as [string, RequestInit][]
) {
  const what = `${line}${init.body === undefined ? "" : ` with ${init.body}`}`;
  Deno.test(`${what} from a page differs only in the headers that CORS adds`, async () => {
    const { fetch } = setupRoutes();

    const plain = await fetch(line, init);
    const page = await fetch(line, { ...init, headers: { ...init.headers, origin: ORIGIN } });

    assert.equal(page.headers.get("access-control-allow-origin"), "*");
    assert.deepEqual(await outcome(page), await outcome(plain));
  });
}

Deno.test("the token and the limit of concurrency hold for pages too", async () => {
  const closed = setupRoutes({ auth_token: "secret" });
  const full = setupRoutes({ concurrency_max: 1 });
  full.running.add(new Request("http://a"));

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
function setupApp(response: Response, cors: { origins?: string[] } = {}) {
  const handled: Request[] = [];
  const config = parseHttpConfig({ cors: { origins: [ORIGIN], methods: ["GET"], ...cors } });
  const fetch = makeApp(config, {
    handle(request) {
      handled.push(request);
      return Promise.resolve(response);
    },
  });
  const send = (method: string, headers: HeadersInit = {}, path = "/f") => {
    const request = new Request(`http://a${path}`, { method, headers });
    return Promise.resolve(fetch(request));
  };
  return { send, handled };
}

for (const method of ["GET", "POST"]) {
  Deno.test(`a ${method} gets the response of the handler itself, not a copy`, async () => {
    const response = new Response("text", { headers: [["x-b", "1"], ["a", "2"]] });
    const { send } = setupApp(response);

    assert.equal(await send(method), response);
    assert.equal(response.headers.get("access-control-allow-origin"), null);
    assert.equal(await send(method, { origin: ORIGIN }), response);
    assert.equal(response.headers.get("access-control-allow-origin"), ORIGIN);
    assert.equal(response.headers.get("vary"), "Origin");
  });
}

Deno.test("an Origin, even an empty one, gets the headers of CORS", async () => {
  for (const origin of [ORIGIN, "null", ""]) {
    const { send } = setupApp(new Response("text"), { origins: ["*"] });

    const { headers } = await send("GET", { origin });

    assert.equal(headers.get("access-control-allow-origin"), "*");
  }
});

Deno.test("the handler gets each request as it came, whatever its path", async () => {
  for (const path of ["/", "", "/a//b/", "/%zz", "/*", "/:id?x=1#y", "/cors"]) {
    for (const headers of [{}, { origin: ORIGIN }]) {
      const { send, handled } = setupApp(new Response());

      await send("GET", headers, path);

      assert.equal(handled.length, 1);
      assert.equal(handled[0]!.url, new Request(`http://a${path}`).url);
    }
  }
});

Deno.test("OPTIONS does not reach the handler", async () => {
  const { send, handled } = setupApp(new Response("response"));

  const given = await send("OPTIONS", {
    origin: "https://b.example",
    "access-control-request-headers": "x-a",
  });

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
  const own = { "access-control-allow-origin": "https://mine.example", vary: "accept" };
  const { send } = setupApp(new Response("response", { headers: own }));

  const given = await send("GET", { origin: ORIGIN });

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
  const { fetch } = fakeHttp();

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
