import assert from "node:assert/strict";
import { inTurn } from "./rounds.ts";

Deno.test("inTurn() measures everybody in each round, and each begins once", async () => {
  const order: string[] = [];
  const subject = (name: string) => () => Promise.resolve(order.push(name));

  const found = await inTurn(3, { a: subject("a"), b: subject("b"), c: subject("c") });

  assert.deepEqual(order, ["a", "b", "c", "b", "c", "a", "c", "a", "b"]);
  assert.deepEqual(found, { a: [1, 6, 8], b: [2, 4, 9], c: [3, 5, 7] });
});

Deno.test("inTurn() ends with the first failure", async () => {
  const failing = () => Promise.reject(new Error("gone"));

  await assert.rejects(inTurn(2, { a: failing, b: () => Promise.resolve(1) }), /gone/);
});
