import assert from "node:assert/strict";
import {
  beginEdit,
  isChanged,
  isOvertaken,
  rebased,
  type StoredEntry,
  writeOf,
} from "./entry_edit.ts";

const ENTRY: StoredEntry = { value: { n: 1 }, version: 4, updated_at_ms: 500 };
const PLACE = { scope: "cart", key: "u1" };

Deno.test("a save names the version that was seen", () => {
  const write = writeOf(PLACE, { ...beginEdit(ENTRY), text: '{"n":2}' }, 1_000);

  assert.deepEqual(write, {
    ok: true,
    value: { n: 2 },
    payload: { scope: "cart", key: "u1", value: { n: 2 }, expected_version: 4 },
  });
});

Deno.test("a new entry must not be there yet", () => {
  const write = writeOf(PLACE, beginEdit(null), 1_000);

  assert.ok(write.ok);
  assert.equal(write.payload["expected_version"], 0);
});

Deno.test("an entry keeps its end, unless another or none is wanted", () => {
  const edit = beginEdit({ ...ENTRY, expires_at_ms: 61_000 });
  const life = (part: object) => {
    const write = writeOf(PLACE, { ...edit, ...part }, 1_000.4);
    return write.ok ? write.payload["ttl_ms"] : write;
  };

  assert.equal(life({}), 60_000);
  assert.equal(life({ ttl: "5" }), 5);
  assert.equal(life({ isLasting: true }), undefined);
});

Deno.test("an end that has passed is told, not sent", () => {
  const write = writeOf(PLACE, beginEdit({ ...ENTRY, expires_at_ms: 900 }), 1_000);

  assert.deepEqual(write, {
    ok: false,
    field: "ttl",
    message: "has passed; say how long from now",
  });
});

Deno.test("what cannot be saved is told by its field", () => {
  const field = (place: object, part: object) => {
    const write = writeOf({ ...PLACE, ...place }, { ...beginEdit(ENTRY), ...part }, 1_000);
    return write.ok ? "ok" : write.field;
  };

  assert.equal(field({}, { text: "{n:1}" }), "value");
  assert.equal(field({}, { text: "" }), "value");
  assert.equal(field({ key: "" }, {}), "key");
  assert.equal(field({ scope: "" }, {}), "scope");
  for (const ttl of ["x", "-1", "0", "1.5", "1e300", "NaN"]) {
    assert.equal(field({}, { ttl }), "ttl");
  }
});

Deno.test("an edit is overtaken when the entry has another version, came or went", () => {
  const edit = beginEdit(ENTRY);

  assert.equal(isOvertaken(edit, ENTRY), false);
  assert.equal(isOvertaken(edit, { ...ENTRY, version: 5 }), true);
  assert.equal(isOvertaken(edit, null), true);
  assert.equal(isOvertaken(beginEdit(null), ENTRY), true);
  assert.equal(isOvertaken(beginEdit(null), null), false);
});

Deno.test("rebased, an edit keeps its text and names the newer version", () => {
  const edit = { ...beginEdit(ENTRY), text: '"mine"' };

  const write = writeOf(PLACE, rebased(edit, { ...ENTRY, version: 9 }), 1_000);

  assert.ok(write.ok);
  assert.deepEqual([write.payload["expected_version"], write.value], [9, "mine"]);
});

Deno.test("only another value or another end is a change", () => {
  const edit = beginEdit(ENTRY);

  assert.equal(isChanged(edit), false);
  assert.equal(isChanged({ ...edit, text: ' {"n" : 1}' }), false);
  assert.equal(isChanged({ ...edit, text: '{"n":2}' }), true);
  assert.equal(isChanged({ ...edit, text: "{" }), true);
  assert.equal(isChanged({ ...edit, ttl: "5" }), true);
});
