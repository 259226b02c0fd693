import assert from "node:assert/strict";
import { alternately } from "./bench.ts";

Deno.test("alternately() measures every entry in each round, and each begins once", async () => {
  const order: string[] = [];
  const subject = (name: string) => () => Promise.resolve(order.push(name));

  const found = await alternately(3, { a: subject("a"), b: subject("b"), c: subject("c") });

  assert.deepEqual(order, ["a", "b", "c", "b", "c", "a", "c", "a", "b"]);
  assert.deepEqual(found, { a: [1, 6, 8], b: [2, 4, 9], c: [3, 5, 7] });
});

Deno.test("alternately() ends with the first failure", async () => {
  const failing = () => Promise.reject(new Error("gone"));

  await assert.rejects(alternately(2, { a: failing, b: () => Promise.resolve(1) }), /gone/);
});
