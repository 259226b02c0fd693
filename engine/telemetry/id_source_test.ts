/**
 * Random ids: the same bytes as numbers and as text.
 *
 * @module
 */
import assert from "node:assert/strict";
import { IdSource } from "./id_source.ts";
import { idText } from "./traceparent.ts";

function counting() {
  let fills = 0;
  const source = new IdSource((bytes) => {
    fills++;
    const view = new DataView(bytes.buffer);
    for (let at = 0; at < bytes.length; at += 4) view.setUint32(at, fills * 10_000 + at);
  });
  return { source, fills: () => fills };
}

Deno.test("IdSource.text() says the bytes that word() says", () => {
  const { source } = counting();
  source.take(8);
  const at = source.take(16);
  const words = Uint32Array.from([0, 4, 8, 12], (more) => source.word(at + more));

  assert.equal(source.text(at, 16), idText(words, 0, 4));
});

Deno.test("IdSource.take() gives no byte twice, and asks for chance by the block", () => {
  const { source, fills } = counting();
  assert.equal(fills(), 0);
  const ids = Array.from({ length: 340 }, () => source.text(source.take(24), 24));

  assert.equal(new Set(ids).size, 340);
  assert.equal(fills(), 2);
});
