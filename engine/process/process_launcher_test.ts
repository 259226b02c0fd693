import assert from "node:assert/strict";
import {
  isProgram,
  type LauncherUnderTest,
  testLauncher,
} from "../../tests/contracts/launcher_contract.ts";
import type { ExecOptions, Running } from "../ports/launcher.ts";
import { ProcessLauncher } from "./process_launcher.ts";
import { processStart, statFields } from "./process_group.ts";
import { findProgram } from "./programs.ts";
import { until } from "../../tests/fakes/until.ts";

async function open(): Promise<LauncherUnderTest & { launcher: ProcessLauncher }> {
  const directory = await Deno.makeTempDir();
  const launcher = new ProcessLauncher(`${directory}/.engine`, undefined, 2_000);
  const remove = () => Deno.remove(directory, { recursive: true });
  return { launcher, directory, [Symbol.asyncDispose]: remove };
}

testLauncher("ProcessLauncher", open);

/** An engine process that launches a worker and then waits until the test kills it. */
async function engineProcess(directory: string, command: string) {
  const module = new URL("./process_launcher.ts", import.meta.url).href;
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const code = `import { ProcessLauncher } from ${JSON.stringify(module)};
    const launcher = new ProcessLauncher(${
    JSON.stringify(`${directory}/.engine`)
  }, undefined, 2_000);
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
  await until(() => isProgram(first!, "sleep")); // The shell has forked; it becomes sleep soon.

  await engine.kill();

  await until(async () => !await isProgram(first!, "sleep"));
  await until(async () => !await isProgram(second!, "sleep"));
  await until(async () => !await isProgram(shell!, "sh"));
});

Deno.test("ProcessLauncher ends a worker that ignores SIGTERM when the engine is killed", async () => {
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
  const path = `${under.directory}/.engine/run/w#${pid}.json`;
  const { engine: _, ...record } = JSON.parse(await Deno.readTextFile(path));
  assert.deepEqual(record, { pid, started: await processStart(pid), launch_id: "launch-1" });
  await engine.kill();

  const { directory } = under;
  const spec = { name: "w", command: "exit 0", directory, env: {} };
  const running = await under.launcher.start(spec, () => {});

  assert.equal(await isProgram(pid, "sh"), false);
  assert.deepEqual(await running.ended, { code: 0, signal: null });
});

Deno.test("ProcessLauncher leaves a running program when another of its name starts", async () => {
  await using under = await open();
  const { directory, launcher } = under;
  const running = await launcher.start(
    { name: "w", command: "exec sleep 1000", directory, env: {} },
    () => {},
  );

  // An installation starts such a program.
  const second = await launcher.start(
    { name: "w", command: "exit 3", directory, env: {} },
    () => {},
  );

  assert.equal((await second.ended).code, 3);
  await until(() => isProgram(running.pid, "sleep"));
  await running.stop(5_000);
});

Deno.test("ProcessLauncher removes the pid file of a program that has ended", async () => {
  await using under = await open();
  const spec = { name: "w", command: "true", directory: under.directory, env: {} };

  await (await under.launcher.start(spec, () => {})).ended;

  const files = [...Deno.readDirSync(`${under.directory}/.engine/run`)];
  assert.deepEqual(files, []);
});

Deno.test("ProcessLauncher does not wait for output of a process that left the group", async () => {
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

Deno.test({
  name: "ProcessLauncher ends a process that left the group, too",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using under = await open();
    const command = "setsid sh -c 'echo $$ > pid; cat pid; exec sleep 1000' & " +
      "until [ -s pid ]; do sleep 0.05; done; exit 3";
    const lines: string[] = [];
    const env = { ENGINE_LAUNCH_ID: crypto.randomUUID() };
    const spec = { name: "w", command, directory: under.directory, env };

    const running = await under.launcher.start(spec, (line) => void lines.push(line.text));

    assert.deepEqual(await running.ended, { code: 3, signal: null });
    await until(async () => !await isProgram(Number(lines[0]), "sleep"));
  },
});

/** A program that runs until it is stopped, and commands beside it. */
async function beside(under: LauncherUnderTest, command = "exec sleep 1000") {
  const env = { GREETING: "hello" };
  const spec = { name: "w", command, directory: under.directory, env };
  const running = await under.launcher.start(spec, () => {});
  const end = async (): Promise<void> => void await running.stop(5_000);
  return { running, exec: execOn(running), [Symbol.asyncDispose]: end };
}

function execOn(running: Running) {
  return async (command: string[], signal = new AbortController().signal) => {
    const bytes: Uint8Array[] = [];
    const ended = await running.exec(command, (chunk) => void bytes.push(chunk.bytes), signal);
    return {
      ...ended,
      text: new TextDecoder().decode(await new Blob(bytes as BlobPart[]).bytes()),
    };
  };
}

Deno.test("a command beside a program has its directory, its environment and empty standard input", async () => {
  await using under = await open();
  await using program = await beside(under);

  const { code, text } = await program.exec(["sh", "-c", 'cat; pwd; echo "$GREETING"; exit 3']);

  assert.equal(code, 3);
  assert.equal(text, `${await Deno.realPath(under.directory)}\nhello\n`);
});

Deno.test("a command beside a program is found by its name, its path or in the directory", async () => {
  await using under = await open();
  await using program = await beside(under);
  await Deno.writeTextFile(`${under.directory}/tool`, "#!/bin/sh\necho tool $1\n", { mode: 0o755 });

  assert.equal((await program.exec(["/bin/echo", "a  b"])).text, "a  b\n");
  assert.equal((await program.exec(["./tool", "x"])).text, "tool x\n");
});

Deno.test("a command that does not exist is refused by name", async () => {
  await using under = await open();
  await using program = await beside(under);

  for (const name of ["no-such-program", "./nowhere", "/nowhere/at/all", "", "cd"]) {
    const message = `Worker w finds no program ${JSON.stringify(name)} ` +
      (name.includes("/") ? "in its directory or on this machine" : "on its PATH");
    await assert.rejects(program.exec([name]), { code: "launch_failed", message });
  }
  await assert.rejects(program.exec([]), { code: "launch_failed" });
});

Deno.test("a command beside a program ends when its signal aborts, with all that it started", async () => {
  await using under = await open();
  await using program = await beside(under);
  const stopping = new AbortController();
  const said: string[] = [];
  const ended = program.running.exec(
    ["sh", "-c", "sleep 1000 & echo $!; wait"],
    ({ bytes }) => void said.push(new TextDecoder().decode(bytes)),
    stopping.signal,
  );
  await until(() => said.length > 0);

  stopping.abort();

  assert.deepEqual(await ended, { code: null, signal: "SIGTERM" });
  assert.equal(await isProgram(Number(said[0]), "sleep"), false);
  assert.equal((await program.exec(["sleep", "9"], AbortSignal.abort())).signal, "SIGTERM");
});

Deno.test("a command beside a program ends with the program, and none starts after it", async () => {
  await using under = await open();
  for (const how of ["asked", "by itself"]) {
    const program = await beside(under);
    const running = Promise.withResolvers<void>();
    const ended = program.running.exec(
      ["sh", "-c", "echo up; exec sleep 1000"],
      () => running.resolve(),
      new AbortController().signal,
    );
    await running.promise;

    if (how === "asked") await program.running.stop(5_000);
    else Deno.kill(program.running.pid, "SIGKILL");

    assert.equal((await ended).signal, "SIGTERM");
    await program.running.ended;
    await assert.rejects(program.exec(["true"]), { code: "launch_failed" });
  }
});

/** Input that a test writes, and what a command with it prints. */
function fed(running: Running, command: string[], options: Partial<ExecOptions> = {}) {
  const { readable, writable } = new TransformStream<
    Uint8Array<ArrayBuffer>,
    Uint8Array<ArrayBuffer>
  >();
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  const stopping = new AbortController();
  const decoder = new TextDecoder();
  let text = "";
  const ended = running.exec(
    command,
    ({ bytes }) => {
      text += decoder.decode(bytes, { stream: true });
    },
    stopping.signal,
    { input: readable, ...options },
  );
  return {
    ended,
    stopping,
    text: () => text,
    type: (typed: string) => writer.write(new TextEncoder().encode(typed)),
    writer,
  };
}

Deno.test("a command beside a program reads its input to the end, byte for byte", async () => {
  await using under = await open();
  await using program = await beside(under);
  const bytes = new Uint8Array(1_000_000).map((_, i) => i * 7);
  await Deno.writeFile(`${under.directory}/want`, bytes);

  const cat = fed(program.running, ["sh", "-c", "cmp - want && echo same"]);
  await cat.writer.write(bytes);
  await cat.writer.close();

  assert.deepEqual(await cat.ended, { code: 0, signal: null });
  assert.equal(cat.text(), "same\n");
});

Deno.test("input of a command that reads nothing is cancelled when it ends", async () => {
  await using under = await open();
  await using program = await beside(under);

  const deaf = fed(program.running, ["sh", "-c", "echo up; sleep 0.2; exit 4"]);
  const writes = Promise.allSettled(
    Array.from({ length: 200 }, () => deaf.type("x".repeat(10_000))),
  );

  assert.equal((await deaf.ended).code, 4);
  const settled = await writes;
  assert.ok(settled.some(({ status }) => status === "rejected"));
});

const tty = { columns: 91, rows: 17, term: "xterm-256color" };
const hasNoScript = await findProgram("script", "/usr/bin:/bin") === undefined;

Deno.test({
  name: "a command in a terminal has its size, and Ctrl-C of its input interrupts what runs there",
  ignore: hasNoScript || Deno.build.os !== "linux",
  async fn() {
    await using under = await open();
    await using program = await beside(under);
    const shell = fed(program.running, ["sh"], { tty });

    await shell.type("stty size; test -t 0 && echo $((1 + 1)) $TERM it\\'s\n");
    await until(() => /17 91\r\n2 xterm-256color it's\r\n/.test(shell.text()), shell.text);
    await shell.type("echo $$; sleep 1000\n");
    await until(async () => {
      const pid = /\n(\d+)\r\n[^\n]*$/.exec(shell.text())?.[1];
      return pid !== undefined && await hasChild(Number(pid), "sleep");
    }, shell.text);
    await shell.type("\x03");
    await shell.type("exit 9\n");

    assert.deepEqual(await shell.ended, { code: 9, signal: null });
  },
});

for (const how of ["signal", "program"] as const) {
  Deno.test({
    name: `a command in a terminal ends with its ${how}, also one that ignores hang-up`,
    ignore: hasNoScript || Deno.build.os !== "linux",
    async fn() {
      await using under = await open();
      await using program = await beside(under);
      const script = "trap '' HUP TERM INT; echo pid $$; while :; do sleep 0.1; done";
      const command = fed(program.running, ["sh", "-c", script], { tty });
      await until(() => /pid \d+/.test(command.text()));
      const pid = Number(/pid (\d+)/.exec(command.text())![1]);

      if (how === "signal") command.stopping.abort();
      else await program.running.stop(100);
      await command.ended;

      assert.equal(await isProgram(pid, "sh"), false);
    },
  });
}

/** Whether a process has a child that runs this program. */
async function hasChild(pid: number, name: string): Promise<boolean> {
  for (const { name: entry } of Deno.readDirSync("/proc")) {
    const text = await Deno.readTextFile(`/proc/${entry}/stat`).catch(() => "");
    if (text.includes(`(${name}) `) && statFields(text)[1] === `${pid}`) return true;
  }
  return false;
}
