/**
 * What README.md shows is what the engine takes, and nothing of the command line is missing there.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createProgram } from "../cli/program.ts";
import { parseConfig } from "../engine/config/config.ts";
import { readManifest } from "../engine/install/manifest.ts";
import type { Json, JsonObject } from "../mod.ts";
import { templates } from "../templates/mod.ts";
import { builtinWorkers } from "../workers/mod.ts";
import { FakeTerminal } from "./fakes/fake_terminal.ts";

const README = await Deno.readTextFile(new URL("../README.md", import.meta.url));

const DOCS = await readDocs();

/** All pages of `docs/`, by path. */
async function readDocs(): Promise<Map<string, string>> {
  const pages = new Map<string, string>();
  for await (const { name } of Deno.readDir(new URL("../docs/", import.meta.url))) {
    if (!name.endsWith(".md")) continue;
    const text = await Deno.readTextFile(new URL(`../docs/${name}`, import.meta.url));
    pages.set(`docs/${name}`, text);
  }
  return pages;
}

/** The code blocks of a language in a page. */
function blocks(language: string, page = README): string[] {
  const found = page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"));
  return [...found].map((match) => match[1]!);
}

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

Deno.test("the config.yaml of the README shows every key with its default", async () => {
  await using project = await makeProject();
  const text = blocks("yaml").find((block) => block.startsWith("engine:"))!;
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

Deno.test("the engine.worker.yaml of the README is one that the engine takes", async () => {
  await using project = await makeProject();
  const text = blocks("yaml").find((block) => block.startsWith("name:"))!;
  const directory = `${project.path}/workers/math-worker`;
  await Deno.writeTextFile(`${directory}/engine.worker.yaml`, text);
  await Deno.writeTextFile(`${directory}/math_worker.py`, "");

  const spec = readManifest(directory);

  assert.equal(spec.name, "math-worker");
  assert.deepEqual(spec.watch, ["."]);
});

Deno.test("the TypeScript of the README and of docs is checked by the compiler", async () => {
  await using project = await makeProject();
  const pages = [["README.md", README] as const, ...DOCS];
  const found = pages.flatMap(([path, text]) =>
    blocks("ts", text).map((block, i) => [`${path.replaceAll(/\W/g, "_")}_${i}`, block] as const)
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

Deno.test("the Python of the README and of docs compiles", async () => {
  const code = "import sys; compile(sys.stdin.read(), 'README.md', 'exec')";
  for (const block of [README, ...DOCS.values()].flatMap((page) => blocks("python", page))) {
    const child = new Deno.Command("python3", { args: ["-c", code], stdin: "piped" }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(block));
    await writer.close();

    assert.equal((await child.status).code, 0, block);
  }
});

/** What is read of a command here. */
interface AnyCommand {
  name(): string;
  readonly commands: readonly AnyCommand[];
  readonly options: readonly { readonly long?: string | undefined; readonly hidden: boolean }[];
}

function optionsOf(command: AnyCommand): string[] {
  const shown = command.options.filter(({ hidden }) => !hidden);
  const own = shown.flatMap(({ long }) => long === undefined ? [] : [long]);
  return [...own, ...command.commands.flatMap(optionsOf)];
}

Deno.test("the README names every command, option and template", async () => {
  const program: AnyCommand = await createProgram(new FakeTerminal());
  const commands = program.commands.flatMap((command) =>
    [command, ...command.commands].map((one) => one.name())
  );
  const names = [...commands, ...optionsOf(program), ...templates.map(({ name }) => name)];

  assert.deepEqual([...new Set(names)].filter((name) => !README.includes(name)), []);
});
