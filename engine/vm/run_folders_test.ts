import assert from "node:assert/strict";
import { RunFolders } from "./run_folders.ts";

async function withFolder(check: (parent: string) => Promise<void>): Promise<void> {
  const root = await Deno.makeTempDir();
  await check(`${root}/run/vm`);
  await Deno.remove(root, { recursive: true });
}

Deno.test("RunFolders names a new folder each time and makes none", () =>
  withFolder(async (parent) => {
    const folders = new RunFolders(parent);
    const paths = [await folders.next(), await folders.next(), await new RunFolders(parent).next()];

    assert.equal(new Set(paths).size, 3);
    for (const path of paths) {
      assert.ok(path.startsWith(`${parent}/${Deno.pid}-`));
      await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
    }
  }));

Deno.test("RunFolders removes what engines left that are no more, and nothing else", () =>
  withFolder(async (parent) => {
    const living = await new RunFolders(parent).next();
    const left = ["999999999-1-ab12cd", "1-0-ab12cd", `${Deno.pid}-1-ab12cd`];
    for (const path of [living, ...[...left, "other"].map((name) => `${parent}/${name}`)]) {
      await Deno.mkdir(`${path}/inner`, { recursive: true });
    }

    await new RunFolders(parent).next();

    const paths = [...Deno.readDirSync(parent)].map(({ name }) => `${parent}/${name}`).sort();
    assert.deepEqual(paths, [living, `${parent}/other`].sort());
  }));
