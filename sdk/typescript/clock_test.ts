import assert from "node:assert/strict";
import { platformClock } from "./clock.ts";

Deno.test("platformClock runs a task after its time, which now() shows", async () => {
  const start = platformClock.now();

  await new Promise<void>((resolve) => platformClock.after(5, resolve));

  assert.ok(platformClock.now() > start);
});

Deno.test("platformClock forgets a task that was cancelled", async () => {
  const ran: string[] = [];
  const cancel = platformClock.after(1, () => ran.push("cancelled"));

  cancel();
  await new Promise<void>((resolve) => platformClock.after(10, resolve));

  assert.deepEqual(ran, []);
});
