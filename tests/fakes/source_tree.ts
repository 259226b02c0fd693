/**
 * The project's own files, for the tests that read them: sources, module graphs, golden frames.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** A file of the project. */
export interface SourceFile {
  /** Relative to the project, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** One import or re-export. */
export interface Import {
  readonly specifier: string;
  /** Imported as text or JSON: content, not code. */
  readonly embedded: boolean;
}

const ROOT = new URL("../../", import.meta.url);
const FOLDERS = [
  "engine",
  "sdk/browser",
  "sdk/conformance",
  "sdk/testing",
  "sdk/typescript",
  "workers",
  "cli",
  "templates",
  "tests",
];
/** Built or installed, not written. */
const GENERATED = /^(coverage|dist|sdk\/npm|.*\.egg-info)$|\/__pycache__$/;
/** Sources of users' projects, kept here as text. */
const NOT_OURS = /^templates\/[^/]+\//;

/** Every TypeScript source, tests too, sorted by path. */
export async function readSources(): Promise<SourceFile[]> {
  const paths = ["mod.ts", "sdk/build_npm.ts", "sdk/package.ts"];
  for (const folder of FOLDERS) {
    for await (const path of walk(folder)) {
      if (/\.tsx?$/.test(path) && !NOT_OURS.test(path)) paths.push(path);
    }
  }
  const read = async (path: string) => ({
    path,
    text: await Deno.readTextFile(new URL(path, ROOT)),
  });
  return await Promise.all(paths.sort().map(read));
}

/** Every text that people write, sorted by path: sources of all languages, tests, documents. */
export async function readTexts(): Promise<SourceFile[]> {
  const texts: SourceFile[] = [];
  for await (const path of walk(".", GENERATED)) {
    if (/\.(tsx?|py|md|sh)$/.test(path)) {
      texts.push({ path, text: await Deno.readTextFile(new URL(path, ROOT)) });
    }
  }
  return texts.sort((a, b) => a.path < b.path ? -1 : 1);
}

/** What a file imports, also lazily. */
export function importsOf({ text }: SourceFile): Import[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/^\s*\/\/.*$/gm, "");
  const static_ = /^(?:import|export)\s[^;]*?from\s+"([^"]+)"(\s+with\s+\{[^}]*\})?;/gms;
  const bare = /^import\s+"([^"]+)"(\s+with\s+\{[^}]*\})?;/gm;
  const lazy = /\bimport\(\s*"([^"]+)"\s*(,\s*\{[^)]*\})?\s*\)/g;
  return [static_, bare, lazy].flatMap((pattern) =>
    [...code.matchAll(pattern)].map(([, specifier, attributes]) => ({
      specifier: specifier!,
      embedded: /type"?:\s*"(text|json|bytes)"/.test(attributes ?? ""),
    }))
  );
}

async function* walk(folder: string, skipped = /(?!)/): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(new URL(`${folder}/`, ROOT))) {
    const path = folder === "." ? entry.name : `${folder}/${entry.name}`;
    if (entry.name === "node_modules" || entry.name.startsWith(".")) continue;
    if (skipped.test(path)) continue;
    if (entry.isDirectory) yield* walk(path, skipped);
    else yield path;
  }
}

interface Dependency {
  readonly code?: { readonly specifier?: string };
  readonly isDynamic?: boolean;
}

interface Info {
  readonly modules: readonly {
    readonly specifier: string;
    readonly dependencies?: readonly Dependency[];
  }[];
  readonly redirects: Readonly<Record<string, string>>;
}

/** What is evaluated before the module runs, itself included: without what it imports later. */
export function staticGraph(entry: URL): Promise<string[]> {
  return graphOf(entry, ({ isDynamic }) => isDynamic !== true);
}

/** All that is read before it runs: what an import names outright, whether it runs or not. */
export function wholeGraph(entry: URL): Promise<string[]> {
  return graphOf(entry, () => true);
}

async function graphOf(entry: URL, follows: (it: Dependency) => boolean): Promise<string[]> {
  const args = ["info", "--json", entry.href];
  const { stdout, success } = await new Deno.Command(Deno.execPath(), { args }).output();
  if (!success) throw new Error(`deno info of ${entry.href} failed`);
  const { modules, redirects } = JSON.parse(new TextDecoder().decode(stdout)) as Info;
  const bySpecifier = new Map(modules.map((module) => [module.specifier, module]));
  const reached = new Set<string>();
  const open = [entry.href];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const at = redirects[next] ?? next;
    if (reached.has(at)) continue;
    reached.add(at);
    for (const dependency of bySpecifier.get(at)?.dependencies ?? []) {
      if (dependency.code?.specifier && follows(dependency)) open.push(dependency.code.specifier);
    }
  }
  return [...reached];
}

/** One frame and what it means. */
export interface Vector {
  readonly name: string;
  /** Who sends it. */
  readonly direction: "worker" | "engine";
  /** The text as it travels. */
  readonly frame: string;
  /** What it says, if it is well formed. */
  readonly message?: JsonObject;
  /** The code it is refused with, if it is not. */
  readonly error?: string;
  /** Writing `message` gives `frame` again. */
  readonly canonical?: boolean;
}

/** All of them, file by file. */
export async function readVectors(): Promise<Vector[]> {
  const directory = new URL("../../sdk/vectors/", import.meta.url);
  const names: string[] = [];
  for await (const entry of Deno.readDir(directory)) names.push(entry.name);
  const texts = names.filter((name) => name.endsWith("_messages.json")).sort()
    .map((name) => Deno.readTextFile(new URL(name, directory)));
  return (await Promise.all(texts)).flatMap((text) => JSON.parse(text) as Vector[]);
}
