import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { findDroppedTail } from "./wal_tail.ts";

/** A log of four commits, as a crash leaves it. */
async function walOf(directory: string): Promise<Uint8Array> {
  using database = new DatabaseSync(`${directory}/a`);
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (a)");
  for (let i = 0; i < 3; i++) database.exec("INSERT INTO t VALUES (randomblob(3000))");
  return await Deno.readFile(`${directory}/a-wal`);
}

Deno.test("findDroppedTail() finds nothing in an intact log, and says what SQLite drops of others", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/log`;
  const tailOf = async (bytes: Uint8Array) => {
    await Deno.writeFile(path, bytes);
    return findDroppedTail(path);
  };
  const wal = await walOf(directory);
  const flipped = wal.slice();
  flipped[flipped.length - 5_000]! ^= 1;
  const frame = wal.slice(-4_096 - 24);
  frame[8]! ^= 1; // A salt: the frame is of an earlier use of the file.
  const reused = Uint8Array.from([...wal, ...frame]);

  assert.equal(findDroppedTail(`${directory}/none`), undefined);
  assert.equal(await tailOf(new Uint8Array()), undefined);
  assert.equal(await tailOf(wal), undefined);
  assert.equal((await tailOf(wal.subarray(0, wal.length - 1)))!.commits, 0);
  assert.ok((await tailOf(flipped))!.commits > 0);
  assert.equal((await tailOf(flipped))!.isDamaged, true);
  assert.equal((await tailOf(wal.subarray(0, wal.length - 1)))!.isDamaged, false);
  const headless = wal.slice();
  headless[9]! ^= 1;
  assert.equal((await tailOf(headless))!.isDamaged, true);
  assert.equal(await tailOf(reused), undefined);
  assert.equal((await tailOf(wal.subarray(0, 20)))!.bytes, 20);
  await Deno.remove(directory, { recursive: true });
});
