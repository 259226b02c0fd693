import assert from "node:assert/strict";
import { temporaryFolder } from "../../../tests/fakes/fake_kernel.ts";
import { publishFolder, publishText, removeStale, withTemporary } from "./cache_files.ts";

const HOUR_MS = 3_600_000;

async function names(path: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(path));
  return entries.map(({ name }) => name).sort();
}

const filled = (text: string) => (folder: string) => Deno.writeTextFile(`${folder}/file`, text);

Deno.test("a folder appears whole or not at all", async () => {
  await using cache = await temporaryFolder();
  const path = `${cache.path}/a/b`;

  await publishFolder(path, async (folder) => {
    assert.deepEqual(await names(`${cache.path}/a`), [folder.split("/").at(-1)]);
    await filled("new")(folder);
  }, () => Promise.resolve(false));

  assert.deepEqual(await names(`${cache.path}/a`), ["b"]);
  assert.equal(await Deno.readTextFile(`${path}/file`), "new");
});

Deno.test("a folder that cannot be filled leaves nothing behind", async () => {
  await using cache = await temporaryFolder();

  const published = publishFolder(`${cache.path}/a`, () => {
    throw new Error("no space");
  }, () => Promise.resolve(false));

  await assert.rejects(published, /no space/);
  assert.deepEqual(await names(cache.path), []);
});

Deno.test("a whole folder that is there already stays, a damaged one is replaced", async () => {
  await using cache = await temporaryFolder();
  const path = `${cache.path}/a`;
  await publishFolder(path, filled("first"), () => Promise.resolve(false));

  await publishFolder(path, filled("second"), () => Promise.resolve(true));
  assert.equal(await Deno.readTextFile(`${path}/file`), "first");

  await publishFolder(path, filled("third"), () => Promise.resolve(false));
  assert.equal(await Deno.readTextFile(`${path}/file`), "third");
  assert.deepEqual(await names(cache.path), ["a"]);
});

Deno.test("many that make the same folder at once all find it whole", async () => {
  await using cache = await temporaryFolder();
  const path = `${cache.path}/a`;
  const isWhole = () => Deno.readTextFile(`${path}/file`).then((text) => text === "x", () => false);

  await Promise.all(Array.from({ length: 20 }, () => publishFolder(path, filled("x"), isWhole)));

  assert.equal(await isWhole(), true);
  assert.deepEqual(await names(cache.path), ["a"]);
});

Deno.test("a text is replaced in one step", async () => {
  await using cache = await temporaryFolder();

  await publishText(`${cache.path}/a/b`, "one");
  await publishText(`${cache.path}/a/b`, "two");

  assert.equal(await Deno.readTextFile(`${cache.path}/a/b`), "two");
  assert.deepEqual(await names(`${cache.path}/a`), ["b"]);
});

Deno.test("a temporary folder is gone afterwards, also after a failure", async () => {
  await using cache = await temporaryFolder();

  assert.equal(await withTemporary(cache.path, () => Promise.resolve(5)), 5);
  await assert.rejects(withTemporary(cache.path, () => Promise.reject(new Error("no"))), /no/);

  assert.deepEqual(await names(cache.path), []);
});

Deno.test("removeStale() removes what nobody keeps after an hour, and nothing younger", async () => {
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
