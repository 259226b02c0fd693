import assert from "node:assert/strict";
import { editsBetween, nearest } from "./similar.ts";

Deno.test("editsBetween() counts added, removed, changed and swapped letters as one each", () => {
  const edits = [["worker", "worker"], ["worker", "workers"], ["worker", "workr"], ["add", "ads"], [
    "list",
    "lsit",
  ]].map(([from, to]) => editsBetween(from!, to!));

  assert.deepEqual(edits, [0, 1, 1, 1, 1]);
});

Deno.test("nearest() finds a slip of the finger and nothing far away", () => {
  const known = ["create", "trigger", "worker", "functions"];

  assert.equal(nearest("triger", known), "trigger");
  assert.equal(nearest("wroker", known), "worker");
  assert.equal(nearest("banana", known), undefined);
  assert.equal(nearest("x", []), undefined);
});
