import assert from "node:assert/strict";
import type { Entry, KeyChange } from "../ports/store.ts";
import { applyChanges, checkWrite } from "./write.ts";
import { keyId } from "./store_key.ts";

const there: Entry = { key: ["a"], value: 1, json: "1", bytes: 1, version: 3, created: 2 };

function apply(changes: readonly KeyChange[]) {
  let version = 10;
  return applyChanges(changes, {
    read: (id) => id === keyId(["a"]) ? there : undefined,
    nextVersion: () => ++version,
  });
}

Deno.test("applyChanges() makes one step for each key that is another", () => {
  const { changed, steps } = apply([
    [["a"], () => 2],
    [["b"], () => "x"],
    [["c"], () => undefined],
    [["a"], (old) => [old!.value]],
  ]);

  assert.deepEqual(steps.map(({ key, entry }) => [key, entry?.value]), [
    [["a"], [2]],
    [["b"], "x"],
  ]);
  assert.deepEqual(changed.map(({ old, new: entry }) => [old?.version, entry?.version]), [
    [3, 11],
    [undefined, 12],
    [undefined, undefined],
    [11, 13],
  ]);
  assert.equal(steps[0]!.entry!.created, 2);
});

Deno.test("applyChanges() makes no step for an entry that is left as it is", () => {
  const { changed, steps } = apply([[["a"], (old) => old], [["b"], (old) => old]]);

  assert.deepEqual(steps, []);
  assert.deepEqual(changed, [{ old: there, new: there }, { old: undefined, new: undefined }]);
});

Deno.test("applyChanges() gives a removed entry that comes back a new place in the order", () => {
  const { steps } = apply([[["a"], () => undefined], [["a"], () => 2]]);

  assert.equal(steps[0]!.entry!.created, steps[0]!.entry!.version);
});

Deno.test("applyChanges() keeps text as it is, also half a surrogate pair", () => {
  const { steps } = apply([[["b"], () => "\ud800"]]);

  assert.equal(new TextDecoder().decode(steps[0]!.json), '"\\ud800"');
});

Deno.test("checkWrite() refuses a write with one bad key", () => {
  assert.throws(() => checkWrite([[["a"], () => 1], [[], () => 1]]), {
    code: "INVALID_ARGUMENTS",
    message: "A store key needs a part",
  });
});
