/**
 * The built page: made of the sources that are there, and whole in one file.
 *
 * @module
 */
import assert from "node:assert/strict";
import { consolePage } from "./page_file.ts";
import { builtHash, fillFrame, packStyle, pageSources, sourcesHash } from "./bundle.ts";

const FRAME = '<meta name="engine-console-sources" content=""><style></style><script></script>';

Deno.test("dist/console.html is built from the sources of the page (deno task console)", async () => {
  assert.equal(builtHash(consolePage), await sourcesHash());
});

Deno.test("the built page has a place for its token and asks nothing of anybody", () => {
  assert.match(consolePage, /<meta name="engine-console-token" content="">/);
  assert.equal(consolePage.match(/<script\b/g)?.length, 1);
  assert.doesNotMatch(consolePage, /<(script|link|img|iframe)[^>]+(src|href)="(?!data:)/);
  assert.doesNotMatch(consolePage, /@import|url\((?!["']?(data:|#))/);
});

Deno.test("the built page is small enough to be carried along", () => {
  assert.ok(consolePage.length < 450 * 1024, `${consolePage.length} characters`);
});

Deno.test("fillFrame() puts script, style and hash into the frame as they are", () => {
  const html = fillFrame(FRAME, { style: "a{b:$&}", script: 'x="$1"', hash: "abc" });

  assert.equal(builtHash(html), "abc");
  assert.match(html, /<style>a\{b:\$&\}<\/style><script>x="\$1"<\/script>/);
});

Deno.test("a script that names its own end does not end there", () => {
  const html = fillFrame(FRAME, { style: "", script: 'a="</script><!--"', hash: "abc" });

  assert.match(html, /<script>a="\\x3C\/script>\\x3C!--"<\/script>$/);
});

Deno.test("a page without a hash has none", () => assert.equal(builtHash("<html>"), undefined));

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

Deno.test("tests are no part of the page, styles and frame are", async () => {
  const paths = (await pageSources()).map(({ path }) => path);

  assert.ok(!paths.some((path) => path.includes("_test.")));
  for (const path of ["index.html", "main.tsx", "deno.json", "style/1_tokens.css"]) {
    assert.ok(paths.includes(path), path);
  }
});
