/**
 * `engine worker exec` of the real program: standard input, terminals, Ctrl-C, and a worker's end.
 *
 * The terminal of the person is one that `script` makes, in which the command line runs.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const CLI = new URL("../../cli/main.ts", import.meta.url).pathname;

/** An engine with the worker `w`. */
async function setup(): Promise<EngineProcess> {
  const engine = await EngineProcess.start();
  await engine.write(
    "w/engine.worker.yaml",
    "name: w\nruntime: { kind: javascript, package_manager: deno, entry: main.ts }\n",
  );
  await engine.write(
    "w/deno.json",
    '{ "imports": { "engine-sdk": "../.engine/sdk/typescript/engine_sdk.js" } }',
  );
  await engine.write(
    "w/main.ts",
    'import { registerWorker } from "engine-sdk";\n' +
      'registerWorker().registerFunction("w::f", () => 1);\n',
  );
  const added = await engine.command("worker", "add", "./w", "--isolation", "process");
  assert.equal(added.code, 0, added.stderr + engine.stderr);
  return engine;
}

/** `engine worker exec w` with these words. */
function exec(engine: EngineProcess, words: string[], isTerminal = false) {
  const args = ["run", "-A", "--quiet", CLI, "worker", "exec", "w", ...words];
  const quoted = [Deno.execPath(), ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  const inTerminal = `stty rows 33 columns 77; exec ${quoted.join(" ")}`;
  const child = new Deno.Command(isTerminal ? "script" : Deno.execPath(), {
    args: isTerminal ? ["-qfec", inTerminal, "/dev/null"] : args,
    cwd: engine.directory,
    env: { ENGINE_URL: engine.url, NO_COLOR: "1", TERM: "xterm", SHELL: "/bin/sh" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const said = { stdout: "", stderr: "" };
  const read = async (name: "stdout" | "stderr"): Promise<void> => {
    for await (const text of child[name].pipeThrough(new TextDecoderStream())) said[name] += text;
  };
  const reading = Promise.all([read("stdout"), read("stderr")]);
  const writer = child.stdin.getWriter();
  return {
    child,
    said,
    type: (text: string) => writer.write(new TextEncoder().encode(text)),
    close: () => writer.close(),
    end: async () => {
      const { code } = await child.status;
      await reading;
      await writer.close().catch(() => {}); // It is closed already, or the program has ended.
      return code;
    },
  };
}

Deno.test({
  name: "worker exec of the real program",
  ignore: Deno.build.os !== "linux",
  async fn(t) {
    await using engine = await setup();

    await t.step("passes on a file as standard input, to its end", async () => {
      const text = "line\n".repeat(100_000);
      const sum = exec(engine, ["--", "sh", "-c", "wc -c; echo done >&2; exit 5"]);
      await sum.type(text);
      await sum.close();

      assert.equal(await sum.end(), 5);
      assert.equal(sum.said.stdout.trim(), `${text.length}`);
      assert.equal(sum.said.stderr, "done\n");
    });

    await t.step("ends with the command although nothing ends its standard input", async () => {
      const quick = exec(engine, ["--", "echo", "hello"]);

      assert.equal(await quick.end(), 0);
      assert.equal(quick.said.stdout, "hello\n");
    });

    await t.step("runs a shell in a terminal; Ctrl-C interrupts what runs in it", async () => {
      const shell = exec(engine, ["--tty", "--", "sh"], true);
      await until(() => shell.said.stdout.includes("$ ") || shell.said.stdout.includes("# "));

      await shell.type("stty size; echo $((6 * 7)) $TERM\r");
      await until(() => /33 77\r+\n42 xterm\r+\n/.test(shell.said.stdout), () => shell.said.stdout);
      await shell.type("echo up $((1 + 1)); sleep 1000\r");
      await until(() => /up 2\r+\n/.test(shell.said.stdout), () => shell.said.stdout);
      await shell.type("\x03");
      await shell.type("exit 6\r");

      assert.equal(await shell.end(), 6, shell.said.stdout);
    });

    await t.step("ends the command on Ctrl-C without a terminal", async () => {
      const long = exec(engine, ["--", "sh", "-c", "echo $$; exec sleep 1000"]);
      await until(() => /^\d+\n/.test(long.said.stdout), () => long.said.stderr);
      const pid = Number(long.said.stdout);

      Deno.kill(long.child.pid, "SIGINT");

      assert.equal(await long.end(), 130);
      await until(async () => !await Deno.stat(`/proc/${pid}`).then(() => true, () => false));
    });

    await t.step("ends when the worker stops", async () => {
      const shell = exec(engine, ["--tty", "--", "sh"], true);
      await until(() => shell.said.stdout.includes("$ ") || shell.said.stdout.includes("# "));

      assert.equal((await engine.command("worker", "stop", "w")).code, 0);

      assert.equal(await shell.end(), 143);
    });
  },
});
