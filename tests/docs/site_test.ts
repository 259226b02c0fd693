/**
 * The site: every document is a page in one section, nothing comes from another machine, and the
 * search knows what the pages say. It is built only where npm can install the generator.
 *
 * @module
 */
import assert from "node:assert/strict";
import { readTexts } from "../fakes/source_tree.ts";
import { buildSite, missingTools, siteFile } from "./site.ts";
import { SHOWN, sitePages, siteSections } from "./site_pages.ts";

Deno.test("sitePages() turns links to documents into those of pages, others into paths", () => {
  const documents = new Map([
    [
      "README.md",
      "# engine\n[a](docs/a.md#b), [code](mod.ts), [more](https://x.y/) {{z}} `{{z}}`\n",
    ],
    [
      "docs/a.md",
      "<!-- Written. -->\n\n# All of `a`\n[home](../README.md)\n```md\n[x](y.md)\n```\n",
    ],
    ["templates/x.md", "# Not shown\n"],
  ]);

  const pages = sitePages(documents);

  assert.deepEqual(pages, [
    {
      path: "index.md",
      title: "engine",
      text:
        "# engine\n[a](/docs/a.md#b), code (`mod.ts`), [more](https://x.y/) &#123;&#123;z}} `{{z}}`\n",
    },
    {
      path: "docs/a.md",
      title: "All of a",
      text: "\n# All of `a`\n[home](/index.md)\n```md\n[x](y.md)\n```\n",
    },
  ]);
});

Deno.test("siteSections() keeps the order of the first page", () => {
  const page = (path: string) => ({ path, title: path, text: "" });
  const home = { ...page("index.md"), text: "[z](/docs/how-to/z.md) [b](/docs/how-to/b.md)" };

  const sections = siteSections([
    home,
    ...["x", "b", "z"].map((name) => page(`docs/how-to/${name}.md`)),
    page("docs/reference/y.md"),
  ]);

  assert.deepEqual(sections.map(({ text, items }) => [text, ...items.map(({ link }) => link)]), [
    ["Start", "/"],
    ["How to", "/docs/how-to/z", "/docs/how-to/b", "/docs/how-to/x"],
    ["Reference", "/docs/reference/y"],
  ]);
});

Deno.test("every page of the site is in one section of its sidebar", async () => {
  const texts = (await readTexts()).filter(({ path }) => SHOWN.test(path));
  const pages = sitePages(new Map(texts.map(({ path, text }) => [path, text])));

  const links = siteSections(pages).flatMap(({ items }) => items.map(({ link }) => link));

  assert.equal(new Set(links).size, pages.length);
  assert.equal(links.length, pages.length);
});

const missing = await missingTools();
if (missing !== undefined) console.log(`left out: the site is not built, since ${missing}`);

Deno.test({
  name: "the site is built, searches its own pages and loads nothing from elsewhere",
  ignore: missing !== undefined,
  fn: async () => {
    const out = await Deno.realPath(await Deno.makeTempDir());
    try {
      await buildSite(out);

      const text = async (path: string) =>
        await (await siteFile(out, new Request(`http://localhost${path}`))).text();
      const home = await text("/");
      assert.match(home, /<title>engine/);
      assert.match(await text("/docs/reference/functions.html"), /state::transaction/);
      assert.match(await text("/examples/shop/"), /out of stock|No order without stock/);
      assert.doesNotMatch(home, /(?:src|href)="(?:https?:)?\/\/[^"]*\.(?:js|css|woff2)/);
      const files = await Array.fromAsync(Deno.readDir(`${out}/assets/chunks`));
      const index = files.find(({ name }) => name.includes("localSearchIndex"))!;
      const words = await Deno.readTextFile(`${out}/assets/chunks/${index.name}`);
      assert.ok(words.includes('"thumbnails"'), "the index of the search has words of the pages");
      assert.equal((await siteFile(out, new Request("http://localhost/none"))).status, 404);
    } finally {
      await Deno.remove(out, { recursive: true });
    }
  },
});
