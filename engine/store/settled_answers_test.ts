import assert from "node:assert/strict";
import { FakeTurns } from "../../tests/fakes/fake_clock.ts";
import { ANSWERS_PER_TURN, SettledAnswers } from "./settled_answers.ts";

Deno.test("SettledAnswers gives a few answers in each turn, in their order", () => {
  const turns = new FakeTurns();
  const answers = new SettledAnswers(turns);
  const given: number[] = [];
  const count = 2 * ANSWERS_PER_TURN + 1;

  for (let i = 0; i < count; i++) answers.add(() => void given.push(i));
  const perTurn = [given.length];
  for (let i = 0; i < 4; i++) {
    turns.give();
    perTurn.push(given.length);
  }

  assert.deepEqual(perTurn, [0, ANSWERS_PER_TURN, 2 * ANSWERS_PER_TURN, count, count]);
  assert.deepEqual(given, Array.from({ length: count }, (_, i) => i));
});

Deno.test("SettledAnswers takes a turn again for an answer after the last one, and only then", () => {
  const turns = new FakeTurns();
  const answers = new SettledAnswers(turns);
  let given = 0;
  answers.add(() => given++);
  turns.give();

  answers.add(() => {
    given++;
    answers.add(() => given++);
  });
  assert.equal(turns.waiting, 1);
  turns.give();
  turns.give();

  assert.deepEqual([given, turns.waiting], [3, 0]);
});

Deno.test("SettledAnswers without turns gives each answer at once", () => {
  let given = 0;

  new SettledAnswers(undefined).add(() => given++);

  assert.equal(given, 1);
});
