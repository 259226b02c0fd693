/**
 * Records of a frame come with what stands around them, and never too many.
 *
 * @module
 */
import assert from "node:assert/strict";
import { TELEMETRY_FRAME_ITEMS_MAX } from "../limits.ts";
import { type ItemOrigin, readItems } from "./frame_items.ts";

const LISTS = ["groups", "scopes", "items"] as const;

function read(frame: unknown) {
  const origins: ItemOrigin[] = [];
  let looked = 0;
  const result = readItems(frame, LISTS, (origin) => void origins.push(origin), (record) => {
    looked++;
    return typeof record === "string" ? { record, of: origins.length } : undefined;
  });
  return { ...result, origins, looked };
}

Deno.test("readItems() hands over each record with the resource and the scope it belongs to", () => {
  const { items, dropped, origins } = read({
    groups: [
      {
        resource: { attributes: [1] },
        scopes: [{ scope: { name: "a", version: "2" }, items: ["x", 5] }, { items: ["y"] }],
      },
      { scopes: [{ scope: { name: 5 }, items: ["z"] }, 7, { items: "no list" }] },
    ],
  });

  assert.deepEqual(items.map(({ record, of }) => [record, of]), [["x", 1], ["y", 2], ["z", 3]]);
  assert.equal(dropped, 1);
  const none = { scope_name: null, scope_version: null };
  assert.deepEqual(origins.slice(0, 3), [
    { resource: [1], scope_name: "a", scope_version: "2" },
    { resource: [1], ...none },
    { resource: [], ...none },
  ]);
});

for (const [what, record] of [["whole", "x"], ["broken", 5]] as const) {
  Deno.test(`readItems() looks at a bounded number of ${what} records and counts the rest`, () => {
    const items = Array(TELEMETRY_FRAME_ITEMS_MAX + 10).fill(record);

    const { looked, dropped } = read({ groups: [{ scopes: [{ items }, { items }] }] });

    assert.equal(looked, TELEMETRY_FRAME_ITEMS_MAX);
    assert.equal(dropped, 2 * items.length - (what === "whole" ? looked : 0));
  });
}
