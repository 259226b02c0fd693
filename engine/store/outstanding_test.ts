import assert from "node:assert/strict";
import { Outstanding } from "./outstanding.ts";

Deno.test("Outstanding.ended() waits for those that have begun, in any order, and not for later ones", async () => {
  const outstanding = new Outstanding();
  const order: string[] = [];
  outstanding.begin(1);
  outstanding.begin(2);
  const first = outstanding.ended().then(() => order.push("1 and 2"));
  outstanding.begin(3);
  const second = outstanding.ended().then(() => order.push("all"));

  outstanding.end(3);
  outstanding.end(2);
  await Promise.resolve();
  assert.deepEqual(order, []);

  outstanding.end(1);
  await Promise.all([first, second]);
  assert.deepEqual(order, ["1 and 2", "all"]);
});

Deno.test("Outstanding.ended() resolves at once when nothing has begun, or all has ended", async () => {
  const outstanding = new Outstanding();

  await outstanding.ended();
  outstanding.begin(7);
  outstanding.end(7);
  await outstanding.ended();
});
