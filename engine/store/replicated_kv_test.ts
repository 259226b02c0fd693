import assert from "node:assert/strict";
import { testStore } from "../../tests/contracts/store_contract.ts";
import { MemoryLogServer } from "../../tests/cluster/memory_log.ts";
import { keepState } from "../../tests/cluster/replicated_stores.ts";
import { increment, put, textOf } from "../../tests/fakes/fake_store.ts";
import { until } from "../../tests/fakes/until.ts";

testStore("ReplicatedStore", () => keepState(new MemoryLogServer().open()));

Deno.test("a second keeper has everything, and the first one is refused at once", async () => {
  const server = new MemoryLogServer();
  await using first = await keepState(server.open());
  for (let i = 0; i < 100; i++) await put(first, ["k", `${i}`], { i });
  await put(first, ["large"], textOf(200_000, 1));

  await using second = await keepState(server.open());

  assert.equal((await second.list(["k"], 1_000)).length, 100);
  assert.equal((await second.get(["large"]))?.value, textOf(200_000, 1));
  await assert.rejects(put(first, ["k", "late"], 1), { code: "SET_ERROR", details: NOT_OWNER });
  assert.match((await first.failure).message, /Another engine keeps the state/);
  await assert.rejects(put(first, ["k", "later"], 1), { code: "SET_ERROR" });
  await assert.rejects(first.list(["k"], 1), { code: "SET_ERROR" });
  await put(second, ["k", "new"], 1);
  assert.equal(await second.get(["k", "late"]), undefined);
});

Deno.test("a write without an answer fails as unknown, and the keeper steps down", async () => {
  const server = new MemoryLogServer();
  await using first = await keepState(server.open());
  await put(first, ["a"], 1);
  server.beforeAnswer = () => {
    throw new Error("no leader");
  };

  await assert.rejects(first.write([increment(["a"])]), {
    code: "SET_ERROR",
    details: { unknown: true },
  });

  assert.match((await first.failure).message, /may have been made/);
  await assert.rejects(first.list([], 10), { code: "SET_ERROR" });
  server.beforeAnswer = () => {};
  await using second = await keepState(server.open());
  assert.equal((await second.get(["a"]))?.value, 2);
});

Deno.test("a write that the log refused for good leaves the keeper as it is", async () => {
  const server = new MemoryLogServer();
  await using store = await keepState(server.open());
  await put(store, ["a"], 1);
  server.beforeAppend = () => {
    throw new Error("no room");
  };

  await assert.rejects(put(store, ["a"], 2), { code: "SET_ERROR", message: /no room/ });

  server.beforeAppend = () => {};
  assert.equal((await store.get(["a"]))?.value, 1);
  assert.equal((await put(store, ["a"], 3)).value, 3);
});

Deno.test("nothing is read or written after the end of the lease", async () => {
  await using store = await keepState(new MemoryLogServer().open());
  await put(store, ["a"], 1);

  store.abort();

  await assert.rejects(put(store, ["a"], 2), { code: "SET_ERROR" });
  await assert.rejects(store.list([], 10), { code: "SET_ERROR" });
});

Deno.test("a snapshot takes the place of the log while writes go on", async () => {
  const server = new MemoryLogServer();
  {
    await using first = await keepState(server.open(), { logBytesMax: 200_000 });
    await put(first, ["gone"], 1);
    for (let i = 0; i < 100; i++) await put(first, ["k", `${i}`], "x".repeat(10_000 + i));
    await first.write([[["gone"], () => undefined]]);
    await put(first, ["large"], "y".repeat(300_000));
    await until(() => server.snapshot !== undefined);
    await put(first, ["k", "0"], "changed");
  }
  assert.ok(server.messages.length < 100, `${server.messages.length} messages are left`);

  await using second = await keepState(server.open());

  const entries = await second.list(["k"], 1_000);
  assert.equal(entries.length, 100);
  assert.equal(entries[0]!.value, "changed");
  assert.ok(entries.slice(1).every(({ key, bytes }) => bytes === 10_002 + Number(key[1])));
  assert.equal((await second.get(["large"]))?.bytes, 300_002);
  assert.equal(await second.get(["gone"]), undefined);
});

Deno.test("versions grow over keepers, and insertion order stays", async () => {
  const server = new MemoryLogServer();
  let last = 0;
  for (let i = 0; i < 3; i++) {
    await using store = await keepState(server.open());
    const { version } = await put(store, ["k", `${i}`], i);
    assert.ok(version > last);
    last = version;
  }
});

Deno.test("the file of the view is checked and copied like a state file", async () => {
  await using store = await keepState(new MemoryLogServer().open());
  for (let i = 0; i < 20; i++) await put(store, ["k", `${i}`], textOf(10_000 * i, i));
  const to = `${store.view.path}.backup`;

  const check = await store.file!.check();
  const copied = await store.file!.backup(to);

  assert.deepEqual([check.records, check.damaged_count, check.problems.length], [20, 0, 0]);
  assert.equal(copied.records, 20);
});

const NOT_OWNER = { reason: "not_owner" };

Deno.test("a write that waits for the log fails as unknown at the end of the lease", async () => {
  const server = new MemoryLogServer();
  await using store = await keepState(server.open());
  const stuck = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  server.beforeAppend = () => {
    begun.resolve();
    return stuck.promise;
  };

  const writing = put(store, ["a"], 1);
  await begun.promise;
  store.abort();

  await assert.rejects(writing, { code: "SET_ERROR", details: { unknown: true } });
  stuck.resolve();
});
