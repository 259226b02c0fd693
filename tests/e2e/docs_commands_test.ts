/**
 * The commands of the how-to pages, run as they stand there: for each page an engine in an empty
 * directory, the page's own example as worker, and every line of its shell blocks in order.
 *
 * A command that runs until Ctrl-C has to say that it has begun, and to run when its block ends.
 *
 * @module
 */
import assert from "node:assert/strict";
import { readPages } from "../docs/pages.ts";
import { codeBlocks } from "../docs/markdown.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const CLI = `${ROOT}cli/main.ts`;
/** Lines that no test runs, and why. */
const LEFT_OUT: readonly (readonly [line: RegExp, reason: string])[] = [
  [/^engine console --open/, "it opens a browser"],
];
/** Lines that run until Ctrl-C, and what each prints when it has begun. */
const ENDLESS: readonly (readonly [line: RegExp, begun: RegExp])[] = [
  [/^engine subscribe/, /^Subscribed to /m],
  [/^engine stream follow/, /^Following /m],
  [/^engine types .*--watch/, /^Wrote /m],
];
/** Its exit code says how the machine is, too: 1 if a check fails. */
const CHECKS = /^engine doctor/;

/** A command, and what it has printed so far. */
interface Started {
  readonly line: string;
  readonly child: Deno.ChildProcess;
  readonly ended: Promise<Deno.CommandStatus>;
  code: number | undefined;
  output: string;
}

/** Runs the blocks of one page. */
class PageRun implements AsyncDisposable {
  readonly #engine: EngineProcess;
  readonly #bin: string;
  readonly #running: Started[] = [];
  /** The id of the trace of the last call that printed one. */
  #trace = "";

  constructor(engine: EngineProcess, bin: string) {
    this.#engine = engine;
    this.#bin = bin;
  }

  /** A program of the page that has to run on until the page ends. */
  start(line: string): Started {
    const child = new Deno.Command("bash", {
      args: ["-c", line], // Bash becomes the command itself if it is one only.
      cwd: this.#engine.directory,
      env: {
        ENGINE_URL: this.#engine.url,
        NO_COLOR: "1",
        PATH: `${this.#bin}:${Deno.env.get("PATH")}`,
      },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const started: Started = { line, child, ended: child.status, code: undefined, output: "" };
    const read = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
      for await (const text of stream.pipeThrough(new TextDecoderStream())) started.output += text;
    };
    const reading = Promise.all([read(child.stdout), read(child.stderr)]);
    const ended = child.status.then(async (status) => {
      await reading;
      started.code = status.code;
      return status;
    });
    this.#running.push(started);
    return Object.assign(started, { ended });
  }

  /** Runs the lines of a shell block one after another. */
  async block(code: string): Promise<void> {
    const endless: Started[] = [];
    for (const line of linesOf(code).filter(isRun)) {
      const begun = ENDLESS.find(([pattern]) => pattern.test(line))?.[1];
      if (begun) endless.push(await this.#begin(line, begun));
      else await this.#run(line);
    }
    for (const { line, code, output } of endless) {
      assert.equal(code, undefined, `${line} has ended:\n${output}`);
    }
  }

  async #begin(line: string, begun: RegExp): Promise<Started> {
    const started = this.start(line);
    const hasBegun = (): boolean => begun.test(started.output) || started.code !== undefined;
    await until(hasBegun, () => `${line}\n${started.output}`);
    return started;
  }

  async #run(line: string): Promise<void> {
    const text = line
      .replace(/^engine why \S+/, `engine why ${this.#trace}`)
      .replace(/^(engine worker add engine-stream)$/, "$1 port=0"); // Its own port may be taken.
    const started = this.start(text);
    const { code } = await started.ended;
    assert.ok(code === 0 || code === 1 && CHECKS.test(line), `${line}\n${started.output}`);
    this.#trace = /engine why (\S+)/.exec(started.output)?.[1] ?? this.#trace;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child, code, ended } of this.#running) {
      if (code === undefined) child.kill("SIGKILL");
      await ended;
    }
  }
}

/** Writes a program `engine` that runs the sources, and returns its directory. */
async function writeProgram(engine: EngineProcess): Promise<string> {
  const script = `#!/bin/sh\nexec "${Deno.execPath()}" run -A --quiet "${CLI}" "$@"\n`;
  await engine.write(".bin/engine", script);
  await Deno.chmod(`${engine.directory}/.bin/engine`, 0o755);
  return `${engine.directory}/.bin`;
}

/** The commands of a shell block; a comment behind a command is for readers. */
function linesOf(code: string): string[] {
  return code.replaceAll("\\\n", " ").split("\n").map((line) => line.replace(/\s*#.*$/, "").trim())
    .filter((line) => line !== "");
}

/** Blocks of the how-to pages, shell and TypeScript, in order. */
const pages = [...await readPages()].filter(([path]) => path.startsWith("docs/how-to/"))
  .map(([path, text]) => ({
    path,
    blocks: codeBlocks(text).filter(({ language }) => language === "sh" || language === "ts"),
  }));
const isRun = (line: string): boolean => !LEFT_OUT.some(([pattern]) => pattern.test(line));

for (const { path, blocks } of pages) {
  const last = blocks.findLastIndex(({ language, code }) =>
    language === "sh" && linesOf(code).some(isRun)
  );
  if (last === -1) continue;
  const example = blocks.findIndex(({ language }) => language === "ts");

  Deno.test(`${path} shows commands that work as they are written`, async () => {
    await using engine = await EngineProcess.start();
    await using caller = engine.connect("app");
    caller.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
    caller.registerFunction("orders::place", () => ({ id: 7 }));
    await engine.write("shop.json", '{ "port": 8082, "key": "k" }');
    await engine.write("src/api.ts", "");
    await using page = new PageRun(engine, await writeProgram(engine));

    for (const [at, { language, code }] of blocks.slice(0, last + 1).entries()) {
      if (language === "sh") await page.block(code);
      else if (at === example) await startExample(engine, page, code);
    }
  });
}

/** Starts a worker that a page shows, and waits for its functions, or for what it prints. */
async function startExample(engine: EngineProcess, page: PageRun, code: string): Promise<void> {
  await engine.write("example.ts", code);
  const config = `--config "${ROOT}deno.json"`;
  const worker = page.start(`"${Deno.execPath()}" run -A --no-check ${config} example.ts`);
  const ids = [...code.matchAll(/registerFunction\(\s*"([^"]+)"/g)].map(([, id]) => id!);
  await until(async () => {
    if (ids.length === 0) return worker.output !== "";
    const { stdout } = await engine.command("functions", "--json");
    return ids.every((id) => stdout.includes(`"${id}"`));
  }, () => worker.output);
}

Deno.test("a line that is left out is one of a page", () => {
  const lines = pages.flatMap(({ blocks }) => blocks.flatMap(({ code }) => linesOf(code)));

  const unused = LEFT_OUT.filter(([pattern]) => !lines.some((line) => pattern.test(line)));

  assert.deepEqual(unused, []);
});
