import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { CpuShare, readProcess } from "./samples_process.ts";

Deno.test("readProcess() knows memory and processor time", () => {
  const { memory_bytes, heap_bytes, cpu_seconds } = readProcess();

  assert.ok(memory_bytes > heap_bytes && heap_bytes > 0);
  assert.ok(cpu_seconds > 0);
});

Deno.test("readProcess() counts the processor time that the platform counts, to a hundredth", () => {
  const { process } = globalThis as unknown as { process: { cpuUsage(): Record<string, number> } };
  for (let burnt = 0, end = performance.now() + 60; performance.now() < end; burnt++);

  const before = readProcess().cpu_seconds;
  const { user = 0, system = 0 } = process.cpuUsage();
  const after = readProcess().cpu_seconds;

  const platform = (user + system) / 1_000_000;
  assert.ok(platform > before - 0.03 && platform < after + 0.03, `${before} ${platform} ${after}`);
  assert.ok(before > 0.05);
});

Deno.test("CpuShare is the part of the time since it was read last", () => {
  const clock = new FakeClock();
  const share = new CpuShare(clock, 10);

  clock.tick(1_000);
  assert.equal(share.read(10.25), 25);
  clock.tick(500);
  assert.equal(share.read(11.25), 200);
});

Deno.test("CpuShare is unknown when no time has passed", () => {
  const share = new CpuShare(new FakeClock(), 0);

  assert.equal(share.read(1), null);
});
