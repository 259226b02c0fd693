/**
 * CONTRIBUTING.md names files, exports and tasks that exist.
 *
 * @module
 */
import assert from "node:assert/strict";
import manifest from "../deno.json" with { type: "json" };
import { readTexts } from "./fakes/source_tree.ts";

const ROOT = new URL("../", import.meta.url);
const text = await Deno.readTextFile(new URL("CONTRIBUTING.md", ROOT));
const quoted = [...new Set([...text.matchAll(/`([^`\n]+)`/g)].map(([, word]) => word!))];

Deno.test("CONTRIBUTING.md names paths that exist", async () => {
  // A path has a slash and no placeholder; `deno run …` and the like are commands.
  const paths = quoted.filter((word) => /^[\w.][\w./-]*\/[\w./-]*$/.test(word));

  assert.ok(paths.length > 40, `${paths.length} paths`);
  const missing = [];
  for (const path of paths) {
    if (!await Deno.stat(new URL(path, ROOT)).then(() => true, () => false)) missing.push(path);
  }
  assert.deepEqual(missing, []);
});

Deno.test("CONTRIBUTING.md names tasks that exist", () => {
  const tasks = [...text.matchAll(/deno task ([\w-]+)/g)].map(([, name]) => name!);

  assert.deepEqual(tasks.filter((name) => !Object.hasOwn(manifest.tasks, name)), []);
});

Deno.test("CONTRIBUTING.md names identifiers that the sources define", async () => {
  const names = quoted.filter((word) => /^#?[A-Za-z]+[A-Z_]\w*$/.test(word));
  const sources = (await readTexts()).filter(({ path }) => /\.(ts|py)$/.test(path))
    .map(({ text }) => text).join("\n");

  assert.ok(names.length > 20, `${names.length} names`);
  assert.deepEqual(names.filter((name) => !new RegExp(`${name}\\b`).test(sources)), []);
});
