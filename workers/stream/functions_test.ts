import assert from "node:assert/strict";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { AnswerMemory } from "../state/answers.ts";
import { SENT_BYTES_MAX, StreamFunctions } from "./functions.ts";
import { type StreamEvent, streamItems } from "./items.ts";
import { Overrides } from "./overrides.ts";

const GROUP = { stream_name: "s", group_id: "g" };

function setup(isBehind = false) {
  const clock = new FakeClock();
  const events: StreamEvent[] = [];
  const emit = (event: StreamEvent): void => void events.push(event);
  const entries = streamItems({ store: new MemoryStore(), clock, changed: emit, expires() {} });
  const functions = new StreamFunctions({
    entries,
    clock,
    emit,
    expiry: { sweep: () => Promise.resolve() },
    answers: new AnswerMemory(UNLIMITED_MEMORY, clock),
    overrides: new Overrides({
      worker: { trigger: () => Promise.reject(new Error("none")) },
      directory: { function: () => undefined },
    }),
    isBehind: () => isBehind,
  });
  return { functions, events };
}

Deno.test("while too many events wait nothing is written or sent", async () => {
  const { functions, events } = setup(true);
  const place = { ...GROUP, item_id: "i" };

  await assert.rejects(functions.set({ ...place, data: 1 }), { code: "overloaded" });
  await assert.rejects(functions.update({ ...place, ops: [] }), { code: "overloaded" });
  await assert.rejects(functions.delete(place), { code: "overloaded" });
  assert.throws(() => functions.send({ ...GROUP, type: "t" }), { code: "overloaded" });

  assert.equal(await functions.get(place), undefined);
  assert.deepEqual(events, []);
});

Deno.test("the data of a sent event may be as large as its bound", () => {
  const { functions, events } = setup();
  const data = "x".repeat(SENT_BYTES_MAX - 2);

  functions.send({ ...GROUP, type: "t", data });
  assert.throws(() => functions.send({ ...GROUP, type: "t", data: `${data}x` }), {
    code: "VALUE_TOO_LARGE",
  });

  assert.equal(events.length, 1);
});
