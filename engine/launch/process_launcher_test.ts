import assert from "node:assert/strict";
import {
  isProgram,
  type LauncherUnderTest,
  testLauncher,
  until,
} from "../../tests/launcher_contract.ts";
import { ProcessLauncher } from "./process_launcher.ts";
import { startOf } from "./process_group.ts";

async function open(): Promise<LauncherUnderTest & { launcher: ProcessLauncher }> {
  const directory = await Deno.makeTempDir();
  const launcher = new ProcessLauncher(`${directory}/.engine`, 2_000);
  const remove = () => Deno.remove(directory, { recursive: true });
  return { launcher, directory, [Symbol.asyncDispose]: remove };
}

testLauncher("ProcessLauncher", open);

/** A program of its own that launches a worker and then does nothing; killed by the test. */
async function engineProcess(directory: string, command: string) {
  const module = new URL("./process_launcher.ts", import.meta.url).href;
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const code = `import { ProcessLauncher } from ${JSON.stringify(module)};
    const launcher = new ProcessLauncher(${JSON.stringify(`${directory}/.engine`)}, 2_000);
    const env = { ENGINE_LAUNCH_ID: "launch-1" };
    const spec = { name: "w", command: ${JSON.stringify(command)}, directory: ".", env };
    await launcher.start(spec, (line) => console.log(line.text));
    await new Promise((resolve) => setTimeout(resolve, 600_000));`;
  await Deno.writeTextFile(`${directory}/engine.ts`, code);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--config", config, `${directory}/engine.ts`],
    cwd: directory,
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("\n")) text += (await reader.read()).value ?? "\n";
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await child.status;
    await reader.cancel();
  };
  return { pids: text.trim().split(" ").map(Number), kill };
}

Deno.test("ProcessLauncher leaves no worker behind when the engine is killed", async () => {
  await using under = await open();
  const command = "sleep 1000 & a=$!; sleep 1000 & echo $a $! $$; wait";
  const engine = await engineProcess(under.directory, command);
  const [first, second, shell] = engine.pids;
  assert.equal(await isProgram(first!, "sleep"), true);

  await engine.kill();

  await until(async () => !await isProgram(first!, "sleep"));
  await until(async () => !await isProgram(second!, "sleep"));
  await until(async () => !await isProgram(shell!, "sh"));
});

Deno.test("ProcessLauncher ends a stubborn worker too when the engine is killed", async () => {
  await using under = await open();
  const command = "trap '' TERM; echo $$; while :; do sleep 0.2; done";
  const engine = await engineProcess(under.directory, command);

  await engine.kill();

  await until(async () => !await isProgram(engine.pids[0]!, "sh"));
});

Deno.test("ProcessLauncher ends the copy of a killed engine before it starts another", async () => {
  await using under = await open();
  const stubborn = "trap '' TERM; echo $$; while :; do sleep 0.2; done";
  const engine = await engineProcess(under.directory, stubborn);
  const pid = engine.pids[0]!;
  const record = JSON.parse(await Deno.readTextFile(`${under.directory}/.engine/run/w.json`));
  assert.deepEqual(record, { pid, started: await startOf(pid), launch_id: "launch-1" });
  await engine.kill();

  const { directory } = under;
  const spec = { name: "w", command: "exit 0", directory, env: {} };
  const running = await under.launcher.start(spec, () => {});

  assert.equal(await isProgram(pid, "sh"), false);
  assert.deepEqual(await running.ended, { code: 0, signal: null });
});

Deno.test("ProcessLauncher forgets a program that has ended", async () => {
  await using under = await open();
  const spec = { name: "w", command: "true", directory: under.directory, env: {} };

  await (await under.launcher.start(spec, () => {})).ended;

  const files = [...Deno.readDirSync(`${under.directory}/.engine/run`)];
  assert.deepEqual(files, []);
});

Deno.test("ProcessLauncher does not wait for output of what left the program's group", async () => {
  await using under = await open();
  const command = "setsid sh -c 'echo $$; exec sleep 1000' & while :; do sleep 0.1; done";
  const lines: string[] = [];
  const spec = { name: "w", command, directory: under.directory, env: {} };
  const running = await under.launcher.start(spec, (line) => void lines.push(line.text));
  await until(() => lines.length > 0);

  const ended = await running.stop(5_000);

  assert.deepEqual(ended, { code: null, signal: "SIGTERM" });
  Deno.kill(Number(lines[0]), "SIGKILL");
});
