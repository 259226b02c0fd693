/**
 * A number for all that decides what a worker depends on: when it changes, install again.
 *
 * @module
 */
import { DEPENDENCY_FILE_BYTES_MAX } from "../../sdk/typescript/limits.ts";
import { MANIFEST } from "./manifest.ts";

const FILES = new Set([
  MANIFEST,
  "deno.json",
  "deno.jsonc",
  "deno.lock",
  "npm-shrinkwrap.json",
  "package-lock.json",
  "package.json",
  "poetry.lock",
  "pyproject.toml",
  "uv.lock",
]);

/** Whether a file in a worker's directory says what to install. */
export function isDependencyFile(name: string): boolean {
  return FILES.has(name) || /^requirements.*\.txt$/.test(name);
}

/**
 * Sixteen characters that stand for the contents of those files and for what else matters.
 *
 * A worker may have put anything there: what is no ordinary file, such as a pipe that nobody writes
 * to, counts for nothing, and one that is too large counts by its size and time.
 */
export async function dependencyHash(
  directory: string,
  more: readonly string[],
): Promise<string> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(directory)) {
    if (!entry.isDirectory && isDependencyFile(entry.name)) names.push(entry.name);
  }
  const parts: string[] = [...more, Deno.build.target];
  for (const name of names.sort()) {
    parts.push(name, await contentOf(`${directory}/${name}`));
  }
  const bytes = new TextEncoder().encode(JSON.stringify(parts));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return digest.toHex().slice(0, 16);
}

async function contentOf(path: string): Promise<string> {
  const info = await Deno.stat(path).catch(() => undefined);
  if (!info?.isFile) return "";
  if (info.size > DEPENDENCY_FILE_BYTES_MAX) return `${info.size} ${info.mtime?.getTime()}`;
  return await Deno.readTextFile(path).catch(() => "");
}
