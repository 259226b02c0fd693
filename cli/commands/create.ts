/**
 * `engine create` and `engine project init`: write a template into a directory.
 *
 * Nothing is written before everything is checked, nothing is ever removed, and overwritten files
 * are named.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Template } from "../../templates/mod.ts";
import { absolutePath, shellWord } from "../arguments.ts";
import { CommandError, UsageError } from "../failure.ts";
import type { Terminal } from "../terminal.ts";

const CREATE_EXAMPLES = `
Examples:
  engine create --template quickstart --directory hello
  engine create --template python-worker --directory hello/workers/my-worker

Templates: quickstart, jobs, bare (projects); python-worker, typescript-worker, node-worker
(workers for one).
--force never removes anything; it lists the files that it overwrites.`;

const INIT_EXAMPLES = `
Examples:
  engine project init hello
  engine project init hello --template bare`;

/** Writes the SDKs and schemas below an absolute `.engine` directory; tests provide another one. */
export type WriteProjectFiles = (dataDirectory: string) => Promise<unknown>;

/** Adds `engine create` and `engine project init`. */
export function addCreate(
  program: Command,
  terminal: Terminal,
  writeProjectFiles: WriteProjectFiles = writeRealCopies,
): void {
  program.command("create")
    .description("Create a project, or a worker for one, from a template")
    .option("--template <name>", "name of the template", "quickstart")
    .option("--directory <dir>", "directory to write to, created if needed")
    .option("--force", "write into a directory that is not empty")
    .addHelpText("after", CREATE_EXAMPLES)
    .action(async ({ template, directory, force }) => {
      if (directory === undefined || directory === "") {
        throw new UsageError("Missing --directory. Example: engine create --directory hello");
      }
      await create({ template, directory, force: force ?? false, writeProjectFiles }, terminal);
    });
  program.command("project")
    .description("Create projects")
    .addHelpText("after", INIT_EXAMPLES)
    .command("init")
    .description("Create a project in a new directory of that name")
    .argument("<name>", "name of the project and its directory")
    .option("--template <name>", "name of the template", "quickstart")
    .option("--force", "write into a directory that is not empty")
    .addHelpText("after", INIT_EXAMPLES)
    .action(async (name, { template, force }) => {
      if (name.trim() === "") throw new UsageError("The name of a project cannot be empty");
      await create(
        { template, directory: name, force: force ?? false, writeProjectFiles },
        terminal,
      );
    });
}

/** Schemas in a project, by the name of the file that they describe. */
const SCHEMAS: Readonly<Record<string, string>> = {
  "config.yaml": "config.json",
  "engine.worker.yaml": "engine.worker.json",
};

interface CreateOptions {
  readonly template: string;
  readonly directory: string;
  readonly force: boolean;
  readonly writeProjectFiles: WriteProjectFiles;
}

async function create(options: CreateOptions, terminal: Terminal): Promise<void> {
  const { templates } = await import("../../templates/mod.ts");
  const template = findTemplate(templates, options.template);
  const directory = absolutePath(terminal.directory, options.directory);
  const { written, overwritten } = await scaffold({ ...options, template, directory });
  for (const path of written) {
    terminal.out(`  ${overwritten.includes(path) ? "overwritten" : "written"}  ${path}`);
  }
  terminal.out(`Created ${template.name} in ${directory}`);
  for (const line of nextSteps(template, options.directory)) terminal.out(line);
}

function nextSteps(template: Template, directory: string): string[] {
  if (template.kind === "worker") {
    const word = shellWord(pathWord(directory));
    return [
      "",
      "Next, with the engine running:",
      `  engine worker add ${word} --isolation process`,
    ];
  }
  const enter = /^\.\/?$/.test(directory) ? [] : [`  cd ${shellWord(directory)}`];
  return ["", "Next:", ...enter, "  engine --config config.yaml"];
}

/** A directory as `engine worker add` recognises it. */
function pathWord(directory: string): string {
  return /^(\/|\.\.?(\/|$))/.test(directory) ? directory : `./${directory}`;
}

async function writeRealCopies(dataDirectory: string): Promise<void> {
  const { writeProjectFiles } = await import("../../engine/mod.ts");
  await writeProjectFiles(dataDirectory);
}

/** What to write, and where. */
export interface ScaffoldOptions {
  readonly template: Template;
  /** Absolute. */
  readonly directory: string;
  /** Writes into a directory that is not empty, and overwrites files of the same names. */
  readonly force: boolean;
  readonly writeProjectFiles: WriteProjectFiles;
}

/** What was written. */
export interface Scaffolded {
  /** Paths relative to the directory, in the template's order. */
  readonly written: readonly string[];
  /** Those of them that existed before. */
  readonly overwritten: readonly string[];
  /** Absolute path of the project's `.engine`. */
  readonly dataDirectory: string;
}

/**
 * The template of that name.
 *
 * @throws {UsageError} With the names of all templates.
 */
export function findTemplate(templates: readonly Template[], name: string): Template {
  const found = templates.find((template) => template.name === name);
  if (found) return found;
  const names = templates.map((template) => `\n  ${template.name.padEnd(18)}${template.summary}`);
  throw new UsageError(`There is no template ${JSON.stringify(name)}; there are:${names.join("")}`);
}

/**
 * Writes all files of a template, and the SDKs and schemas of its project.
 *
 * @throws {CommandError} The directory is not empty, or is a file.
 */
export async function scaffold(options: ScaffoldOptions): Promise<Scaffolded> {
  const { template, directory, force } = options;
  const present = await entriesOf(directory);
  if (present.length > 0 && !force) {
    throw new CommandError(
      `${directory} is not empty (${present.slice(0, 3).join(", ")}${
        present.length > 3 ? ", …" : ""
      }); choose another directory, or write into it with --force`,
    );
  }
  const project = template.kind === "project" ? directory : await projectAround(directory);
  const dataDirectory = `${project}/.engine`;
  const written = Object.keys(template.files);
  const overwritten: string[] = [];
  for (const [path, text] of Object.entries(template.files)) {
    const target = `${directory}/${path}`;
    if (await exists(target)) overwritten.push(path);
    await Deno.mkdir(parentOf(target), { recursive: true });
    await Deno.writeTextFile(
      target,
      (schemaLine(target, dataDirectory) + text)
        .replaceAll("{{name}}", nameFor(directory))
        .replaceAll("{{engine}}", relativePath(directory, dataDirectory)),
    );
  }
  await options.writeProjectFiles(dataDirectory);
  return { written, overwritten, dataDirectory };
}

/** The line by which editors find the schema of a file; empty for a file that has none. */
function schemaLine(path: string, dataDirectory: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const schema = Object.hasOwn(SCHEMAS, name) ? SCHEMAS[name] : undefined;
  if (schema === undefined) return "";
  const engine = relativePath(parentOf(path), dataDirectory);
  return `# yaml-language-server: $schema=${engine}/schemas/${schema}\n`;
}

/** The directory's name as a worker's name: at most 64 small letters, digits and dashes. */
export function nameFor(directory: string): string {
  const last = directory.split(/[\\/]/).filter(Boolean).at(-1) ?? "";
  const name = last.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-+|-+$/g, "");
  if (name === "") return "my-worker";
  return (/^[a-z]/.test(name) ? name : `worker-${name}`).slice(0, 64);
}

/** The nearest directory above with a config.yaml; without one, the worker's own. */
async function projectAround(directory: string): Promise<string> {
  for (let place = parentOf(directory);; place = parentOf(place)) {
    if (await exists(`${place}/config.yaml`)) return place;
    if (place === parentOf(place)) return directory;
  }
}

/** The relative path from one absolute directory to another, such as `../../.engine`. */
function relativePath(from: string, to: string): string {
  const start = from.split("/");
  const end = to.split("/");
  let shared = 0;
  while (shared < start.length && start[shared] === end[shared]) shared++;
  const up = start.slice(shared).map(() => "..");
  return [...up.length > 0 ? up : ["."], ...end.slice(shared)].join("/");
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash <= 0 ? "/" : path.slice(0, slash);
}

async function entriesOf(directory: string): Promise<string[]> {
  try {
    const entries = await Array.fromAsync(Deno.readDir(directory), (entry) => entry.name);
    return entries.sort();
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return [];
    if (thrown instanceof Deno.errors.NotADirectory) {
      throw new CommandError(`${directory} is not a directory; choose another one`);
    }
    throw thrown;
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
