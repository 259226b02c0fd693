import assert from "node:assert/strict";
import { temporaryFolder } from "../../../tests/fakes/fake_vm.ts";
import { publishFolder, publishText, removeStale, withTemporary } from "./cache_files.ts";

const HOUR_MS = 3_600_000;

async function names(path: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(path));
  return entries.map(({ name }) => name).sort();
}

const filled = (text: string) => (folder: string) => Deno.writeTextFile(`${folder}/file`, text);

Deno.test("publishFolder() creates a complete folder or none", async () => {
  await using cache = await temporaryFolder();
  const path = `${cache.path}/a/b`;

  await publishFolder(path, async (folder) => {
    assert.deepEqual(await names(`${cache.path}/a`), [folder.split("/").at(-1)]);
    await filled("new")(folder);
  }, () => Promise.resolve(false));

  assert.deepEqual(await names(`${cache.path}/a`), ["b"]);
  assert.equal(await Deno.readTextFile(`${path}/file`), "new");
});

Deno.test("publishFolder() leaves nothing behind when it fails", async () => {
  await using cache = await temporaryFolder();

  const published = publishFolder(`${cache.path}/a`, () => {
    throw new Error("no space");
  }, () => Promise.resolve(false));

  await assert.rejects(published, /no space/);
  assert.deepEqual(await names(cache.path), []);
});

Deno.test("publishFolder() keeps a complete folder and replaces a damaged one", async () => {
  await using cache = await temporaryFolder();
  const path = `${cache.path}/a`;
  await publishFolder(path, filled("first"), () => Promise.resolve(false));

  await publishFolder(path, filled("second"), () => Promise.resolve(true));
  assert.equal(await Deno.readTextFile(`${path}/file`), "first");

  await publishFolder(path, filled("third"), () => Promise.resolve(false));
  assert.equal(await Deno.readTextFile(`${path}/file`), "third");
  assert.deepEqual(await names(cache.path), ["a"]);
});

Deno.test("concurrent calls of publishFolder() all find a complete folder", async () => {
  await using cache = await temporaryFolder();
  const path = `${cache.path}/a`;
  const isWhole = () => Deno.readTextFile(`${path}/file`).then((text) => text === "x", () => false);

  await Promise.all(Array.from({ length: 20 }, () => publishFolder(path, filled("x"), isWhole)));

  assert.equal(await isWhole(), true);
  assert.deepEqual(await names(cache.path), ["a"]);
});

Deno.test("publishText() replaces a file atomically", async () => {
  await using cache = await temporaryFolder();

  await publishText(`${cache.path}/a/b`, "one");
  await publishText(`${cache.path}/a/b`, "two");

  assert.equal(await Deno.readTextFile(`${cache.path}/a/b`), "two");
  assert.deepEqual(await names(`${cache.path}/a`), ["b"]);
});

Deno.test("withTemporary() removes its folder, also after a failure", async () => {
  await using cache = await temporaryFolder();

  assert.equal(await withTemporary(cache.path, () => Promise.resolve(5)), 5);
  await assert.rejects(withTemporary(cache.path, () => Promise.reject(new Error("no"))), /no/);

  assert.deepEqual(await names(cache.path), []);
});

Deno.test("removeStale() removes entries older than an hour unless kept", async () => {
  await using cache = await temporaryFolder();
  for (const name of ["kept", "old", ".tmp-1234"]) {
    await publishFolder(`${cache.path}/${name}`, filled("x"), () => Promise.resolve(false));
  }
  const keep = (name: string) => name === "kept";

  assert.deepEqual(await removeStale(cache.path, keep, Date.now() + HOUR_MS / 2), []);
  const removed = await removeStale(cache.path, keep, Date.now() + 2 * HOUR_MS);

  assert.deepEqual(removed.sort(), [`${cache.path}/.tmp-1234`, `${cache.path}/old`]);
  assert.deepEqual(await names(cache.path), ["kept"]);
  assert.deepEqual(await removeStale(`${cache.path}/none`, keep, Date.now()), []);
});
