/**
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { HttpProxy, type PageHttpRequest, REQUEST_MS, RESPONSE_BYTES_MAX } from "./http_proxy.ts";

/** A proxy to a server that a test writes. */
function setup(answer: (request: Request) => Response | Promise<Response>) {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, answer);
  const clock = new FakeClock();
  const url = `http://127.0.0.1:${server.addr.port}`;
  const proxy = new HttpProxy(clock, () => Promise.resolve(url));
  const send = (change: Partial<PageHttpRequest> = {}, signal = new AbortController().signal) =>
    proxy.send({ type: "http", id: 1, method: "GET", path: "/", headers: {}, ...change }, signal);
  return {
    clock,
    url,
    send,
    async [Symbol.asyncDispose]() {
      proxy[Symbol.dispose]();
      await server.shutdown();
    },
  };
}

Deno.test("HttpProxy forwards a request unchanged, and returns the whole response", async () => {
  const seen: unknown[] = [];
  await using it = setup(async (request) => {
    const { pathname, search } = new URL(request.url);
    seen.push(request.method, pathname + search, request.headers.get("x-a"), await request.text());
    const headers = { "x-b": "c", traceparent: request.headers.get("traceparent")! };
    return new Response("größer", { status: 418, headers });
  });

  const answer = await it.send({
    method: "POST",
    path: "/orders/4%2F2?a=b&a=c",
    headers: { "X-A": "1", "Host": "evil.example", "Connection": "close" },
    body: '{"a":1}',
  });

  assert.deepEqual(seen, ["POST", "/orders/4%2F2?a=b&a=c", "1", '{"a":1}']);
  assert.deepEqual([answer.status, answer.body, answer.binary], [418, "größer", false]);
  assert.ok(answer.headers.some(([name, value]) => name === "x-b" && value === "c"));
  assert.match(answer.trace_id!, /^[0-9a-f]{32}$/);
});

Deno.test("HttpProxy keeps a traceparent that the page gave", async () => {
  await using it = setup((request) => new Response(request.headers.get("traceparent")));
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-00`;

  const answer = await it.send({ headers: { traceparent } });

  assert.deepEqual([answer.body, answer.trace_id], [traceparent, null]);
});

Deno.test("HttpProxy returns a binary body as base64", async () => {
  const bytes = [
    new Uint8Array([0xff, 0xfe, 0xfd]),
    new Uint8Array([65, 0, 66]),
  ];
  await using it = setup((request) => new Response(bytes[Number(new URL(request.url).search[1])]));

  const answers = [await it.send({ path: "/?0" }), await it.send({ path: "/?1" })];

  assert.deepEqual(answers.map(({ body, binary }) => [body, binary]), [["//79", true], [
    "QQBC",
    true,
  ]]);
});

Deno.test("HttpProxy returns a redirect instead of following it", async () => {
  let asked = 0;
  await using it = setup(() => {
    asked++;
    return new Response(null, { status: 302, headers: { location: "http://evil.example/" } });
  });

  const { status, headers } = await it.send();

  assert.deepEqual([status, asked], [302, 1]);
  assert.ok(headers.some(([, value]) => value === "http://evil.example/"));
});

Deno.test("HttpProxy reaches no other server, whatever the path says", async () => {
  const paths: string[] = [];
  await using it = setup((request) => {
    paths.push(new URL(request.url).pathname);
    return new Response("mine");
  });

  for (const path of ["//evil.example/a", "/\\evil.example", "/@evil.example/", "/http://evil/"]) {
    assert.equal((await it.send({ path })).body, "mine");
  }
  for (const path of ["@evil.example/", ".evil.example/", ":1/", "", "http://evil.example/"]) {
    await assert.rejects(it.send({ path }), { code: "INVALID_ARGUMENTS" });
  }
  assert.equal(paths.length, 4);
});

for (
  const change of [
    { method: "TRACE" },
    { method: "CONNECT" },
    { method: "GET", body: "a" },
    { headers: { "a b": "c" } },
    { headers: { a: "b\r\nc: d" } },
  ] satisfies Partial<PageHttpRequest>[]
) {
  Deno.test(`HttpProxy refuses ${JSON.stringify(change)}`, async () => {
    await using it = setup(() => new Response("no"));

    await assert.rejects(it.send(change), { code: "INVALID_ARGUMENTS" });
  });
}

Deno.test("HttpProxy sends no body for an empty one", async () => {
  await using it = setup(() => new Response("yes"));

  assert.equal((await it.send({ body: "" })).body, "yes");
});

Deno.test("HttpProxy says that the engine serves no HTTP", async () => {
  using proxy = new HttpProxy(new FakeClock(), () => Promise.resolve(undefined));
  const request: PageHttpRequest = { type: "http", id: 1, method: "GET", path: "/", headers: {} };

  await assert.rejects(proxy.send(request, new AbortController().signal), {
    code: "NOT_FOUND",
    message: /engine worker add engine-http/,
  });
});

Deno.test("HttpProxy fails when the port is closed", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  using proxy = new HttpProxy(new FakeClock(), () => Promise.resolve(`http://127.0.0.1:${port}`));
  const request: PageHttpRequest = { type: "http", id: 1, method: "GET", path: "/", headers: {} };

  await assert.rejects(proxy.send(request, new AbortController().signal), {
    code: "engine_unreachable",
  });
});

Deno.test("HttpProxy aborts a request that takes too long", async () => {
  const asked = Promise.withResolvers<void>();
  const end = Promise.withResolvers<Response>();
  await using it = setup(() => {
    asked.resolve();
    return end.promise;
  });

  const answer = it.send();
  await asked.promise;
  it.clock.tick(REQUEST_MS);

  await assert.rejects(answer, { code: "timeout" });
  assert.equal(it.clock.waiting, 0);
  end.resolve(new Response());
});

Deno.test("HttpProxy aborts a request that the page ended", async () => {
  const asked = Promise.withResolvers<void>();
  const end = Promise.withResolvers<Response>();
  await using it = setup(() => {
    asked.resolve();
    return end.promise;
  });
  const ending = new AbortController();

  const answer = it.send({}, ending.signal);
  await asked.promise;
  ending.abort();

  await assert.rejects(answer);
  assert.equal(it.clock.waiting, 0);
  end.resolve(new Response());
});

Deno.test("HttpProxy refuses a response that is too large", async () => {
  await using it = setup(() => new Response(new Uint8Array(RESPONSE_BYTES_MAX + 1)));

  await assert.rejects(it.send(), { code: "body_too_large" });
});
