import assert from "node:assert/strict";
import { PART_BYTES_FIRST, PartBuffer } from "./part_buffer.ts";

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

Deno.test("PartBuffer joins what is added, as bytes or as one chunk", () => {
  const buffer = new PartBuffer();
  buffer.add(bytes("hello "));
  buffer.add(bytes("world"));

  assert.equal(buffer.length, 11);
  assert.equal(text(buffer.bytes()), "hello world");
  assert.equal(text(buffer.chunk()), "b\r\nhello world\r\n");
  assert.equal(text(buffer.chunk()), "b\r\nhello world\r\n");
});

Deno.test("PartBuffer keeps its memory and none of its bytes when it is cleared", () => {
  const buffer = new PartBuffer();
  buffer.add(new Uint8Array(70_000).fill(97));
  const [head] = text(buffer.chunk()).split("\r\n");
  assert.equal(head, "11170");

  buffer.clear();

  assert.equal(buffer.length, 0);
  assert.equal(buffer.growthFor(70_000), 0);
  buffer.add(bytes("x"));
  assert.equal(text(buffer.chunk()), "1\r\nx\r\n");
});

Deno.test("PartBuffer says by how much it grows, and shrinks by as much", () => {
  const buffer = new PartBuffer();
  let held = 0;
  assert.equal(buffer.growthFor(1), PART_BYTES_FIRST);
  for (const size of [1, 100, 1_000, 65_536, 65_536, 262_144]) {
    held += buffer.growthFor(size);
    buffer.add(new Uint8Array(size));
  }

  assert.ok(held >= buffer.length && held < 2 * buffer.length + 1_000);
  assert.equal(buffer.shrink(), held);
  assert.equal(buffer.shrink(), 0);
});
