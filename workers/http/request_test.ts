/**
 * What a handler is told of a request, and which bodies do not get that far.
 *
 * @module
 */
import assert from "node:assert/strict";
import { cutUrl, readQuery } from "./request.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { fakeHttp, json } from "../../tests/fakes/fake_http.ts";

Deno.test("A body that is not JSON by its content type is null and not read", async () => {
  const { route, fetch, calls } = fakeHttp({}, { f: () => ({}) });
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
  const { route, fetch, calls } = fakeHttp({}, { f: () => ({}) });
  route("POST /f", "f");

  const response = await fetch("POST /f", json(""));

  assert.equal(response.status, 200);
  assert.equal((calls[0]!.payload as { body: Json }).body, null);
});

for (const body of ["{", "{'a':1}", "undefined", "{} {}", " ", "[1,]", '"\n"']) {
  Deno.test(`A JSON body ${JSON.stringify(body)} is answered with 400`, async () => {
    const { route, fetch, calls } = fakeHttp({}, { f: () => ({}) });
    route("POST /f", "f");

    const response = await fetch("POST /f", json(body));

    assert.equal(response.status, 400);
    const { error } = await response.json();
    assert.equal(error.code, "invalid_json");
    assert.match(error.message, /^Request body is not JSON: /);
    assert.equal(calls.length, 0);
  });
}

/** A JSON body whose length is not said, and said. */
function framings(body: string): RequestInit[] {
  const headers = { "content-type": "application/json" };
  const length = new TextEncoder().encode(body).length;
  const declared = { ...headers, "content-length": `${length}` };
  return [{ body, headers }, { body, headers: declared }];
}

Deno.test("A byte order mark before a JSON body is skipped, however the body is sent", async () => {
  const { route, fetch, calls } = fakeHttp({}, { f: () => ({}) });
  route("POST /f", "f");

  for (const init of framings('\ufeff{"a":1}')) await fetch("POST /f", init);

  const bodies = calls.map(({ payload }) => (payload as { body: Json }).body);
  assert.deepEqual(bodies, [{ a: 1 }, { a: 1 }]);
});

Deno.test("A JSON body that is nested too deep is answered with 400 before it costs time", async () => {
  const { route, fetch, calls } = fakeHttp({}, { f: () => ({}) });
  route("POST /f", "f");
  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  const onlyText = `["${'[{\\"'.repeat(20_000)}",[]]`;

  for (const body of [nested(4_000_000), `{"a":"\\\\",${"[".repeat(20_000)}`]) {
    for (const init of framings(body)) {
      const response = await fetch("POST /f", init);
      assert.equal(response.status, 400);
      assert.match((await response.json()).error.message, /nested deeper than 10000 levels/);
    }
  }
  for (const body of [nested(10_000), onlyText, `[${"[],{},".repeat(20_000)}0]`]) {
    for (const init of framings(body)) assert.equal((await fetch("POST /f", init)).status, 200);
  }

  assert.equal(calls.length, 6);
});

Deno.test("A broken JSON body is null on a lenient route", async () => {
  const { route, fetch, calls } = fakeHttp({}, { f: () => ({}) });
  route("POST /f", "f", { lenient_body: true });

  const response = await fetch("POST /f", json("{"));

  assert.equal(response.status, 200);
  assert.equal((calls[0]!.payload as { body: Json }).body, null);
});

Deno.test("A body is refused by its declared length before it is read", async () => {
  const { route, fetch, calls } = fakeHttp({ body_bytes_max: 10 }, { f: () => ({}) });
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
  const { route, fetch, calls } = fakeHttp({ body_bytes_max: 10 }, { f: () => ({}) });
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
  const { route, fetch } = fakeHttp({ body_bytes_max: 7 }, { f: () => ({}) });
  route("POST /f", "f");

  assert.equal((await fetch("POST /f", json('{"a":1}'))).status, 200);
  assert.equal((await fetch("POST /f", json('{"a":10}'))).status, 413);
});

for (
  const [url, path, query] of [
    ["http://localhost:3111/a/b?c=1&d=/x", "/a/b", "c=1&d=/x"],
    ["http://localhost:3111/", "/", ""],
    ["http://localhost:3111/a?", "/a", ""],
    ["http://localhost:3111/a?b?c", "/a", "b?c"],
    ["http://localhost:3111/a/../b//c/%2e", "/a/../b//c/%2e", ""],
    ["http://localhost:3111/a#/b?c", "/a", ""],
    ["http://localhost:3111/a?b#c?d", "/a", "b"],
    ["http://[::1]:3111/a", "/a", ""],
    ["http://localhost:3111", "", ""],
    ["http://localhost:3111#/a", "", ""],
  ] as const
) {
  Deno.test(`cutUrl() cuts ${url} without changing a character`, () => {
    assert.deepEqual(cutUrl(url), { path, query });
  });
}

Deno.test("readQuery() decodes, takes the last of equal keys, and survives broken escapes", () => {
  assert.deepEqual(readQuery("a=1&a=2&b=x+y%21&c&=d&e=%zz&__proto__=p"), {
    a: "2",
    b: "x y!",
    c: "",
    "": "d",
    e: "%zz",
    ["__proto__"]: "p",
  });
  assert.deepEqual(readQuery("?a=1&a=2"), { "?a": "1", a: "2" });
});

Deno.test("A chunked JSON body is put together, also across characters", async () => {
  const { route, fetch, calls } = fakeHttp({}, { f: () => ({}) });
  route("POST /f", "f");
  const bytes = new TextEncoder().encode('{"a":"é€😀"}');
  const body = new ReadableStream<Uint8Array>({
    start(stream) {
      for (const byte of bytes) stream.enqueue(Uint8Array.of(byte));
      stream.close();
    },
  });

  await fetch("POST /f", { ...json(""), body });

  assert.deepEqual((calls[0]!.payload as { body: Json }).body, { a: "é€😀" });
});

Deno.test("A body that breaks off is the client's own affair", async () => {
  const { route, fetch, calls, running } = fakeHttp({}, { f: () => ({}) });
  route("POST /f", "f");
  const body = new ReadableStream<Uint8Array>({
    pull: (stream) => stream.error(new Error("connection reset")),
  });

  const response = await fetch("POST /f", { ...json(""), body });

  assert.equal(response.status, 499);
  assert.equal(calls.length, 0);
  assert.equal(running.size, 0);
});
