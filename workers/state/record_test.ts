import assert from "node:assert/strict";
import type { Entry } from "../../engine/ports/store.ts";
import { expiryOf, isExpired, RecordedEntry, recordOf, valueOf } from "./record.ts";

function entryOf(json: string): Entry {
  const versions = { bytes: json.length, version: 3, created: 2 };
  return { key: ["state", "s", "k"], value: JSON.parse(json), json, ...versions };
}

Deno.test("A record gives back the text of its value, its value and its times", () => {
  const values = [{ a: '","updated_at_ms":1}' }, null, "}", [], { expires_at_ms: 2 }];

  for (const value of values) {
    for (const expires_at_ms of [undefined, 9_000]) {
      const entry = entryOf(recordOf({ value, expires_at_ms }, 7).text);

      const found = new RecordedEntry(entry);

      assert.equal(found.json, JSON.stringify(value));
      assert.deepEqual([found.value, valueOf(entry)], [value, value]);
      assert.deepEqual([found.updated_at_ms, found.expires_at_ms], [7, expires_at_ms]);
      assert.equal(expiryOf(entry), expires_at_ms);
    }
  }
});

Deno.test("An entry expires at its time, and none without one", () => {
  const [dated, forever] = [9_000, undefined].map((expires_at_ms) =>
    entryOf(recordOf({ value: { expires_at_ms: 1 }, expires_at_ms }, 7).text)
  );

  assert.deepEqual([8_999, 9_000].map((now) => isExpired(dated, now)), [false, true]);
  assert.deepEqual([isExpired(forever, Infinity), isExpired(undefined, 1)], [false, false]);
});
