import assert from "node:assert/strict";
import { FakeConnection } from "../../../tests/fakes/fake_connection.ts";
import { binaryFrame, frameOfValue, isCloseCode, sendFrame, SENT_BYTES_MAX } from "./frame.ts";

Deno.test("frameOfValue() sends a text as it is, bytes as bytes, and any other value as JSON", () => {
  const textOf = (value: Parameters<typeof frameOfValue>[0]) => {
    const { bytes, isBinary } = frameOfValue(value);
    return isBinary ? bytes : new TextDecoder().decode(bytes);
  };

  assert.equal(textOf('say "hi"'), 'say "hi"');
  assert.equal(textOf(""), "");
  assert.equal(textOf(null), "null");
  assert.equal(textOf([1, { a: "ü" }]), '[1,{"a":"ü"}]');
  assert.deepEqual(textOf({ data_base64: "AP8=" }), Uint8Array.of(0, 255));
  assert.equal(textOf({ data_base64: "AP8=", more: 1 }), '{"data_base64":"AP8=","more":1}');
  assert.equal(textOf({ data_base64: 5 }), '{"data_base64":5}');
});

Deno.test("A lone surrogate of a text becomes valid UTF-8", () => {
  const connection = new FakeConnection("c"); // Decodes strictly.

  sendFrame(connection, frameOfValue("a\ud800b"));

  assert.deepEqual(connection.takeTexts(), ["a\ufffdb"]);
});

Deno.test("A message has at most 16 MiB, and base64 has to be base64", () => {
  const code = "INVALID_ARGUMENTS";

  assert.equal(frameOfValue("x".repeat(SENT_BYTES_MAX)).bytes.length, SENT_BYTES_MAX);
  assert.throws(() => frameOfValue("x".repeat(SENT_BYTES_MAX + 1)), { code });
  assert.throws(() => frameOfValue("ü".repeat(SENT_BYTES_MAX / 2 + 1)), { code });
  assert.throws(() => binaryFrame("not base64!"), { code });
});

Deno.test("isCloseCode() takes the codes that an application may send", () => {
  const codes = [1000, 1001, 1008, 1011, 1013, 3000, 4999];
  const others = [0, 999, 1004, 1005, 1006, 1015, 2000, 2999, 5000, 1000.5, "1000", null, NaN];

  assert.deepEqual(codes.filter(isCloseCode), codes);
  assert.deepEqual(others.filter(isCloseCode), []);
});
