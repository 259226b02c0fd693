/**
 * Completion as a person sees it: Tab in an interactive bash, with ids of an engine that runs.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const MAIN = new URL("../../cli/main.ts", import.meta.url).pathname;

/** Joins standard input and output to a bash on a terminal of its own. */
const TERMINAL = `import os, pty, sys
pty.spawn(["bash", "--norc", "--noprofile", "-i"])`;

const canRun = await new Deno.Command("python3", { args: ["-c", "import pty"] }).output()
  .then(({ success }) => success, () => false);
if (!canRun) console.log("left out: tests/e2e/completions_test.ts needs python3 for a terminal");

/** An interactive bash in the folder of an engine. */
class Bash implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reading: Promise<void>;
  /** All that the terminal showed. */
  shown = "";

  constructor(directory: string, env: Readonly<Record<string, string>>) {
    this.#process = new Deno.Command("python3", {
      args: ["-c", TERMINAL],
      cwd: directory,
      env: { PS1: "$ ", TERM: "dumb", ...env },
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#writer = this.#process.stdin.getWriter();
    this.#reading = this.#read();
  }

  /** Types keys and waits until the terminal shows a text after them. */
  async type(keys: string, text: string): Promise<void> {
    const from = this.shown.length;
    await this.#writer.write(new TextEncoder().encode(keys));
    await until(() => this.shown.slice(from).includes(text), () => JSON.stringify(this.shown));
  }

  async #read(): Promise<void> {
    for await (const text of this.#process.stdout.pipeThrough(new TextDecoderStream())) {
      this.shown += text.replaceAll("\x07", ""); // The bell, where several words fit.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.write(new TextEncoder().encode("\x15exit\n"));
    await this.#writer.close();
    await this.#process.status;
    await this.#reading;
  }
}

Deno.test({
  name: "Tab in bash completes ids of functions and names of workers of the running engine",
  ignore: !canRun,
  async fn() {
    await using engine = await EngineProcess.start();
    await engine.write(
      "bin/engine",
      `#!/bin/sh\nexec '${Deno.execPath()}' run -A --quiet '${MAIN}' "$@"\n`,
    );
    await Deno.chmod(`${engine.directory}/bin/engine`, 0o755);
    await using worker = engine.connect("greeter");
    worker.registerFunction("greet::hello", () => "hello");
    worker.registerFunction("greet::goodnight", () => "good night");
    await until(async () => {
      const { stdout } = await engine.command("completions", "--complete", "functions");
      return stdout.includes("greet::goodnight\ngreet::hello\n");
    });
    const env = { PATH: `${engine.directory}/bin:${Deno.env.get("PATH")}` };
    await using bash = new Bash(engine.directory, env);
    await bash.type("source <(engine completions bash); echo re''ady\n", "ready");

    await bash.type("engine trigger gr\t", "engine trigger greet::");
    await bash.type("he\t", "hello ");
    await bash.type("\n", '"hello"');
    await bash.type("engine worker status engine-s\t", "engine-state ");
  },
});

Deno.test("engine completions --complete is silent without an engine", async () => {
  const directory = await Deno.makeTempDir();
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", MAIN, "completions", "--complete", "functions"],
    cwd: directory,
    env: { ENGINE_URL: "ws://127.0.0.1:9" },
  }).output();
  await Deno.remove(directory, { recursive: true });

  assert.deepEqual([code, stdout.length, stderr.length], [0, 0, 0]);
});
