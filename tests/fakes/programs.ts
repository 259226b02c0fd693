/**
 * Programs of other runtimes: Node with the built SDK, Python with the SDK's sources, the quickstart.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Isolation } from "../../engine/ports/launcher.ts";
import type { Json } from "../../mod.ts";
import { isAlive } from "./engine_process.ts";

const SDK = new URL("../../sdk/npm/engine_sdk.js", import.meta.url).href;

/** Whether Node is on the path; says that tests are left out if it is not. */
export async function findNode(test: string): Promise<boolean> {
  const found = await new Deno.Command("node", { args: ["--version"], stdout: "null" }).output()
    .then(({ success }) => success, () => false);
  if (!found) console.log(`left out: ${test} needs node on the path`);
  return found;
}

/** A Node program that talks to the engine at `ENGINE_URL`; its lines of output are JSON. */
export class NodeProgram implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #lines: ReadableStreamDefaultReader<string>;
  #rest = "";

  /** Starts `code`, which finds the SDK's names and `say(value)`. */
  constructor(engineUrl: string, code: string, env: Readonly<Record<string, string>> = {}) {
    const start = `import { EngineError, Logger, registerWorker, TriggerAction } from "${SDK}";
      const say = (value) => console.log(JSON.stringify(value));`;
    this.#process = new Deno.Command("node", {
      args: ["--input-type=module", "-e", `${start}\n${code}`],
      env: { ENGINE_URL: engineUrl, ENGINE_WORKER_NAME: "node-worker", ...env },
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#lines = this.#process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** The next line of its output. */
  async said(): Promise<Json> {
    while (!this.#rest.includes("\n")) {
      const { value, done } = await this.#lines.read();
      if (done) throw new Error(`Node said nothing more than ${JSON.stringify(this.#rest)}`);
      this.#rest += value;
    }
    const end = this.#rest.indexOf("\n");
    const line = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end + 1);
    return JSON.parse(line);
  }

  /** Ends its input, on which programs that serve wait, and gives its exit code. */
  async end(): Promise<number> {
    await this.#process.stdin.close();
    return (await this.#process.status).code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stdin.close().catch(() => {}); // Closed already, or Node is gone.
    await this.#lines.cancel();
    await this.#process.status;
  }
}

const ROOT = new URL("../../", import.meta.url).pathname;
const PACKAGES = `${ROOT}.ci-cache/python-packages`;

/** The environment in which Python finds the SDK and what it needs. */
export const PYTHON_ENV: Readonly<Record<string, string>> = {
  PYTHONPATH: `${ROOT}sdk/python/src:${PACKAGES}`,
};

/**
 * Whether Python is on the path and finds what the SDK needs, which is installed if it is not
 * there; says that tests are left out if that is not possible.
 */
export async function findPython(test: string): Promise<boolean> {
  const imports = ["-c", "import websockets.asyncio.client"];
  const found = await succeeds(imports) || await install() || await succeeds(imports);
  if (!found) console.log(`left out: ${test} needs python3 with websockets`);
  return found;
}

/** Beside its place first: tests that run at the same time may all find that it is missing. */
async function install(): Promise<boolean> {
  const own = `${PACKAGES}.${Deno.pid}`;
  const args = ["-m", "pip", "install", "--quiet", "--target", own, "websockets>=13.0,<18"];
  if (!await succeeds(args)) return false;
  return await Deno.rename(own, PACKAGES).then(() => true, async () => {
    await Deno.remove(own, { recursive: true });
    return false; // Another one was quicker.
  });
}

async function succeeds(args: readonly string[]): Promise<boolean> {
  const command = new Deno.Command("python3", {
    args: [...args],
    env: PYTHON_ENV,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  });
  return await command.output().then(({ success }) => success, () => false);
}

const PROGRAM = new URL("../../cli/quickstart/main.ts", import.meta.url).pathname;

function freePort(): string {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return String(port);
}

/** Starts it on ports of its own. */
export function quickstart(...args: string[]): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--quiet",
      PROGRAM,
      "--port",
      freePort(),
      "--http-port",
      freePort(),
      "--stream-port",
      freePort(),
      ...args,
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

function textOf({ stdout, stderr }: Deno.CommandOutput): string {
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}

/** Every step of the template `quickstart`, as it is shown. */
const CALLS_SHOWN = (isolation: Isolation): string[] => [
  "$ engine create --template quickstart --directory hello",
  "$ engine --config config.yaml",
  `$ engine worker add ./workers/math-worker --isolation ${isolation}`,
  "$ engine trigger math::add a=2 b=3",
  '  { "c": 5 }',
  `$ engine trigger --function-id=math::add '--payload={"a":2,"b":3}'`,
  "$ engine trigger math::add_two_numbers a=2 b=3",
  "$ engine worker add engine-state",
  '  { "c": 5, "running_total": 5 }',
  "$ engine worker restart math-worker",
  "$ kill -9 ",
  "$ engine worker add engine-http",
  "$ curl -i -X POST localhost:",
  "  HTTP/1.1 200 OK",
  '{"c":300,"running_total":',
];

/** Every step of the template `jobs`. */
const JOBS_SHOWN = (isolation: Isolation): string[] => [
  "$ engine create --template jobs --directory hello",
  `$ engine worker add ./workers/web-worker --isolation ${isolation}`,
  "  content-type: text/html; charset=utf-8",
  "  HTTP/1.1 202 Accepted",
  "  primes   1        0 ",
  "$ engine stream follow jobs primes",
  `$ engine worker add ./workers/prime-worker --isolation ${isolation}`,
  'update {"below":100000,"done":5001,"primes":669}',
  '  { "below": 100000, "done": 100000, "primes": 9592 }',
  "$ kill -9 ",
  "   … and an engine that is killed",
  "$ engine cron list",
  '"waiting": 0, "running": 0, "finished": 3 }',
];

/** Fails unless all steps of a template are in the output of its run. */
export function checkShown(text: string, template: "quickstart" | "jobs", kind: Isolation): void {
  for (const shown of (template === "jobs" ? JOBS_SHOWN : CALLS_SHOWN)(kind)) {
    assert.ok(text.includes(shown), `${shown} is missing in:\n${text}`);
  }
}

/** Runs it whole: every step is shown, gets what it expects, and nothing is left. */
export async function checkQuickstart(
  isolation: Isolation,
  template: "quickstart" | "jobs" = "quickstart",
): Promise<void> {
  const output = await quickstart("--isolation", isolation, "--template", template).output();
  const text = textOf(output);

  assert.equal(output.code, 0, text);
  checkShown(text, template, isolation);
  assert.match(text, /All as expected/);
  const directory = /^\$ cd (.*)$/m.exec(text)![1]!;
  await assert.rejects(() => Deno.stat(directory), Deno.errors.NotFound);
  const pids = [...text.matchAll(/pid (\d+)/g)].map((match) => Number(match[1]));
  assert.deepEqual(pids.filter(isAlive), []);
}
