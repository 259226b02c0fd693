import assert from "node:assert/strict";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import type { Turns, Work } from "../../engine/ports/turns.ts";
import { Audience, EVENTS_KEPT_MAX, FOLLOWERS_PER_TURN, type GroupEvent } from "./audience.ts";

const event = (id: string, size = 1): GroupEvent => ({ id, bytes: new Uint8Array(size) });

/** Turns that a test gives. */
class GivenTurns implements Turns {
  /** How often a turn may be asked before it is over. */
  looks = Infinity;
  #work: Work | undefined;

  get isWaiting(): boolean {
    return this.#work !== undefined;
  }

  queue(work: Work): void {
    assert.equal(this.#work, undefined, "it waits already");
    this.#work = work;
  }

  isSpent(): boolean {
    return --this.looks < 0;
  }

  /** Gives one turn. */
  give(looks = Infinity): void {
    this.looks = looks;
    if (!this.#work?.work()) this.#work = undefined;
  }
}

function setup() {
  const turns = new GivenTurns();
  const memory = createMemoryBudget(1024 * 1024 * 1024);
  const audience = new Audience({ turns, memory });
  const follow = (key: string) => {
    const heard: (string | null)[] = [];
    return { heard, stop: audience.follow(key, { hear: ({ id }) => heard.push(id) }) };
  };
  /** Gives turns until nothing is left to do. */
  const finish = (): void => {
    while (turns.isWaiting) turns.give();
  };
  return { turns, memory, audience, follow, finish };
}

Deno.test("an event goes to all that follow its group, and to no other", () => {
  const { audience, follow, memory, finish } = setup();
  const [a, b, other] = [follow("a"), follow("a"), follow("b")];

  audience.publish("a", event("1"));
  finish();
  b.stop();
  audience.publish("a", event("2"));
  audience.publish("c", event("3"));
  finish();

  assert.deepEqual([a.heard, b.heard, other.heard], [["1", "2"], ["1"], []]);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("groups take turns, and each follower gets all that came meanwhile", () => {
  const { audience, follow, turns, finish } = setup();
  const many = Array.from({ length: 2 * FOLLOWERS_PER_TURN + 1 }, () => follow("a"));
  const other = follow("b");

  audience.publish("a", event("1"));
  turns.give();
  assert.equal(many.filter(({ heard }) => heard.length > 0).length, FOLLOWERS_PER_TURN);
  audience.publish("a", event("2"));
  audience.publish("b", event("x"));
  turns.give();
  assert.deepEqual([other.heard, many.at(-1)!.heard], [[], []]);
  turns.give();
  assert.deepEqual([other.heard, many.at(-1)!.heard], [["x"], ["1", "2"]]);
  finish();

  for (const { heard } of many) assert.deepEqual(heard, ["1", "2"]);
});

Deno.test("a turn ends when its time is over", () => {
  const { audience, follow, turns, finish } = setup();
  const some = Array.from({ length: 100 }, () => follow("a"));

  audience.publish("a", event("1"));
  turns.give(1);
  const reached = some.filter(({ heard }) => heard.length > 0).length;
  finish();

  assert.ok(reached > 0 && reached < 50, String(reached));
  for (const { heard } of some) assert.deepEqual(heard, ["1"]);
});

Deno.test("who comes while an event is under way hears the next one only", () => {
  const { audience, follow, turns, finish } = setup();
  const first = Array.from({ length: 2 * FOLLOWERS_PER_TURN }, () => follow("a"));
  audience.publish("a", event("1"));
  turns.give();
  const late = follow("a");
  audience.publish("a", event("2"));
  finish();

  assert.deepEqual([late.heard, first.at(-1)!.heard], [["2"], ["1", "2"]]);
});

Deno.test("an event that finds no room is refused, and room comes back", () => {
  const { audience, follow, memory, finish } = setup();
  const some = Array.from({ length: 3 }, () => follow("a"));
  let taken = 0;
  while (audience.publish("a", event("x"))) taken++;

  assert.deepEqual([taken, audience.isBehind], [EVENTS_KEPT_MAX, true]);
  for (const { stop } of some) stop();
  finish();

  assert.deepEqual([audience.isBehind, memory.usedBytes], [false, 0]);
  const again = follow("a");
  assert.equal(audience.publish("a", event("y")), true);
  finish();
  assert.deepEqual(again.heard, ["y"]);
});

Deno.test("a follower may leave while it hears, also as the last one", () => {
  const { audience, follow, finish } = setup();
  const other = follow("a");
  let stop = (): void => {};
  stop = audience.follow("a", {
    hear: () => {
      stop();
      other.stop();
    },
  });

  audience.publish("a", event("1"));
  finish();
  audience.publish("a", event("2"));
  finish();

  assert.deepEqual(other.heard, ["1"]);
  assert.equal(audience.isFollowed("a"), false);
});
