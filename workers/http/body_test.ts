/**
 * What a handler receives of a body, by its content type, and what is refused.
 *
 * @module
 */
import assert from "node:assert/strict";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { fakeHttp, json, settle } from "../../tests/fakes/fake_http.ts";
import { until } from "../../tests/fakes/until.ts";
import { SLOW_BODY_MS } from "../kit/http/connection.ts";
import { CHECK_MS, HttpPort } from "../kit/http/port.ts";
import { HeldMemory } from "../kit/held_memory.ts";
import { RequestBody } from "../kit/http/body.ts";
import { BodyReadTurns, Input } from "../kit/http/input.ts";
import { type BodyKind, BodyTurns, kindOf, readBody } from "./body.ts";

function typed(body: BodyInit, type: string): RequestInit {
  return { body, headers: { "content-type": type } };
}

function bodiesOf(calls: readonly CallRequest<Json>[]): Json[] {
  return calls.map(({ payload }) => (payload as JsonObject).body!);
}

/** A body whose length is not said. */
function stream(...chunks: string[]): ReadableStream<Uint8Array> {
  return ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));
}

/** A route for every method of sending. */
function setup(more: JsonObject = {}, config: Json = {}) {
  const http = fakeHttp(config, { f: () => ({}) });
  http.route("POST /f", "f", more);
  return { ...http, post: (init: RequestInit) => http.fetch("POST /f", init) };
}

async function errorOf(response: Response): Promise<[status: number, code: string, text: string]> {
  const { error } = await response.json();
  return [response.status, error.code, error.message];
}

for (
  const [type, kind] of [
    [undefined, "other"],
    ["", "other"],
    ["application/json", "json"],
    ["Application/JSON ; charset=utf-8", "json"],
    ["application/problem+json", "json"],
    ["application/json5", "other"],
    ["application/octet-stream; x=+json", "other"],
    ["text/plain;x=application/json", "text"],
    ["text/csv", "text"],
    ["TEXT/HTML", "text"],
    ["application/xml", "text"],
    ["application/x-www-form-urlencoded;charset=UTF-8", "urlencoded"],
    ["multipart/form-data; boundary=b", "multipart"],
    ["multipart/mixed; boundary=b", "other"],
    ["image/png", "other"],
  ] as [string | undefined, BodyKind][]
) {
  Deno.test(`a body of type ${JSON.stringify(type)} is read as ${kind}`, () => {
    assert.equal(kindOf(type), kind);
  });
}

Deno.test("the body is the value, the text or the fields, however it is sent", async () => {
  const { post, calls } = setup();
  const form = `--b\r\ncontent-disposition: form-data; name="a"\r\n\r\nx\r\n--b--\r\n`;

  for (
    const [text, type] of [
      ['{"a":1}', "application/vnd.api+json"],
      ["grüße", "text/plain"],
      ["<a/>", "application/xml"],
      ["a=1&a=2&b=3", "application/x-www-form-urlencoded"],
      [form, "multipart/form-data; boundary=b"],
    ] as const
  ) {
    assert.equal((await post(typed(text, type))).status, 200);
    assert.equal((await post(typed(stream(...text), type))).status, 200);
  }

  const bodies = [{ a: 1 }, "grüße", "<a/>", { a: ["1", "2"], b: "3" }, { a: "x" }];
  assert.deepEqual(bodiesOf(calls), bodies.flatMap((body) => [body, body]));
  assert.ok(calls.every(({ payload }) => !("raw_body_base64" in (payload as JsonObject))));
});

Deno.test("a text is decoded by its charset, and refused if it is not of it", async () => {
  const { post, calls } = setup();
  const latin1 = new Uint8Array([0x67, 0x72, 0xfc, 0xdf]);

  await post(typed(latin1, "text/plain; charset=iso-8859-1"));
  await post(typed("\ufeffx", 'text/plain; charset="UTF-8"'));

  assert.deepEqual(bodiesOf(calls), ["grüß", "x"]);
  assert.match(
    (await errorOf(await post(typed(latin1, "text/plain")))).join(),
    /^400,invalid_body/,
  );
  const unknown = await errorOf(await post(typed("x", "text/plain; charset=klingon")));
  assert.deepEqual(unknown.slice(0, 2), [415, "unsupported_media_type"]);
  assert.equal(calls.length, 2);
});

Deno.test("an empty body is null, an empty text or an empty form", async () => {
  const { post, calls } = setup();

  for (const type of ["application/json", "text/plain", "application/x-www-form-urlencoded"]) {
    await post(typed("", type));
    await post(typed(stream(), type));
  }
  await post({});
  await post({ body: stream() });
  await post(typed("", "image/png"));

  assert.deepEqual(bodiesOf(calls), [null, null, "", "", {}, {}, null, null, null]);
});

Deno.test("content of a type that is not read is refused with 415, never null in silence", async () => {
  const { post, calls } = setup();

  for (const body of ["x", stream("x")]) {
    const named = await errorOf(await post(typed(body, "image/png")));
    assert.deepEqual(named.slice(0, 2), [415, "unsupported_media_type"]);
    assert.match(named[2], /type "image\/png" is not supported.*raw_body/);
  }
  assert.match((await errorOf(await post({ body: stream("x") })))[2], /without a content-type/);
  assert.equal(calls.length, 0);
});

Deno.test("a lenient route gets null for what cannot be read", async () => {
  const { post, calls } = setup({ lenient_body: true });

  await post(typed("x", "image/png"));
  await post(typed(stream("x"), "image/png"));
  await post(typed("x", "multipart/form-data; boundary=b"));
  await post(typed(new Uint8Array([0xe4]), "text/plain"));

  assert.deepEqual(bodiesOf(calls), [null, null, null, null]);
});

Deno.test("raw_body adds the bytes as they came, of any type", async () => {
  const { post, calls } = setup({ raw_body: true });
  const bytes = new Uint8Array([0, 255, 10]);

  await post(json('{ "a":1 }'));
  await post(typed(stream('{ "a"', ":1 }"), "application/json"));
  await post(typed(bytes, "image/png"));
  await post(typed("é", "text/plain"));
  await post({});

  const received = calls.map(({ payload }) => {
    const { body, raw_body_base64 } = payload as JsonObject;
    return [body, raw_body_base64];
  });
  const text = btoa('{ "a":1 }');
  assert.deepEqual(received, [
    [{ a: 1 }, text],
    [{ a: 1 }, text],
    [null, bytes.toBase64()],
    ["é", "w6k="],
    [null, ""],
  ]);
});

Deno.test("a body that is not JSON has a limit of its own, unless its bytes are asked for", async () => {
  const config = { buffered_body_bytes_max: 4, body_bytes_max: 8 };
  const { post, calls } = setup({}, config);
  const raw = setup({ raw_body: true }, config);

  for (const body of ["12345", stream("123", "45")]) {
    const refused = await errorOf(await post(typed(body, "text/plain")));
    assert.deepEqual(refused.slice(0, 2), [413, "body_too_large"]);
    assert.match(refused[2], /more than 4 bytes.*raise buffered_body_bytes_max/);
  }
  assert.match((await errorOf(await post(json("[1,2,3,4]"))))[2], /raise body_bytes_max/);
  await post(typed("1234", "text/plain"));
  await post(json("12345678"));
  await raw.post(typed("12345", "text/plain"));
  const over = await raw.post(typed("123456789", "text/plain"));

  assert.deepEqual(bodiesOf(calls), ["1234", 12345678]);
  assert.deepEqual(bodiesOf(raw.calls), [null]);
  assert.equal((raw.calls[0]!.payload as JsonObject).raw_body_base64, btoa("12345"));
  assert.match((await errorOf(over))[2], /more than 8 bytes.*raise body_bytes_max/);
});

Deno.test("a form that is not one is answered with 400 and why", async () => {
  const { post, calls } = setup();
  const many = Array(10_000).fill("a=1").join("&");

  const boundary = await errorOf(await post(typed("--x--", "multipart/form-data; boundary=b")));
  const fields = await errorOf(await post(typed(many, "application/x-www-form-urlencoded")));

  assert.deepEqual(boundary.slice(0, 2), [400, "invalid_body"]);
  assert.match(boundary[2], /does not begin with its boundary, --b/);
  assert.deepEqual(fields.slice(0, 2), [400, "invalid_body"]);
  assert.match(fields[2], /may have at most 1000 fields/);
  assert.equal(calls.length, 0);
});

Deno.test("the memory of a body covers its bytes as base64, too", async () => {
  const plain = setup();
  const raw = setup({ raw_body: true });
  const held: number[] = [];
  for (const { post, memory, calls } of [plain, raw]) {
    const pushed = calls.push.bind(calls);
    calls.push = (...given) => (held.push(memory.usedBytes), pushed(...given));
    await post(typed("x".repeat(100_000), "text/plain"));
    assert.equal(memory.usedBytes, 0);
  }

  assert.deepEqual(held, [200_000, 400_000]);
});

Deno.test("large bodies become values in turns, with those of others between them", async () => {
  const { route, fetch, calls, clock } = fakeHttp({}, { f: () => ({}) });
  route("POST /f", "f");
  const large = json(JSON.stringify("x".repeat(2_000_000)));
  const requests = [1, 2, 3].map(() => fetch("POST /f", large));

  /** Lets so many parts, or pauses, of large bodies pass. */
  const pass = async (parts: number): Promise<void> => {
    for (; parts > 0; parts--) {
      await settle();
      clock.tick(0);
    }
    await settle();
  };

  await pass(3);
  assert.equal(calls.length, 0);
  assert.equal((await fetch("POST /f", json('"small"'))).status, 200);
  assert.equal(calls.length, 1);
  await pass(2); // Four parts of 512 KiB, and the text.
  assert.equal((await requests[0]!).status, 200);
  for (const [i, request] of requests.slice(1).entries()) {
    await pass(2 + 4); // Two pauses, and all parts but the last.
    assert.equal(calls.length, 2 + i);
    await pass(1);
    assert.equal((await request).status, 200);
    assert.equal(calls.length, 3 + i);
  }
  const { payload } = calls.at(-1)!;
  assert.deepEqual((payload as JsonObject).body, "x".repeat(2_000_000));
});

Deno.test("a large body whose client has left is not read to its end", async () => {
  const clock = new FakeClock();
  const turns = new BodyTurns(clock);
  let parts = 0;
  const gone = turns.run((function* () {
    for (;; parts++) {
      if (parts === 2) throw new Error("client gone");
      yield;
    }
  })());
  const next = turns.run((function* () {
    yield;
    return "read";
  })());

  const refused = assert.rejects(gone, /client gone/);
  for (let i = 0; i < 5; i++) {
    await settle();
    clock.tick(0);
  }

  await refused;
  assert.equal(await next, "read");
});

/** Reads a JSON body in turns, as large ones are. */
async function readInTurns(body: string, declaredBytes: number) {
  const bytes = new TextEncoder().encode(body);
  let at = 0;
  const stream = {
    read(into: Uint8Array): Promise<number | null> {
      const part = bytes.subarray(at, at + into.length);
      into.set(part);
      at += part.length;
      return Promise.resolve(part.length || null);
    },
    write: () => Promise.resolve(0),
    closeWrite: () => Promise.resolve(),
    close() {},
  };
  const clock = new FakeClock();
  const bytes_max = 64_000_000;
  const outcome = Promise.resolve(readBody(
    {
      body: new RequestBody(
        new Input(
          stream,
          new BodyReadTurns({ after: (_, task) => (queueMicrotask(task), () => {}) }),
        ),
        declaredBytes,
        undefined,
      ),
      headers: { "content-type": "application/json" },
    },
    {
      body_bytes_max: bytes_max,
      buffered_body_bytes_max: bytes_max,
      streamed_body_bytes_max: bytes_max,
    },
    { lenient_body: false, raw_body: false },
    {
      held: new HeldMemory(UNLIMITED_MEMORY, clock),
      cancelBody: undefined,
      rawBody: undefined,
      received: undefined,
      keepsBytes: false,
      stopReason: undefined,
      turns: new BodyTurns(clock),
    },
  )).then(() => "read", () => "failed");
  let isOver = false;
  void outcome.then(() => isOver = true);
  for (let part = 0; part < 100 && !isOver; part++) { // Large bodies are read in turns.
    await settle();
    clock.tick(0);
  }
  return await outcome;
}

Deno.test("a large body is read when it has the length that was declared", async () => {
  const body = JSON.stringify("x".repeat(8_000_000));

  for (
    const [declared, outcome] of [
      [body.length, "read"],
      [body.length + 1, "failed"],
      [body.length - 1, "failed"],
    ] as const
  ) {
    assert.equal(await readInTurns(body, declared), outcome);
  }
});

/** Routes on a real port whose clock stands still. */
function onPort() {
  const http = setup();
  const { clock, memory, serve } = http;
  const port = new HttpPort({
    host: "127.0.0.1",
    port: 0,
    name: "test",
    settings: { port: "port", address: "host or port" },
    clock,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    memory,
    socketsMax: 10,
    handle: serve,
  });
  const { hostname, port: number } = new URL(port.url);
  const open: Deno.TcpConn[] = [];
  return {
    ...http,
    async send(type: string, ...rest: string[]) {
      const client = await Deno.connect({ hostname, port: Number(number) });
      open.push(client);
      const head = `POST /f HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\n`;
      for (const text of [head, ...rest]) await client.write(new TextEncoder().encode(text));
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of open) client.close();
      await port.close();
      port.destroy();
    },
  };
}

/** All that comes until the server ends the connection. */
async function received(client: Deno.TcpConn): Promise<string> {
  let text = "";
  for (const buffer = new Uint8Array(65_536);;) {
    const count = await client.read(buffer).catch(() => null);
    if (count === null) return text;
    text += new TextDecoder().decode(buffer.subarray(0, count));
  }
}

Deno.test("a form that is shorter than it says is ended with 408, and one that is longer refused", async () => {
  await using it = onPort();
  const type = "application/x-www-form-urlencoded";

  const short = await it.send(type, "content-length: 10\r\n\r\na=1");
  const long = await it.send(type, "content-length: 3\r\nconnection: close\r\n\r\na=1&b=2");
  await until(() => it.running.size === 1 && it.calls.length === 1, "both have begun");
  for (let ms = 0; ms <= SLOW_BODY_MS + 2 * CHECK_MS; ms += CHECK_MS) it.clock.tick(CHECK_MS);

  assert.match(await received(short), /^HTTP\/1\.1 408 .*more slowly than/s);
  assert.match(await received(long), /^HTTP\/1\.1 200 /);
  assert.deepEqual(bodiesOf(it.calls), [{ a: "1" }]);
});

Deno.test("what follows a body is no part of it, and no request", async () => {
  await using it = onPort();

  const client = await it.send("text/plain", "content-length: 3\r\n\r\na=1&b=2\r\n\r\n");

  assert.match(await received(client), /^HTTP\/1\.1 200 .*HTTP\/1\.1 400 /s);
  assert.deepEqual(bodiesOf(it.calls), ["a=1"]);
});

Deno.test("an upload in chunks that never end is refused at the limit", async () => {
  await using it = onPort();
  const client = await it.send(
    "multipart/form-data; boundary=b",
    "transfer-encoding: chunked\r\n\r\n",
  );

  const chunk = new TextEncoder().encode(`10000\r\n${"x".repeat(65_536)}\r\n`);
  const sending = (async () => {
    for (let i = 0; i < 17; i++) await writeAll(client, chunk);
  })().catch(() => {});
  const turns = setInterval(() => it.clock.tick(0), 1); // A large body is read in turns.
  const text = await received(client);
  await sending;
  clearInterval(turns);

  assert.match(text, /^HTTP\/1\.1 413 .*buffered_body_bytes_max/s);
  assert.equal(it.calls.length, 0);
});

async function writeAll(client: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await client.write(bytes.subarray(at));
}

Deno.test("an upload that comes too slowly is ended with 408", async () => {
  await using it = onPort();
  const client = await it.send("multipart/form-data; boundary=b", "content-length: 1000\r\n\r\n");
  await until(() => it.running.size === 1, "the request has begun");

  for (let ms = 0; ms <= SLOW_BODY_MS + 2 * CHECK_MS; ms += CHECK_MS) {
    it.clock.tick(CHECK_MS);
    await client.write(new Uint8Array([45])).catch(() => {});
    await settle();
  }

  assert.match(await received(client), /^HTTP\/1\.1 408 .*240 bytes a second/s);
  assert.equal(it.calls.length, 0);
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
  for (const init of framings("\ufeff\ufeff1")) {
    assert.equal((await fetch("POST /f", init)).status, 400, "two are no JSON, of any length");
  }
});

Deno.test("A JSON body that is nested too deep is answered with 400 before it costs time", async () => {
  const { route, fetch, calls, clock } = fakeHttp({}, { f: () => ({}) });
  route("POST /f", "f");
  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  const onlyText = `["${'[{\\"'.repeat(20_000)}",[]]`;

  for (const body of [nested(4_000_000), nested(128), `{"a":"\\\\",${"[".repeat(20_000)}`]) {
    for (const init of framings(body)) {
      const response = await fetch("POST /f", init);
      assert.equal(response.status, 400);
      assert.match((await response.json()).error.message, /nested more deeply than 127 levels/);
      for (let pause = 0; pause < 2; pause++) { // Large bodies are read in turns.
        clock.tick(0);
        await settle();
      }
    }
  }
  for (const body of [nested(127), onlyText, `[${"[],{},".repeat(20_000)}0]`]) {
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

Deno.test("A body of unknown length is refused when it passes the limit", async () => {
  const { route, fetch, calls } = fakeHttp({ body_bytes_max: 10 }, { f: () => ({}) });
  route("POST /f", "f");
  const body = new ReadableStream<Uint8Array>({
    pull: (stream) => stream.enqueue(new Uint8Array(4)),
  });

  const response = await fetch("POST /f", { ...json(""), body });

  assert.equal(response.status, 413);
  assert.equal(calls.length, 0);
});

Deno.test("A body exactly at the limit passes", async () => {
  const { route, fetch } = fakeHttp({ body_bytes_max: 7 }, { f: () => ({}) });
  route("POST /f", "f");

  assert.equal((await fetch("POST /f", json('{"a":1}'))).status, 200);
  assert.equal((await fetch("POST /f", json('{"a":10}'))).status, 413);
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

Deno.test("a content type that only contains the words of JSON is not JSON", async () => {
  const { route, fetch, calls } = fakeHttp({}, { f: () => ({}) });
  route("POST /f", "f");

  const statuses = [];
  for (const type of ["text/plain; x=application/json", "application/json5", "application/json"]) {
    statuses.push((await fetch("POST /f", typed("{}", type))).status);
  }

  assert.deepEqual(statuses, [200, 415, 200]);
  assert.deepEqual(bodiesOf(calls), ["{}", {}]);
});
