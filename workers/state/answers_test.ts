/**
 * The memory that answers of the state take, and who waits for whom.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { ANSWER_PAUSE_MS, AnswerMemory, SMALL_ANSWER_BYTES } from "./answers.ts";

const MIB = 1024 * 1024;
/** A clock whose time passes at once. */
const SOON = { after: (_: number, task: () => void) => (queueMicrotask(task), () => {}) };

Deno.test("an answer holds its bytes until it is made, or fails", async () => {
  const memory = createMemoryBudget(100 * MIB);
  const answers = new AnswerMemory(memory, SOON);

  const found = await answers.hold(async (add) => {
    await add(1_000);
    await add(2_000);
    return memory.used("queues");
  });
  assert.equal(found, 3_000);
  assert.equal(memory.usedBytes, 0);

  await assert.rejects(
    answers.hold(async (add) => {
      await add(10 * MIB);
      throw new Error("the store failed");
    }),
    /the store failed/,
  );
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a hundred large answers are made one after another, and small ones between", async () => {
  const memory = createMemoryBudget(160 * MIB);
  const answers = new AnswerMemory(memory, SOON);
  const next = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
  let open = 0;
  let most = 0;
  const all = Array.from({ length: 100 }, () =>
    answers.hold(async (add) => {
      for (let i = 0; i < 24; i++) await add(MIB);
      most = Math.max(most, ++open);
      await next();
      open--;
    }));

  await answers.hold((add) => add(SMALL_ANSWER_BYTES / 2));
  await Promise.all(all.slice(0, 50));
  assert.equal(most, 1);
  await Promise.all(all);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("an answer that does not fit is refused with overloaded, and the next one is made", async () => {
  const memory = createMemoryBudget(64 * MIB);
  const answers = new AnswerMemory(memory, SOON);
  const isOverloaded = (error: unknown): boolean =>
    error instanceof EngineError && error.code === "overloaded";

  await assert.rejects(answers.hold((add) => add(80 * MIB)), isOverloaded);
  assert.equal(memory.usedBytes, 0);
  memory.take("buffers", 62 * MIB);
  await assert.rejects(answers.hold((add) => add(4 * MIB)), isOverloaded);
  memory.release("buffers", 62 * MIB);
  await answers.hold((add) => add(4 * MIB));
  assert.equal(memory.usedBytes, 0);
});

Deno.test("callers that wait for the same list share a text that is made after all their calls", async () => {
  const memory = createMemoryBudget(64 * MIB);
  const answers = new AnswerMemory(memory, SOON);
  let made = 0;
  const make = async (add: (bytes: number) => Promise<void>): Promise<JsonText> => {
    await add(2 * MIB);
    return new JsonText(`${++made}`);
  };

  const texts = await Promise.all([
    answers.hold((add) => add(4 * MIB).then(() => made)), // The first three wait for it.
    ...[1, 2, 3].map(() => answers.shared("a", make).then(({ text }) => text)),
    answers.shared("b", make).then(({ text }) => text),
  ]);
  assert.deepEqual(texts, [0, "1", "1", "1", "2"]);
  assert.equal(memory.usedBytes, 0);

  // While it is being made it may miss a change that was acknowledged before the call.
  let late: Promise<JsonText> | undefined;
  const early = answers.shared("a", async (add) => {
    late = answers.shared("a", make);
    return await make(add);
  });
  assert.equal((await early).text, "3");
  assert.equal((await late!).text, "4");
  assert.equal(memory.usedBytes, 0);
});

Deno.test("a shared text that fails, or does not fit again for its caller, leaves nothing", async () => {
  const memory = createMemoryBudget(64 * MIB);
  const answers = new AnswerMemory(memory, SOON);
  const isOverloaded = { code: "overloaded" };

  await assert.rejects(
    answers.shared("a", async (add) => {
      await add(2 * MIB);
      throw new Error("the store failed");
    }),
    /the store failed/,
  );
  await assert.rejects(
    answers.shared("a", async (add) => {
      await add(80 * MIB);
      return new JsonText("1");
    }),
    isOverloaded,
  );
  // Made within the budget, which has no room for the frame beside it.
  const all = [1, 2].map(() =>
    answers.shared("a", async (add) => {
      await add(40 * MIB);
      return new JsonText("1");
    })
  );
  for (const answer of all) await assert.rejects(answer, isOverloaded);
  assert.equal(memory.usedBytes, 0);
  assert.equal((await answers.shared("a", () => Promise.resolve(new JsonText("2")))).text, "2");
});

Deno.test("two large answers have a pause between them", async () => {
  const clock = new FakeClock();
  const answers = new AnswerMemory(createMemoryBudget(64 * MIB), clock);
  let made = 0;
  const all = [1, 2].map(() => answers.hold((add) => add(4 * MIB)).then(() => made++));

  await all[0];
  clock.tick(0); // It was sent.
  clock.tick(ANSWER_PAUSE_MS - 1);
  for (let i = 0; i < 20; i++) await Promise.resolve();
  assert.equal(made, 1);
  clock.tick(1);
  await all[1];
  assert.equal(made, 2);
});
