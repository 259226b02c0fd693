/**
 * @module
 */
import assert from "node:assert/strict";
import { stackLines, stackOf } from "./stack.tsx";

const kinds = (text: string) => stackLines(text).map(({ kind }) => kind);

Deno.test("stackLines() tells own frames of JavaScript from those of libraries", () => {
  const lines = kinds(`TypeError: x is not a function
    at buy (file:///app/shop.ts:12:3)
    at run (file:///app/.engine/sdk/typescript/engine_sdk.js:1:2)
    at next (ext:core/00_core.js:1:1)
    at go (file:///app/node_modules/pg/index.js:1:1)
    at node:internal/main:5:1`);

  assert.deepEqual(lines, ["error", "own", "library", "library", "library", "library"]);
});

Deno.test("stackLines() keeps the code below a frame of Python with it", () => {
  const lines = kinds(`Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/engine_sdk/_call.py", line 3, in run
    return handler(payload)
  File "/app/shop.py", line 9, in buy
    raise ValueError("no")
ValueError: no
`);

  assert.deepEqual(lines, ["error", "library", "library", "own", "own", "error"]);
});

Deno.test("stackOf() finds a stack among attributes, and nothing that is only a line", () => {
  assert.equal(stackOf({ a: 1, stack: "E\n at f" }), "E\n at f");
  assert.equal(stackOf({ "exception.stacktrace": "A\nb", stack: "E\n at f" }), "A\nb");
  assert.equal(stackOf({ stack: "TCP" }), null);
  assert.equal(stackOf({}), null);
});
