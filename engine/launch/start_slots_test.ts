import assert from "node:assert/strict";
import { StartSlots } from "./start_slots.ts";

const NEVER = new AbortController().signal;

Deno.test("StartSlots hands its places on in the order they were asked for", async () => {
  const slots = new StartSlots(1);
  const order: string[] = [];
  const release = await slots.take(NEVER);
  const second = slots.take(NEVER).then((give) => (order.push("second"), give));
  const third = slots.take(NEVER).then((give) => (order.push("third"), give));
  assert.deepEqual(order, []);

  release!();
  (await second)!();
  await third;

  assert.deepEqual(order, ["second", "third"]);
});

Deno.test("StartSlots takes a place back once, however often it is given", async () => {
  const slots = new StartSlots(1);
  const release = await slots.take(NEVER);
  release!();
  release!();
  await slots.take(NEVER);
  const leaving = new AbortController();
  const second = slots.take(leaving.signal);

  leaving.abort();

  assert.equal(await second, undefined);
});

Deno.test("StartSlots forgets who no longer waits", async () => {
  const slots = new StartSlots(1);
  const release = await slots.take(NEVER);
  const leaving = new AbortController();
  const gone = slots.take(leaving.signal);
  const last = slots.take(NEVER);

  leaving.abort();
  release!();

  assert.equal(await gone, undefined);
  assert.equal(typeof await last, "function");
  assert.equal(await slots.take(AbortSignal.abort()), undefined);
});
