import assert from "node:assert/strict";
import { isInvocation, planFunction, readInvocation } from "./implementation.ts";
import type { HttpInvocation } from "./options.ts";

const INVALID = { name: "EngineError", code: "INVALID_ARGUMENTS" };

Deno.test("planFunction() makes the message of a handler, and of a URL", () => {
  const handler = () => 1;
  const url = "https://api.example.com/quote";

  const own = planFunction("a::b", handler, { description: "one" });
  assert.deepEqual(own.message, { type: "registerfunction", id: "a::b", description: "one" });
  assert.equal(own.handler, handler);
  const served = planFunction("a::b", { url }, { namespace: "eu" });
  const rest = { invocation: { url }, namespace: "eu" };
  assert.deepEqual(served.message, { type: "registerfunction", id: "a::b", ...rest });
  assert.throws(() => served.handler(null, undefined, undefined as never), {
    code: "function_not_invokable",
  });
});

Deno.test("readInvocation() takes what the engine checks further, and copies it", () => {
  const headers = { "X-Tenant": "a" };
  const auth = { type: "hmac", secret_key: "S" } as const;
  const url = "https://api.example.com/quote";

  const read = readInvocation("web::quote", { url, method: "PUT", timeout_ms: 5, headers, auth });

  assert.deepEqual(read, { url, method: "PUT", timeout_ms: 5, headers, auth });
  assert.notEqual(read.headers, headers);
  assert.deepEqual(readInvocation("web::quote", { url, method: undefined }), { url });
});

Deno.test("readInvocation() rejects what is no address of the web", () => {
  for (const url of ["", "/quote", "api.example.com", "ftp://a.test", "file:///etc", 7, null]) {
    const given = { url } as unknown as HttpInvocation;
    assert.throws(() => readInvocation("web::quote", given), {
      ...INVALID,
      message: /url of web::quote/,
    });
  }
  const url = "https://api.example.com";
  for (const timeout_ms of [0, 1.5, "5"]) {
    const given = { url, timeout_ms } as unknown as HttpInvocation;
    assert.throws(() => readInvocation("web::quote", given), INVALID);
  }
});

Deno.test("isInvocation() tells a URL from a handler", () => {
  assert.ok(isInvocation({ url: "" }));
  for (const other of [() => {}, {}, null, undefined, "https://a.test", ["url"]]) {
    assert.ok(!isInvocation(other));
  }
});
