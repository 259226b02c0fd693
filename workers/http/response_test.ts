/**
 * Answers from what handlers return, down to the odd ones.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { type LogLine, recordingLog, responseOf } from "../../tests/fakes/fake_http.ts";
import {
  type Reply,
  replyFromError,
  replyFromValue,
  ResultWarnings,
  type Warn,
  WARNINGS_MAX,
  withExtra,
} from "./response.ts";

/** The reply, and the warnings about it. */
function setup(value: Json): { reply: Reply; warnings: [string, string][] } {
  const warnings: [string, string][] = [];
  const reply = replyFromValue(value, (text, about) => warnings.push([text, about]));
  return { reply, warnings };
}

const JSON_HEADERS = [["content-type", "application/json"]];

for (
  const [given, status] of [
    [{ status_code: 404 }, 404],
    [{ statusCode: 201 }, 201],
    [{ status_code: 202, statusCode: 404 }, 202],
    [{ status_code: null, statusCode: 404 }, 404],
    [{}, 200],
    [{ status_code: 599 }, 599],
    [{ status_code: 99 }, 200],
    [{ status_code: 100 }, 200],
    [{ status_code: 600 }, 200],
    [{ status_code: 1000 }, 200],
    [{ status_code: 200.5 }, 200],
    [{ status_code: -1 }, 200],
    [{ status_code: "x" }, 200],
    [{ status_code: "404" }, 200],
    [{ status_code: true }, 200],
    [{ status_code: [404] }, 200],
  ] as const
) {
  Deno.test(`A reply to ${JSON.stringify(given)} has status ${status} and can be sent`, () => {
    const { reply, warnings } = setup(given as unknown as Json);

    assert.equal(reply.status, status);
    assert.equal(responseOf(reply, "GET").status, status);
    const isOdd = status === 200 && Object.keys(given).length > 0;
    assert.equal(warnings.length, isOdd ? 1 : 0);
  });
}

for (
  const [given, body] of [
    [{ body: { a: 1 } }, '{"a":1}'],
    [{}, "{}"],
    [{ body: null }, "null"],
    [{ body: "text" }, '"text"'],
    [{ body: 5 }, "5"],
    [{ body: false }, "false"],
    [{ body: [] }, "[]"],
    [{ headers: { "x-a": "1" }, body: "text" }, '"text"'],
    [{ headers: {}, body: "text" }, '"text"'],
    [[1, 2], "[1,2]"],
    [{ hello: 1 }, '{"hello":1}'],
    [{ status: 404, Body: "x" }, '{"status":404,"Body":"x"}'],
    [5, "5"],
    [false, "false"],
    [{ headers: null, hello: 1 }, "{}"],
  ] as [Json, string][]
) {
  Deno.test(`A reply to ${JSON.stringify(given)} without content type is JSON`, () => {
    const { reply } = setup(given);

    assert.equal(reply.status, 200);
    assert.equal(reply.body, body);
    assert.deepEqual(reply.headers.filter(([name]) => name === "content-type"), JSON_HEADERS);
  });
}

for (
  const [type, body, text] of [
    ["text/html", "<p>", "<p>"],
    ["text/plain", null, ""],
    ["text/plain", { a: 1 }, '{"a":1}'],
    ["text/plain", 5, "5"],
    ["application/json", { a: null }, '{"a":null}'],
    ["application/json", null, ""],
    ["application/json", '{"ready":true}', '{"ready":true}'],
    ["text/plain", undefined, "{}"],
  ] as [string, Json | undefined, string][]
) {
  Deno.test(`A reply of type ${type} with body ${JSON.stringify(body)} is ${text}`, () => {
    const headers = { "Content-Type": type };
    const { reply } = setup(body === undefined ? { headers } : { headers, body });

    assert.equal(reply.body, text);
    assert.deepEqual(reply.headers, [["content-type", type]]);
  });
}

Deno.test("A reply takes headers as an object or as lines, and the same name several times", () => {
  const object = setup({ headers: { "X-A": " 1 ", "x-b": "é" } });
  const lines = setup({ headers: ["Set-Cookie: a=1; Path=/", "set-cookie:b=2", "X-C:"] });

  assert.deepEqual(object.reply.headers, [["x-a", "1"], ["x-b", "é"], ...JSON_HEADERS]);
  assert.deepEqual(lines.reply.headers, [
    ["set-cookie", "a=1; Path=/"],
    ["set-cookie", "b=2"],
    ["x-c", ""],
    ...JSON_HEADERS,
  ]);
  assert.deepEqual(responseOf(lines.reply, "GET").headers.getSetCookie(), [
    "a=1; Path=/",
    "b=2",
  ]);
});

for (
  const headers of [
    { "x-a": 1 },
    { "x-a": null },
    { "x-a": [1] },
    { "x-a": ["a\r\nset-cookie: evil=1"] },
    { "x-a\r\nx-evil": "1" },
    { "x a": "1" },
    { "": "1" },
    { "x-a:": "1" },
    { "x-a": "a\r\nx-evil: 1" },
    { "x-a": "a\0b" },
    { "x-a": "€" },
    { "Content-Length": "5" },
    { "transfer-encoding": "chunked" },
    { connection: "upgrade" },
    ["no colon"],
    [": 1"],
    [5],
    [null],
    ["x-a: a\nb"],
    "x-a: 1",
    7,
    true,
  ] as Json[]
) {
  Deno.test(`A reply skips the headers ${JSON.stringify(headers)} and warns`, () => {
    const { reply, warnings } = setup({ headers, body: 1 });

    assert.deepEqual(reply.headers, JSON_HEADERS);
    assert.equal(warnings.length, 1);
    assert.equal(responseOf(reply, "GET").status, 200);
  });
}

Deno.test("A reply to a text is that text", () => {
  assert.deepEqual(setup("grüße").reply, {
    status: 200,
    headers: [["content-type", "text/plain; charset=utf-8"]],
    body: "grüße",
  });
});

Deno.test("A reply sends every value of a header that is an array", () => {
  const headers = { "Set-Cookie": ["a=1; Path=/", "b=2"], "x-a": [], "x-b": "1" };
  const { reply, warnings } = setup({ headers });

  assert.deepEqual(reply.headers, [
    ["set-cookie", "a=1; Path=/"],
    ["set-cookie", "b=2"],
    ["x-b", "1"],
    ...JSON_HEADERS,
  ]);
  assert.deepEqual(warnings, []);
});

Deno.test("A reply of body_base64 is bytes, of the type that it says", () => {
  const plain = setup({ body_base64: "AP8=" });
  const typed = setup({ body_base64: "AP8", headers: { "content-type": "image/png" }, body: 1 });
  const more = setup({ body_base64: "", headers: { "x-a": "1" }, status_code: 201 });

  const body = new Uint8Array([0, 255]);
  assert.deepEqual(plain.reply, {
    status: 200,
    headers: [["content-type", "application/octet-stream"]],
    body,
  });
  assert.deepEqual(typed.reply, { status: 200, headers: [["content-type", "image/png"]], body });
  assert.deepEqual(typed.warnings, [["body is skipped, since there is body_base64", "body"]]);
  assert.deepEqual(more.reply.headers, [["x-a", "1"], [
    "content-type",
    "application/octet-stream",
  ]]);
  assert.equal(setup({ status_code: 204, body_base64: "AP8=" }).reply.body, null);
  assert.equal(setup({ body_base64: null, body: 1 }).reply.body, "1");
});

for (const body_base64 of ["-_8=", "a", "aGk=!", 5, {}, [1]] as Json[]) {
  Deno.test(`A reply of body_base64 ${JSON.stringify(body_base64)} is refused whole`, () => {
    assert.throws(() => setup({ body_base64 }), {
      code: "invocation_failed",
      message: "The function returned a body_base64 that is not base64",
    });
  });
}

/** The reply to an error with these details. */
function failed(details: JsonObject, code = "own", status?: number) {
  const warnings: [string, string][] = [];
  const error = new EngineError(code, "why", { details });
  const warn: Warn = (text, about) => warnings.push([text, about]);
  return { reply: replyFromError(error, "id", warn, status), warnings };
}

for (
  const [details, code, status] of [
    [{ status_code: 404 }, "own", 404],
    [{ status_code: 400 }, "invocation_failed", 400],
    [{ status_code: 599 }, "function_not_found", 599],
    [{ status_code: 408 }, "timeout", 408],
    [{}, "own", 500],
    [{ status_code: 399 }, "own", 500],
    [{ status_code: 200 }, "overloaded", 429],
    [{ status_code: 600 }, "own", 500],
    [{ status_code: "404" }, "own", 500],
    [{ status_code: 404.5 }, "own", 500],
    [{ status_code: null }, "function_not_found", 503],
    [{ headers: { "x-a": "1" } }, "own", 500],
  ] as [JsonObject, string, number][]
) {
  Deno.test(`An error ${code} with ${JSON.stringify(details)} has status ${status}`, () => {
    const { reply } = failed(details, code);

    assert.equal(reply.status, status);
    assert.deepEqual(reply.headers, JSON_HEADERS);
    const body = { error: { code, message: "why", error_id: "id" } };
    assert.equal(reply.body, JSON.stringify(body));
  });
}

Deno.test("An error that names its status names headers, too, but none that breaks it", () => {
  const headers = { "Retry-After": "7", "www-authenticate": ["a", "b"], "content-type": "a/b" };
  const good = failed({ status_code: 401, headers });
  const odd = failed({ status_code: 401, headers: { "x-a": "1\r\nx-evil: 1", "x-b": "2" } });
  const many = failed({ status_code: 401, headers: Array(300).fill("x-a: 1") as Json });

  assert.deepEqual(good.reply.headers, [
    ...JSON_HEADERS,
    ["retry-after", "7"],
    ["www-authenticate", "a"],
    ["www-authenticate", "b"],
  ]);
  assert.deepEqual(odd.reply.headers, [...JSON_HEADERS, ["x-b", "2"]]);
  assert.equal(odd.warnings.length, 1);
  assert.deepEqual([many.reply.status, many.reply.headers], [401, JSON_HEADERS]);
  assert.match(many.warnings[0]![1], /300 headers/);
});

Deno.test("A reply without headers has no remark, also when they are null", () => {
  assert.deepEqual(setup({ headers: null }), {
    reply: { status: 200, headers: JSON_HEADERS, body: "{}" },
    warnings: [],
  });
});

for (const status_code of [204, 205, 304]) {
  Deno.test(`A reply with status ${status_code} has no body, whatever was returned`, () => {
    const { reply } = setup({ status_code, body: { a: 1 } });

    assert.deepEqual(reply, { status: status_code, headers: [], body: null });
    assert.equal(responseOf(reply, "HEAD").status, status_code);
  });
}

Deno.test("withExtra() adds headers that are not there yet", () => {
  const { reply } = setup({ headers: { "x-a": "mine" } });

  const response = responseOf(withExtra(reply, [["x-a", "other"], ["x-b", "other"]]), "GET");

  assert.equal(response.headers.get("x-a"), "mine");
  assert.equal(response.headers.get("x-b"), "other");
});

for (
  const [what, headers] of [
    [
      "60000 headers; at most 256 are sent",
      Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`x-${i}`, "1"])),
    ],
    ["257 headers; at most 256 are sent", { "set-cookie": Array<string>(257).fill("a=1") }],
    ["257 headers; at most 256 are sent", Array<string>(257).fill("x-a: 1")],
    ["70007 bytes of headers; at most 65536 are sent", { "x-a": "1".repeat(70_000) }],
  ] as const
) {
  Deno.test(`A reply with ${what}, is refused whole`, () => {
    assert.throws(() => setup({ headers: headers as Json, body: 1 }), {
      code: "invocation_failed",
      message: `The function returned ${what}`,
    });
  });
}

Deno.test("A reply may have 256 headers", () => {
  const { reply, warnings } = setup({ headers: Array<string>(256).fill("x-a: 1") });

  assert.equal(reply.headers.length, 257); // With the content type.
  assert.deepEqual(warnings, []);
});

Deno.test("ResultWarnings.warn() warns once per text, function and subject", () => {
  const lines: LogLine[] = [];
  const warnings = new ResultWarnings(recordingLog(lines));

  for (let i = 0; i < 3; i++) {
    warnings.warn("odd", "f", "x-a");
    warnings.warn("odd", "g", "x-a");
    warnings.warn("odd", "g", "x-b");
  }

  assert.equal(lines.length, 3);
  assert.deepEqual(lines[2], {
    level: "warn",
    text: "odd",
    fields: { function_id: "g", about: "x-b" },
  });
});

Deno.test("ResultWarnings.warn() logs at most WARNINGS_MAX", () => {
  const lines: LogLine[] = [];
  const warnings = new ResultWarnings(recordingLog(lines));

  for (let i = 0; i < WARNINGS_MAX + 10; i++) warnings.warn("odd", "f", `${i}`);

  assert.equal(lines.length, WARNINGS_MAX);
});
