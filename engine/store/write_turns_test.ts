import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { FakeTurns } from "../../tests/fakes/fake_clock.ts";
import {
  ANSWERS_PER_TURN,
  APPLIED_AT_ONCE,
  RequestedWrites,
  SettledAnswers,
} from "./write_turns.ts";

/** Writes that are applied once they are ready. */
function setup(turns: FakeTurns | undefined) {
  const applied: number[] = [];
  const ready = { upTo: -1 };
  const requested = new RequestedWrites<number>(turns, (write) => {
    if (write > ready.upTo) return false;
    applied.push(write);
    return true;
  });
  return { applied, ready, requested };
}

Deno.test("RequestedWrites applies what waited behind one write in turns, in order", () => {
  const turns = new FakeTurns();
  const { applied, ready, requested } = setup(turns);
  const count = 3 * APPLIED_AT_ONCE + 1;
  for (let n = 0; n < count; n++) requested.add(n);
  assert.equal(applied.length, 0);

  ready.upTo = count;
  requested.advance();
  const perTurn = [applied.length];
  requested.add(count);
  while (turns.waiting > 0) {
    turns.give(0);
    perTurn.push(applied.length);
  }

  const [one, two, three] = [1, 2, 3].map((times) => times * APPLIED_AT_ONCE);
  assert.deepEqual(perTurn, [one, two, three, count + 1]);
  assert.deepEqual(applied, Array.from({ length: count + 1 }, (_, n) => n));
});

Deno.test("RequestedWrites goes on when the first write is ready, without a turn", () => {
  const turns = new FakeTurns();
  const { applied, ready, requested } = setup(turns);
  ready.upTo = 0;

  for (const n of [0, 1, 2]) requested.add(n);
  assert.deepEqual([applied, turns.waiting], [[0], 0]);
  ready.upTo = 2;
  requested.advance();

  assert.deepEqual([applied, turns.waiting], [[0, 1, 2], 0]);
});

Deno.test("RequestedWrites without turns applies all at once", () => {
  const { applied, ready, requested } = setup(undefined);
  for (let n = 0; n < 1_000; n++) requested.add(n);

  ready.upTo = 1_000;
  requested.advance();

  assert.equal(applied.length, 1_000);
});

Deno.test("RequestedWrites applies a write that is added by another one behind it, once", () => {
  const applied: string[] = [];
  const requested = new RequestedWrites<string>(undefined, (write) => {
    applied.push(write);
    if (write === "a") requested.add("c");
    return true;
  });

  requested.add("a");
  requested.add("b");

  assert.deepEqual(applied, ["a", "c", "b"]);
});

Deno.test("RequestedWrites and SettledAnswers keep nothing that is done while more comes", async () => {
  const turns = new FakeTurns();
  let isReady = false;
  const requested = new RequestedWrites<object>(turns, () => isReady);
  const answers = new SettledAnswers(turns);
  const early = [new WeakRef(addOne()), new WeakRef(answerOne())];
  const addMore = (): void => {
    for (let i = 0; i < ANSWERS_PER_TURN; i++) answerOne();
    for (let i = 0; i < APPLIED_AT_ONCE; i++) addOne();
  };

  addMore();
  isReady = true;
  for (let turn = 0; turn < 8; turn++) {
    addMore();
    turns.give(0);
  }
  await new Promise((resolve) => setTimeout(resolve, 0)); // A new WeakRef holds for its job.
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();

  assert.equal(turns.waiting, 2);
  assert.deepEqual(early.map((reference) => reference.deref()), [undefined, undefined]);

  function addOne(): object {
    const write = {};
    requested.add(write);
    return write;
  }
  function answerOne(): () => void {
    const answer = (): void => {};
    answers.add(answer);
    return answer;
  }
});

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
