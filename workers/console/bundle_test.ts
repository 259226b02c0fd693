/**
 * The built page: made of the sources that are there, and whole in one file.
 *
 * @module
 */
import assert from "node:assert/strict";
import { builtHash, fillFrame, packStyle, pageSources, sourcesHash } from "./bundle.ts";
import { consolePage } from "./server.ts";

const FRAME = '<meta name="engine-console-sources" content=""><style></style><script></script>';

Deno.test("dist/console.html is built from the sources of the page (deno task console)", async () => {
  assert.equal(builtHash(consolePage), await sourcesHash());
});

Deno.test("the built page has a place for its token and loads nothing", () => {
  assert.match(consolePage, /<meta name="engine-console-token" content="">/);
  assert.equal(consolePage.match(/<script\b/g)?.length, 1);
  assert.doesNotMatch(consolePage, /<(script|engine|img|iframe)[^>]+(src|href)="(?!data:)/);
  assert.doesNotMatch(consolePage, /@import|url\((?!["']?(data:|#))/);
});

Deno.test("the built page refers to nothing outside and has no event attributes", () => {
  const markup = consolePage.replaceAll(/(<(script|style)\b[^>]*>)[\s\S]*?(<\/\2>)/gi, "$1$3");

  const outside = [...markup.matchAll(/\b(?:src|href)\s*=\s*"([^"]*)"/gi)].map(([, url]) => url!)
    .filter((url) => !url.startsWith("data:") && !url.startsWith("#"));
  assert.deepEqual(outside, []);
  assert.doesNotMatch(markup, /\son\w+\s*=/i, "the policy of the page allows no such attributes");
});

Deno.test("the built page is at most 450 KiB", () => {
  assert.ok(consolePage.length < 450 * 1024, `${consolePage.length} characters`);
});

Deno.test("fillFrame() inserts script, style and hash unchanged", () => {
  const html = fillFrame(FRAME, { style: "a{b:$&}", script: 'x="$1"', hash: "abc" });

  assert.equal(builtHash(html), "abc");
  assert.match(html, /<style>a\{b:\$&\}<\/style><script>x="\$1"<\/script>/);
});

Deno.test("fillFrame() escapes a closing tag inside the script", () => {
  const html = fillFrame(FRAME, { style: "", script: 'a="</script><!--"', hash: "abc" });

  assert.match(html, /<script>a="\\x3C\/script>\\x3C!--"<\/script>$/);
});

Deno.test("builtHash() is undefined for a page without a hash", () =>
  assert.equal(builtHash("<html>"), undefined));

for (
  const [text, packed] of [
    ["a {\n  color: red;\n}\n", "a{color:red}"],
    ["/* why */ a { b: c; d: e }", "a{b:c;d:e}"],
    [".a :hover { b: c }", ".a :hover{b:c}"],
    [".a > .b, .c + .d { e: calc(1px + 2px) }", ".a > .b,.c + .d{e:calc(1px + 2px)}"],
    ["@media (max-width: 760px) { a { b: c } }", "@media (max-width:760px){a{b:c}}"],
    ['a::before { content: ": " }', 'a::before{content:": "}'],
  ] as const
) {
  Deno.test(`packStyle() makes ${packed}`, () => assert.equal(packStyle(text), packed));
}

Deno.test("pageSources() includes styles and frame, but no tests", async () => {
  const paths = (await pageSources()).map(({ path }) => path);

  assert.ok(!paths.some((path) => path.includes("_test.")));
  for (const path of ["index.html", "main.tsx", "deno.json", "style/1_tokens.css"]) {
    assert.ok(paths.includes(path), path);
  }
});
