/**
 * Counting goes on while jobs come and go, and ends with the right number.
 *
 * @module
 */
import assert from "node:assert/strict";
import { AreaCount, COUNTED_MAX } from "./area_count.ts";

const position = (i: number): string => String(i).padStart(6, "0");

/** Counts the jobs of a set; `between` is called while each page is on its way. */
async function count(
  there: Set<string>,
  between: (area: AreaCount, page: number) => void = () => {},
): Promise<AreaCount> {
  const area = new AreaCount();
  for (let page = 0; area.isCounting; page++) {
    await area.countPage((limit, after) => {
      const read = [...there].sort().filter((each) => each > after).slice(0, limit);
      between(area, page);
      return Promise.resolve(read);
    });
  }
  return area;
}

Deno.test("AreaCount counts page by page", async () => {
  for (const length of [0, 1, COUNTED_MAX - 1, COUNTED_MAX, COUNTED_MAX + 1, 3 * COUNTED_MAX]) {
    const there = new Set(Array.from({ length }, (_, i) => position(i)));
    assert.equal((await count(there)).value, length);
  }
});

Deno.test("AreaCount sets what comes and goes meanwhile against the page", async () => {
  const there = new Set(Array.from({ length: 1_200 }, (_, i) => position(2 * i)));
  const area = await count(there, (area, page) => {
    const base = 1_000 * page;
    for (const gone of [0, 200, 998, 1_500]) {
      if (there.delete(position(base + gone))) area.removed(position(base + gone));
    }
    for (const came of [1, 201, 999, 1_501, 5_001]) {
      const each = position(base + came);
      if (there.has(each)) continue;
      there.add(each);
      area.added(each);
    }
  });

  assert.equal(area.value, there.size);
  area.added("9");
  area.removed("9");
  assert.equal(area.value, there.size);
});

Deno.test("AreaCount goes on where a page failed", async () => {
  const area = new AreaCount();
  await assert.rejects(area.countPage(() => Promise.reject(new Error("disk"))));
  assert.equal(area.isCounting, true);
  await area.countPage(() => Promise.resolve(["a", "b"]));
  assert.deepEqual([area.value, area.isCounting], [2, false]);
});
