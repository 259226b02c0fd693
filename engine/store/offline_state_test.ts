import assert from "node:assert/strict";
import { put } from "../../tests/fakes/fake_store.ts";
import { openKvStore } from "./kv_store.ts";
import { backupOffline, checkOffline, restoreOffline } from "./offline_state.ts";

async function setup() {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/state.db`;
  const backup = `${directory}/backup`;
  const set = async (value: number): Promise<void> => {
    await using store = await openKvStore(path);
    await put(store, ["k"], value);
  };
  const get = async (): Promise<unknown> => {
    await using store = await openKvStore(path);
    return (await store.get(["k"]))?.value;
  };
  await set(1);
  return { directory, path, backup, set, get };
}

Deno.test("restoreOffline() brings a backup back, keeps the old file, and the engine starts", async () => {
  const { directory, path, backup, set, get } = await setup();
  assert.equal(backupOffline(path, backup).records, 1);
  await set(2);

  const { aside, check } = await restoreOffline(path, backup);

  assert.equal(check.records, 1);
  assert.equal(await get(), 1);
  assert.equal(await get(), 1, "and again");
  assert.equal(checkOffline(aside!).records, 1);
  await Deno.remove(path); // Lost: a start is refused, a restore is the way back.
  await assert.rejects(get(), { code: "store_unavailable" });
  assert.equal((await restoreOffline(path, backup)).aside, undefined);
  assert.equal(await get(), 1);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("restoreOffline() refuses a damaged backup and a state that is in use, and changes nothing", async () => {
  const { directory, path, backup, get } = await setup();
  backupOffline(path, backup);
  {
    await using _store = await openKvStore(path);
    await assert.rejects(restoreOffline(path, backup), { details: { path, pid: Deno.pid } });
    assert.throws(() => checkOffline(path), { details: { path, pid: Deno.pid } });
  }
  {
    using kv = await Deno.openKv(backup);
    const { value } = await kv.get<Uint8Array>(["entry", "k"]);
    value![value!.length - 1]! ^= 1;
    await kv.set(["entry", "k"], value);
  }
  await assert.rejects(restoreOffline(path, backup), { message: /is not intact \(1 of its/ });
  await Deno.writeTextFile(backup, "letter ".repeat(1_000));
  await assert.rejects(restoreOffline(path, backup), { code: "INVALID_ARGUMENTS" });
  await assert.rejects(restoreOffline(path, `${backup}-none`), { message: /There is no backup/ });
  assert.equal(await get(), 1);
  await Deno.remove(directory, { recursive: true });
});
