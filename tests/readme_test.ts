/**
 * What README.md and docs/ show is what the engine takes, and nothing of the command line is missing.
 *
 * @module
 */
import assert from "node:assert/strict";
import { parseDocument } from "yaml";
import { createProgram } from "../cli/program.ts";
import { parseConfig } from "../engine/config/config.ts";
import { readManifest } from "../engine/install/manifest.ts";
import type { Json, JsonObject } from "../mod.ts";
import { templates } from "../templates/mod.ts";
import { builtinWorkers } from "../workers/mod.ts";
import { examplesOf, readPages } from "./docs/pages.ts";
import { FakeTerminal } from "./fakes/fake_terminal.ts";

const PAGES = await readPages();

/** The examples of YAML, wherever they are. */
const YAML = examplesOf(PAGES, "yaml").map(({ code }) => code);

async function makeProject() {
  const path = await Deno.realPath(await Deno.makeTempDir());
  await Deno.mkdir(`${path}/workers/math-worker`, { recursive: true });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** All keys of an object and the objects in it, as paths; lists count as values. */
function keysOf(value: Json, path = ""): string[] {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return [path];
  return Object.entries(value).flatMap(([key, item]) => keysOf(item, `${path}.${key}`));
}

Deno.test("the whole config.yaml of the documents shows every key with its default", async () => {
  await using project = await makeProject();
  const text = YAML.find((block) => block.startsWith("engine:") && block.includes("heartbeat_ms"))!;
  const path = `${project.path}/config.yaml`;

  const shown = parseConfig(text, path, builtinWorkers, {});
  const defaults = parseConfig("workers: [{ name: engine-http }]", path, builtinWorkers, {});

  assert.deepEqual(shown.engine, defaults.engine);
  assert.deepEqual(shown.log, defaults.log);
  const http = shown.workers.find(({ name }) => name === "engine-http")!;
  assert.ok(http.kind === "builtin" && defaults.workers[0]!.kind === "builtin");
  assert.deepEqual(http.config, defaults.workers[0]!.config);
  assert.deepEqual(keysOf(http.raw), keysOf(defaults.workers[0]!.config as JsonObject));
});

Deno.test("the engine.worker.yaml of the documents is one that the engine takes", async () => {
  await using project = await makeProject();
  const text = YAML.find((block) => block.startsWith("name:"))!;
  const directory = `${project.path}/workers/math-worker`;
  await Deno.writeTextFile(`${directory}/engine.worker.yaml`, text);
  await Deno.writeTextFile(`${directory}/math_worker.py`, "");

  const spec = readManifest(directory);

  assert.equal(spec.name, "math-worker");
  assert.deepEqual(spec.watch, ["."]);
});

Deno.test("the TypeScript of the documents is checked by the compiler", async () => {
  await using project = await makeProject();
  const found = examplesOf(PAGES, "ts").map(({ path, number, code }) =>
    [`${path.replaceAll(/\W/g, "_")}_${number}`, code] as const
  );
  const files = await Promise.all(
    found.map(async ([name, block]) => {
      const file = `${project.path}/${name}.ts`;
      const engine = new URL("../engine/mod.ts", import.meta.url).href;
      await Deno.writeTextFile(file, block.replace("@engine/engine/engine", engine));
      return file;
    }),
  );

  // Docs use a client that `engine types` writes; what it looks like is tested there.
  await Deno.writeTextFile(
    `${project.path}/api.ts`,
    `export declare function createApi(worker: unknown): {
      math: { add(payload: { a: number; b: number }): Promise<{ c: number }> };
      "my-shop": { "price.of"(payload: { sku: string }, options?: object): Promise<unknown> };
    };\n`,
  );

  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--config", new URL("../deno.json", import.meta.url).pathname, ...files],
  }).output();

  assert.ok(success, new TextDecoder().decode(stderr));
  assert.ok(files.length >= 3);
});

Deno.test("the Python of the documents compiles", async () => {
  const program = "import sys; compile(sys.stdin.read(), sys.argv[1], 'exec')";
  const found = examplesOf(PAGES, "python");
  for (const { path, code } of found) {
    const args = ["-c", program, path];
    const child = new Deno.Command("python3", { args, stdin: "piped" }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(code));
    await writer.close();

    assert.equal((await child.status).code, 0, code);
  }
  assert.ok(found.length >= 3);
});

Deno.test("README.md is short, and each page of docs/ is of one of four kinds", () => {
  const elsewhere = [...PAGES.keys()].filter((path) =>
    path.startsWith("docs/") &&
    !/^docs\/(tutorial|how-to|reference|explanation)\/\w+\.md$/.test(path)
  );

  assert.ok(PAGES.get("README.md")!.split("\n").length < 150);
  assert.deepEqual(elsewhere, []);
});

Deno.test("the YAML and JSON of the documents can be read", () => {
  for (const { path, code } of examplesOf(PAGES, "yaml")) checkYaml(code, path);
  for (const { path, code } of examplesOf(PAGES, "json")) {
    for (const text of valuesIn(code)) {
      assert.doesNotThrow(() => JSON.parse(text), `${path}: ${text}`);
    }
  }
});

Deno.test("the YAML of the documents is what the engine takes", async () => {
  await using project = await makeProject();
  const path = `${project.path}/config.yaml`;
  // A variable without a default has to be set.
  const env = Object.fromEntries(
    ["ENGINE_TOKEN", "NATS_USER", "NATS_PASSWORD"].map((name) => [name, "set"]),
  );
  const wrong: string[] = [];
  let checked = 0;
  for (const { path: page, code } of examplesOf(PAGES, "yaml")) {
    const [, key = ""] = /^(\w+):/m.exec(code)!;
    if (key === "name") continue; // A manifest, checked above.
    const nested = `workers:\n  - name: engine-observability\n    config:\n      metrics:\n` +
      code.replaceAll(/^/gm, "        ");
    try {
      const text = key === "alerts" ? nested : code.replace(/^ *tls:.*\n/m, ""); // No such files.
      parseConfig(text, path, builtinWorkers, env);
    } catch (thrown) {
      wrong.push(`${page}: ${(thrown as Error).message}`);
    }
    checked++;
  }

  assert.deepEqual(wrong, []);
  assert.ok(checked >= 12);
});

Deno.test("the JavaScript of the documents can be parsed", async () => {
  const found = [
    ...examplesOf(PAGES, "js"),
    ...examplesOf(PAGES, "html").flatMap(({ path, number, code }) =>
      [...code.matchAll(/<script type="module">\n([^]*?)<\/script>/g)]
        .map(([, script]) => ({ path, number, code: script! }))
    ),
  ];
  for (const { path, code } of found) {
    const args = ["fmt", "--ext", "js", "-"];
    const child = new Deno.Command(Deno.execPath(), {
      args,
      stdin: "piped",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(code));
    await writer.close();

    const { success, stderr } = await child.output();
    assert.ok(success, `${path}:\n${code}\n${new TextDecoder().decode(stderr)}`);
  }
  assert.ok(found.length >= 3);
});

function checkYaml(code: string, path: string): void {
  const { errors } = parseDocument(code);
  assert.deepEqual(errors, [], `${path}:\n${code}`);
}

/** A block is one value, or one on each line. */
function valuesIn(code: string): string[] {
  return /^[{[]\n/.test(code) ? [code] : code.trim().split("\n");
}

/** What is read of a command here. */
interface AnyCommand {
  name(): string;
  aliases(): readonly string[];
  readonly commands: readonly AnyCommand[];
  readonly options: readonly {
    readonly long?: string | undefined;
    readonly short?: string | undefined;
    readonly hidden: boolean;
  }[];
}

function optionsOf(command: AnyCommand): string[] {
  const shown = command.options.filter(({ hidden }) => !hidden);
  const own = shown.flatMap(({ long }) => long === undefined ? [] : [long]);
  return [...own, ...command.commands.flatMap(optionsOf)];
}

Deno.test("the documents name every command, option and template", async () => {
  const program: AnyCommand = await createProgram(new FakeTerminal());
  const commands = program.commands.flatMap((command) =>
    [command, ...command.commands].map((one) => one.name())
  );
  const names = [...commands, ...optionsOf(program), ...templates.map(({ name }) => name)];
  const page = PAGES.get("docs/reference/cli.md")!;

  assert.deepEqual([...new Set(names)].filter((name) => !page.includes(name)), []);
});

Deno.test("each command that the documents show is one of the program, with its options", async () => {
  const program: AnyCommand = await createProgram(new FakeTerminal());
  const lines = examplesOf(PAGES, "sh").flatMap(({ path, code }) =>
    code.replaceAll("\\\n", " ").split("\n").filter((line) => /^engine\b/.test(line))
      .map((line) => [path, line] as const)
  );

  const wrong = lines.flatMap(([path, line]) => {
    const problem = problemOf(program, line);
    return problem === undefined ? [] : [`${path}: ${line}: ${problem}`];
  });

  assert.ok(lines.length > 30);
  assert.deepEqual(wrong, []);
  assert.equal(problemOf(program, "engine triger math::add a=2"), "no command triger");
  assert.equal(problemOf(program, "engine worker add ./x --frce"), "no option --frce");
});

/** What is wrong with a command line; `undefined`: nothing. */
function problemOf(program: AnyCommand, line: string): string | undefined {
  const text = line.replace(/\s#.*$/, "").replaceAll(/'[^']*'|"[^"]*"/g, "x").split(
    / -- | \| |&& /,
  )[0]!;
  const words = text.split(/\s+/).slice(1).filter((word) => word !== "");
  const chain = [program];
  for (const word of words) {
    const next = chain.at(-1)!.commands.find((command) =>
      command.name() === word || command.aliases().includes(word)
    );
    if (!next) break;
    chain.push(next);
  }
  const [first] = words;
  if (chain.length === 1 && first !== undefined && /^[a-z]/.test(first)) {
    return `no command ${first}`;
  }
  const options = chain.flatMap((command) =>
    command.options.flatMap(({ long, short }) => [long, short])
  );
  const unknown = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.split("=")[0]!)
    .find((word) => !options.includes(word) && !["--help", "--version"].includes(word));
  return unknown === undefined ? undefined : `no option ${unknown}`;
}
