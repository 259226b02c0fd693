import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { requestHeaders, type ServedCall, signature } from "./request_headers.ts";
import { type HttpTarget, readTarget } from "./target.ts";

const BODY = new TextEncoder().encode('{"a":1}');
const CALL: ServedCall = {
  function_id: "legacy::quote",
  invocation_id: "0f6f0000-0000-4000-9000-000000000001",
  body: BODY,
  now: 1_700_000_000_999,
};

function made(invocation: JsonObject = {}, call: Partial<ServedCall> = {}, secret?: string) {
  const target = readTarget({ url: "https://api.example.com/", ...invocation }) as HttpTarget;
  return requestHeaders(target, { ...CALL, ...call }, secret);
}

Deno.test("requestHeaders() has the headers of PROTOCOL 2.2", () => {
  const { headers, ownHeaders } = made({ headers: { "X-Tenant": "a" } });

  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["x-engine-Function-Path"], "legacy::quote");
  assert.equal(headers["x-engine-Invocation-ID"], CALL.invocation_id);
  assert.equal(headers["x-engine-Timestamp"], "1700000000");
  assert.equal(headers["accept-encoding"], "identity");
  assert.deepEqual(ownHeaders, { "x-tenant": "a" });
});

Deno.test("requestHeaders() says nothing of a body that is not sent", () => {
  assert.equal(made({}, { body: undefined }).headers["content-type"], undefined);
});

Deno.test("requestHeaders() proves the sender to the function's own origin only", () => {
  const bearer = made({ auth: { type: "bearer", token_key: "T" } }, {}, "secret");
  assert.deepEqual(bearer.ownHeaders, { authorization: "Bearer secret" });
  const key = made({ auth: { type: "api_key", header: "X-Key", value_key: "T" } }, {}, "secret");
  assert.deepEqual(key.ownHeaders, { "x-key": "secret" });
  const hmac = made({ auth: { type: "hmac", secret_key: "T" } }, {}, "secret");
  assert.deepEqual(Object.keys(hmac.ownHeaders), ["x-engine-Signature"]);
  for (const { headers } of [bearer, key, hmac]) {
    assert.ok(!JSON.stringify(headers).includes("secret"));
  }
});

Deno.test("signature() is HMAC-SHA256 of the timestamp and the body in base64", () => {
  const mac = createHmac("sha256", "key").update("1700000000:eyJhIjoxfQ==").digest("hex");

  assert.equal(signature("key", "1700000000", BODY), `sha256=${mac}`);
  assert.notEqual(signature("key", "1700000001", BODY), `sha256=${mac}`);
  const empty = createHmac("sha256", "key").update("1700000000:").digest("hex");
  assert.equal(signature("key", "1700000000"), `sha256=${empty}`);
});

Deno.test("a function id cannot end its header", () => {
  const ids = ["a\r\nx-injected: 1", "a b", "a%b", "ä::ö", "\u0000", "\ud800", "😀", "a\u2028"];
  for (const function_id of ids) {
    const text = made({}, { function_id }).headers["x-engine-Function-Path"]!;

    assert.match(text, /^[\x21-\x7e]+$/, function_id);
  }
  assert.equal(
    made({}, { function_id: "ä b%" }).headers["x-engine-Function-Path"],
    "%C3%A4%20b%25",
  );
});

Deno.test("requestHeaders() passes the trace context on, unless it is no header value", () => {
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const { headers } = made({}, { traceparent, baggage: "tenant=a" });
  assert.deepEqual([headers.traceparent, headers.baggage], [traceparent, "tenant=a"]);

  for (const bad of ["a\r\nb: c", "ä", "", "a".repeat(10_000)]) {
    const { headers } = made({}, { traceparent: bad, baggage: bad });
    assert.deepEqual([headers.traceparent, headers.baggage], [undefined, undefined]);
  }
});

Deno.test("a function's own headers win over those that describe the engine", () => {
  const { headers, ownHeaders } = made({ headers: { Accept: "text/json", "User-Agent": "me" } });

  const sent = { ...headers, ...ownHeaders };
  assert.deepEqual([sent.accept, sent["user-agent"]], ["text/json", "me"]);
});
