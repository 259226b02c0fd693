/**
 * When a build counts as older than its sources.
 *
 * @module
 */
import assert from "node:assert/strict";
import { changedAt, changedSources, SOURCES_FILE } from "./build_age.ts";

const CHANGED_MS = 1_700_000_000_000;

/** A project of two files and a build of it, in a folder with a space in its name. */
async function setup() {
  const path = await Deno.makeTempDir({ prefix: "engine build-" });
  const root = new URL(`file://${path}/`);
  const list = new URL(`dist/cli/${SOURCES_FILE}`, root);
  await Deno.mkdir(new URL("dist/cli/", root), { recursive: true });
  await Deno.mkdir(new URL("cli/", root));
  const files: Record<string, number> = {};
  for (const name of ["cli/run.ts", "deno.json"]) {
    await Deno.writeTextFile(new URL(name, root), "");
    await Deno.utime(new URL(name, root), CHANGED_MS / 1_000, CHANGED_MS / 1_000);
    files[name] = CHANGED_MS;
  }
  await Deno.writeTextFile(list, JSON.stringify({ root: "../../", files }));
  return {
    root,
    list,
    touch: (name: string, ms: number) => Deno.utime(new URL(name, root), ms / 1_000, ms / 1_000),
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}

Deno.test("changedSources() finds nothing while the sources are those of the build", async () => {
  await using project = await setup();

  assert.equal(changedSources(project.list), undefined);
});

Deno.test("changedSources() names the root when a source is newer, older or gone", async () => {
  await using project = await setup();

  await project.touch("deno.json", CHANGED_MS + 1_000);
  assert.equal(changedSources(project.list)?.href, project.root.href);
  await project.touch("deno.json", CHANGED_MS - 1_000);
  assert.equal(changedSources(project.list)?.href, project.root.href);
  await project.touch("deno.json", CHANGED_MS);
  assert.equal(changedSources(project.list), undefined);
  await Deno.remove(new URL("deno.json", project.root));
  assert.equal(changedSources(project.list)?.href, project.root.href);
});

Deno.test("changedSources() has nothing to say of a build that stands by itself", async () => {
  await using project = await setup();

  await Deno.remove(new URL("cli/run.ts", project.root));
  assert.equal(changedSources(project.list), undefined);
  assert.equal(changedSources(new URL("nowhere.json", project.root)), undefined);
});

Deno.test("changedSources() does not take a list that is none for an answer", async () => {
  await using project = await setup();
  await Deno.writeTextFile(project.list, "{");

  assert.throws(() => changedSources(project.list), SyntaxError);
});

Deno.test("changedAt() is the time of the last change, in whole milliseconds as they were", async () => {
  await using project = await setup();

  const { pathname } = new URL("deno.json", project.root);
  assert.equal(changedAt(decodeURIComponent(pathname)), CHANGED_MS);
  assert.equal(changedAt("/nowhere/at/all"), undefined);
});
