import assert from "node:assert/strict";
import {
  counting,
  type Faults,
  faultyKv,
  increment,
  put,
  randomFrom,
  textOf,
} from "../../tests/fakes/fake_store.ts";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import { FakeClock, FakeTurns } from "../../tests/fakes/fake_clock.ts";
import { until } from "../../tests/fakes/until.ts";
import { testStore } from "../../tests/contracts/store_contract.ts";
import type { Log } from "../ports/log.ts";
import type { Store, StoreKey, WriteOptions } from "../ports/store.ts";
import { openKvStore } from "./kv_store.ts";
import { ANSWERS_PER_TURN } from "./write_turns.ts";

testStore("KvStore", () => openTemporary({}));
testStore("KvStore without a cache", () => openTemporary({}, 0));
testStore(
  "KvStore that acknowledges before the disk",
  () => openTemporary({}, undefined, { flushMs: 60_000 }),
);

/** A store in a directory of its own that is removed with it. */
async function openTemporary(
  faults: Faults,
  cacheBytesMax = 64 * 1024 * 1024,
  options?: WriteOptions,
): Promise<Store> {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/state.db`;
  const store = await openKvStore(path, {
    cacheBytesMax,
    openKv: faultyKv(faults),
    clock: new FakeClock(),
  });
  const close = async (): Promise<void> => {
    await store[Symbol.asyncDispose]();
    await Deno.remove(directory, { recursive: true });
  };
  let closing: Promise<void> | undefined;
  return {
    stats: store.stats,
    status: store.status,
    get: (key) => store.get(key),
    list: (...query) => store.list(...query),
    write: (changes, others) => store.write(changes, options ?? others),
    [Symbol.asyncDispose]: () => closing ??= close(),
  };
}

/** Commits wait until they are let go, one by one or all from then on. */
function gate() {
  const faults: Faults = {};
  const waiting: PromiseWithResolvers<void>[] = [];
  const arrivals: (() => void)[] = [];
  let isOpen = false;
  faults.beforeCommit = () => {
    if (isOpen) return;
    const turn = Promise.withResolvers<void>();
    waiting.push(turn);
    arrivals.shift()?.();
    return turn.promise;
  };
  /** Resolves when a commit waits. */
  const arrived = async (): Promise<void> => {
    if (waiting.length === 0) await new Promise<void>((resolve) => arrivals.push(resolve));
  };
  const letGo = async (failure?: Error): Promise<void> => {
    await arrived();
    const turn = waiting.shift()!;
    if (failure) turn.reject(failure);
    else turn.resolve();
  };
  const open = (): void => {
    isOpen = true;
    for (const turn of waiting.splice(0)) turn.resolve();
  };
  return { faults, arrived, letGo, open };
}

async function withFile(body: (path: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    await body(`${directory}/state.db`);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

/** Whether a promise is still open after everything had its turn that waits for nothing. */
async function isOpen(promise: Promise<unknown>): Promise<boolean> {
  let open = true;
  promise.then(() => open = false, () => open = false);
  await new Promise((resolve) => setTimeout(resolve, 0));
  for (let i = 0; i < 50; i++) await Promise.resolve();
  return open;
}

Deno.test("KvStore keeps entries, order and versions when it is opened again", () =>
  withFile(async (path) => {
    const before = [];
    let last: number;
    {
      await using store = await openKvStore(path);
      for (const size of [1, 60_000, 70_000, 1_500_000]) {
        before.push(await put(store, ["k", `${size}`], textOf(size, size)));
      }
      last = (await put(store, ["gone"], 1)).version;
      await store.write([[["gone"], () => undefined]]);
    }

    await using store = await openKvStore(path);

    for (const entry of before) {
      const found = await store.get(entry.key);
      assert.deepEqual(found, entry);
      assert.equal(found!.json, entry.json);
    }
    assert.ok((await put(store, ["gone"], 1)).version > last);
  }));

Deno.test("KvStore keeps a value of 32 MiB, replaces it and finds it again", () =>
  withFile(async (path) => {
    const [first, second] = [1, 2].map((seed) => textOf(32 * 1024 * 1024, seed));
    {
      await using store = await openKvStore(path);
      await put(store, ["large"], first!);
      assert.ok((await store.get(["large"]))?.value === first);
      await put(store, ["large"], second!);
    }

    await using store = await openKvStore(path);

    const found = await store.get(["large"]);
    assert.ok(found!.value === second && found!.bytes === 32 * 1024 * 1024 + 2);
  }));

Deno.test("KvStore refuses a file that is open already, until it is closed", () =>
  withFile(async (path) => {
    const store = await openKvStore(path);
    await assert.rejects(openKvStore(path), {
      code: "store_unavailable",
      details: { path, pid: Deno.pid },
    });

    await store[Symbol.asyncDispose]();

    await using _again = await openKvStore(path);
  }));

Deno.test("KvStore answers a write after its commit, and readers of the key wait for it", async () => {
  const faults: Faults = {};
  await using store = await openTemporary(faults);
  await put(store, ["k"], "old");
  await put(store, ["other"], "there");
  const closed = gate();
  faults.beforeCommit = closed.faults.beforeCommit;

  const write = store.write([[["k"], () => "new"]]);
  await closed.arrived();
  const [read, list] = [store.get(["k"]), store.list(["k"], 1)];

  assert.equal((await store.get(["other"]))?.value, "there");
  assert.deepEqual(await Promise.all([write, read, list].map(isOpen)), [true, true, true]);
  closed.open();
  assert.equal((await read)?.value, "new");
  await Promise.all([write, list]);
});

Deno.test("KvStore commits 1,000 writes at once in few commits", async () => {
  let commits = 0;
  const faults = { beforeCommit: () => void commits++ };
  await using store = await openTemporary(faults);

  await Promise.all(counting(1_000).map((i) => store.write([[["k", `${i}`], () => i]])));
  assert.ok(commits <= 6, `${commits} commits for 1,000 keys`);
  commits = 0;
  await Promise.all(counting(1_000).map(() => store.write([increment(["n"])])));

  assert.ok(commits <= 6, `${commits} commits for 1,000 increments`);
});

Deno.test("KvStore undoes a failed commit and all that was built on it", async () => {
  const closed = gate();
  await using store = await openTemporary(closed.faults);
  const first = put(store, ["n"], 1);
  await closed.letGo();
  const before = await first;
  // Known not to be there, so that writes need not read and share one commit.
  for (const name of ["new", "copy", "free"]) await store.get([name]);

  const lost = [
    store.write([increment(["n"])]),
    store.write([[["new"], () => 1]]),
  ];
  await closed.arrived();
  const built = [
    store.write([increment(["n"])]),
    store.write([[["copy"], () => "of new"], [["new"], (old) => old]]),
    store.write([[["n"], () => {
      throw new Error("saw what is lost");
    }]]),
  ];
  const free = store.write([[["free"], () => "kept"]]);
  const read = store.get(["n"]);
  await isOpen(free);
  await closed.letGo(new Error("disk full"));
  closed.open();

  const ended = await Promise.allSettled([...lost, ...built]);
  const codes = ended.map((end) => end.status === "rejected" && end.reason.code);
  assert.deepEqual(codes, Array(5).fill("SET_ERROR"));
  await free;
  assert.deepEqual(await read, before);
  assert.deepEqual((await store.list([], 10)).map(({ key }) => key), [["free"], ["n"]]);
  const [after] = await store.write([increment(["n"])]);
  assert.equal(after?.new?.value, 2);
  assert.ok(after!.new!.version > before.version);
});

Deno.test("KvStore counts every write it answered, whatever failed around it", async () => {
  const closed = gate();
  await using store = await openTemporary(closed.faults);
  const first = store.write([[["a"], () => 0], [["n"], () => 0], [["b"], () => 0]]);
  await closed.letGo();
  await first;
  let counted = 0;
  const count = (...also: StoreKey[]): Promise<void> =>
    store.write([["n"], ...also].map(increment)).then(() => void counted++, () => {});

  const lost = store.write([increment(["a"])]).catch(() => {});
  await closed.arrived();
  const writes = [count(), count(["a"])];
  const other = put(store, ["b"], 1);
  const failing = store.write([increment(["a"])]).catch(() => {});
  const listed = store.list([], 10);
  await isOpen(other);
  await closed.letGo(new Error("disk full"));
  await lost;
  writes.push(count());
  assert.ok(await isOpen(listed));
  closed.open();
  await Promise.all([...writes, other, failing]);

  assert.equal((await store.get(["n"]))!.value, counted);
  assert.ok((await listed).some(({ key, value }) => key[0] === "b" && value === 1));
});

Deno.test("KvStore goes on after commits that fail now and then, and keeps what it answered", async () => {
  for (const cacheBytes of [0, 1_000_000]) {
    const random = randomFrom(5);
    const faults = {
      beforeCommit: () => {
        if (random() < 0.3) throw new Error("disk full");
      },
    };
    await using store = await openTemporary(faults, cacheBytes);
    const done = new Map<string, number>();
    const keys: StoreKey[] = counting(5).map((i) => [`${i}`]);
    const writes: Promise<void>[] = [];
    for (let i = 0; i < 400; i++) {
      const key = keys[Math.floor(random() * keys.length)]!;
      const write = store.write([increment(key)]).then(
        () => void done.set(key[0]!, (done.get(key[0]!) ?? 0) + 1),
        (thrown) => assert.equal(thrown.code, "SET_ERROR"),
      );
      writes.push(write);
      if (random() < 0.1) await Promise.all(writes.splice(0));
      if (random() < 0.1) await store.get(key);
    }
    await Promise.all(writes);

    for (const [key] of keys) {
      assert.equal((await store.get([key!]))?.value, done.get(key!), `key ${key}`);
    }
  }
});

Deno.test("KvStore ends reads and writes that cannot read the file, and goes on when it can", async () => {
  const faults: Faults = {};
  await using store = await openTemporary(faults, 0);
  await put(store, ["k"], 1);
  faults.beforeRead = () => {
    throw new Error("disk gone");
  };

  await assert.rejects(store.get(["k"]), {
    code: "GET_ERROR",
    message: "The state file could not be read (disk gone)",
  });
  const writes = [store.write([increment(["k"])]), store.write([increment(["k"])])];
  const codes = (await Promise.allSettled(writes)).map((end) =>
    end.status === "rejected" && end.reason.code
  );
  assert.deepEqual(codes, ["SET_ERROR", "SET_ERROR"]);
  faults.beforeRead = undefined;

  await store.write([increment(["k"])]);
  assert.equal((await store.get(["k"]))?.value, 2);
});

Deno.test("KvStore lists large values whole while they are replaced", async () => {
  await using store = await openTemporary({}, 0);
  const key = (i: number): StoreKey => ["large", `${i}`];
  const large = (i: number): string => `${i}`.repeat(200_000);
  for (const i of counting(5)) await put(store, key(i), large(0));
  let isDone = false;
  const writing = (async () => {
    for (let round = 1; round < 9; round++) {
      for (const i of counting(5)) await put(store, key(i), large(round));
    }
    isDone = true;
  })();

  while (!isDone) {
    const values = (await store.list(["large"], 10)).map(({ value }) => value as string);
    assert.equal(values.length, 5);
    assert.ok(values.every((value) => value === value[0]!.repeat(200_000)));
  }
  await writing;
});

Deno.test("KvStore counts a commit that the disk refused apart from the others", async () => {
  const { faults, letGo } = gate();
  await using store = await openTemporary(faults);

  const refused = store.write([[["a"], () => 1]]);
  await letGo(new Error("full"));
  await assert.rejects(refused, { code: "SET_ERROR" });
  const kept = store.write([[["a"], () => "ab"]]);
  await letGo();
  await kept;

  const { commit_ms, ...counts } = store.stats;
  assert.deepEqual(counts, { commits: 1, changes: 1, failed: 1, lost: 0, bytes: 4 });
  assert.ok(commit_ms !== null && commit_ms >= 0);
});

/** Flips a bit in the record of a key of a closed store. */
async function damage(path: string, key: StoreKey): Promise<void> {
  using kv = await Deno.openKv(path);
  const { value } = await kv.get<Uint8Array>(["entry", ...key]);
  value![value!.length - 2]! ^= 1;
  await kv.set(["entry", ...key], value);
}

Deno.test("KvStore fails for a damaged key alone, names it, and can overwrite and delete it", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/state.db`;
  {
    await using store = await openKvStore(path);
    for (const name of ["a", "b", "c", "d"]) await put(store, ["k", name], `value of ${name}`);
  }
  for (const name of ["b", "c"]) await damage(path, ["k", name]);
  {
    await using store = await openKvStore(path);
    const failure = { code: "GET_ERROR", details: { key: ["k", "b"] } };
    await assert.rejects(store.get(["k", "b"]), failure);
    await assert.rejects(store.get(["k", "b"]), failure);
    assert.equal((await store.get(["k", "a"]))!.value, "value of a");
    const listed = await store.list(["k"], 10);
    assert.deepEqual(listed.map(({ damaged }) => damaged !== undefined), [
      false,
      true,
      true,
      false,
    ]);
    assert.deepEqual(store.status.damaged.map(({ key }) => key[1]), ["b", "c"]);

    await put(store, ["k", "b"], "new");
    await store.write([[["k", "c"], () => undefined]]);

    assert.equal((await store.get(["k", "b"]))!.value, "new");
    assert.equal(await store.get(["k", "c"]), undefined);
    assert.deepEqual(store.status.damaged, []);
  }
  await Deno.remove(directory, { recursive: true });
});

// Of 64 MiB: those of 256 KiB and more, which wait parsed, count as four times as much.
for (const [bytes, most] of [[250_000, 270], [1_000_000, 17]] as const) {
  Deno.test(`KvStore refuses writes while too many of ${bytes} bytes wait for the disk, and takes them again`, async () => {
    const { faults, letGo, open } = gate();
    const memory = createMemoryBudget(1_000_000_000);
    const directory = await Deno.makeTempDir();
    const path = `${directory}/state.db`;
    {
      await using store = await openKvStore(path, { openKv: faultyKv(faults), memory });
      const text = "x".repeat(bytes);
      const writes = counting(2 * most).map((i) => put(store, [`${i}`], text));
      const outcomes = Promise.allSettled(writes);
      await letGo();
      open();
      const codes = (await outcomes).map((it) =>
        it.status === "rejected" ? `${it.reason.code}: ${it.reason.message}` : "done"
      );

      const done = codes.filter((code) => code === "done").length;
      assert.ok(done > most / 2 && done <= most, `${done} done`);
      const full = "overloaded: Too much state waits for the disk; write again later";
      assert.equal(codes.filter((code) => code === full).length, codes.length - done);
      assert.equal(store.status.queued_bytes, 0);
      assert.equal(memory.used("queues"), 0);
      await put(store, ["after"], text);
    }
    assert.equal(memory.usedBytes, 0);
    await Deno.remove(directory, { recursive: true });
  });
}

Deno.test("KvStore gives most of its cache back when it is not used", async () => {
  const clock = new FakeClock();
  const directory = await Deno.makeTempDir();
  {
    await using store = await openKvStore(`${directory}/state.db`, { clock });
    await put(store, ["large"], "x".repeat(6_000_000));
    assert.ok(store.status.cache_bytes > 10_000_000);
    clock.tick(30_000);
    assert.ok(store.status.cache_bytes < 9_000_000);
  }
  assert.equal(clock.waiting, 0);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("KvStore acknowledges a write that may wait when it is applied, and readers see it", () =>
  withFile(async (path) => {
    const [clock, { faults, arrived, open }] = [new FakeClock(), gate()];
    await using store = await openKvStore(path, { clock, openKv: faultyKv(faults) });
    const soon = { flushMs: 100 };

    const [first] = await store.write([[["k"], () => "one"]], soon);
    const [second] = await store.write([[["k"], (old) => `${old!.value} two`]], soon);
    assert.equal(first!.new!.value, "one");
    assert.equal(second!.new!.value, "one two");
    assert.equal((await store.get(["k"]))!.value, "one two");
    await store.write([[["k"], () => undefined]], soon);
    assert.equal(await store.get(["k"]), undefined);
    await store.write([[["k"], () => "three"]], soon);
    assert.deepEqual([store.stats.commits, store.status.queued_bytes > 0], [0, true]);

    const durable = store.write([[["k"], () => "four"]]);
    await arrived();
    const read = store.get(["k"]);
    assert.ok(await isOpen(durable) && await isOpen(read), "readers wait for a durable write");
    open();
    assert.equal((await durable)[0]!.new!.value, "four");
    assert.equal((await read)!.value, "four");
    assert.deepEqual([store.stats.commits, store.status.queued_bytes], [1, 0]);
  }));

Deno.test("KvStore has on disk what it acknowledged, after its time and when it was closed", () =>
  withFile(async (path) => {
    const clock = new FakeClock();
    {
      await using store = await openKvStore(path, { clock });
      await store.write([[["a"], () => 1]], { flushMs: 100 });
      clock.tick(100);
      await until(() => store.stats.commits === 1);
      await store.write([[["b"], () => 2]], { flushMs: 100 });
      assert.equal((await store.list([], 10)).length, 2, "a list waits for the disk");
      await store.write([[["c"], () => 3]], { flushMs: 100 });
    }
    await using store = await openKvStore(path, { clock });

    assert.deepEqual((await store.list([], 10)).map(({ value }) => value), [1, 2, 3]);
  }));

Deno.test("KvStore counts and reports acknowledged writes that the disk refused", () =>
  withFile(async (path) => {
    const clock = new FakeClock();
    const [errors, faults]: [string[], Faults] = [[], {}];
    const log = { error: (text: string) => void errors.push(text), info() {} } as unknown as Log;
    await using store = await openKvStore(path, { clock, log, openKv: faultyKv(faults) });
    await put(store, ["k"], "old");
    faults.beforeCommit = () => Promise.reject(new Error("disk full"));

    await store.write([[["k"], () => "new"]], { flushMs: 100 });
    await store.write([[["k"], () => "newer"]], { flushMs: 100 });
    clock.tick(100);
    await until(() => store.stats.failed > 0);
    delete faults.beforeCommit;

    assert.equal((await store.get(["k"]))!.value, "old");
    assert.equal(store.stats.lost, 2);
    assert.deepEqual(errors, [
      "the state cannot be written",
      "an acknowledged write of the state is lost",
    ]);
    await store.write([[["k"], () => "again"]], { flushMs: 100 });
    assert.equal((await store.list([], 10))[0]!.value, "again");
  }));

Deno.test("KvStore neither reads nor caches an entry that its caller knows", async () => {
  const faults: Faults = {};
  await using store = await openTemporary(faults);
  let reads = 0;
  faults.beforeRead = () => {
    reads++;
  };

  const value = textOf(100_000, 1);
  const [added] = await store.write([[["job"], () => value, null]]);
  assert.equal(store.status.cache_bytes, 0);
  await store.write([[["job"], () => undefined, added!.new!]]);
  assert.deepEqual([reads, store.status.cache_bytes], [0, 0]);

  assert.equal(await store.get(["job"]), undefined);
  assert.equal(reads, 1);
});

Deno.test("KvStore reads what a caller knew after the disk refused its write", async () => {
  const { faults, letGo, open } = gate();
  await using store = await openTemporary(faults);
  const first = store.write([[["job"], () => "first", null]]);
  await letGo(new Error("disk full"));
  await assert.rejects(first, { code: "SET_ERROR" });
  open();

  const [again] = await store.write([increment(["job"])]);

  assert.equal(again!.old, undefined);
  assert.equal((await store.get(["job"]))?.value, 1);
});

Deno.test("the answers of one commit are given a few in each turn, failures too", async () => {
  const directory = await Deno.makeTempDir();
  const faults: Faults = {};
  const turns = new FakeTurns();
  const openKv = faultyKv(faults);
  const store = await openKvStore(`${directory}/state.db`, { openKv, turns });
  for (const failure of [undefined, "the disk is full"]) {
    faults.beforeCommit = () => failure === undefined ? undefined : Promise.reject(failure);
    let answered = 0;
    const writes = Array.from({ length: 300 }, (_, i) => {
      const write = store.write([[["a", `${i}`], () => 1]]);
      return write.then(() => {}, () => {}).finally(() => answered++);
    });
    // A list waits until all of them are on disk, or failed.
    await store.list(["a"], 1);
    assert.equal(answered, 0);
    turns.give();
    for (let i = 0; i < 10; i++) await Promise.resolve();
    assert.equal(answered, ANSWERS_PER_TURN);
    while (turns.waiting > 0) turns.give();
    await Promise.all(writes);
  }
  await store[Symbol.asyncDispose]();
  await Deno.remove(directory, { recursive: true });
});

for (const how of ["removed", "emptied"]) {
  Deno.test(`no write is acknowledged while the state file is ${how}, and reads go on`, async () => {
    const directory = await Deno.makeTempDir();
    const path = `${directory}/state.db`;
    const openKv = faultyKv({});
    const store = await openKvStore(path, { openKv });
    await put(store, ["a"], 1);
    const failure = (): string | undefined => store.status.failure?.message;
    assert.equal(failure(), undefined);

    if (how === "emptied") await Deno.truncate(path);
    else await Deno.rename(path, `${path}.away`);

    assert.match(failure() ?? "", new RegExp(`${how}.*while the engine runs`));
    await assert.rejects(put(store, ["a"], 2), {
      code: "SET_ERROR",
      message: /state file .* while the engine runs; .*engine state restore/,
    });
    assert.equal((await store.get(["a"]))?.value, 1);
    assert.equal(store.stats.failed, 1);

    if (how === "removed") {
      await Deno.rename(`${path}.away`, path);
      await put(store, ["a"], 3);
      assert.equal(failure(), undefined);
    }
    await store[Symbol.asyncDispose]();
    await Deno.remove(directory, { recursive: true });
  });
}

Deno.test("KvStore measures the disk of its file", async () => {
  const directory = await Deno.makeTempDir();
  {
    await using store = await openKvStore(`${directory}/state.db`);
    const { status } = store;

    assert.ok(status.freeBytes()! > 0);
    assert.ok(status.diskBytes!()! >= status.freeBytes()!);
  }
  await Deno.remove(directory, { recursive: true });
});
