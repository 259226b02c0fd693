import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeGuest } from "../../tests/fakes/fake_vm.ts";
import type { Ended, LaunchSpec } from "../ports/launcher.ts";
import type { GuestOptions } from "./guest/guest.ts";
import { MicroVmProgram } from "./microvm_program.ts";

const DONE: Ended = { code: 0, signal: null };
const SPEC: LaunchSpec = { name: "w", command: "run", directory: "/w", env: {} };

/** A program in a guest; `kept` records whether the guest was kept when the program ended. */
async function setup(more: Partial<LaunchSpec> = {}) {
  const clock = new FakeClock();
  const guest = new FakeGuest({} as GuestOptions);
  const spec = { ...SPEC, ...more };
  const env = { A: "b" };
  const program = await guest.run({ command: "run", directory: "/w", env }, () => {});
  const kept: boolean[] = [];
  const endUse = (isKept: boolean): Promise<void> => {
    kept.push(isKept);
    return Promise.resolve();
  };
  const context = { spec, env, guest, accelerator: "tcg", clock, endUse } as const;
  return { clock, guest, program, kept, running: new MicroVmProgram(program, context) };
}

Deno.test("MicroVmProgram releases its guest when it ends, unless another program follows", async () => {
  for (const [keep, code] of [[false, 0], [true, 0], [true, 1]] as const) {
    const { program, running, kept } = await setup({ keep });

    program.end({ code, signal: null });

    assert.deepEqual(await running.ended, { code, signal: null });
    assert.deepEqual(kept, [keep]);
  }
});

for (
  const [what, ended] of [
    ["that ran out of memory", {
      code: null,
      signal: "SIGKILL",
      reason: "out of memory (128 MiB)",
    }],
    ["with a child that ran out of memory", { code: 1, signal: null, reason: "out of memory" }],
    ["that crashed", { code: null, signal: "SIGSEGV" }],
  ] as const
) {
  Deno.test(`MicroVmProgram releases the guest of a program ${what}`, async () => {
    const { program, running, kept } = await setup({ keep: true });

    program.end(ended);

    assert.deepEqual(await running.ended, ended);
    assert.deepEqual(kept, [false]);
  });
}

Deno.test("MicroVmProgram releases a guest that ran out of memory during stop()", async () => {
  const { program, running, kept } = await setup();
  program.onSignal = () => program.end({ code: 1, signal: null, reason: "out of memory" });

  await running.stop(1_000, { keep: true });

  assert.deepEqual(kept, [false]);
});

Deno.test("MicroVmProgram.stop() sends TERM, then KILL, then kills the machine", async () => {
  const { clock, guest, program, running, kept } = await setup();
  program.onSignal = () => {};

  const stopping = running.stop(1_000, { keep: true });
  await settled();
  assert.deepEqual(program.signals, ["TERM"]);
  clock.tick(1_000);
  await settled();
  assert.deepEqual(program.signals, ["TERM", "KILL"]);
  clock.tick(5_000);
  const reason = "its microVM ended";

  assert.deepEqual(await stopping, { code: null, signal: "SIGKILL", reason });
  assert.deepEqual([guest.powerOffs, kept, clock.waiting], [[0], [false], 0]);
});

Deno.test("MicroVmProgram.stop() keeps the guest of a program that needed KILL", async () => {
  const { clock, program, running, kept } = await setup();
  program.onSignal = (name) => name === "KILL" && program.end({ code: null, signal: "SIGKILL" });

  const stopping = running.stop(1_000, { keep: true });
  clock.tick(1_000);
  await stopping;

  assert.deepEqual(kept, [true]);
});

Deno.test("MicroVmProgram.stop() stops once, and releases the guest unless every call keeps it", async () => {
  const { program, running, kept } = await setup();
  program.onSignal = () => {};

  const first = running.stop(1_000, { keep: true });
  const second = running.stop(1);
  const third = running.stop(1, { keep: true });
  program.end(DONE);

  assert.deepEqual(await Promise.all([first, second, third]), [DONE, DONE, DONE]);
  assert.deepEqual(await running.stop(1), DONE);
  assert.deepEqual([program.signals, kept], [["TERM"], [false]]);
});

Deno.test("MicroVmProgram.exec() runs commands in its environment while it runs", async () => {
  const { guest, running } = await setup();
  const printed: string[] = [];
  const { signal } = new AbortController();
  const exec = () =>
    running.exec(
      ["ls", "-l"],
      ({ bytes }) => printed.push(new TextDecoder().decode(bytes)),
      signal,
    );

  assert.deepEqual(await exec(), { code: 3, signal: null });
  assert.deepEqual(printed, ["hello"]);
  const [{ program, signal: given }] = guest.execs as [typeof guest.execs[0]];
  assert.deepEqual(program, { command: ["ls", "-l"], directory: "/w", env: { A: "b" } });
  assert.equal(given.aborted, false);

  await running.stop(1_000);
  assert.equal(given.aborted, true);
  await assert.rejects(exec(), {
    code: "launch_failed",
    message: "Worker w does not run any more",
  });
});

/** Lets what waits for promises only go on. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}
