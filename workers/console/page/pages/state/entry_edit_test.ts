import assert from "node:assert/strict";
import {
  beginEdit,
  hasConflict,
  isChanged,
  rebaseEdit,
  type StoredEntry,
  writePayload,
} from "./entry_edit.ts";

const ENTRY: StoredEntry = { value: { n: 1 }, version: 4, updated_at_ms: 500 };
const PLACE = { scope: "cart", key: "u1" };

Deno.test("writePayload() names the base version", () => {
  const write = writePayload(PLACE, { ...beginEdit(ENTRY), text: '{"n":2}' }, 1_000);

  assert.deepEqual(write, {
    ok: true,
    value: { n: 2 },
    payload: { scope: "cart", key: "u1", value: { n: 2 }, expected_version: 4 },
  });
});

Deno.test("writePayload() of a new entry expects version 0", () => {
  const write = writePayload(PLACE, beginEdit(null), 1_000);

  assert.ok(write.ok);
  assert.equal(write.payload["expected_version"], 0);
});

Deno.test("writePayload() keeps the end of an entry, unless it was changed", () => {
  const edit = beginEdit({ ...ENTRY, expires_at_ms: 61_000 });
  const life = (part: object) => {
    const write = writePayload(PLACE, { ...edit, ...part }, 1_000.4);
    return write.ok ? write.payload["ttl_ms"] : write;
  };

  assert.equal(life({}), 60_000);
  assert.equal(life({ ttl: "5" }), 5);
  assert.equal(life({ neverExpires: true }), undefined);
});

Deno.test("writePayload() refuses an end that has passed", () => {
  const write = writePayload(PLACE, beginEdit({ ...ENTRY, expires_at_ms: 900 }), 1_000);

  assert.deepEqual(write, {
    ok: false,
    field: "ttl",
    message: "has passed; say how long from now",
  });
});

Deno.test("writePayload() reports errors by field", () => {
  const field = (place: object, part: object) => {
    const write = writePayload({ ...PLACE, ...place }, { ...beginEdit(ENTRY), ...part }, 1_000);
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

Deno.test("hasConflict() holds when the entry changed, appeared or disappeared", () => {
  const edit = beginEdit(ENTRY);

  assert.equal(hasConflict(edit, ENTRY), false);
  assert.equal(hasConflict(edit, { ...ENTRY, version: 5 }), true);
  assert.equal(hasConflict(edit, null), true);
  assert.equal(hasConflict(beginEdit(null), ENTRY), true);
  assert.equal(hasConflict(beginEdit(null), null), false);
});

Deno.test("rebaseEdit() keeps the text and names the newer version", () => {
  const edit = { ...beginEdit(ENTRY), text: '"mine"' };

  const write = writePayload(PLACE, rebaseEdit(edit, { ...ENTRY, version: 9 }), 1_000);

  assert.ok(write.ok);
  assert.deepEqual([write.payload["expected_version"], write.value], [9, "mine"]);
});

Deno.test("isChanged() holds for another value or another end only", () => {
  const edit = beginEdit(ENTRY);

  assert.equal(isChanged(edit), false);
  assert.equal(isChanged({ ...edit, text: ' {"n" : 1}' }), false);
  assert.equal(isChanged({ ...edit, text: '{"n":2}' }), true);
  assert.equal(isChanged({ ...edit, text: "{" }), true);
  assert.equal(isChanged({ ...edit, ttl: "5" }), true);
});
