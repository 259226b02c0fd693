/**
 * The configuration of `engine-http` and its triggers: every problem is reported.
 *
 * @module
 */
import assert from "node:assert/strict";
import { SchemaError } from "../kit/fit.ts";
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { parseHttpConfig, parseTriggerConfig, unknownKeys } from "./config.ts";

/** Paths of the problems of a configuration. */
function problemsOf(raw: Json): string[] {
  try {
    parseHttpConfig(raw);
    return [];
  } catch (error) {
    assert.ok(error instanceof SchemaError);
    return error.issues.map(({ path }) => path.join("."));
  }
}

Deno.test("parseHttpConfig() fills in the defaults", () => {
  for (const raw of [undefined, null, {}]) {
    assert.deepEqual(parseHttpConfig(raw), {
      allowed_hosts: [],
      host: "127.0.0.1",
      port: 3111,
      timeout_ms: 30_000,
      body_bytes_max: 16 * 1024 * 1024,
      streamed_body_bytes_max: 1_073_741_824,
      buffered_body_bytes_max: 1024 * 1024,
      concurrency_max: 1_024,
      cors: {
        origins: [],
        methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
      },
      middleware: [],
      websockets_max: 10_000,
      auth_token: "",
      insecure: false,
      openapi: false,
    });
  }
});

Deno.test("parseHttpConfig() refuses a token that no bearer header can carry", () => {
  for (const auth_token of ["two words", "umläut", 'a"b']) {
    assert.deepEqual(problemsOf({ auth_token }), ["auth_token"]);
  }
  assert.deepEqual(problemsOf({ auth_token: "aZ09-._~+/==" }), []);
});

Deno.test("parseHttpConfig() names every problem at once", () => {
  const raw = {
    host: "0.0.0.0",
    port: 70_000,
    timeout_ms: 0,
    cors: { origins: "x" },
    middleware: [{ priority: 1 }],
    insecure: "yes",
  };

  assert.deepEqual(problemsOf(raw).sort(), [
    "cors.origins",
    "host",
    "insecure",
    "middleware.0.function_id",
    "port",
    "timeout_ms",
  ]);
});

for (const raw of ["text", 5, [], { prot: 3111 }, { cors: { origin: "*" } }, { port: 1.5 }]) {
  Deno.test(`parseHttpConfig() refuses ${JSON.stringify(raw)}`, () => {
    assert.notDeepEqual(problemsOf(raw), []);
  });
}

for (const host of ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]"]) {
  Deno.test(`parseHttpConfig() takes ${host} as it is`, () => {
    assert.deepEqual(problemsOf({ host }), []);
  });
}

for (const host of ["0.0.0.0", "::", "192.168.1.5", "example.com", "127.0.0.1.example.com"]) {
  Deno.test(`parseHttpConfig() asks for a token or insecure with ${host}`, () => {
    assert.deepEqual(problemsOf({ host }), ["host"]);
    assert.deepEqual(problemsOf({ host, auth_token: "" }), ["host"]);
    assert.deepEqual(problemsOf({ host, auth_token: "t" }), []);
    assert.deepEqual(problemsOf({ host, insecure: true }), []);
  });
}

Deno.test("parseTriggerConfig() takes methods in any case, and null for left out", () => {
  const raw = {
    api_path: "/a",
    http_method: "post",
    condition_function_id: null,
    middleware_function_ids: null,
    lenient_body: null,
  };

  assert.deepEqual(parseTriggerConfig(raw), {
    api_path: "/a",
    http_method: "POST",
    condition_function_id: undefined,
    middleware_function_ids: [],
    enqueue: undefined,
    lenient_body: false,
    raw_body: false,
    auth_token: undefined,
    rate_limit: undefined,
    timeout_ms: undefined,
  });
  assert.equal(parseTriggerConfig({ api_path: "/a" }).http_method, "GET");
});

Deno.test("parseTriggerConfig() names every problem in one message", () => {
  const raw = {
    http_method: "PSOT",
    condition_function_id: 5,
    middleware_function_ids: ["a", 7],
    lenient_body: "yes",
  };

  assert.throws(() => parseTriggerConfig(raw), (error: EngineError) => {
    assert.equal(error.code, "trigger_registration_failed");
    assert.deepEqual(error.details!.problems, [
      "config.api_path: expected string, received nothing",
      "config.http_method: expected one of GET, HEAD, POST, PUT, PATCH, DELETE, received PSOT",
      "config.condition_function_id: expected string, received 5",
      "config.middleware_function_ids[1]: expected string, received 7",
      "config.lenient_body: expected boolean, received string",
    ]);
    return error.message === (error.details!.problems as string[]).join("; ");
  });
});

for (
  const raw of [
    null,
    "text",
    5,
    [],
    {},
    { api_path: "" },
    {
      api_path: "/",
      http_method: "OPTIONS",
    },
    ...[
      { auth_token: "" },
      { auth_token: "two words" },
      { auth_token: 5 },
      { rate_limit: {} },
      { rate_limit: { requests: 0, per_s: 1 } },
      { rate_limit: { requests: 1, per_s: 0.5 } },
      { rate_limit: { requests: 1, per_s: 1, key: "header:" } },
      { rate_limit: { requests: 1, per_s: 1, key: "cookie" } },
      { rate_limit: { requests: 1, per_s: 1, burst: 5 } },
      { timeout_ms: 0 },
      { raw_body: "yes" },
    ].map((more) => ({ api_path: "/", ...more })),
  ]
) {
  Deno.test(`parseTriggerConfig() refuses ${JSON.stringify(raw)}`, () => {
    assert.throws(() => parseTriggerConfig(raw), { code: "trigger_registration_failed" });
  });
}

Deno.test("parseTriggerConfig() counts requests by address unless a header is named", () => {
  const rate = { requests: 5, per_s: 60 };
  const keyOf = (more: JsonObject): string | undefined => {
    return parseTriggerConfig({ api_path: "/", rate_limit: { ...rate, ...more } }).rate_limit?.key;
  };

  assert.deepEqual([keyOf({}), keyOf({ key: "ip" }), keyOf({ key: "header:X-Api-Key" })], [
    "ip",
    "ip",
    "header:X-Api-Key",
  ]);
});

Deno.test("unknownKeys() finds what is misspelt", () => {
  assert.deepEqual(unknownKeys({ api_path: "/", method: "GET", path: "/" }), ["method", "path"]);
  assert.deepEqual(unknownKeys(null), []);
});
