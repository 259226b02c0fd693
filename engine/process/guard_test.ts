import assert from "node:assert/strict";
import { isAlive } from "../../tests/fakes/engine_process.ts";
import { until } from "../../tests/launcher_contract.ts";
import { gatedArgs, Guard, openGate, SHELL } from "./guard.ts";

function spawn(...argv: string[]): Deno.ChildProcess {
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
  const url = new URL("./guard.ts", import.meta.url).href;
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
  const child = spawn("sh", "-c", "cat; echo done");

  await openGate(child);

  const { code, stdout } = await child.output();
  assert.deepEqual([code, new TextDecoder().decode(stdout)], [0, "done\n"]);
});

Deno.test("a program at the gate never runs when the engine goes away", async () => {
  const child = spawn("echo", "ran");

  await child.stdin.abort();

  const { code, stdout } = await child.output();
  assert.deepEqual([code, stdout.length], [125, 0]);
});

Deno.test("Guard.dismiss() leaves the program's group alone", async () => {
  const child = spawn("sh", "-c", "sleep 0.2; echo whole");
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
