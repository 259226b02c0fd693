import assert from "node:assert/strict";
import { requestFailure } from "./request_failure.ts";

const QUOTE = new URL("https://api.example.com:8443/secret/path?key=secret");

function thrown(code: string, message = "what the platform says"): Error {
  return Object.assign(new Error(message), { code });
}

Deno.test("requestFailure() names the origin, never path or query", () => {
  for (const why of ["was slow", thrown("ECONNREFUSED"), thrown("EODD"), new Error("x"), 7, null]) {
    const error = requestFailure(QUOTE, why);

    assert.equal(error.code, "http_request_failed");
    assert.ok(error.message.startsWith("https://api.example.com:8443 "), error.message);
    assert.equal(error.details!.url, "https://api.example.com:8443");
    assert.ok(!JSON.stringify(error).includes("secret"));
    assert.equal(error.retryable, false, "the handler may have started");
  }
});

Deno.test("requestFailure() says for each kind what to do", () => {
  const cases: [string, RegExp][] = [
    ["ECONNREFUSED", /refuses the connection; start its service/],
    ["ETIMEDOUT", /does not accept a connection in time; check/],
    ["EHOSTUNREACH", /cannot be reached from this machine/],
    ["ENETUNREACH", /cannot be reached from this machine/],
    ["ECONNRESET", /closed the connection before it had answered/],
    ["ENOTFOUND", /a name that cannot be resolved; correct/],
    ["EAI_AGAIN", /cannot be resolved now/],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", /certificate.*NODE_EXTRA_CA_CERTS/],
    ["CERT_HAS_EXPIRED", /certificate that is not accepted \(CERT_HAS_EXPIRED\)/],
    ["ERR_TLS_CERT_ALTNAME_INVALID", /certificate/],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", /certificate/],
    ["ERR_SSL_WRONG_VERSION_NUMBER", /does not answer in TLS/],
    ["HPE_INVALID_CONSTANT", /does not answer in HTTP\/1\.1 \(HPE_INVALID_CONSTANT\)/],
    ["HPE_HEADER_OVERFLOW", /headers that are too large/],
    ["EMFILE", /ulimit -n/],
  ];
  for (const [code, message] of cases) {
    const error = requestFailure(QUOTE, thrown(code));

    assert.match(error.message, message, code);
    assert.equal(error.details!.reason, code);
  }
});

Deno.test("requestFailure() passes on what it does not know, shortened", () => {
  const { message, details } = requestFailure(QUOTE, new Error("a".repeat(1_000)));

  assert.ok(message.includes("cannot be requested: aaa") && message.length < 300);
  assert.equal(details!.reason, undefined);
  assert.equal(requestFailure(QUOTE, thrown("not a code!")).details!.reason, undefined);
  assert.match(requestFailure(QUOTE, thrown("constructor")).message, /what the platform says/);
});
