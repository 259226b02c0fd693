/**
 * Completion as a person sees it: Tab in an interactive shell, with ids of an engine that runs.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const MAIN = new URL("../../cli/main.ts", import.meta.url).pathname;

/** Joins standard input and output to a program on a terminal of its own. */
const TERMINAL = "import pty, sys; pty.spawn(sys.argv[1:])";

/** Whether a shell, and Python for its terminal, are here. */
async function has(shell: string): Promise<boolean> {
  for (const [program, arg] of [[shell, "-c"], ["python3", "-c"]] as const) {
    const args = [arg, program === shell ? "true" : "import pty"];
    const ok = await new Deno.Command(program, { args }).output()
      .then(({ success }) => success, () => false);
    if (!ok) console.log(`left out: tests/e2e/completions_test.ts needs ${program}`);
    if (!ok) return false;
  }
  return true;
}

/** The command lines of interactive shells that read no file of the user. */
const SHELLS = {
  bash: ["bash", "--norc", "--noprofile", "-i"],
  zsh: ["zsh", "-f", "-i"],
} as const;
/** What a shell runs before the script. */
const FIRST = { bash: "true", zsh: "autoload -U compinit; compinit -u -D" } as const;

/** An interactive shell in the folder of an engine. */
class Shell implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reading: Promise<void>;
  /** All that the terminal showed. */
  shown = "";

  constructor(
    command: readonly string[],
    directory: string,
    env: Readonly<Record<string, string>>,
  ) {
    this.#process = new Deno.Command("python3", {
      args: ["-c", TERMINAL, ...command],
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

/** An engine with two functions, and a PATH with the command. */
async function setup() {
  const engine = await EngineProcess.start();
  const run = `'${Deno.execPath()}' run -A --quiet '${MAIN}'`;
  await engine.write("bin/engine", `#!/bin/sh\nexec ${run} "$@"\n`);
  await Deno.chmod(`${engine.directory}/bin/engine`, 0o755);
  const worker = engine.connect("greeter");
  worker.registerFunction("greet::hello", () => "hello");
  worker.registerFunction("greet::goodnight", () => "good night");
  await until(async () => {
    const { stdout } = await engine.command("completions", "--complete", "functions");
    return stdout.includes("greet::goodnight\ngreet::hello\n");
  });
  return {
    directory: engine.directory,
    env: { PATH: `${engine.directory}/bin:${Deno.env.get("PATH")}`, ENGINE_URL: engine.url },
    async [Symbol.asyncDispose]() {
      await worker.shutdown();
      await engine[Symbol.asyncDispose]();
    },
  };
}

for (const name of ["bash", "zsh"] as const) {
  Deno.test({
    name: `Tab in ${name} completes ids of functions and names of workers of the running engine`,
    ignore: !await has(name),
    async fn() {
      await using there = await setup();
      await using shell = new Shell(SHELLS[name], there.directory, there.env);
      const load = `${FIRST[name]}; source <(engine completions ${name}); echo re''ady\n`;
      await shell.type(load, "ready\r\n");

      await shell.type("engine trigger gree\t", "greet::");
      await shell.type("he\t", "hello ");
      await shell.type("\n", '"hello"');
      await shell.type("engine worker status engine-s\t", "engine-state ");
    },
  });
}

Deno.test({
  name: "fish completes ids of functions and names of workers of the running engine",
  ignore: !await has("fish"),
  async fn() {
    await using there = await setup();
    const offers = async (line: string): Promise<string> => {
      const script = `engine completions fish | source; complete -C "${line}"`;
      const { stdout } = await new Deno.Command("fish", {
        args: ["--no-config", "-c", script],
        env: there.env,
        cwd: there.directory,
      }).output();
      return new TextDecoder().decode(stdout);
    };

    assert.equal(await offers("engine trigger greet::"), "greet::goodnight\ngreet::hello\n");
    assert.equal(await offers("engine worker status engine-s"), "engine-state\n");
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
