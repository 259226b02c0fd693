/**
 * Links in documents lead to files that exist, and to headings that those files have.
 *
 * @module
 */
import assert from "node:assert/strict";
import { readTexts } from "../fakes/source_tree.ts";
import { anchorsOf, codeBlocks, linksOf } from "./markdown.ts";

const ROOT = new URL("../../", import.meta.url);
/** Documents of users' projects: their links are those of the project. */
const NOT_OURS = /^templates\//;

const pages = new Map(
  (await readTexts()).filter(({ path }) => path.endsWith(".md") && !NOT_OURS.test(path))
    .map(({ path, text }) => [path, text]),
);

for (const [path, text] of pages) {
  const links = linksOf(text).filter((link) => !/^[a-z]+:/.test(link));
  if (links.length === 0) continue;

  Deno.test(`the links of ${path} lead somewhere`, async () => {
    const dead: string[] = [];
    for (const link of links) {
      const { pathname, hash } = new URL(link, `file:///${path}`);
      const file = decodeURIComponent(pathname.slice(1));
      const there = await Deno.stat(new URL(file, ROOT)).then(() => true, () => false);
      const page = pages.get(file);
      const isHeading = hash === "" || page === undefined ||
        anchorsOf(page).has(decodeURIComponent(hash.slice(1)));
      if (!there || !isHeading) dead.push(link);
    }

    assert.deepEqual(dead, []);
  });
}

Deno.test("linksOf() finds links and pictures, but none in code", () => {
  const text = '[a](b.md) ![c](d.png)\n`[e](f)`\n```md\n[g](h)\n```\n[i](j "title")\n[k]: l.md\n';

  assert.deepEqual(linksOf(text), ["b.md", "d.png", "j", "l.md"]);
});

Deno.test("anchorsOf() spells headings as GitHub does, and numbers those that repeat", () => {
  const text =
    "# What both do\n## `engine::x`: a, b\n## Notes\n## Notes\n```sh\n# no heading\n```\n";

  assert.deepEqual([...anchorsOf(text)], ["what-both-do", "enginex-a-b", "notes", "notes-1"]);
});

Deno.test("codeBlocks() finds blocks of lists, without their indentation", () => {
  const text = "```ts\na;\n```\n* x\n\n  ```yaml\n  a:\n    b: 1\n  ```\n```\nplain\n```\n";

  assert.deepEqual(codeBlocks(text), [
    { language: "ts", code: "a;\n" },
    { language: "yaml", code: "a:\n  b: 1\n" },
    { language: "", code: "plain\n" },
  ]);
});
