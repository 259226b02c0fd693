import assert from "node:assert/strict";
import {
  describeThrown,
  EngineError,
  errorBody,
  InvocationError,
  isTimeout,
  meaningOf,
  normaliseError,
} from "./errors.ts";
import type { Json } from "./protocol.ts";

Deno.test("EngineError has the retryable of its code unless an option sets it", () => {
  assert.equal(new EngineError("overloaded", "x").retryable, true);
  assert.equal(new EngineError("overloaded", "x", { retryable: false }).retryable, false);
  assert.equal(new EngineError("a_code_of_my_own", "x").retryable, false);
});

Deno.test("EngineError.toJSON() omits cause and stack", () => {
  const details = { left: 2 };
  const error = new EngineError("out_of_stock", "Only 2 left", { details, cause: new Error("x") });

  const text = JSON.stringify(error);

  assert.equal(text, '{"code":"out_of_stock","message":"Only 2 left","details":{"left":2}}');
});

Deno.test("InvocationError has code and message in its text and the received fields", () => {
  const body = { code: "out", message: "No", details: { n: 1 }, retryable: true, stacktrace: "at" };
  const error = new InvocationError(body, "shop::buy", "id-1");

  assert.ok(error instanceof EngineError);
  assert.equal(error.name, "InvocationError");
  assert.equal(error.message, "out: No");
  assert.deepEqual(
    [error.code, error.details, error.retryable, error.stacktrace],
    ["out", { n: 1 }, true, "at"],
  );
  assert.deepEqual([error.function_id, error.invocation_id], ["shop::buy", "id-1"]);
});

Deno.test("meaningOf() returns entries of the table and no properties of objects", () => {
  assert.deepEqual(meaningOf("timeout"), { status: 504, retryable: false });
  assert.equal(meaningOf("toString"), undefined);
  assert.equal(meaningOf("out_of_stock"), undefined);
});

Deno.test("isTimeout() accepts the code of the engine and that of the SDK", () => {
  const [engine, sdk, other] = ["timeout", "TIMEOUT", "cancelled"]
    .map((code) => isTimeout(new EngineError(code, "x")));

  assert.deepEqual([engine, sdk, other], [true, true, false]);
  assert.equal(isTimeout(new Error("timeout")), false);
});

Deno.test("errorBody() has no empty fields", () => {
  assert.deepEqual(errorBody("a", "b"), { code: "a", message: "b" });
  assert.deepEqual(errorBody("overloaded", "b"), {
    code: "overloaded",
    message: "b",
    retryable: true,
  });
});

const odd: [Json, string, string][] = [
  ["broken", "UNKNOWN", "broken"],
  [null, "UNKNOWN", "null"],
  [[1], "UNKNOWN", "[1]"],
  [{ message: "m" }, "UNKNOWN", "m"],
  [{ code: "c" }, "c", '{"code":"c"}'],
  [{ code: 5, message: 6 }, "UNKNOWN", "6"],
];
for (const [error, code, message] of odd) {
  Deno.test(`normaliseError() makes an error object of ${JSON.stringify(error)}`, () => {
    assert.deepEqual(normaliseError(error), { code, message });
  });
}

Deno.test("normaliseError() keeps the fields of the right type", () => {
  const full = { code: "c", message: "m", stacktrace: "s", details: { a: 1 }, retryable: true };

  assert.deepEqual(normaliseError(full), full);
  assert.deepEqual(
    normaliseError({ ...full, stacktrace: 1, details: [1], retryable: "yes" }),
    { code: "c", message: "m" },
  );
});

Deno.test("describeThrown() keeps a string code and uses invocation_failed otherwise", () => {
  const coded = Object.assign(new Error("m"), { code: "ENOENT", details: { a: 1 } });
  const numbered = Object.assign(new Error("m"), { code: 5, details: [1] });

  const { stacktrace: _, ...described } = describeThrown(coded);
  assert.deepEqual(described, { code: "ENOENT", message: "m", details: { a: 1 } });
  assert.equal(describeThrown(numbered).code, "invocation_failed");
  assert.equal(describeThrown(numbered).details, undefined);
  assert.deepEqual(describeThrown(5), { code: "invocation_failed", message: "5" });
});

Deno.test("describeThrown() does not repeat the code of a failed call", () => {
  const error = new InvocationError({ code: "out", message: "No" }, "a::b");

  assert.equal(describeThrown(error).message, "No");
});

Deno.test("describeThrown() accepts values without a text and with getters that throw", () => {
  const nameless = Object.create(null);
  const numbered = Object.assign(new Error(), { message: 5n });
  const trap = Object.defineProperty(new Error("m"), "code", {
    get() {
      throw new Error("trap");
    },
  });
  const code = "invocation_failed";

  assert.deepEqual(describeThrown(nameless), {
    code,
    message: "a value without a text was thrown",
  });
  assert.equal(describeThrown(numbered).message, "5");
  assert.deepEqual(describeThrown(trap), { code, message: "m" });
});
