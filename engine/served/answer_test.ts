import assert from "node:assert/strict";
import { systemClock } from "../platform/system_clock.ts";
import { TickBudget } from "../transport/tick_budget.ts";
import { TaskQueue } from "../platform/task_queue.ts";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import { type AnswerPorts, ERROR_BYTES_MAX, PARTS_MAX, readAnswer } from "./answer.ts";
import { HttpClient } from "./http_client.ts";
import { rulesOf } from "./target.ts";

const never = new AbortController().signal;
const memory = createMemoryBudget(64 * 1024 * 1024);
const RULES = rulesOf({ allow: ["http://127.0.0.1:*"], allow_private: true, auth_env: [] });

/** What a call gets of a server's response: the frame as text. */
async function read(response: () => Response, more: Partial<AnswerPorts> = {}): Promise<string> {
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, response);
  const client = new HttpClient({
    clock: systemClock,
    turns: new TickBudget(),
    resolve: () => Promise.resolve([]),
  });
  using _closing = { [Symbol.dispose]: () => client.close() };
  const url = new URL(`http://127.0.0.1:${server.addr.port}/path?key=secret`);
  const answer = await client.request({
    url,
    method: "GET",
    headers: {},
    ownHeaders: {},
    body: undefined,
    rules: RULES,
    signal: never,
  });
  const ports = { limitBytes: 1_000_000, memory, signal: never, checks: new TaskQueue(), ...more };
  using frame = await readAnswer(url, answer, '{"result":', ports);
  return new TextDecoder().decode(frame.bytes ?? new Uint8Array());
}

const failing = (response: () => Response, more: Partial<AnswerPorts>, expected: object) =>
  assert.rejects(read(response, more), expected);

Deno.test("JSON is the result, byte for byte, whatever its content type", async () => {
  for (const text of ['{"a": 12345678901234567890}', "[1,\n2]", '"ä\\u0000"', " 7 ", "null"]) {
    assert.equal(await read(() => new Response(text)), `{"result":${text}}`);
  }
});

Deno.test("a byte order mark is no part of the result", async () => {
  assert.equal(await read(() => new Response("\ufeff[1]")), '{"result":   [1]}');
});

Deno.test("an empty body, or only white space, is no result", async () => {
  assert.equal(await read(() => new Response(null, { status: 204 })), "");
  assert.equal(await read(() => new Response("")), "");
  assert.equal(await read(() => new Response(" \r\n\t")), "");
  assert.equal(await read(() => new Response("\ufeff")), "");
});

Deno.test("text, pages and bytes are no result", async () => {
  const bodies: [BodyInit, string][] = [
    ["hello", "text/plain"],
    ["<html></html>", "text/html"],
    [new Uint8Array([0xff, 0xfe, 0x31]), "application/octet-stream"],
    ['{"a":1', "application/json"],
    ['{"a":1}}', "application/json"],
    ["NaN", "application/json"],
    ['"\xff"', "application/json; charset=latin1"],
  ];
  for (const [body, type] of bodies) {
    const bytes = type.includes("latin1") ? new Uint8Array([0x22, 0xff, 0x22]) : body;
    const response = () => new Response(bytes, { headers: { "content-type": type } });
    await failing(response, {}, { code: "invalid_response", message: /is no JSON/ });
  }
});

/** A text of JSON, each character of which is a chunk of its own. */
async function readChunks(count: number): Promise<string> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    using conn = await listener.accept();
    await conn.read(new Uint8Array(4_096));
    const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    const body = `1\r\n"\r\n${"1\r\nx\r\n".repeat(count - 2)}1\r\n"\r\n0\r\n\r\n`;
    const bytes = new TextEncoder().encode(head + body);
    for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
  })();
  const client = new HttpClient({
    clock: systemClock,
    turns: new TickBudget(),
    resolve: () => Promise.resolve([]),
  });
  using _closing = { [Symbol.dispose]: () => client.close() };
  const url = new URL(`http://127.0.0.1:${listener.addr.port}/`);
  const request = { url, method: "GET", headers: {}, ownHeaders: {}, body: undefined } as const;
  const answer = await client.request({ ...request, rules: RULES, signal: never });
  const ports = { limitBytes: 1_000_000, memory, signal: never, checks: new TaskQueue() };
  try {
    using frame = await readAnswer(url, answer, "", ports);
    return new TextDecoder().decode(frame.bytes);
  } finally {
    await serving.catch(() => {}); // The client ends a connection that it has no use for.
  }
}

Deno.test("a body may come in many small parts, but not in very many", async () => {
  assert.equal((await readChunks(PARTS_MAX)).length, PARTS_MAX + 1);
  await assert.rejects(readChunks(20 * PARTS_MAX), {
    code: "invalid_response",
    message: /in more than 10000 small parts/,
  });
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a body cannot end the frame that it is part of", async () => {
  for (const text of ['1,"error":{"code":"x"}', '1}\n{"type":"registerfunction"', '1},{"a":1']) {
    await failing(() => new Response(text), {}, { code: "invalid_response" });
  }
});

Deno.test("an encoded body is no result: what it would become cannot be counted", async () => {
  const headers = { "content-encoding": "gzip" };
  const response = () => new Response(new Uint8Array([31, 139, 8]), { headers });

  await failing(response, {}, { code: "invalid_response", message: /encoded as gzip/ });
});

Deno.test("a body beyond the bound ends the request, with and without its length", async () => {
  const expected = { code: "invalid_response", message: /more than 100 bytes.*max_message_bytes/ };
  const stream = () => ReadableStream.from(endless());

  assert.equal(
    (await read(() => new Response(`"${"a".repeat(98)}"`), { limitBytes: 100 })).length,
    111,
  );
  await failing(() => new Response(`"${"a".repeat(99)}"`), { limitBytes: 100 }, expected);
  await failing(() => new Response(stream()), { limitBytes: 100 }, expected);
});

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) {
    yield new Uint8Array(10).fill(0x20);
    await Promise.resolve();
  }
}

Deno.test("a body takes memory of the process while it is held, and returns all of it", async () => {
  const small = createMemoryBudget(1_024 * 1_024);
  const text = JSON.stringify("a".repeat(600_000));

  await failing(() => new Response(text), { memory: small }, {
    code: "http_request_failed",
    message: /engine\.memory_mb/,
  });
  assert.equal(small.usedBytes, 0);
  await read(() => new Response('"a"'), { memory: small });
  await failing(() => new Response("no"), { memory: small }, { code: "invalid_response" });
  assert.equal(small.usedBytes, 0);
});

Deno.test("JSON that is nested too deeply, or has too many parts, is no result", async () => {
  const deep = "[".repeat(200) + "]".repeat(200);
  const costly = `[${"[],".repeat(1_000_001)}1]`;

  await failing(() => new Response(deep), {}, { code: "invalid_response", message: /nested/ });
  await failing(() => new Response(costly), { limitBytes: 1e8 }, {
    code: "invalid_response",
    message: /objects, arrays/,
  });
});

Deno.test("large JSON is checked as well", async () => {
  const text = JSON.stringify("a".repeat(3_000_000));
  const more = { limitBytes: 1e8 };

  assert.equal((await read(() => new Response(text), more)).length, text.length + 11);
  await failing(() => new Response(text.slice(1)), more, { code: "invalid_response" });
});

Deno.test("a status that is no success is an error, with code and message of its body", async () => {
  const json = (status: number, body: unknown) => () => Response.json(body, { status });
  const error = { code: "out_of_stock", message: "Only 2 left", retryable: true };

  await assert.rejects(read(json(409, { error })), (thrown: Record<string, unknown>) => {
    assert.deepEqual([thrown.code, thrown.message], ["out_of_stock", "Only 2 left"]);
    assert.equal((thrown.details as Record<string, unknown>).status, 409);
    assert.ok(!JSON.stringify(thrown.details).includes("secret"), "no query");
    return true;
  });
  const unknown = { code: "http_error", message: "HTTP 500", retryable: false };
  for (const body of [{}, null, 7, [], { error: "text" }, { error: { code: 7 } }]) {
    await failing(json(500, body), {}, unknown);
  }
  await failing(json(400, { error: { code: "c".repeat(129), message: 7 } }), {}, {
    code: "http_error",
    message: "HTTP 400",
  });
  await failing(json(503, { error: { code: "overloaded" } }), {}, {
    code: "overloaded",
    message: "HTTP 503",
    retryable: false,
  });
  await failing(() => new Response("<html>", { status: 404 }), {}, { message: "HTTP 404" });
  await failing(() => new Response(null, { status: 304 }), {}, { message: "HTTP 304" });
});

Deno.test("of an error only so much is read", async () => {
  const error = { code: "a", message: "b".repeat(ERROR_BYTES_MAX) };
  const long = { code: "a", message: "b".repeat(10_000) };

  await failing(() => Response.json({ error }, { status: 500 }), {}, { code: "http_error" });
  await assert.rejects(read(() => Response.json({ error: long }, { status: 500 })), (thrown) => {
    assert.equal((thrown as Error).message.length, 4_096);
    return true;
  });
});

Deno.test("reading ends with the reason of the signal", async () => {
  const ended = new AbortController();
  const stream = () => {
    queueMicrotask(() => ended.abort(new Error("cancelled")));
    return new Response(ReadableStream.from(endless()));
  };

  await failing(stream, { signal: ended.signal }, { message: "cancelled" });
});

Deno.test("a body that ends early is an error that says so", async () => {
  using listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const served = (async () => {
    using connection = await listener.accept();
    await connection.read(new Uint8Array(1_000));
    const text = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"abc';
    await connection.write(new TextEncoder().encode(text));
  })();
  const client = new HttpClient({
    clock: systemClock,
    turns: new TickBudget(),
    resolve: () => Promise.resolve([]),
  });
  const url = new URL(`http://127.0.0.1:${listener.addr.port}/`);
  const answer = await client.request({
    url,
    method: "GET",
    headers: {},
    ownHeaders: {},
    body: undefined,
    rules: RULES,
    signal: never,
  });

  const ports = { limitBytes: 100, memory, signal: never, checks: new TaskQueue() };
  await assert.rejects(readAnswer(url, answer, "", ports), {
    code: "http_request_failed",
    message: /closed the connection before it had answered/,
  });
  await served;
  client.close();
});
