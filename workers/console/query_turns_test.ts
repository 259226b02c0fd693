/**
 * Turns of queries.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { QueryTurns, REST_FACTOR, REST_MS_MAX, TURNS_MAX } from "./query_turns.ts";

const LIST = "engine::functions::list";

function setup() {
  const clock = new FakeClock();
  const turns = new QueryTurns(clock);
  const started: string[] = [];
  const done: (() => void)[] = [];
  const enter = (name: string, isUrgent = false, functionId = LIST) =>
    turns.enter(functionId, isUrgent, (end) => {
      started.push(name);
      done.push(end);
    });
  return { clock, turns, started, done, enter };
}

Deno.test("QueryTurns asks few queries at once, and each place rests as its query took", () => {
  const { clock, turns, started, done, enter } = setup();
  for (let i = 0; i < TURNS_MAX + 2; i++) enter(`${i}`);
  assert.equal(started.length, TURNS_MAX);

  clock.tick(20);
  done[0]!();
  done[0]!();
  clock.tick(20 * REST_FACTOR - 1);
  assert.equal(started.length, TURNS_MAX);
  clock.tick(1);
  assert.equal(started.length, TURNS_MAX + 1);

  clock.tick(10 * REST_MS_MAX);
  done[1]!();
  clock.tick(REST_MS_MAX);
  assert.equal(started.length, TURNS_MAX + 2);
  assert.equal(turns.waiting, 0);
});

Deno.test("QueryTurns lets pages of the operator go first", () => {
  const { started, done, enter } = setup();
  for (let i = 0; i < TURNS_MAX; i++) enter("first");
  enter("guest");
  enter("operator", true);

  done[0]!();
  done[1]!();

  assert.deepEqual(started.slice(TURNS_MAX), ["operator", "guest"]);
});

Deno.test("QueryTurns lets functions of workers start at once, and drops who left", () => {
  const { turns, started, enter, done } = setup();
  for (let i = 0; i < TURNS_MAX; i++) enter("engine");
  const leave = enter("left");
  enter("worker", false, "shop::orders");

  leave();
  leave();
  done[0]!();

  assert.equal(turns.waiting, 0);
  assert.deepEqual(started.slice(TURNS_MAX), ["worker"]);
});

Deno.test("QueryTurns leaves no timer behind", () => {
  const { clock, turns, done, enter } = setup();
  enter("a");
  clock.tick(10);
  done[0]!();

  turns.stop();

  assert.equal(clock.waiting, 0);
});
