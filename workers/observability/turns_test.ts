/**
 * Searches share the thread: with calls, by slices, and with each other, by turns.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import {
  BYTES_PER_MS,
  type Search,
  SEARCH_SLICE_MS,
  SEARCHES_AT_ONCE_MAX,
  SEARCHES_PER_CALLER_MAX,
  SEARCHES_WAITING_MAX,
  SearchTurns,
  type Turn,
} from "./turns.ts";

const STEP_MS = 1 / 8;
/** The time is checked every 16 steps. */
const LATE_MS = 16 * STEP_MS;

function setup() {
  const clock = new FakeClock();
  let workedMs = 0; // No timer ends while a search works.
  const now = (): number => clock.now() + workedMs;
  const turns = new SearchTurns({
    now,
    wall: now,
    after: (ms, task) => clock.after(ms, task),
  });
  const done: string[] = [];
  const search = (caller: string, steps: number, name = caller): void | Promise<void> =>
    turns.take(caller, function* (turn: Turn): Search<void> {
      for (let step = 0; step < steps; step++) {
        if (turn.isOver()) yield;
        workedMs += STEP_MS;
      }
      done.push(name);
    });
  /** Lets timers come until so many searches are done. */
  const finish = (count: number): void => {
    for (let i = 0; done.length < count; i++) {
      assert.ok(i < 100_000, `${done.length} of ${count} searches`);
      clock.tick(1);
    }
  };
  return { clock, now, turns, done, search, finish };
}

Deno.test("a short search is done at once, without a timer and a promise", () => {
  const { clock, turns, search, done } = setup();

  assert.equal(search("a", 5), undefined);
  assert.equal(search("a", 5), undefined);
  assert.equal(turns.take(undefined, (turn) => charging(turn, 7)), 7);

  assert.deepEqual([done, clock.asked], [["a", "a"], 0]);
});

Deno.test("long searches together have a slice, then calls are handled", async () => {
  const { clock, now, search, done } = setup();
  const all = [search("a", 100), search("b", 100)];
  assert.ok(now() <= 2 * (SEARCH_SLICE_MS + LATE_MS), `${now()} ms`);

  let slices = 0;
  for (; done.length < 2; slices++) {
    assert.equal(clock.waiting, 1);
    const pause = clock.nextIn!;
    assert.ok(pause >= 1 && pause <= 2 * (SEARCH_SLICE_MS + LATE_MS), `${pause} ms`);
    const start = now();
    clock.tick(pause);
    const ms = now() - start - pause;
    assert.ok(ms <= SEARCH_SLICE_MS + LATE_MS, `${ms} ms`);
  }
  await Promise.all(all);
  assert.ok(slices >= 5 && slices <= 12, `${slices} slices`);
  assert.equal(clock.waiting, 0);
});

/** Finds what it charges. */
function* charging(turn: Turn, bytes: number): Search<number> {
  if (turn.isOver()) yield;
  turn.charge(bytes);
  return bytes;
}

Deno.test("searches and their answers leave half of the time to calls", async () => {
  const { clock, turns } = setup();
  let ms = 0;
  for (let n = 0; n < 1_000; n++) {
    if (n < 900) {
      const found = turns.take(`c${n % 30}`, (turn) => charging(turn, 0.7 * BYTES_PER_MS));
      void Promise.resolve(found).then((bytes) => ms += bytes / BYTES_PER_MS);
    }
    await Promise.resolve();
    clock.tick(1);
  }
  assert.ok(ms > 400 && ms <= 502, `${ms} of 1,000 ms`);
});

Deno.test("a caller that asks for much does not delay another one", () => {
  const { search, done, finish } = setup();
  for (let n = 0; n < 30; n++) void search("greedy", 40, `greedy ${n}`);
  void search("modest", 40);
  finish(3);

  assert.ok(done.includes("modest"), done.join());
  finish(31);
});

Deno.test("callers that wait are served in turn", () => {
  const { search, done, finish } = setup();
  const names = Array.from({ length: SEARCHES_AT_ONCE_MAX + 3 }, (_, n) => `c${n}`);
  for (const round of [0, 1, 2]) {
    for (const name of names) void search(name, 40, `${name} ${round}`);
  }
  finish(3 * names.length);

  const rounds = done.map((name) => Number(name.at(-1)));
  for (let at = 0; at < done.length; at++) {
    const least = Math.min(...rounds.slice(at));
    assert.ok(rounds[at]! <= least + 1, done.join());
  }
});

Deno.test("a search that fails ends its turn, also after a pause", async () => {
  const { turns, search, done, finish } = setup();
  const fail = (pauses: number) =>
    turns.take("a", function* (): Search<void> {
      for (let n = 0; n < pauses; n++) yield;
      throw new Error("bad");
    });

  assert.throws(() => fail(0), /bad/);
  const late = fail(3);
  assert.ok(late instanceof Promise);
  void search("a", 1);
  finish(1);
  await assert.rejects(late, /bad/);
  assert.deepEqual(done, ["a"]);
});

Deno.test("too many searches of a caller are refused, and of all callers", () => {
  const { search, done, finish } = setup();
  let asked = 0;
  const ask = (caller: string, count: number): void => {
    for (let n = 0; n < count; n++, asked++) void search(caller, 40);
  };

  ask("a", SEARCHES_PER_CALLER_MAX + 1); // One of them is under way.
  assert.throws(() => search("a", 1), { code: "overloaded", message: /of this caller wait/ });
  for (let n = 1; n < SEARCHES_AT_ONCE_MAX; n++) ask(`active ${n}`, 1);
  for (let n = 0; n < SEARCHES_WAITING_MAX - SEARCHES_PER_CALLER_MAX; n++) ask(`b${n}`, 1);
  assert.throws(() => search("c", 1), { code: "overloaded", message: /try again later/ });

  finish(asked);
  assert.equal(search("a", 1), undefined);
  assert.equal(done.at(-1), "a");
});
