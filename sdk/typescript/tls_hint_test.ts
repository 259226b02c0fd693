import assert from "node:assert/strict";
import { withTlsHint } from "./tls_hint.ts";

Deno.test("withTlsHint() knows what Deno and Node say of each thing that can be wrong", () => {
  const said: Readonly<Record<string, readonly string[]>> = {
    "no TLS is spoken there": [
      "received corrupt message of type InvalidContentType",
      "write EPROTO 80EC:error:0A00010B:SSL routines:ssl3_get_record:wrong version number",
    ],
    "TLS may be spoken there": [
      "HTTP 426",
      "Parse Error: Expected HTTP/, RTSP/ or ICE/",
      "failed to connect to WebSocket: Invalid status code: 426",
      "failed to connect to WebSocket: invalid HTTP version parsed",
    ],
    "is for another name": [
      "Hostname/IP does not match certificate's altnames: Host: localhost. is not in the cert's",
      'invalid peer certificate: certificate not valid for name "localhost"',
    ],
    "does not hold at this time": [
      "certificate has expired",
      "invalid peer certificate: Expired",
      "certificate is not yet valid",
    ],
    "is not trusted here": [
      "unable to verify the first certificate",
      "self-signed certificate in certificate chain",
      "invalid peer certificate: UnknownIssuer",
    ],
  };

  for (const [hint, failures] of Object.entries(said)) {
    for (const failure of failures) assert.ok(withTlsHint(failure).includes(hint), failure);
  }
});

Deno.test("withTlsHint() is silent about everything else", () => {
  for (const failure of ["connect ECONNREFUSED 127.0.0.1:49134", "HTTP 401", "", "no answer"]) {
    assert.equal(withTlsHint(failure), failure);
  }
});
