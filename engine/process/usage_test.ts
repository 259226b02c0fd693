import assert from "node:assert/strict";
import { until } from "../../tests/launcher_contract.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import type { ProcessRow, ProcessTable } from "./process_table.ts";
import { systemClock } from "../platform/system_clock.ts";
import { ProcessUsages } from "./usage.ts";

/** A machine with processes in the hands of a test; each holds 1,000 bytes. */
function setup() {
  const clock = new FakeClock();
  const rows = new Map<number, ProcessRow>();
  const set = (pid: number, cpuMs: number, parent = 1, isAlive = true): void =>
    void rows.set(pid, { pid, parent, group: pid, isAlive, cpuMs });
  const table = (): ProcessTable => ({
    rows: [...rows.values()],
    memoryOf: (pids) => Promise.resolve(pids.length * 1_000),
  });
  const usages = new ProcessUsages(clock, () => Promise.resolve(table()));
  /** Asks; when a second look is needed, lets the time between pass and `between` happen. */
  const ask = async (pids: number[], between = () => {}) => {
    const asked = usages.of(pids);
    for (let i = 0; i < 20; i++) await Promise.resolve();
    between();
    if (clock.waiting > 0) clock.tick(200);
    return await asked;
  };
  return { clock, rows, set, ask, usages };
}

Deno.test("ProcessUsages tells memory and share of a program, with all that it started", async () => {
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

Deno.test("ProcessUsages takes the look before when it is recent", async () => {
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

Deno.test("ProcessUsages looks twice when the look before is of long ago", async () => {
  const { clock, set, ask } = setup();
  set(7, 0);
  await ask([7]);

  clock.tick(3_600_000);
  set(7, 3_600_000);
  const usage = (await ask([7], () => set(7, 3_600_002))).get(7);

  assert.equal(usage!.cpuPercent, 1);
});

Deno.test("ProcessUsages says that a process is gone, also one that nobody has buried", async () => {
  const { set, ask } = setup();
  set(7, 10, 1, false);
  const gone = { isAlive: false, memoryBytes: null, cpuPercent: null };

  const usages = await ask([7, 8]);

  assert.deepEqual([usages.get(7), usages.get(8)], [gone, gone]);
});

Deno.test("ProcessUsages takes a later process with the same id for another one", async () => {
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

Deno.test("ProcessUsages knows nothing where the system does not tell", async () => {
  const usages = new ProcessUsages(new FakeClock(), () => Promise.resolve(undefined));

  const usage = (await usages.of([7])).get(7);

  assert.deepEqual(usage, { isAlive: true, memoryBytes: null, cpuPercent: null });
  assert.equal((await usages.of([])).size, 0);
});

Deno.test("ProcessUsages sees what a real program does, that it is held and that it is gone", async () => {
  if (Deno.build.os !== "linux" && Deno.build.os !== "darwin") return;
  const args = ["-c", "while :; do :; done"];
  const child = new Deno.Command("sh", { args, detached: true }).spawn();
  const usages = new ProcessUsages(systemClock);

  let busy = (await usages.of([child.pid])).get(child.pid)!;
  await until(async () => {
    busy = (await usages.of([child.pid])).get(child.pid)!;
    return busy.cpuPercent! > 0; // Others may have the processors for a while.
  });
  child.kill("SIGSTOP");
  const held = (): Promise<number | undefined> =>
    usages.of([child.pid]).then((all) => all.get(child.pid)!.halted);
  await until(async () => await held() === child.pid);
  child.kill("SIGCONT");
  await until(async () => await held() === undefined);
  child.kill("SIGKILL");
  await child.status;
  const gone = (await usages.of([child.pid])).get(child.pid)!;

  assert.ok(busy.isAlive && busy.memoryBytes! > 0, JSON.stringify(busy));
  assert.equal(gone.isAlive, false);
});
