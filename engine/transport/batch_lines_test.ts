import assert from "node:assert/strict";
import { eachMessage } from "./batch_lines.ts";

function messagesOf(frame: string): string[] {
  const around = new TextEncoder().encode(`x\n${frame}\ny`);
  const messages: string[] = [];
  eachMessage(around, 2, around.length - 2, (start, end) => {
    messages.push(new TextDecoder().decode(around.subarray(start, end)));
  });
  return messages;
}

Deno.test("eachMessage() reports what stands between newlines, in order", () => {
  assert.deepEqual(messagesOf("{}"), ["{}"]);
  assert.deepEqual(messagesOf('{"a":1}\n{"b":"ö"}\n[]'), ['{"a":1}', '{"b":"ö"}', "[]"]);
});

Deno.test("eachMessage() takes empty lines, and an empty frame, for nothing", () => {
  assert.deepEqual(messagesOf(""), []);
  assert.deepEqual(messagesOf("\n"), []);
  assert.deepEqual(messagesOf("\n\n1\n\n\n2\n"), ["1", "2"]);
});

Deno.test("eachMessage() keeps a carriage return and a space: only a newline separates", () => {
  assert.deepEqual(messagesOf("1\r\n 2 \n"), ["1\r", " 2 "]);
});
