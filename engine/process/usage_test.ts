import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { systemClock } from "../platform/system_clock.ts";
import {
  parsePs,
  parseStat,
  processFamily,
  type ProcessRow,
  type ProcessTable,
  ProcessUsageMeter,
  readProcessTable,
} from "./usage.ts";
import { until } from "../../tests/fakes/until.ts";

/** A machine whose processes a test controls; each holds 1,000 bytes. */
function setup() {
  const clock = new FakeClock();
  const rows = new Map<number, ProcessRow>();
  const set = (pid: number, cpuMs: number, parent = 1, isAlive = true): void =>
    void rows.set(pid, { pid, parent, group: pid, isAlive, cpuMs });
  const table = (): ProcessTable => ({
    rows: [...rows.values()],
    memoryOf: (pids) => Promise.resolve(pids.length * 1_000),
  });
  const meter = new ProcessUsageMeter(clock, () => Promise.resolve(table()));
  /** Measures; when a second sample is needed, runs `between` and lets the time in between pass. */
  const ask = async (pids: number[], between = () => {}) => {
    const asked = meter.measure(pids);
    for (let i = 0; i < 20; i++) await Promise.resolve();
    between();
    if (clock.waiting > 0) clock.tick(200);
    return await asked;
  };
  return { clock, rows, set, ask };
}

Deno.test("ProcessUsageMeter measures memory and share of a program with everything that it started", async () => {
  const { set, ask } = setup();
  set(7, 1_000);
  set(8, 500, 7);

  const usage = (await ask([7], () => {
    set(7, 1_040);
    set(8, 520, 7);
    set(9, 40, 8);
  })).get(7);

  assert.deepEqual(usage, { isAlive: true, memoryBytes: 3_000, cpuPercent: 50 });
});

Deno.test("ProcessUsageMeter uses the earlier sample when it is recent", async () => {
  const { clock, set, ask } = setup();
  set(7, 0);
  await ask([7]);

  clock.tick(10_000);
  set(7, 2_500);
  assert.equal((await ask([7])).get(7)!.cpuPercent, 25);
  clock.tick(400);
  set(7, 2_900);
  assert.equal((await ask([7])).get(7)!.cpuPercent, 25);
  assert.equal(clock.waiting, 0);
});

Deno.test("ProcessUsageMeter takes two samples when the earlier one is old", async () => {
  const { clock, set, ask } = setup();
  set(7, 0);
  await ask([7]);

  clock.tick(3_600_000);
  set(7, 3_600_000);
  const usage = (await ask([7], () => set(7, 3_600_002))).get(7);

  assert.equal(usage!.cpuPercent, 1);
});

Deno.test("ProcessUsageMeter reports a missing process and a zombie as gone", async () => {
  const { set, ask } = setup();
  set(7, 10, 1, false);
  const gone = { isAlive: false, memoryBytes: null, cpuPercent: null };

  const usages = await ask([7, 8]);

  assert.deepEqual([usages.get(7), usages.get(8)], [gone, gone]);
});

Deno.test("ProcessUsageMeter takes a later process with the same id for another one", async () => {
  const { rows, clock, set, ask } = setup();
  set(7, 5_000);
  await ask([7]);
  rows.clear();
  await ask([7]);

  clock.tick(1_000);
  set(7, 20);
  const usage = (await ask([7], () => set(7, 40))).get(7);

  assert.equal(usage!.cpuPercent, 10);
});

Deno.test("ProcessUsageMeter reports nothing where the system reports no processes", async () => {
  const meter = new ProcessUsageMeter(new FakeClock(), () => Promise.resolve(undefined));

  const usage = (await meter.measure([7])).get(7);

  assert.deepEqual(usage, { isAlive: true, memoryBytes: null, cpuPercent: null });
  assert.equal((await meter.measure([])).size, 0);
});

Deno.test("ProcessUsageMeter measures a real program, and reports when it is stopped or gone", async () => {
  if (Deno.build.os !== "linux" && Deno.build.os !== "darwin") return;
  const args = ["-c", "while :; do :; done"];
  const child = new Deno.Command("sh", { args, detached: true }).spawn();
  const meter = new ProcessUsageMeter(systemClock);

  let busy = (await meter.measure([child.pid])).get(child.pid)!;
  await until(async () => {
    busy = (await meter.measure([child.pid])).get(child.pid)!;
    return busy.cpuPercent! > 0; // Other programs may keep the processors busy.
  });
  child.kill("SIGSTOP");
  const held = (): Promise<number | undefined> =>
    meter.measure([child.pid]).then((all) => all.get(child.pid)!.halted);
  await until(async () => await held() === child.pid);
  child.kill("SIGCONT");
  await until(async () => await held() === undefined);
  child.kill("SIGKILL");
  await child.status;
  const gone = (await meter.measure([child.pid])).get(child.pid)!;

  assert.ok(busy.isAlive && busy.memoryBytes! > 0, JSON.stringify(busy));
  assert.equal(gone.isAlive, false);
});

function row(pid: number, parent: number, group: number, isAlive = true): ProcessRow {
  return { pid, parent, group, isAlive, cpuMs: 0 };
}

Deno.test("parseStat() reads the fields behind a name with any characters", () => {
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

Deno.test("processFamily() is the group and all that it started, without zombies", () => {
  const rows = [row(5, 1, 5), row(6, 5, 5), row(7, 6, 7), row(8, 7, 8), row(9, 1, 5)];
  const others = [row(1, 0, 1), row(2, 1, 2), row(3, 5, 5, false)];

  const family = processFamily([...others, ...rows], 5).map(({ pid }) => pid).sort();

  assert.deepEqual(family, [5, 6, 7, 8, 9]);
  assert.deepEqual(processFamily(rows, 4), []);
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
