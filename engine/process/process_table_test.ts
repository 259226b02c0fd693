import assert from "node:assert/strict";
import {
  familyOf,
  parsePs,
  parseStat,
  type ProcessRow,
  readProcessTable,
} from "./process_table.ts";

function row(pid: number, parent: number, group: number, isAlive = true): ProcessRow {
  return { pid, parent, group, isAlive, cpuMs: 0 };
}

Deno.test("parseStat() reads the fields behind a name that holds anything", () => {
  const text = "42 (a) b (c) R 7 40 40 0 -1 4194560 1 0 0 0 13 29 0 0 20 0 1 0 5 1 2\n";

  assert.deepEqual(parseStat(text), { pid: 42, parent: 7, group: 40, isAlive: true, cpuMs: 420 });
  assert.equal(parseStat(text.replace(" R ", " Z ")).isAlive, false);
  assert.equal(parseStat(text.replace(" R ", " T ")).isHalted, true);
  assert.equal(parseStat(text.replace(" R ", " t ")).isHalted, undefined);
});

Deno.test("parsePs() reads what ps prints, times of any length", async () => {
  const table = parsePs(
    "    1     0     1 Ss     1024   0:01.50\n" +
      " 4711     1  4711 S+    20480 1-02:03:04\n   99     1    99 Z          0   0:00.00\n\n" +
      "   98     1    98 T          8   0:00.00\n",
  );

  assert.deepEqual(table.rows, [
    { pid: 1, parent: 0, group: 1, isAlive: true, cpuMs: 1_500 },
    { pid: 4711, parent: 1, group: 4711, isAlive: true, cpuMs: 93_784_000 },
    { pid: 99, parent: 1, group: 99, isAlive: false, cpuMs: 0 },
    { pid: 98, parent: 1, group: 98, isAlive: true, isHalted: true, cpuMs: 0 },
  ]);
  assert.equal(await table.memoryOf([1, 4711, 8]), 21_504 * 1_024);
});

Deno.test("familyOf() is the group and all that it started, without the dead", () => {
  const rows = [row(5, 1, 5), row(6, 5, 5), row(7, 6, 7), row(8, 7, 8), row(9, 1, 5)];
  const others = [row(1, 0, 1), row(2, 1, 2), row(3, 5, 5, false)];

  const family = familyOf([...others, ...rows], 5).map(({ pid }) => pid).sort();

  assert.deepEqual(family, [5, 6, 7, 8, 9]);
  assert.deepEqual(familyOf(rows, 4), []);
});

Deno.test("readProcessTable() knows this process and its memory", async () => {
  const table = await readProcessTable();

  if (Deno.build.os !== "linux" && Deno.build.os !== "darwin") {
    assert.equal(table, undefined);
    return;
  }
  const own = table!.rows.find(({ pid }) => pid === Deno.pid)!;
  assert.equal(own.isAlive, true);
  assert.ok(own.cpuMs > 0);
  const memory = await table!.memoryOf([Deno.pid]);
  assert.ok(memory > 10 * 1024 * 1024 && memory < 16 * 1024 ** 3, `${memory} bytes`);
});
