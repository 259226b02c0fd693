/**
 * A number for all that decides what a worker depends on: when it changes, install again.
 *
 * @module
 */
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

/** Sixteen characters that stand for the contents of those files and for what else matters. */
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
    const text = await Deno.readTextFile(`${directory}/${name}`).catch(() => "");
    parts.push(name, text);
  }
  const bytes = new TextEncoder().encode(JSON.stringify(parts));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return digest.toHex().slice(0, 16);
}
