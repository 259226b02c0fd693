import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { GroupCommit, type Work } from "./group_commit.ts";

/** A queue whose commits end when the test says so, and works that note how they ended. */
function setup() {
  const clock = new FakeClock();
  const commits: string[][] = [];
  const settled: string[] = [];
  const names = new Map<Work, string>();
  const turns: PromiseWithResolvers<void>[] = [];
  let rest: () => Promise<boolean> = () => Promise.resolve(false);
  const group = new GroupCommit<Work>(
    (works) => {
      commits.push(works.map((work) => names.get(work)!));
      const turn = Promise.withResolvers<void>();
      turns.push(turn);
      return turn.promise;
    },
    () => rest(),
    clock,
  );
  const add = (name: string, work: Partial<Work> = {}): void => {
    const changed = work.changed ?? [name];
    const made: Work = {
      read: changed,
      changed,
      mutations: 1,
      bytes: 100,
      flushMs: 0,
      settle: (failure) => void settled.push(failure ? `${name}: ${failure.code}` : name),
      ...work,
    };
    names.set(made, name);
    group.add(made);
  };
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  /** Ends the commit on its way. */
  const end = async (failure?: Error): Promise<void> => {
    await settle();
    const turn = turns.shift()!;
    if (failure) turn.reject(failure);
    else turn.resolve();
    await settle();
  };
  const setRest = (task: () => Promise<boolean>): void => void (rest = task);
  return { clock, group, add, end, settle, commits, settled, setRest };
}

Deno.test("Works that arrive during a commit share the next one", async () => {
  const { group, add, end, commits, settled } = setup();
  add("a");
  add("b");
  await end();
  assert.deepEqual(settled, ["a", "b"]);

  add("c");
  await end();
  for (const name of ["d", "e", "f"]) add(name);
  await end();
  await group.idle();

  assert.deepEqual(commits, [["a", "b"], ["c"], ["d", "e", "f"]]);
});

Deno.test("A work is settled after its commit, not before", async () => {
  const { add, end, settle, settled } = setup();
  add("a");
  await settle();
  add("b");
  await settle();
  assert.deepEqual(settled, []);

  await end();
  assert.deepEqual(settled, ["a"]);
  await end();

  assert.deepEqual(settled, ["a", "b"]);
});

Deno.test("A group holds 500 changes and 700 KiB, and a larger work makes its own", async () => {
  const { add, end, commits } = setup();
  for (let i = 0; i < 600; i++) add(`${i}`);
  add("huge", { bytes: 10_000_000, mutations: 170 });
  for (let i = 0; i < 10; i++) add(`large ${i}`, { bytes: 100 * 1024 });
  for (let i = 0; i < 5; i++) await end();

  assert.deepEqual(commits.map((works) => works.length), [500, 100, 1, 7, 3]);
  assert.deepEqual(commits[2], ["huge"]);
});

Deno.test("Writes of the same few keys share one commit, up to its bytes; parts count each time", async () => {
  const { clock, add, end, settle, commits } = setup();
  const early = { flushMs: 100 };
  for (let i = 0; i < 2_000; i++) add(`${i}`, { ...early, changed: [`key ${i % 7}`] });
  await settle();
  assert.equal(commits.length, 0, "they may wait: a commit has room for more");
  clock.tick(100);
  await end();
  assert.deepEqual(commits.map((works) => works.length), [2_000]);

  for (let i = 0; i < 80; i++) add(`b${i}`, { ...early, changed: ["key"], bytes: 10 * 1024 });
  for (let i = 0; i < 30; i++) add(`c${i}`, { ...early, changed: ["large"], mutations: 20 });
  clock.tick(100);
  for (let i = 0; i < 3; i++) await end();

  assert.deepEqual(commits.slice(1).map((works) => works.length), [70, 34, 6]);
});

Deno.test("A work that changes nothing waits for those before it, but needs no commit", async () => {
  const { add, end, settle, commits, settled } = setup();
  add("reads nothing on its way", { changed: [] });
  await settle();
  assert.deepEqual(settled, ["reads nothing on its way"]);

  add("a");
  await settle();
  add("looks at a", { read: ["a"], changed: [] });
  await settle();
  assert.equal(settled.length, 1);
  await end();

  assert.deepEqual(settled.slice(1), ["a", "looks at a"]);
  assert.deepEqual(commits, [["a"]]);
});

Deno.test("A failed commit fails what was built on it, and nothing else", async () => {
  const { add, end, settle, commits, settled } = setup();
  add("a");
  add("b");
  add("looks at z", { read: ["z"], changed: [] });
  await settle();
  add("on a", { read: ["a", "x"], changed: ["x"] });
  add("on x", { read: ["x"], changed: ["y"] });
  add("looks at y", { read: ["y"], changed: [] });
  add("free", { read: ["c"], changed: ["c"] });
  add("looks at c", { read: ["c"], changed: [] });

  await end(new Error("disk full"));
  await end();

  assert.deepEqual(settled, [
    "looks at z",
    "a: SET_ERROR",
    "b: SET_ERROR",
    "on a: SET_ERROR",
    "on x: SET_ERROR",
    "looks at y: SET_ERROR",
    "free",
    "looks at c",
  ]);
  assert.deepEqual(commits, [["a", "b", "looks at z"], ["free", "looks at c"]]);
});

Deno.test("A work that read at a key before a failed one would have changed it is not failed", async () => {
  const { add, end, settle, settled } = setup();
  add("first");
  await settle();
  add("looks at k", { read: ["k"], changed: [] });
  add("writes first again", { read: ["first", "k"], changed: ["k"] });

  await end(new Error("disk full"));

  assert.deepEqual(settled, [
    "first: SET_ERROR",
    "writes first again: SET_ERROR",
    "looks at k",
  ]);
});

Deno.test("A work that changes a key which a later, failed one changes too fails with it", async () => {
  const { add, end, settle, settled } = setup();
  add("first");
  await settle();
  add("looks at m", { read: ["m"], changed: [] });
  add("counts k and m", { read: ["k", "m"], changed: ["k", "m"] });
  add("counts m", { read: ["m"], changed: ["m"] });
  add("counts k after first", { read: ["first", "k"], changed: ["k"] });

  await end(new Error("disk full"));

  assert.deepEqual(settled, [
    "first: SET_ERROR",
    "counts k after first: SET_ERROR",
    "counts k and m: SET_ERROR",
    "counts m: SET_ERROR",
    "looks at m",
  ]);
});

Deno.test("After a failed commit the next ones go on", async () => {
  const { group, add, end, settled } = setup();
  add("a");
  await end(new Error("disk full"));
  add("a again", { changed: ["a"] });
  await end();
  await group.idle();

  assert.deepEqual(settled, ["a: SET_ERROR", "a again"]);
});

Deno.test("The failure says what the disk said and what to do", async () => {
  const failures: (Error | undefined)[] = [];
  const group = new GroupCommit<Work>(
    () => Promise.reject(new Error("database or disk is full")),
    () => Promise.resolve(false),
  );
  const settle = (failure?: Error): void => void failures.push(failure);
  group.add({ read: ["a"], changed: ["a"], mutations: 1, bytes: 1, flushMs: 0, settle });
  await group.idle();

  assert.equal(
    failures[0]!.message,
    "The state file refused the write (database or disk is full); check that its disk has space",
  );
});

Deno.test("Background work is done between commits until there is none", async () => {
  const { group, add, end, setRest, settled } = setup();
  const order: string[] = [];
  setRest(() => {
    order.push(`rest after ${settled.length}`);
    return Promise.resolve(order.length < 3);
  });
  add("a");
  await end();
  await group.idle();

  assert.deepEqual(order, ["rest after 1", "rest after 1", "rest after 1"]);
});

Deno.test("Works that may wait are committed together when the first of them is due", async () => {
  const { clock, group, add, end, settle, commits } = setup();
  add("a", { flushMs: 100 });
  clock.tick(60);
  add("b", { flushMs: 100 });
  clock.tick(39);
  await settle();
  assert.deepEqual(commits, []);

  clock.tick(1);
  await end();
  add("c", { flushMs: 100 });
  clock.tick(99);
  await settle();
  assert.deepEqual(commits, [["a", "b"]]);
  clock.tick(1);
  await end();
  await group.idle();

  assert.deepEqual([commits, clock.waiting], [[["a", "b"], ["c"]], 0]);
});

Deno.test("What arrives during a commit and may wait has its own time", async () => {
  const { clock, add, end, settle, commits } = setup();
  add("a");
  await settle();
  add("b", { flushMs: 100 });
  await end();
  assert.deepEqual(commits, [["a"]]);

  clock.tick(100);
  await end();

  assert.deepEqual(commits, [["a"], ["b"]]);
});

Deno.test("Works that may wait go with one that may not, before it", async () => {
  const { clock, add, end, commits, settled } = setup();
  add("a", { flushMs: 100 });
  add("b");
  await end();

  assert.deepEqual([commits, settled, clock.waiting], [[["a", "b"]], ["a", "b"], 0]);
});

Deno.test("A full commit does not wait, neither by its changes nor by its bytes", async () => {
  for (const full of [{ mutations: 250 }, { bytes: 360_000 }]) {
    const { clock, group, add, end, settle, commits } = setup();
    add("a", { flushMs: 100, ...full });
    await settle();
    assert.deepEqual(commits, []);
    add("b", { flushMs: 100, ...full });
    await settle();
    assert.equal(commits.length, 1);

    while (commits.flat().length < 2) await end();
    await end();
    await group.idle();
    assert.deepEqual([commits.flat(), clock.waiting], [["a", "b"], 0]);
  }
});

Deno.test("flush() commits what may wait, and idle() waits for it", async () => {
  const { clock, group, add, end, settled } = setup();
  add("a", { flushMs: 100 });
  group.flush();
  await end();
  await group.idle();

  assert.deepEqual([settled, clock.waiting], [["a"], 0]);
});

Deno.test("After a failure the queue goes on with what may wait", async () => {
  const { clock, group, add, end, settled } = setup();
  add("a");
  await Promise.resolve();
  await Promise.resolve();
  add("a2", { changed: ["a"], flushMs: 100 });
  add("b", { flushMs: 100 });
  await end(new Error("disk full"));
  clock.tick(100);
  await end();
  await group.idle();

  assert.deepEqual(settled, ["a: SET_ERROR", "a2: SET_ERROR", "b"]);
});
