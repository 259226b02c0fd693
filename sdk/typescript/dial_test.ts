import assert from "node:assert/strict";
import { testTransport } from "../../tests/contracts/transport_contract.ts";
import { browserDial, dialPlatform, headersOf, withTlsHint } from "./dial.ts";
import type { TransportEvents } from "./wire/transport.ts";

Deno.test("headersOf() contains the headers of the options, the token and the launch id", () => {
  Deno.env.set("ENGINE_LAUNCH_ID", "launch-7");
  const headers = headersOf({ headers: { "x-team": "shop" }, token: "secret" });
  Deno.env.delete("ENGINE_LAUNCH_ID");

  assert.deepEqual(headers, {
    "x-team": "shop",
    "Authorization": "Bearer secret",
    "x-engine-launch-id": "launch-7",
  });
  assert.deepEqual(headersOf({}), {});
});

Deno.test("dialPlatform uses the global WebSocket on a platform without a process", () => {
  const globals = globalThis as { process?: unknown; WebSocket: unknown };
  const { process, WebSocket } = globals;
  const dialled: string[] = [];
  globals.process = undefined;
  globals.WebSocket = class {
    constructor(url: string) {
      dialled.push(url);
    }
    close(): void {
      (this as { onclose?: (event: unknown) => void }).onclose?.({ code: 1000, reason: "" });
    }
  };
  const events: TransportEvents = { opened() {}, text() {}, binary() {}, closed() {} };
  try {
    dialPlatform("ws://127.0.0.1:1/", events, {}).close();
  } finally {
    Object.assign(globals, { process, WebSocket });
  }

  assert.deepEqual(dialled, ["ws://127.0.0.1:1/"]);
});

Deno.test("withTlsHint() recognises the errors of Deno and Node", () => {
  const failures: Readonly<Record<string, readonly string[]>> = {
    "does not use TLS; dial ws://": [
      "received corrupt message of type InvalidContentType",
      "write EPROTO 80EC:error:0A00010B:SSL routines:ssl3_get_record:wrong version number",
    ],
    "may use TLS; dial wss://": [
      "HTTP 426",
      "Parse Error: Expected HTTP/, RTSP/ or ICE/",
      "failed to connect to WebSocket: Invalid status code: 426",
      "failed to connect to WebSocket: invalid HTTP version parsed",
    ],
    "is for another host name": [
      "Hostname/IP does not match certificate's altnames: Host: localhost. is not in the cert's",
      'invalid peer certificate: certificate not valid for name "localhost"',
    ],
    "has expired, or is not valid yet": [
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

  for (const [hint, texts] of Object.entries(failures)) {
    for (const failure of texts) assert.ok(withTlsHint(failure).includes(hint), failure);
  }
});

Deno.test("withTlsHint() leaves other reasons unchanged", () => {
  for (const failure of ["connect ECONNREFUSED 127.0.0.1:49134", "HTTP 401", "", "no answer"]) {
    assert.equal(withTlsHint(failure), failure);
  }
});

testTransport("browserDial", browserDial, { tokenInQuery: true, silentRefusals: true });
