/**
 * A user on a machine that knows nothing of the engine: an empty home, no variables, and the commands
 * that the documents name. Every step is printed; the first one that goes wrong ends the run.
 *
 * @module
 */
import { freePort } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
/** Downloads of pip and npm, which a second run need not repeat. */
const CACHE = `${ROOT}.ci-cache/first-hour`;
const COMMAND_MS_MAX = 180_000;

/** What is installed: paths of the packages. */
export interface Packages {
  readonly tarball: string;
  readonly wheel: string;
}

/** What a command has to print, in either output. */
type Expected = string | RegExp;

/** How a command is run. */
interface Where {
  /** Below the home. Default: the project. */
  readonly in?: string;
  readonly expects?: Expected;
}

/** One user, with a project and an engine of their own. */
export class Newcomer implements AsyncDisposable {
  readonly home: string;
  readonly port: number = freePort();
  readonly httpPort: number = freePort();
  readonly streamPort: number = freePort();
  readonly #env: Record<string, string>;
  readonly #running: { child: Deno.ChildProcess; reading: Promise<unknown> }[] = [];

  private constructor(home: string, env: Record<string, string>) {
    this.home = home;
    this.#env = env;
  }

  /** An empty home. Of this machine it has the programs, and caches of downloads. */
  static async arrive(): Promise<Newcomer> {
    const home = await Deno.realPath(await Deno.makeTempDir({ prefix: "engine-first-hour-" }));
    const python = new Deno.Command("python3", {
      args: ["-c", "import os, sys; print(os.path.dirname(sys.executable))"],
    });
    const bin = await python.output().then(({ stdout }) => new TextDecoder().decode(stdout).trim());
    return new Newcomer(home, {
      HOME: home,
      // The folder itself: the program on the PATH may belong to a version manager of the user.
      PATH: `${bin}:${Deno.env.get("PATH")}`,
      SHELL: "/bin/bash",
      LANG: "C.UTF-8",
      NO_COLOR: "1",
      DENO_DIR: Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`,
      PIP_CACHE_DIR: `${CACHE}/pip`,
      npm_config_cache: `${CACHE}/npm`,
    });
  }

  /** The address of their engine. */
  get url(): string {
    return `ws://127.0.0.1:${this.port}`;
  }

  /** Where their project is. */
  get project(): string {
    return `${this.home}/shop`;
  }

  /** Installs the command as the README says, and follows the advice that is printed. */
  async installsEngine(): Promise<void> {
    const printed = await this.runs("deno task install", { in: ROOT, expects: "Add to ~/.bashrc" });
    const line = /^ {2}(export PATH=.*)$/m.exec(printed)?.[1];
    if (line === undefined) throw new Error(`No line for the PATH in:\n${printed}`);
    const path = await this.runs(`${line}; command -v engine >/dev/null && echo "$PATH"`, {
      in: this.home,
    });
    this.#env.PATH = path.trim();
    await this.runs("engine --version", { in: this.home, expects: /^\d+\.\d+\.\d+\s/ });
  }

  /** Makes a project and starts its engine, on ports that are free here. */
  async startsProject(): Promise<void> {
    await this.runs("engine create --template bare --directory shop", { in: this.home });
    const file = `${this.project}/config.yaml`;
    const text = await Deno.readTextFile(file);
    const http = `- name: engine-http\n    config: { port: ${this.httpPort} }`;
    const settings = `engine:\n  port: ${this.port}\n`;
    await Deno.writeTextFile(file, settings + text.replace("- name: engine-http", http));
    await this.starts("engine --config config.yaml", `127.0.0.1:${this.httpPort}`);
  }

  /** Runs a shell command to its end; returns all it printed. */
  async runs(command: string, where: Where = {}): Promise<string> {
    const begin = performance.now();
    const { code, stdout, stderr } = await new Deno.Command("bash", {
      ...this.#options(command, where.in),
      signal: AbortSignal.timeout(COMMAND_MS_MAX),
    }).output();
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    if (code !== 0 || !isIn(text, where.expects)) {
      throw new Error(`$ ${command}\nexit code ${code}, expected ${where.expects ?? 0}:\n${text}`);
    }
    report(`$ ${command}`, begin);
    return text;
  }

  /** Runs a command again and again until it prints something: a worker may be starting. */
  async runsUntil(command: string, expects: Expected): Promise<void> {
    const begin = performance.now();
    let text = "";
    await until(async () => {
      const output = await new Deno.Command("bash", this.#options(command)).output();
      text = new TextDecoder().decode(output.stdout) + new TextDecoder().decode(output.stderr);
      return isIn(text, expects);
    }, () => `$ ${command}\nexpected ${expects}, and the last output is:\n${text}`);
    report(`$ ${command}`, begin);
  }

  /** Starts a command that stays, and waits until it prints a text. */
  async starts(command: string, text: string, directory?: string): Promise<void> {
    const begin = performance.now();
    const child = new Deno.Command("bash", this.#options(`exec ${command}`, directory)).spawn();
    let printed = "";
    const read = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
      for await (const part of stream.pipeThrough(new TextDecoderStream())) printed += part;
    };
    this.#running.push({ child, reading: Promise.all([read(child.stdout), read(child.stderr)]) });
    await until(() => printed.includes(text), () => `$ ${command}\nno ${text} in:\n${printed}`);
    report(`$ ${command} &`, begin);
  }

  /** Does something that is no command, such as opening a page. */
  async does(what: string, act: () => Promise<void>): Promise<void> {
    const begin = performance.now();
    await act();
    report(what, begin);
  }

  /** Writes a file of the project. */
  async writes(path: string, text: string): Promise<void> {
    const full = `${this.project}/${path}`;
    await Deno.mkdir(full.slice(0, full.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(full, text);
    report(`writes ${path}`);
  }

  /** Ends what still runs, the engine last, and removes the home. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child, reading } of this.#running.reverse()) {
      try {
        child.kill("SIGTERM");
      } catch {
        // It has ended.
      }
      await child.status;
      await reading;
    }
    await Deno.remove(this.home, { recursive: true });
  }

  #options(command: string, directory = this.project): Deno.CommandOptions {
    return {
      args: ["-c", command],
      cwd: directory,
      clearEnv: true,
      env: { ...this.#env, ENGINE_URL: this.url },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    };
  }
}

function isIn(text: string, expected: Expected = ""): boolean {
  return typeof expected === "string" ? text.includes(expected) : expected.test(text);
}

function report(what: string, begin?: number): void {
  const taken = begin === undefined ? "" : `${((performance.now() - begin) / 1_000).toFixed(1)} s`;
  console.log(`${taken.padStart(7)}  ${what}`);
}

/** The first block of a language in the README, after a heading if one is named. */
export async function readmeBlock(language: string, heading = ""): Promise<string> {
  const text = await Deno.readTextFile(`${ROOT}README.md`);
  const after = text.slice(text.indexOf(heading));
  const block = new RegExp("```" + language + "\n([\\s\\S]*?)```").exec(after)?.[1];
  if (block === undefined) throw new Error(`README.md has no ${language} below ${heading}`);
  return block;
}
