import assert from "node:assert/strict";
import { put, textOf } from "../../tests/fakes/fake_store.ts";
import { until } from "../../tests/fakes/until.ts";
import { openKvStore } from "./kv_store.ts";
import { checkStateFile, copyStateFile, needsRewrite, rewriteStateFile } from "./state_file.ts";

async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    await body(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("checkStateFile() reads all records, and names what is damaged", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    {
      await using store = await openKvStore(path);
      for (const name of ["a\0b", "ü", "large"]) {
        await put(store, ["k", name], textOf(name === "large" ? 300_000 : 10, 1));
      }
    }
    const intact = checkStateFile(path);
    assert.deepEqual([intact.records, intact.damaged_count, intact.problems], [3, 0, []]);
    assert.ok(intact.bytes > 300_000);
    {
      using kv = await Deno.openKv(path);
      const entry = await kv.get<Uint8Array>(["entry", "k", "a\0b"]);
      entry.value![25]! ^= 4;
      await kv.set(["entry", "k", "a\0b"], entry.value);
      for await (const { key } of kv.list({ prefix: ["part"] })) {
        await kv.delete(key);
        break;
      }
    }

    assert.deepEqual(checkStateFile(path).damaged, [
      { key: ["k", "a\0b"], reason: "its checksum does not fit" },
      { key: ["k", "large"], reason: "parts of its value are missing" },
    ]);
  }));

Deno.test("checkStateFile() reports a file that is no database", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    await Deno.writeTextFile(path, "a letter ".repeat(1_000));

    assert.match(checkStateFile(path).problems[0]!, /not a database/);
  }));

Deno.test("checkStateFile() reports a file that was emptied, and leaves it so", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    await Deno.writeTextFile(path, "");

    assert.deepEqual(checkStateFile(path).problems, ["the file is empty (0 bytes)"]);
    assert.equal(Deno.statSync(path).size, 0);
  }));

Deno.test("a backup while writes go on is whole, private and has no write by halves", () =>
  withDirectory(async (directory) => {
    const to = `${directory}/backup.sqlite`;
    await using store = await openKvStore(`${directory}/state.db`);
    let isDone = false;
    const writing = (async () => {
      for (let i = 1; !isDone; i++) {
        await store.write([[["left"], () => i], [["right"], () => i]]);
        if (i % 10 === 0) await put(store, ["large", `${i % 30}`], textOf(200_000, i));
      }
    })();
    const check = await store.file!.backup(to);
    isDone = true;
    await writing;

    assert.deepEqual([check.damaged_count, check.problems], [0, []]);
    await using copy = await openKvStore(to);
    assert.equal((await copy.get(["left"]))?.value, (await copy.get(["right"]))?.value);
    if (Deno.build.os !== "windows") assert.equal(Deno.statSync(to).mode! & 0o777, 0o600);
    assert.deepEqual((await store.file!.check()).problems, []);
    await assert.rejects(store.file!.backup(`${directory}/none/b`), { code: "store_unavailable" });
  }));

Deno.test("the file shrinks while the store is open, after large values were deleted", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    await using store = await openKvStore(path);
    for (let i = 0; i < 10; i++) await put(store, [`${i}`], textOf(5_000_000, i));
    await put(store, ["last"], 1);
    const before = Deno.statSync(path).size;
    for (let i = 0; i < 10; i++) await store.write([[[`${i}`], () => undefined]]);

    await until(async () => {
      await put(store, ["last"], 2);
      return Deno.statSync(path).size < before / 2;
    });
    assert.equal((await store.get(["last"]))!.value, 2);
  }));

Deno.test("a file of version 0.1.0 of which most is free is rewritten when it is opened", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    {
      using kv = await Deno.openKv(path);
      for (let i = 0; i < 400; i++) await kv.set(["x", i], new Uint8Array(60_000));
      for (let i = 0; i < 400; i++) await kv.delete(["x", i]);
    }
    assert.ok(needsRewrite(path));
    (await openKvStore(path))[Symbol.asyncDispose]();

    rewriteStateFile(path);
    assert.ok(!needsRewrite(path));
    assert.ok(Deno.statSync(path).size < 1_000_000);
  }));

Deno.test("copyStateFile() leaves nothing behind when the disk refuses the copy", () =>
  withDirectory(async (directory) => {
    await Deno.writeTextFile(`${directory}/x`, "a letter ".repeat(1_000));
    assert.throws(() => copyStateFile(`${directory}/x`, `${directory}/y`));
    assert.deepEqual([...Deno.readDirSync(directory)].map(({ name }) => name), ["x"]);
  }));
