/**
 * The programs of the README and of docs/, each run as it stands there beside one engine with all
 * built-in workers: it has to reach its end, and to offer the functions that it shows.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Worker } from "../../mod.ts";
import { codeBlocks } from "../docs/markdown.ts";
import { readPages } from "../docs/pages.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { findPython, PYTHON_ENV } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

const CONFIG = new URL("../../deno.json", import.meta.url).pathname;
const WORKERS = `  - name: engine-queue
  - name: engine-cron
  - name: engine-pubsub
  - name: engine-configuration
    config: { environment: ["SHOP_*"] }
  - name: engine-http
    config: { port: 0 }
  - name: engine-stream
    config: { port: 0 }
`;
/** Addresses that the programs offer as functions; nothing is requested there. */
const SETTINGS = `  http_functions:
    allow: [api.example.com, "http://127.0.0.1:8080"]
    allow_private: true
    auth_env: [QUOTES_SECRET]
`;
/** What a program prints at its end. */
const END = "reached the end";

type Language = "ts" | "python";

/** A program that a page shows. */
interface Program {
  readonly name: string;
  readonly language: Language;
  readonly code: string;
}

/** What makes a block a program, and the ids of its functions. */
const IMPORTS = /^import .*\bregisterWorker\b|^from engine_sdk import .*\bregister_worker\b/m;
const FUNCTION = /\b(?:registerFunction|function)\(\s*"([^"]+)"/g;

const programs: readonly Program[] = [...await readPages()].flatMap(([path, text]) =>
  codeBlocks(text).filter(({ code }) => IMPORTS.test(code)).map(({ language, code }, at) => {
    assert.ok(language === "ts" || language === "python", `${path}: ${language}`);
    return { name: `${path}, program ${at + 1}`, language, code };
  })
);
const hasPython = await findPython("tests/e2e/docs_programs_test.ts");

for (const [language, lang] of [["ts", "ts"], ["python", "py"]] as const) {
  const ignore = language === "python" && !hasPython;
  Deno.test({ name: `the ${language} programs of the documents run`, ignore }, async (t) => {
    Deno.env.set("QUOTES_SECRET", "secret"); // For the engine, which inherits it.
    await using engine = await EngineProcess.start(WORKERS, SETTINGS);
    await using app = engine.connect("app");
    app.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
    for (const id of ["orders::place", "mail::send", "my-shop::price.of"]) {
      app.registerFunction(id, () => ({}));
    }
    const { code, stderr } = await engine.command("types", "--lang", lang, "--out", `api.${lang}`);
    assert.equal(code, 0, stderr);

    for (const program of programs.filter((one) => one.language === language)) {
      await t.step(program.name, () => check(program, engine, app));
    }
  });
}

async function check({ language, code }: Program, engine: EngineProcess, app: Worker) {
  await using running = await start(engine, language, withEnd(language, code));
  const { ended } = running;
  await until(() => ended() || running.output().includes(END), running.output);
  assert.ok(running.output().includes(END), running.output());

  const ids = [...code.matchAll(FUNCTION)].map(([, id]) => id!);
  await until(async () => {
    const { functions } = await app.trigger<object, { functions: { function_id: string }[] }>({
      function_id: "engine::functions::list",
      payload: {},
    });
    const offered = new Set(functions.map(({ function_id }) => function_id));
    return ids.every((id) => offered.has(id));
  }, running.output);
}

/** The program with a line that says that it has reached its end, or the loop at its end. */
function withEnd(language: Language, code: string): string {
  const print = language === "ts" ? `console.log("${END}");` : `print("${END}", flush=True)`;
  const loop = code.search(/^for /m);
  return loop < 0 ? `${code}\n${print}\n` : `${code.slice(0, loop)}${print}\n${code.slice(loop)}`;
}

async function start(engine: EngineProcess, language: Language, code: string) {
  const file = `example.${language === "ts" ? "ts" : "py"}`;
  await engine.write(file, code);
  const child = new Deno.Command(language === "ts" ? Deno.execPath() : "python3", {
    args: language === "ts" ? ["run", "-A", "--no-check", "--config", CONFIG, file] : [file],
    cwd: engine.directory,
    env: { ENGINE_URL: engine.url, NO_COLOR: "1", ...language === "python" && PYTHON_ENV },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let output = "";
  let hasEnded = false;
  const read = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) output += text;
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)])
    .finally(() => hasEnded = true);
  return {
    output: () => output,
    ended: () => hasEnded,
    async [Symbol.asyncDispose]() {
      if (!hasEnded) child.kill("SIGKILL");
      await Promise.all([reading, child.status]);
    },
  };
}
