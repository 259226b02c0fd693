/**
 * A number for all that decides what a worker depends on: when it changes, install again.
 *
 * @module
 */
import defer * as nodeCrypto from "node:crypto";
import { DEPENDENCY_FILE_BYTES_MAX, DEPENDENCY_FILES_MAX } from "../supervisor/limits.ts";
import { MANIFEST } from "./manifest.ts";
import { WorkerFile } from "./worker_file.ts";

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
 * to, counts for nothing; what lies elsewhere, or is too large to be read, by its size and time.
 */
export async function dependencyHash(
  directory: string,
  more: readonly string[],
): Promise<string> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(directory)) {
    if (!entry.isDirectory && isDependencyFile(entry.name)) names.push(entry.name);
  }
  const hash = nodeCrypto.createHash("sha256").update(JSON.stringify([...more, Deno.build.target]));
  let left = DEPENDENCY_FILE_BYTES_MAX;
  for (const [i, name] of names.sort().entries()) {
    hash.update(JSON.stringify(name));
    if (i >= DEPENDENCY_FILES_MAX) continue;
    using file = opened(directory, name);
    if (file === undefined || file.size > left) {
      hash.update(await sizeAndTime(`${directory}/${name}`));
      continue;
    }
    left -= file.size;
    hash.update(`${file.size}`);
    for (const piece of file.pieces()) {
      hash.update(piece);
      await aMoment();
    }
  }
  return hash.digest("hex").slice(0, 16);
}

function opened(directory: string, name: string): WorkerFile | undefined {
  try {
    return WorkerFile.open(directory, name);
  } catch {
    return undefined; // Gone, elsewhere, or no file.
  }
}

async function sizeAndTime(path: string): Promise<string> {
  const info = await Deno.stat(path).catch(() => undefined);
  return info?.isFile ? `${info.size} ${info.mtime?.getTime()}` : "";
}

/** Lets the engine do something else. */
function aMoment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
