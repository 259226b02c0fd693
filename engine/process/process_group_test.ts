import assert from "node:assert/strict";
import { isAlive } from "../../tests/fakes/engine_process.ts";
import { until } from "../../tests/launcher_contract.ts";
import {
  endGroup,
  gatedArgs,
  GroupedProcess,
  groupEnds,
  Guard,
  isGroupAlive,
  openGate,
  SHELL,
  signalGroup,
  startOf,
} from "./process_group.ts";

function spawn(command: string): Deno.ChildProcess {
  const args = ["-c", command];
  return new Deno.Command("sh", { args, detached: true, stdin: "null", stdout: "null" }).spawn();
}

Deno.test("endGroup() ends the leader and those it started", async () => {
  const child = spawn("sleep 1000 & sleep 1000 & wait");

  await endGroup(child.pid, 5_000);

  await child.status;
  assert.equal(await isGroupAlive(child.pid), false);
});

Deno.test("endGroup() uses force when the time is over", async () => {
  const child = spawn("trap '' TERM; while :; do sleep 0.05; done");
  await new Promise((resolve) => setTimeout(resolve, 200)); // The trap has to be set.

  await endGroup(child.pid, 100);

  assert.equal((await child.status).signal, "SIGKILL");
});

Deno.test("isGroupAlive() counts a group whose leader has left", async () => {
  const child = spawn("sleep 1000 &");
  await child.status;

  assert.equal(await isGroupAlive(child.pid), true);
  assert.equal(await groupEnds(child.pid, 30), false);

  await endGroup(child.pid, 5_000);
  assert.equal(await isGroupAlive(child.pid), false);
});

Deno.test("signalGroup() never reaches the engine's own group or everybody", () => {
  for (const leader of [1, 0, -1]) assert.equal(signalGroup(leader, 0), false);
});

Deno.test("startOf() is equal for one process and there only while it runs", async () => {
  const child = spawn("exec sleep 1000");
  const start = await startOf(child.pid);

  assert.equal(await startOf(child.pid), start);
  assert.notEqual(await startOf(Deno.pid), start);

  await endGroup(child.pid, 5_000);
  await child.status;
  assert.equal(await startOf(child.pid), undefined);
});

function spawnOfGuard(...argv: string[]): Deno.ChildProcess {
  return new Deno.Command(SHELL, {
    args: gatedArgs(argv),
    detached: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
}

/** Runs a program whose standard input a shell holds open, which is then killed like an engine. */
async function orphaned(asks: boolean): Promise<{ pid: number; end(): Promise<void> }> {
  const url = new URL("./process_group.ts", import.meta.url).href;
  const source = `
    import { gatedArgs, Guard, openGate, SHELL } from ${JSON.stringify(url)};
    const child = new Deno.Command(SHELL, {
      args: gatedArgs(["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]),
      detached: true, stdin: "piped", stdout: "null", stderr: "null",
    }).spawn();
    new Guard(child.pid, { graceMs: 1_000, asks: ${asks} });
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

Deno.test("a program at the gate runs with the word of the engine, and has nothing to read", async () => {
  const child = spawnOfGuard("sh", "-c", "cat; echo done");

  await openGate(child);

  const { code, stdout } = await child.output();
  assert.deepEqual([code, new TextDecoder().decode(stdout)], [0, "done\n"]);
});

Deno.test("a program at the gate never runs when the engine goes away", async () => {
  const child = spawnOfGuard("echo", "ran");

  await child.stdin.abort();

  const { code, stdout } = await child.output();
  assert.deepEqual([code, stdout.length], [125, 0]);
});

Deno.test("Guard.dismiss() leaves the program's group alone", async () => {
  const child = spawnOfGuard("sh", "-c", "sleep 0.2; echo whole");
  const guard = new Guard(child.pid, { graceMs: 1_000, asks: true });
  await openGate(child);

  await guard.dismiss();

  assert.equal(new TextDecoder().decode((await child.output()).stdout), "whole\n");
});

for (const asks of [true, false]) {
  Deno.test(`a guard that ${asks ? "asks" : "waits"} ends what a killed engine leaves`, async () => {
    const { pid, end } = await orphaned(asks);
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
  });
  return { process, bytes };
}

Deno.test("GroupedProcess runs nothing before it is opened, and not when it may not", async () => {
  const { process, bytes } = setup("echo", "ran");

  const refused = process.open(1_000, () => Promise.reject(new Error("disk full")));

  await assert.rejects(refused, { message: "disk full" });
  assert.deepEqual(await process.ended, { code: 125, signal: null });
  assert.deepEqual(bytes.stdout, []);
});

Deno.test("GroupedProcess hands on every byte of both streams", async () => {
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

Deno.test("GroupedProcess.stop() before it is opened leaves nobody behind", async () => {
  const { process } = setup("sleep", "1000");

  const ended = process.stop(1_000);
  await assert.rejects(process.open(1_000, () => process.ended.then(() => {})));

  assert.deepEqual(await ended, { code: null, signal: "SIGTERM" });
  assert.equal(await isGroupAlive(process.pid), false);
});
