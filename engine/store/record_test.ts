import assert from "node:assert/strict";
import type { Entry } from "../ports/store.ts";
import {
  commitCost,
  cutParts,
  decodeRecord,
  encodeRecord,
  joinParts,
  makeEntry,
  partsFor,
  STORE_PART_BYTES,
  STORE_RECORD_BYTES_MAX,
  StoredEntry,
} from "./record.ts";

const encoder = new TextEncoder();

function entryOf(value: string) {
  const json = encoder.encode(JSON.stringify(value));
  const versions = { version: 2 ** 53 - 1, created: 7 };
  return { entry: new StoredEntry(["k"], { bytes: json.length, ...versions }, { value }), json };
}

/** The members of an entry, for comparing. */
function plainOf({ key, value, json, bytes, version, created }: Entry) {
  return { key, value, json, bytes, version, created };
}

Deno.test("StoredEntry gives its text as it is until its value was read, which is parsed once", () => {
  const head = { version: 1, created: 1, bytes: 12 };

  const entry = new StoredEntry(["k"], head, { json: '{"n": 1.50}' });
  assert.equal(entry.json, '{"n": 1.50}');

  assert.deepEqual(entry.value, { n: 1.5 });
  assert.equal(entry.value, entry.value);
  assert.equal(entry.json, '{"n":1.5}');
});

Deno.test("A record gives back the entry that it was made of", () => {
  const { entry, json } = entryOf("☃ text");

  const head = decodeRecord(encodeRecord(entry, json))!;

  assert.deepEqual(plainOf(makeEntry(["k"], head, head.json!)), plainOf(entry));
});

Deno.test("A value stands in its record as long as that fits, else in parts", () => {
  for (let bytes = STORE_RECORD_BYTES_MAX - 20; bytes < STORE_RECORD_BYTES_MAX; bytes++) {
    const { entry, json } = entryOf("x".repeat(bytes - 2));

    const record = encodeRecord(entry, json);

    assert.ok(record.length <= STORE_RECORD_BYTES_MAX);
    assert.equal(decodeRecord(record)!.json === undefined, partsFor(bytes) > 0);
    assert.equal(decodeRecord(record)!.bytes, bytes);
  }
});

Deno.test("Parts make the value again, and nothing else does", () => {
  const json = encoder.encode("0123456789".repeat(20_000));

  const parts = [...cutParts(json)];

  assert.equal(parts.length, partsFor(json.length));
  assert.ok(parts.every((part) => part.length <= STORE_PART_BYTES));
  assert.deepEqual(joinParts(parts, json.length), json);
  assert.equal(joinParts(parts.slice(1), json.length), undefined);
  assert.equal(joinParts(parts, json.length + 1), undefined);
});

Deno.test("Bytes that are no record are noticed", () => {
  for (const bytes of [[], [1], [3, ...Array(20).fill(0)], Array(17).fill(1), Array(26).fill(2)]) {
    assert.equal(decodeRecord(Uint8Array.from(bytes)), undefined);
  }
});

Deno.test("A value that is no JSON in UTF-8 is noticed", () => {
  const head = { version: 1, created: 1, bytes: 1, json: undefined, sum: undefined };

  assert.throws(() => makeEntry(["k"], head, Uint8Array.of(0xff)));
  assert.throws(() => makeEntry(["k"], head, encoder.encode("{")));
});

Deno.test("The cost of an entry covers its key, its parts and its record", () => {
  assert.equal(commitCost(["k"], 100).mutations, 1);
  assert.equal(commitCost(["k"], 3 * STORE_PART_BYTES).mutations, 4);
  assert.ok(commitCost(["k".repeat(500)], 100).bytes > 600);
});

Deno.test("A flipped bit of a record, or the record of another key, is noticed", () => {
  const { entry, json } = entryOf("some text");
  const record = encodeRecord(entry, json);
  const read = (bytes: Uint8Array, key = ["k"]): Entry => {
    const head = decodeRecord(bytes);
    if (!head) throw new Error("no record");
    return makeEntry(key, head, head.json!);
  };

  for (let bit = 0; bit < 8 * record.length; bit++) {
    const flipped = record.slice();
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    if (flipped[0] === 1) continue; // Its kind is now one that has no checksum.
    assert.throws(() => read(flipped), `bit ${bit}`);
  }
  assert.throws(() => read(record, ["other"]), /checksum/);
  assert.deepEqual(plainOf(read(record)), plainOf(entry));
});

Deno.test("A record that version 0.1.0 wrote is read without a checksum", () => {
  const { entry, json } = entryOf("old");
  const record = new Uint8Array(17 + json.length);
  const view = new DataView(record.buffer);
  record[0] = 1;
  view.setFloat64(1, entry.version);
  view.setFloat64(9, entry.created);
  record.set(json, 17);

  const head = decodeRecord(record)!;

  assert.deepEqual(plainOf(makeEntry(["k"], head, head.json!)), plainOf(entry));
});
