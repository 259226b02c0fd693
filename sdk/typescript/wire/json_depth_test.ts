/**
 * The depth bound: brackets count, brackets in strings do not, and a large text takes one pass.
 *
 * @module
 */
import assert from "node:assert/strict";
import { isTooDeep, isTooDeepBytes, JSON_DEPTH_MAX } from "./json_depth.ts";

function checks(text: string, expected: boolean, what: string): void {
  assert.equal(isTooDeep(text), expected, what);
  const bytes = new TextEncoder().encode(`[[[${text}]]]`);
  assert.equal(isTooDeepBytes(bytes, 3, bytes.length - 3), expected, `${what}, as bytes`);
}

function nested(depth: number, open = "[", close = "]"): string {
  return open.repeat(depth) + close.repeat(depth);
}

Deno.test("the deepest allowed nesting passes, one more does not", () => {
  checks(nested(JSON_DEPTH_MAX), false, "arrays");
  checks(nested(JSON_DEPTH_MAX + 1), true, "arrays");
  checks(nested(JSON_DEPTH_MAX, '{"a":', "}"), false, "objects");
  checks(nested(JSON_DEPTH_MAX + 1, '{"a":', "}"), true, "objects");
  checks(nested(JSON_DEPTH_MAX / 2 + 1, '[{"a":', "}]"), true, "both");
});

Deno.test("many neighbours are not deep", () => {
  checks(`[${"[],{},".repeat(1_000)}0]`, false, "neighbours");
});

Deno.test("brackets in strings do not count, also behind escapes", () => {
  checks(JSON.stringify("[".repeat(1_000)), false, "in a string");
  checks(JSON.stringify(`\\"${"{".repeat(1_000)}`), false, "behind an escaped quote");
  checks(`["\\\\",${nested(JSON_DEPTH_MAX)}]`, true, "behind a string that ends in a backslash");
});

Deno.test("a text that is no JSON has an answer too", () => {
  checks("", false, "empty");
  checks('"' + "[".repeat(1_000), false, "a string without an end");
  checks("]".repeat(1_000), false, "only closing brackets");
  checks("[".repeat(1_000_000), true, "only opening brackets");
});
