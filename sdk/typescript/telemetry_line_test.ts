import assert from "node:assert/strict";
import { sendsTelemetry, telemetryHeaders, telemetryUrl } from "./telemetry_line.ts";

const ADDRESSES = {
  "ws://127.0.0.1:49134": "ws://127.0.0.1:49134/otel",
  "ws://127.0.0.1:49134/": "ws://127.0.0.1:49134/otel",
  "wss://host/base/?token=x": "wss://host/base/otel?token=x",
  "ws://host?token=a%20b": "ws://host/otel?token=a%20b",
  "no address": "no address",
};
for (const [url, expected] of Object.entries(ADDRESSES)) {
  Deno.test(`telemetryUrl() makes ${expected} of ${url}`, () => {
    assert.equal(telemetryUrl(url), expected);
  });
}

Deno.test("telemetryHeaders() has the token and nothing else", () => {
  const headers = { "x-a": "1", authorization: "Basic xyz" };

  assert.deepEqual(telemetryHeaders({ headers, token: "t" }), { Authorization: "Bearer t" });
  assert.deepEqual(telemetryHeaders({ headers }), { authorization: "Basic xyz" });
  assert.deepEqual(telemetryHeaders({}), {});
});

const dial = (() => {}) as never;
const CASES = [
  [undefined, {}, true],
  [undefined, { dial }, false],
  [undefined, { dial, telemetry: true }, true],
  [undefined, { telemetry: false }, false],
  ["true", {}, true],
  ["false", {}, false],
  ["False", { telemetry: true }, false],
  ["0", {}, false],
  ["", {}, true],
] as const;
for (const [variable, options, expected] of CASES) {
  const shown = JSON.stringify({ variable, ...options, ..."dial" in options && { dial: "own" } });
  Deno.test(`sendsTelemetry() is ${expected} for ${shown}`, () => {
    if (variable !== undefined) Deno.env.set("OTEL_ENABLED", variable);
    try {
      assert.equal(sendsTelemetry(options), expected);
    } finally {
      Deno.env.delete("OTEL_ENABLED");
    }
  });
}
