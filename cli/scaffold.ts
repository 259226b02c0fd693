/**
 * Writes a template into a directory; never removes anything, and says what it would overwrite.
 *
 * Nothing is written before everything is checked, so a refusal leaves the directory as it was.
 *
 * @module
 */
import type { Template } from "../templates/mod.ts";
import { CommandError, UsageError } from "./failure.ts";

/** What to write, and where. */
export interface ScaffoldOptions {
  readonly template: Template;
  /** Absolute. */
  readonly directory: string;
  /** Write into a directory that is not empty, over files of the same names. */
  readonly force: boolean;
  /** Puts the SDK copies below an absolute `.engine` directory. */
  writeSdkCopies(dataDirectory: string): Promise<unknown>;
}

/** What was written. */
export interface Scaffolded {
  /** Paths relative to the directory, in the template's order. */
  readonly written: readonly string[];
  /** Those of them that were there before. */
  readonly overwritten: readonly string[];
  /** Absolute path of the project's `.engine`. */
  readonly dataDirectory: string;
}

/** The template of that name; an unknown one is refused with the names there are. */
export function findTemplate(templates: readonly Template[], name: string): Template {
  const found = templates.find((template) => template.name === name);
  if (found) return found;
  const names = templates.map((template) => `\n  ${template.name.padEnd(18)}${template.summary}`);
  throw new UsageError(`There is no template ${JSON.stringify(name)}; there are:${names.join("")}`);
}

/**
 * Writes all files of a template and the SDK copies of its project.
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
      text
        .replaceAll("{{name}}", nameFor(directory))
        .replaceAll("{{engine}}", wayUp(directory, dataDirectory)),
    );
  }
  await options.writeSdkCopies(dataDirectory);
  return { written, overwritten, dataDirectory };
}

/** The directory's own name as a worker's name: small letters, digits and dashes, 64 at most. */
export function nameFor(directory: string): string {
  const last = directory.split(/[\\/]/).filter(Boolean).at(-1) ?? "";
  const name = last.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-+|-+$/g, "");
  if (name === "") return "my-worker";
  return (/^[a-z]/.test(name) ? name : `worker-${name}`).slice(0, 64);
}

/** The nearest directory above that has a config.yaml; the worker's own if there is none. */
async function projectAround(directory: string): Promise<string> {
  for (let place = parentOf(directory);; place = parentOf(place)) {
    if (await exists(`${place}/config.yaml`)) return place;
    if (place === parentOf(place)) return directory;
  }
}

/** A path from one absolute directory to another above or inside it, such as `../../.engine`. */
function wayUp(from: string, to: string): string {
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
