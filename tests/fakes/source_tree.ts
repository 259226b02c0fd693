/**
 * The project's own sources, for the tests that read them.
 *
 * @module
 */

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
  "sdk/conformance",
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
  const paths = ["mod.ts", "sdk/build_npm.ts"];
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
