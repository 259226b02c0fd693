/**
 * @module
 */
import assert from "node:assert/strict";
import { TOAST_MS, Toasts, TOASTS_MAX } from "./context.tsx";

function setup() {
  const waits: { ms: number; run: () => void }[] = [];
  const toasts = new Toasts((ms, run) => (waits.push({ ms, run }), () => {}));
  return { toasts, waits, texts: () => toasts.list.value.map(({ text }) => text) };
}

Deno.test("Toasts disappear, except failures, which stay until they are closed", () => {
  const { toasts, waits, texts } = setup();
  toasts.show("ok", "saved");
  toasts.fail("not saved", new Error("disk full"));

  assert.deepEqual(waits.map(({ ms }) => ms), [TOAST_MS]);
  waits[0]!.run();
  assert.deepEqual(texts(), ["not saved"]);
  assert.equal(toasts.list.value[0]?.detail, "disk full");

  toasts.close(toasts.list.value[0]!.id);
  assert.deepEqual(texts(), []);
});

Deno.test("Toasts drop the oldest beyond their bound", () => {
  const { toasts, texts } = setup();

  for (let i = 0; i <= TOASTS_MAX; i++) toasts.show("bad", String(i));

  assert.equal(texts().length, TOASTS_MAX);
  assert.equal(texts()[0], "1");
});

Deno.test("Toasts.fail() shows any thrown value", () => {
  const { toasts } = setup();

  toasts.fail("no", "a text");

  assert.equal(toasts.list.value[0]?.detail, "a text");
});
