/**
 * @module
 */
import assert from "node:assert/strict";
import { ID_CHARS_MAX } from "../../sdk/typescript/wire/limits.ts";
import { CONSOLE_QUERY_TRIGGERS_MAX } from "./limits.ts";
import { readMessage } from "./messages.ts";
import type { BrowserMessage } from "./wire.ts";

const GOOD: readonly BrowserMessage[] = [
  { type: "hello", token: "" },
  { type: "call", id: 0, function_id: "a::b" },
  {
    type: "call",
    id: 1,
    function_id: "a::b",
    namespace: "lab",
    payload: [1, { a: null }],
    timeout_ms: 5,
    metadata: { a: true },
  },
  { type: "watch_trigger", id: 2, trigger: { type: "log" } },
  { type: "watch_trigger", id: 2, trigger: { type: "log", config: { level: "warn" } } },
  { type: "watch_query", id: 3, query: { function_id: "a::b" }, on: [] },
  {
    type: "watch_query",
    id: 3,
    query: { function_id: "a::b", payload: {}, items: "rows", key: ["id"] },
    on: [{ type: "x" }],
  },
  { type: "http", id: 4, method: "POST", path: "/a?b", headers: { a: "b" }, body: "{}" },
  { type: "end", id: 5 },
];

for (const message of GOOD) {
  Deno.test(`readMessage() takes ${JSON.stringify(message)}`, () => {
    assert.deepEqual(readMessage(JSON.stringify(message)), { message });
  });
}

const BAD: readonly (readonly [text: string, id: number | undefined, says: RegExp])[] = [
  ["", undefined, /not JSON/],
  ["{", undefined, /not JSON/],
  ["null", undefined, /cannot be understood/],
  ["7", undefined, /cannot be understood/],
  ["[]", undefined, /cannot be understood/],
  ['{"type":"hello"}', undefined, /token: expected string, received nothing/],
  ['{"type":"hello","token":1}', undefined, /token: expected string, received 1/],
  ['{"type":"dance","id":1}', 1, /cannot be understood/],
  ['{"type":"end","id":-1}', undefined, /id/],
  ['{"type":"end","id":1.5}', undefined, /id/],
  ['{"type":"end","id":"1"}', undefined, /id/],
  ['{"type":"call","id":1}', 1, /function_id: expected string, received nothing/],
  ['{"type":"call","id":1,"function_id":""}', 1, /function_id/],
  ['{"type":"call","id":1,"function_id":"a","timeout_ms":0}', 1, /timeout_ms/],
  ['{"type":"call","id":1,"function_id":"a","timeout_ms":1e12}', 1, /timeout_ms/],
  ['{"type":"call","id":1,"function_id":"a","metadata":[]}', 1, /metadata/],
  ['{"type":"watch_trigger","id":1,"trigger":{}}', 1, /trigger\.type/],
  ['{"type":"watch_query","id":1,"query":{"function_id":"a"}}', 1, /on: expected array/],
  ['{"type":"watch_query","id":1,"query":{"function_id":"a","key":[]},"on":[]}', 1, /key/],
  ['{"type":"http","id":1,"method":"get","path":"/","headers":{}}', 1, /method/],
  ['{"type":"http","id":1,"method":"GET\\r\\nX: y","path":"/","headers":{}}', 1, /method/],
  ['{"type":"http","id":1,"method":"GET","path":"http://a/","headers":{}}', 1, /path/],
  ['{"type":"http","id":1,"method":"GET","path":"/","headers":{"a":1}}', 1, /headers\.a/],
];

for (const [text, id, says] of BAD) {
  Deno.test(`readMessage() says what is wrong with ${text || "nothing"}`, () => {
    const read = readMessage(text);

    assert.ok("problem" in read);
    assert.match(read.problem, says);
    assert.equal(read.id, id);
  });
}

Deno.test("readMessage() bounds names and triggers", () => {
  const function_id = "x".repeat(ID_CHARS_MAX + 1);
  const on = Array(CONSOLE_QUERY_TRIGGERS_MAX + 1).fill({ type: "log" });

  for (
    const message of [
      { type: "call", id: 1, function_id },
      { type: "watch_query", id: 1, query: { function_id: "a" }, on },
    ]
  ) assert.ok("problem" in readMessage(JSON.stringify(message)));
});

Deno.test("readMessage() hands on nothing that a message does not have", () => {
  const text = '{"type":"end","id":1,"__proto__":{"a":1},"constructor":2,"more":3}';

  assert.deepEqual(readMessage(text), { message: { type: "end", id: 1 } });
});

Deno.test("readMessage() bears values that nest deeper than any stack", () => {
  const deep = "[".repeat(200_000) + "]".repeat(200_000);

  for (
    const text of [
      deep,
      `{"type":"call","id":1,"function_id":${deep}}`,
      `{"type":"call","id":1,"function_id":"a","payload":${deep},"metadata":{"a":${deep}}}`,
    ]
  ) assert.ok(readMessage(text));
});
