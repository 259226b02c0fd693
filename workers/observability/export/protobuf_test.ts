import assert from "node:assert/strict";
import vectors from "../../../sdk/vectors/otlp_requests.json" with { type: "json" };
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { encodeRequest } from "./protobuf.ts";

/** Written by the generated classes of opentelemetry-proto from the same JSON. */
for (const { name, request, protobuf } of vectors) {
  Deno.test(`encodeRequest() encodes ${name} like the generated encoder`, () => {
    assert.equal(encodeRequest(request as unknown as JsonObject).toHex(), protobuf);
  });
}

Deno.test("encodeRequest() of an empty request is empty", () => {
  assert.equal(encodeRequest({}).length, 0);
});

Deno.test("encodeRequest() skips unknown members", () => {
  assert.equal(encodeRequest({ resourceSpans: [{ unknown: 1 }] }).toHex(), "0a00");
});

Deno.test("encodeRequest() encodes text longer than its initial buffer", () => {
  const stringValue = "x".repeat(100_000);
  const attributes = [{ key: "long", value: { stringValue } }];
  const bytes = encodeRequest({ resourceLogs: [{ resource: { attributes } }] });

  assert.ok(new TextDecoder().decode(bytes).includes(stringValue));
});

Deno.test("encodeRequest() survives arbitrary attribute values", () => {
  const odd = [null, "x", -1, 1.5, 1e300, "zz", "abc", [], {}, true, "99999999999999999999999"];
  for (const value of odd as Json[]) {
    const event = { timeUnixNano: value, name: value, attributes: value };
    const link = { traceId: value, spanId: value, flags: value };
    const span = {
      kind: value,
      traceId: value,
      events: [event, value],
      links: [link],
      flags: value,
    };
    const attributes = [{ key: value, value: { intValue: value } }, value];
    const scopeSpans = [{ spans: [{ ...span, attributes, status: value }] }];

    assert.ok(encodeRequest({ resourceSpans: [{ scopeSpans }] }).length > 0);
  }
});
