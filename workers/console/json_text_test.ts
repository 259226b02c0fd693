/**
 * @module
 */
import assert from "node:assert/strict";
import { EngineError, InvocationError } from "../../sdk/typescript/wire/errors.ts";
import { canonical, failureOf, memberOf } from "./json_text.ts";

Deno.test("canonical() is the same for equal values, whatever the order of their keys", () => {
  assert.equal(canonical({ b: [{ d: 1, c: 2 }], a: null }), '{"a":null,"b":[{"c":2,"d":1}]}');
  assert.notEqual(canonical([1, 2]), canonical([2, 1]));
  assert.equal(canonical({ a: undefined }), canonical({}));
});

Deno.test("failureOf() keeps what the callee said, and nothing of this process", () => {
  const body = { code: "broken", message: "It broke", stacktrace: "at shop", retryable: true };
  const failure = failureOf(new InvocationError({ ...body, details: { a: 1 } }, "a::b"));

  assert.deepEqual(failure, { ...body, details: { a: 1 } });
  assert.deepEqual(failureOf(new EngineError("x", "y", { cause: new Error("secret") })), {
    code: "x",
    message: "y",
  });
  assert.deepEqual(failureOf(new Error("oh")), { code: "invocation_failed", message: "oh" });
  assert.deepEqual(failureOf("oh"), { code: "invocation_failed", message: "oh" });
  assert.deepEqual(failureOf(null), { code: "invocation_failed", message: "null" });
});

Deno.test("memberOf() finds members of objects only", () => {
  assert.equal(memberOf({ a: 1 }, "a"), 1);
  for (const value of [undefined, null, 1, "a", [1], {}]) {
    assert.equal(memberOf(value, "length"), undefined);
    assert.equal(memberOf(value, "constructor"), undefined);
  }
});
