import assert from "node:assert/strict";
import { isAlive } from "../../tests/fakes/engine_process.ts";
import {
  endGroup,
  gatedArgs,
  GroupedProcess,
  Guard,
  isGroupAlive,
  openGate,
  processStart,
  SHELL,
  signalGroup,
  waitForGroup,
} from "./process_group.ts";
import { until } from "../../tests/fakes/until.ts";

function spawn(command: string): Deno.ChildProcess {
  const args = ["-c", command];
  return new Deno.Command("sh", { args, detached: true, stdin: "null", stdout: "null" }).spawn();
}

Deno.test("endGroup() ends the leader and what it started", async () => {
  const child = spawn("sleep 1000 & sleep 1000 & wait");

  await endGroup(child.pid, 5_000);

  await child.status;
  assert.equal(await isGroupAlive(child.pid), false);
});

Deno.test("endGroup() kills a group that does not exit in time", async () => {
  const command = "trap '' TERM; echo set; while :; do sleep 0.05; done";
  const child = new Deno.Command("sh", {
    args: ["-c", command],
    detached: true,
    stdin: "null",
    stdout: "piped",
  }).spawn();
  const reader = child.stdout.getReader();
  await reader.read(); // The trap is set.
  await reader.cancel();

  await endGroup(child.pid, 100);

  assert.equal((await child.status).signal, "SIGKILL");
});

Deno.test("isGroupAlive() counts a group whose leader has left", async () => {
  const child = spawn("sleep 1000 &");
  await child.status;

  assert.equal(await isGroupAlive(child.pid), true);
  assert.equal(await waitForGroup(child.pid, 30), false);

  await endGroup(child.pid, 5_000);
  assert.equal(await isGroupAlive(child.pid), false);
});

Deno.test("signalGroup() never reaches the engine's own group or all processes", () => {
  for (const leader of [1, 0, -1]) assert.equal(signalGroup(leader, 0), false);
});

Deno.test("processStart() is equal for one process and known only while it runs", async () => {
  const child = spawn("exec sleep 1000");
  const start = await processStart(child.pid);

  assert.equal(await processStart(child.pid), start);
  assert.notEqual(await processStart(Deno.pid), start);

  await endGroup(child.pid, 5_000);
  await child.status;
  assert.equal(await processStart(child.pid), undefined);
});

function spawnGated(...argv: string[]): Deno.ChildProcess {
  return new Deno.Command(SHELL, {
    args: gatedArgs(argv),
    detached: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
}

/** An engine with a program, a gate and a guard; end() kills the engine. */
async function orphaned(signals: boolean): Promise<{ pid: number; end(): Promise<void> }> {
  const url = new URL("./process_group.ts", import.meta.url).href;
  const source = `
    import { gatedArgs, Guard, openGate, SHELL } from ${JSON.stringify(url)};
    const child = new Deno.Command(SHELL, {
      args: gatedArgs(["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]),
      detached: true, stdin: "piped", stdout: "null", stderr: "null",
    }).spawn();
    new Guard(child.pid, { graceMs: 1_000, signals: ${signals} });
    await openGate(child);
    console.log(child.pid);
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  `;
  const engine = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", `data:application/typescript,${encodeURIComponent(source)}`],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = engine.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value } = await reader.read();
  await reader.cancel();
  const end = async (): Promise<void> => {
    engine.kill("SIGKILL");
    await engine.status;
  };
  return { pid: Number(value), end };
}

Deno.test("a program at the gate runs when the engine opens it, with empty standard input", async () => {
  const child = spawnGated("sh", "-c", "cat; echo done");

  await openGate(child);

  const { code, stdout } = await child.output();
  assert.deepEqual([code, new TextDecoder().decode(stdout)], [0, "done\n"]);
});

Deno.test("a program at the gate never runs when the engine goes away", async () => {
  const child = spawnGated("echo", "ran");

  await child.stdin.abort();

  const { code, stdout } = await child.output();
  assert.deepEqual([code, stdout.length], [125, 0]);
});

Deno.test("Guard.dismiss() leaves the program's group alone", async () => {
  const child = spawnGated("sh", "-c", "sleep 0.2; echo whole");
  const guard = new Guard(child.pid, { graceMs: 1_000, signals: true });
  await openGate(child);

  await guard.dismiss();

  assert.equal(new TextDecoder().decode((await child.output()).stdout), "whole\n");
});

for (const signals of [true, false]) {
  Deno.test(`a guard that ${signals ? "signals" : "waits"} ends what a killed engine leaves`, async () => {
    const { pid, end } = await orphaned(signals);
    assert.ok(isAlive(pid));

    await end();

    await until(() => !isAlive(pid));
  });
}

const NOTHING = (): Promise<void> => Promise.resolve();

/** A process that collects what it prints on both streams. */
function setup(...argv: string[]) {
  const bytes = { stdout: [] as number[], stderr: [] as number[] };
  const process = new GroupedProcess({ argv, directory: "/", env: { A: "1" } }, (chunk) => {
    bytes[chunk.stream].push(...chunk.bytes);
    return Promise.resolve();
  });
  return { process, bytes };
}

Deno.test("GroupedProcess runs nothing when what comes before opening fails", async () => {
  const { process, bytes } = setup("echo", "ran");

  const refused = process.open(1_000, () => Promise.reject(new Error("disk full")));

  await assert.rejects(refused, { message: "disk full" });
  assert.deepEqual(await process.ended, { code: 125, signal: null });
  assert.deepEqual(bytes.stdout, []);
});

Deno.test("GroupedProcess passes on every byte of both streams", async () => {
  const { process, bytes } = setup("sh", "-c", "printf '\\377\\000\\r\\n'; printf '%s' $A >&2");

  await process.open(1_000, NOTHING);
  await process.ended;

  assert.deepEqual(bytes, { stdout: [255, 0, 13, 10], stderr: [0x31] });
});

Deno.test("GroupedProcess passes arguments on as they are", async () => {
  const { process, bytes } = setup("printf", "%s|", "a b", "$A", "*", "-n", "");

  await process.open(1_000, NOTHING);
  await process.ended;

  assert.equal(String.fromCharCode(...bytes.stdout), "a b|$A|*|-n||");
});

Deno.test("GroupedProcess.stop() before it is opened leaves no process behind", async () => {
  const { process } = setup("sleep", "1000");

  const ended = process.stop(1_000);
  await assert.rejects(process.open(1_000, () => process.ended.then(() => {})));

  assert.deepEqual(await ended, { code: null, signal: "SIGTERM" });
  assert.equal(await isGroupAlive(process.pid), false);
});
