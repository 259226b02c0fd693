import assert from "node:assert/strict";
import { CallIds, countAt } from "./call_ids.ts";

const COUNTS = [1, 9, 10, 255, 256, 2 ** 31, 2 ** 32 + 7, 2 ** 48 - 1];

Deno.test("CallIds.text() is a UUID by its shape, and count() reads it again", () => {
  const ids = new CallIds();

  for (const count of COUNTS) {
    assert.match(ids.text(count), /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/);
    assert.equal(ids.count(ids.text(count)), count);
  }
});

Deno.test("two workers make no id that is alike", () => {
  const [one, other] = [new CallIds(), new CallIds()];

  assert.notEqual(one.start, other.start);
  assert.equal(other.count(one.text(1)), undefined);
});

Deno.test("CallIds.count() knows no id that is longer, shorter or has other digits", () => {
  const ids = new CallIds();
  const id = ids.text(26);

  for (const other of ["", id + "0", id.slice(0, -1), ids.start, `${id.slice(0, -1)}A`]) {
    assert.equal(ids.count(other), undefined, other);
  }
  for (const last of ["g", "/", ":", "`", " ", "-", "é", "\u0000"]) {
    assert.equal(ids.count(id.slice(0, -1) + last), undefined, last);
  }
});

Deno.test("countAt() reads no count where the text ends", () => {
  assert.equal(countAt("00000000000a", 0), 10);
  assert.equal(countAt("00000000000a", 1), undefined);
  assert.equal(countAt("", 0), undefined);
});
