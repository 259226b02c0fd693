/**
 * Two ways in with one outcome: through the middleware for web pages, and past it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fakeHttp, json } from "../../tests/fakes/fake_http.ts";
import { importsOf, readSources } from "../../tests/fakes/source_tree.ts";
import { Cors } from "./cors.ts";
import { Entrance } from "./entrance.ts";
import { makePageApp } from "./page_app.ts";

const ORIGIN = "https://a.example";
const CORS_HEADERS = ["access-control-allow-origin", "vary"];

/** Routes that answer in many ways. */
function setup(config: { auth_token?: string; concurrency_max?: number } = {}) {
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

/** All of an answer that is the same for everybody; ids are not. */
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
  Deno.test(`A page's ${what} differs from anybody's only in what CORS adds`, async () => {
    const { fetch } = setup();

    const plain = await fetch(line, init);
    const page = await fetch(line, { ...init, headers: { ...init.headers, origin: ORIGIN } });

    assert.equal(page.headers.get("access-control-allow-origin"), "*");
    assert.deepEqual(await outcome(page), await outcome(plain));
  });
}

Deno.test("A page needs the token and finds the engine full like anybody", async () => {
  const closed = setup({ auth_token: "secret" });
  const full = setup({ concurrency_max: 1 });
  full.running.enter(new Request("http://a"));

  for (const { fetch } of [closed, full]) {
    const plain = await fetch("GET /plain");
    const page = await fetch("GET /plain", { headers: { origin: ORIGIN } });

    assert.ok(plain.status === 401 || plain.status === 429, `${plain.status}`);
    assert.deepEqual(await outcome(page), await outcome(plain));
  }
});

Deno.test("A handler sees one and the same request whichever way it came", async () => {
  const { fetch, calls } = setup();

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

/** An entrance that counts what goes through its middleware. */
function counted() {
  let loads = 0;
  const passed: string[] = [];
  const cors = new Cors({ origins: ["*"], methods: ["GET"] });
  const answer = () => Promise.resolve(new Response("answer"));
  const entrance = new Entrance(cors, answer, (...parts) => {
    loads++;
    const app = makePageApp(...parts);
    return Promise.resolve((request, headers) => {
      passed.push(request.method);
      return app(request, headers);
    });
  });
  const send = (method: string, headers: HeadersInit = {}): Promise<Response> =>
    entrance.fetch(new Request("http://localhost/f", { method, headers }));
  return { send, passed, loads: () => loads };
}

Deno.test("A request without an Origin enters no middleware and loads none", async () => {
  const { send, passed, loads } = counted();

  for (const method of ["GET", "HEAD", "POST", "DELETE", "PROPFIND"]) {
    const response = await send(method, { host: "localhost", referer: ORIGIN });
    assert.equal(response.headers.get("access-control-allow-origin"), null);
  }

  assert.deepEqual(passed, []);
  assert.equal(loads(), 0);
});

Deno.test("An Origin, even an empty one, and any OPTIONS enter the middleware", async () => {
  const { send, passed } = counted();

  for (const origin of [ORIGIN, "null", ""]) {
    const { headers } = await send("GET", { origin });
    assert.equal(headers.get("access-control-allow-origin"), "*");
  }
  const plain = await send("OPTIONS");

  assert.equal(plain.headers.get("access-control-allow-methods"), "GET");
  assert.equal(await plain.text(), "");
  assert.deepEqual(passed, ["GET", "GET", "GET", "OPTIONS"]);
});

Deno.test("The middleware is loaded once, however many pages come at the same time", async () => {
  const { send, passed, loads } = counted();

  await Promise.all(Array.from({ length: 50 }, () => send("GET", { origin: ORIGIN })));
  await send("OPTIONS");

  assert.equal(loads(), 1);
  assert.equal(passed.length, 51);
});

Deno.test("Only the page app imports the framework, and only the entrance imports it, lazily", async () => {
  const own = (await readSources()).filter(({ path }) =>
    path.startsWith("workers/http/") && !path.endsWith("_test.ts")
  );
  const importing = (specifier: string) =>
    own.filter((file) => importsOf(file).some((found) => found.specifier === specifier));

  assert.deepEqual(importing("hono").map(({ path }) => path), ["workers/http/page_app.ts"]);
  for (const { path, text } of importing("./page_app.ts")) {
    assert.equal(path, "workers/http/entrance.ts");
    const evaluated = /^import (?!type)[^;]*"\.\/page_app\.ts"/m;
    assert.ok(!evaluated.test(text), "entrance.ts evaluates page_app.ts at once");
  }
});
