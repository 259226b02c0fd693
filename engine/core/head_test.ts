/**
 * The beginning of a message that is passed on.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Head } from "./head.ts";
import { bytesOf, textOf } from "./text_bytes.ts";

function add(head: Head, text: string): void {
  const memory = bytesOf(`(${text})`);
  head.add(memory, 1, memory.length - 1);
  memory.fill(0);
}

function text({ memory, length }: Head): string {
  return textOf(memory, 0, length);
}

Deno.test("a head begins with what all have in common, then with what was added, in order", () => {
  const head = new Head('{"type":"');
  assert.equal(text(head), '{"type":"');
  head.restart();
  add(head, "größe");
  add(head, "");
  add(head, '","😀');

  assert.equal(text(head), '{"type":"größe","😀');
});

Deno.test("Head.restart() forgets what was added and keeps what is common", () => {
  const head = new Head("common ");
  for (const added of ["a long one that was there before", "short", ""]) {
    head.restart();
    add(head, added);

    assert.equal(text(head), `common ${added}`);
  }
});

Deno.test("a head grows with what is added, and keeps what it has", () => {
  const head = new Head("common ");
  let expected = "common ";
  head.restart();
  for (const bytes of [1, 500, 512, 513, 5_000, 200_000]) {
    const part = String.fromCharCode(0x61 + bytes % 26).repeat(bytes);
    add(head, part);
    expected += part;

    assert.equal(text(head), expected);
  }
});

Deno.test("a head does not keep the memory of a huge one for the next", () => {
  const head = new Head("common ");
  add(head, "x".repeat(1_000_000));
  assert.ok(head.memory.length > 1_000_000);
  head.restart();
  assert.ok(head.memory.length <= 64 * 1024, `${head.memory.length}`);
  add(head, "next");

  assert.equal(text(head), "common next");
});

Deno.test("a head uses its memory again as long as it is not huge", () => {
  const head = new Head("common ");
  add(head, "x".repeat(10_000));
  const { memory } = head;
  head.restart();
  add(head, "y".repeat(10_000));

  assert.equal(head.memory, memory);
});

Deno.test("what is common may be longer than the usual head", () => {
  const head = new Head("c".repeat(3_000));
  head.restart();
  add(head, "!");

  assert.equal(text(head), `${"c".repeat(3_000)}!`);
});
