import assert from "node:assert/strict";
import {
  checkCallable,
  checkEnqueue,
  checkId,
  checkNamespace,
  checkReconnect,
  checkSize,
  checkTimeout,
  readUrl,
  withoutSecrets,
} from "./arguments.ts";
import { ID_CHARS_MAX, TIMEOUT_MS_MAX } from "./wire/limits.ts";

const INVALID = { name: "EngineError", code: "INVALID_ARGUMENTS" };

Deno.test("readUrl() turns HTTP addresses into WebSocket ones and keeps the query", () => {
  assert.equal(readUrl("ws://127.0.0.1:49134"), "ws://127.0.0.1:49134/");
  assert.equal(readUrl("http://localhost:1/a?token=t"), "ws://localhost:1/a?token=t");
  assert.equal(readUrl("https://engine.example/"), "wss://engine.example/");
  assert.equal(readUrl("wss://engine.example/#part"), "wss://engine.example/");
});

for (const url of ["", "here", "localhost:49134", "ftp://localhost", "file:///tmp", 5, null, {}]) {
  Deno.test(`readUrl() rejects ${JSON.stringify(url)}`, () => {
    assert.throws(() => readUrl(url), INVALID);
  });
}

for (const id of ["", undefined, null, 7, {}, () => {}, "x".repeat(ID_CHARS_MAX + 1)]) {
  Deno.test(`checkId() rejects ${String(id).slice(0, 20) || "an empty id"}`, () => {
    assert.throws(() => checkId("function_id", id, "math::add"), INVALID);
  });
}

Deno.test("checkId() reports the expected and the received value", () => {
  const message = "function_id must be a string such as math::add, got an object";

  assert.throws(() => checkId("function_id", {}, "math::add"), { message });
});

Deno.test("checkEnqueue() rejects options that there are not", () => {
  checkEnqueue({ type: "enqueue", queue: "mail", delay_ms: 5, id: "a" });

  const delayed = { type: "enqueue" as const, queue: "mail", delay: 5 };
  assert.throws(() => checkEnqueue(delayed), {
    code: "INVALID_ARGUMENTS",
    message:
      /^"delay" is not an option of an enqueued call; the options are id, delay_ms, run_at_ms, /,
  });
  assert.throws(() => checkEnqueue({ type: "enqueue", queue: "" }), INVALID);
});

for (const timeout of [0, -1, 1.5, NaN, Infinity, "5", null, TIMEOUT_MS_MAX + 1]) {
  Deno.test(`checkTimeout() rejects ${JSON.stringify(timeout)} of type ${typeof timeout}`, () => {
    assert.throws(() => checkTimeout("timeout_ms", timeout), INVALID);
  });
}

Deno.test("checkTimeout() accepts whole milliseconds up to the limit", () => {
  checkTimeout("timeout_ms", 1);
  checkTimeout("timeout_ms", TIMEOUT_MS_MAX);
});

Deno.test("checkNamespace() accepts text or undefined", () => {
  checkNamespace(undefined);
  checkNamespace("billing");

  for (const namespace of ["", 5, null]) assert.throws(() => checkNamespace(namespace), INVALID);
});

Deno.test("checkCallable() rejects what is not a function", () => {
  const message = "The handler of a::b must be a function, got a list";

  assert.throws(() => checkCallable("The handler of a::b", []), { ...INVALID, message });
  checkCallable("The handler of a::b", () => {});
});

Deno.test("checkReconnect() rejects numbers that are not positive", () => {
  checkReconnect({});
  checkReconnect({ firstMs: 1, maxMs: 10, maxAttempts: Infinity });

  for (const value of [0, -5, NaN]) {
    assert.throws(() => checkReconnect({ maxAttempts: value }), INVALID);
  }
});

Deno.test("withoutSecrets() and error messages hide tokens and passwords", () => {
  assert.equal(withoutSecrets("ws://me:s3cret@host:1/a?token=s3cret#x"), "ws://host:1/a");
  for (const url of ["ftp://host/?token=s3cret", "ws//me:s3cret@host", "://:s3cret@host?s3cret"]) {
    assert.throws(() => readUrl(url), (error: Error) => !error.message.includes("s3cret"));
  }
});

Deno.test("checkSize() counts UTF-8 in parts, also where a pair of surrogates is cut", () => {
  const part = 64 * 1024;
  const texts = [
    "x".repeat(part * 2 + 1),
    `${"x".repeat(part - 1)}${"😀".repeat(part)}`,
    `${"x".repeat(part - 1)}\ud83d`,
    `${"é".repeat(part)}\udc00日本`,
  ];
  for (const text of texts) {
    const bytes = new TextEncoder().encode(text).length;
    checkSize("It", text, bytes);
    assert.throws(() => checkSize("It", text, bytes - 1), {
      code: "serialization_error",
      message: `It takes ${bytes} bytes; at most ${bytes - 1} are allowed`,
    });
  }
});
