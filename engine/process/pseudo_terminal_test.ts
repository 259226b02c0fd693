import assert from "node:assert/strict";
import { isProgram } from "../../tests/contracts/launcher_contract.ts";
import { until } from "../../tests/fakes/until.ts";
import type { ExecOptions, Running } from "../ports/launcher.ts";
import { statFields } from "./process_group.ts";
import { ProcessLauncher } from "./process_launcher.ts";
import { findProgram } from "./programs.ts";
import { inTerminal } from "./pseudo_terminal.ts";

/** A program that runs until it is stopped, beside which commands run. */
async function beside() {
  const directory = await Deno.makeTempDir();
  const launcher = new ProcessLauncher(`${directory}/.engine`, undefined, 2_000);
  const spec = { name: "w", command: "exec sleep 1000", directory, env: {} };
  const running = await launcher.start(spec, () => {});
  const end = async (): Promise<void> => {
    await running.stop(5_000);
    await Deno.remove(directory, { recursive: true });
  };
  return { running, directory, [Symbol.asyncDispose]: end };
}

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
  await using program = await beside();
  const bytes = new Uint8Array(1_000_000).map((_, i) => i * 7);
  await Deno.writeFile(`${program.directory}/want`, bytes);

  const cat = fed(program.running, ["sh", "-c", "cmp - want && echo same"]);
  await cat.writer.write(bytes);
  await cat.writer.close();

  assert.deepEqual(await cat.ended, { code: 0, signal: null });
  assert.equal(cat.text(), "same\n");
});

Deno.test("input of a command that reads nothing is cancelled when it ends", async () => {
  await using program = await beside();

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
  ignore: hasNoScript,
  async fn() {
    await using program = await beside();
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
      await using program = await beside();
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

Deno.test("a terminal quotes the words of a command and has a shell of its own", async () => {
  const plain = { command: ["a b", "it's"], env: { SHELL: "/bin/fish", A: "1" } };
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/script`, "", { mode: 0o755 });

  const linux = await inTerminal(plain, tty, { os: "linux", path: directory });
  const darwin = await inTerminal(plain, tty, { os: "darwin", path: directory });

  const run = "stty echo rows 17 columns 91 2>/dev/null; exec 'a b' 'it'\\''s'";
  assert.deepEqual(linux.command, [`${directory}/script`, "-qfec", run, "/dev/null"]);
  assert.deepEqual(darwin.command.slice(1), ["-q", "/dev/null", "/bin/sh", "-c", run]);
  assert.deepEqual(linux.env, { SHELL: "/bin/sh", A: "1", TERM: "xterm-256color" });
  await Deno.remove(directory, { recursive: true });
  await assert.rejects(inTerminal(plain, tty, { path: directory }), {
    code: "launch_failed",
    message: /needs the program script.*leave out --tty$/,
  });
});
