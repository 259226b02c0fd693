import assert from "node:assert/strict";
import { isGroupAlive, processStart } from "../../process/process_group.ts";
import { endReasonOf, Machine } from "./machine.ts";
import { until } from "../../../tests/fakes/until.ts";

const shell = (script: string) => Machine.start("math", ["/bin/sh", "-c", script]);

Deno.test("a machine that exits with 0 has no reason", async () => {
  const machine = await shell("echo booted; echo noise >&2");

  assert.deepEqual(await machine.ended, { code: 0, signal: null });
  assert.deepEqual(machine.console().toSorted(), ["booted", "noise"]);
});

Deno.test("a machine that fails has its last line on standard error as reason", async () => {
  const machine = await shell("echo qemu: cannot >&2; echo 'qemu: no such device' >&2; exit 1");

  assert.deepEqual(await machine.ended, { code: 1, signal: null, reason: "qemu: no such device" });
});

Deno.test("a killed machine reports the signal", async () => {
  const machine = await shell("echo complaint >&2; exec sleep 1000");
  await until(() => machine.console().length > 0);

  machine.kill();

  assert.deepEqual(await machine.ended, { code: null, signal: "SIGKILL" });
  machine.kill(); // Does not throw when the process is gone.
});

Deno.test("a machine keeps the end of its console, up to the reason for its end", async () => {
  const words = "[ 1.5] Kernel panic - not syncing: Attempted to kill init!";
  const machine = await shell(`seq 1 50; echo '${words}'; seq 51 99`);

  const { reason } = await machine.ended;

  assert.equal(reason, "kernel panic: Attempted to kill init!");
  assert.deepEqual(machine.console(), [
    "42",
    "43",
    "44",
    "45",
    "46",
    "47",
    "48",
    "49",
    "50",
    words,
  ]);
});

Deno.test("endReasonOf() recognises kernel panics and fatal errors of init", () => {
  assert.equal(
    endReasonOf("[    3.3] Kernel panic - not syncing: System is deadlocked on memory\r"),
    "kernel panic: System is deadlocked on memory",
  );
  assert.equal(endReasonOf("engine: /w cannot be mounted"), "/w cannot be mounted");
  for (const line of ["", "the engine: x", "Kernel panic", "[1.0] reboot: Restarting system"]) {
    assert.equal(endReasonOf(line), undefined, line);
  }
});

Deno.test("a machine has no input and a process group of its own", async () => {
  const machine = await shell("cat; echo read; exec sleep 1000");
  await until(() => machine.console().includes("read"));

  assert.ok(await isGroupAlive(machine.pid));
  machine.kill();
  await machine.ended;
});

Deno.test("a machine whose program is missing ends with the shell's error", async () => {
  const machine = await Machine.start("math", ["/no/such/qemu", "-M", "microvm"]);

  const { code, reason } = await machine.ended;

  assert.equal(code, 127);
  assert.match(reason!, /\/no\/such\/qemu.*not found/);
});

Deno.test("a machine and its guard end soon after the engine was killed", async () => {
  const module = import.meta.resolve("./machine.ts");
  const program = `
    import { Machine } from ${JSON.stringify(module)};
    const machine = await Machine.start("math", ["/bin/sh", "-c", "trap '' TERM; exec sleep 1000"]);
    console.log(machine.pid);
    await machine.ended;`;
  const path = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(path, program);
  const engine = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--quiet", path],
    stdin: "null",
    stdout: "piped",
  }).spawn();
  const reader = engine.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const pid = Number((await reader.read()).value);
  assert.notEqual(await processStart(pid), undefined);

  engine.kill("SIGKILL");
  await engine.status;

  await until(async () => await processStart(pid) === undefined);
  await reader.cancel();
  await Deno.remove(path);
});
