import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import {
  HEADERS_CHARS_MAX,
  HEADERS_MAX,
  type HttpTarget,
  readTarget,
  rulesOf,
  targetProblem,
  URL_CHARS_MAX,
} from "./target.ts";

const URL_TEXT = "https://api.example.com/quote";

function target(more: JsonObject = {}): HttpTarget {
  const read = readTarget({ url: URL_TEXT, ...more });
  assert.ok(typeof read !== "string", String(read));
  return read;
}

function problem(more: JsonObject): string {
  const read = readTarget({ url: URL_TEXT, ...more });
  assert.equal(typeof read, "string", JSON.stringify(more));
  return read as string;
}

Deno.test("readTarget() has the defaults of PROTOCOL 2.2", () => {
  const { url, method, timeout_ms, headers, auth } = target();

  assert.equal(url.href, URL_TEXT);
  assert.deepEqual([method, timeout_ms, auth], ["POST", 30_000, undefined]);
  assert.deepEqual(Object.keys(headers), []);
});

Deno.test("readTarget() reads all fields, and ignores unknown ones", () => {
  const read = target({
    url: "http://127.0.0.1:8080/a?b=c#part",
    method: "PUT",
    timeout_ms: 1,
    headers: { "X-Tenant": "a" },
    auth: { type: "api_key", header: "X-Key", value_key: "QUOTES_KEY" },
    later: true,
  });

  assert.equal(read.url.href, "http://127.0.0.1:8080/a?b=c");
  assert.equal(read.headers["x-tenant"], "a");
  assert.deepEqual(read.auth, { type: "api_key", header: "x-key", variable: "QUOTES_KEY" });
  assert.deepEqual([read.method, read.timeout_ms], ["PUT", 1]);
});

Deno.test("readTarget() refuses what is no absolute address of the web", () => {
  const urls = [
    null,
    7,
    "",
    "/quote",
    "api.example.com/quote",
    "https://",
    "file:///etc/passwd",
    "ftp://api.example.com/",
    "javascript:alert(1)",
    "https://user:pw@api.example.com/",
    "https://user@api.example.com/",
    "https://api.example.com:0/",
    "https://api.example.com:99999/",
    `https://api.example.com/${"a".repeat(URL_CHARS_MAX)}`,
  ];
  for (const url of urls) assert.match(problem({ url }), /url/, String(url));
});

Deno.test("readTarget() refuses wrong methods and timeouts", () => {
  for (
    const method of ["post", "HEAD", "CONNECT", "TRACE", "", 7, null, "GET / HTTP/1.1\r\nX: y"]
  ) {
    assert.match(problem({ method }), /method/, String(method));
  }
  for (const timeout_ms of [0, -1, 1.5, "8000", 2 ** 40, null, NaN]) {
    assert.match(problem({ timeout_ms }), /timeout_ms/, String(timeout_ms));
  }
});

Deno.test("readTarget() refuses headers that could change the request", () => {
  const headers: JsonObject[] = [
    { Host: "evil.test" },
    { "content-length": "0" },
    { "Transfer-Encoding": "chunked" },
    { Connection: "upgrade" },
    { "x-engine-Signature": "sha256=00" },
    { "Proxy-Authorization": "x" },
    { traceparent: "00-1" },
    { "": "a" },
    { "a b": "c" },
    { "a:": "c" },
    { "a\r\nb": "c" },
    { "ä": "c" },
    { a: "b\r\nx-injected: 1" },
    { a: "b\nc" },
    { a: "b\u0000" },
    { a: "ä" },
    { a: 7 },
    { a: ["b"] },
    { a: null },
    { A: "1", a: "2" },
  ];
  for (const each of headers) problem({ headers: each });
  for (const each of ["a: b", 7, ["a"]]) assert.match(problem({ headers: each }), /headers/);
});

Deno.test("readTarget() bounds the headers", () => {
  const many = (count: number): JsonObject =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, "a"]));

  target({ headers: many(HEADERS_MAX) });
  assert.match(problem({ headers: many(HEADERS_MAX + 1) }), /at most 64 headers/);
  target({ headers: { a: "b".repeat(HEADERS_CHARS_MAX - 1) } });
  assert.match(problem({ headers: { a: "b".repeat(HEADERS_CHARS_MAX) } }), /at most 8192/);
});

Deno.test("readTarget() keeps the names of a prototype apart", () => {
  const headers = JSON.parse('{"__proto__": "a", "constructor": "b"}') as JsonObject;

  const read = target({ headers });

  assert.deepEqual(Object.entries(read.headers), [["__proto__", "a"], ["constructor", "b"]]);
});

Deno.test("readTarget() refuses auth that is incomplete or contradicts the headers", () => {
  const auths = [
    "bearer",
    ["bearer"],
    {},
    { type: "basic" },
    { type: "bearer" },
    { type: "bearer", token_key: "" },
    { type: "bearer", token_key: "A B" },
    { type: "bearer", token_key: "$(id)" },
    { type: "hmac", token_key: "A" },
    { type: "api_key", value_key: "A" },
    { type: "api_key", header: "host", value_key: "A" },
    { type: "api_key", header: "a\r\nb", value_key: "A" },
    { type: "api_key", header: "x-key" },
  ];
  for (const auth of auths) problem({ auth });
  const headers = { authorization: "a", "x-key": "b" };
  assert.match(problem({ headers, auth: { type: "bearer", token_key: "A" } }), /authorization/);
  const auth = { type: "api_key", header: "X-Key", value_key: "A" };
  assert.match(problem({ headers, auth }), /x-key/);
});

function checked(more: JsonObject, settings: Partial<Parameters<typeof rulesOf>[0]> = {}) {
  const rules = rulesOf({ allow: [], allow_private: false, auth_env: [], ...settings });
  return targetProblem(target(more), rules, (name) => name === "SET" ? "value" : undefined);
}

Deno.test("targetProblem() names the entry that would allow a host", () => {
  assert.match(checked({})!, /add "api\.example\.com" to engine\.http_functions\.allow/);
  assert.equal(checked({}, { allow: ["api.example.com"] }), undefined);
  const url = "http://127.0.0.1:8080/";
  assert.match(checked({ url })!, /add "http:\/\/127\.0\.0\.1:8080".*with allow_private: true/);
  const allow_private = true;
  assert.doesNotMatch(checked({ url }, { allow_private })!, /allow_private/);
  const metadata = checked({ url: "http://169.254.169.254/" })!;
  assert.match(metadata, /never requested/);
  assert.doesNotMatch(metadata, /add "/, "it would be refused in any case");
});

Deno.test("targetProblem() refuses private addresses, however they are written", () => {
  const allow = ["*", "http://*:*"];
  const urls = ["http://127.0.0.1:1/", "http://2130706433/", "http://0x7f.1/", "http://[::1]/"];
  for (const url of [...urls, "http://[::ffff:10.0.0.1]/", "http://017700000001/"]) {
    assert.match(checked({ url }, { allow })!, /allow_private/, url);
    assert.equal(checked({ url }, { allow, allow_private: true }), undefined, url);
  }
  for (const url of ["http://169.254.169.254/", "http://0/", "http://[fe80::1]/", "http://[::]/"]) {
    assert.match(checked({ url }, { allow, allow_private: true })!, /never requested/, url);
  }
});

Deno.test("targetProblem() gives auth only variables that are listed and set", () => {
  const allow = ["api.example.com"];
  const auth = (token_key: string): JsonObject => ({ auth: { type: "bearer", token_key } });

  assert.match(checked(auth("HOME"), { allow })!, /HOME, which is not listed in .*auth_env/);
  assert.match(checked(auth("UNSET"), { allow, auth_env: ["UNSET"] })!, /not set for the engine/);
  assert.equal(checked(auth("SET"), { allow, auth_env: ["SET"] }), undefined);
});
