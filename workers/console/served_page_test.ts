/**
 * @module
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { answerWith, preparePage } from "./served_page.ts";

const HTML = `<!doctype html><html><head>
<meta name="engine-console-token" content="">
<style>b{color:red}</style><style></style></head>
<body><div id="app"></div><script type="module">alert("<b>")</script></body></html>`;

const hash = (text: string): string =>
  `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const ask = (headers: Record<string, string> = {}): Request =>
  new Request("http://localhost/", { headers });

Deno.test("preparePage() puts the token where the page looks for it", async () => {
  const page = await preparePage(HTML, "abc123");

  const text = await answerWith(page, ask()).text();
  assert.equal(text, HTML.replace('content=""', 'content="abc123"'));
});

Deno.test("preparePage() allows only scripts and styles that stand in the page", async () => {
  const { headers } = await preparePage(HTML, "abc123");

  const policy = headers["content-security-policy"]!.split("; ");
  assert.deepEqual(policy, [
    "default-src 'none'",
    `script-src ${hash('alert("<b>")')}`,
    `style-src ${hash("b{color:red}")}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]);
});

Deno.test("preparePage() allows no script at all in a page without one", async () => {
  const { headers } = await preparePage("<p>hello</p>", "");

  assert.match(headers["content-security-policy"]!, /script-src 'none'; style-src 'none'/);
});

Deno.test("answerWith() packs the page for those who can unpack it", async () => {
  const page = await preparePage(HTML, "abc123");

  const packed = answerWith(page, ask({ "accept-encoding": "br, gzip" }));
  const plain = answerWith(page, ask({ "accept-encoding": "br" }));

  assert.equal(packed.headers.get("content-encoding"), "gzip");
  assert.equal(plain.headers.get("content-encoding"), null);
  const unpacked = packed.body!.pipeThrough(new DecompressionStream("gzip"));
  assert.equal(await new Response(unpacked).text(), await plain.text());
});

Deno.test("answerWith() sends nothing again that is there already", async () => {
  const page = await preparePage(HTML, "abc123");
  const other = await preparePage(HTML, "xyz");
  const etag = answerWith(page, ask()).headers.get("etag")!;

  assert.equal(answerWith(page, ask({ "if-none-match": etag })).status, 304);
  assert.equal(answerWith(other, ask({ "if-none-match": etag })).status, 200);
});

Deno.test("answerWith() has the page kept nowhere, framed nowhere and guessed about nowhere", async () => {
  const { headers } = answerWith(await preparePage(HTML, "abc123"), ask());

  assert.deepEqual(
    ["cache-control", "x-frame-options", "x-content-type-options", "referrer-policy"]
      .map((name) => headers.get(name)),
    ["no-store", "DENY", "nosniff", "no-referrer"],
  );
});
