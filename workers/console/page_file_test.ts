/**
 * @module
 */
import assert from "node:assert/strict";
import { consolePage } from "./page_file.ts";

Deno.test("the built page has a place for its token, and nobody's token", () => {
  assert.match(consolePage, /<meta\s+name="engine-console-token"\s+content="">/);
});

Deno.test("the built page fetches nothing: all it needs stands in it", () => {
  const markup = consolePage.replaceAll(/(<(script|style)\b[^>]*>)[\s\S]*?(<\/\2>)/gi, "$1$3");

  const outside = [...markup.matchAll(/\b(?:src|href)\s*=\s*"([^"]*)"/gi)].map(([, url]) => url!)
    .filter((url) => !url.startsWith("data:") && !url.startsWith("#"));
  assert.deepEqual(outside, []);
  assert.doesNotMatch(markup, /\son\w+\s*=/i, "the policy of the page allows no such attributes");
});
