/**
 * Writes files and folders of the cache atomically: no reader sees a partial one, even when two
 * engines write at once.
 *
 * An entry is written under a temporary name and renamed when it is complete. If the machine stops
 * in between, the temporary entry stays until `removeStale` deletes it.
 *
 * @module
 */

/** Prefix of temporary names. */
const TEMPORARY = ".tmp-";
/** An older temporary entry has no writer any more. */
const STALE_MS = 3_600_000;

/**
 * Creates a folder atomically; keeps the existing one if it is complete.
 *
 * @param fill Writes the content into a temporary folder, given by its absolute path.
 * @param isWhole Whether the existing folder is usable; another engine may have written it.
 */
export async function publishFolder(
  path: string,
  fill: (folder: string) => Promise<void>,
  isWhole: () => Promise<boolean>,
): Promise<void> {
  const temporary = temporaryBeside(path);
  await Deno.mkdir(temporary, { recursive: true, mode: 0o700 });
  try {
    await fill(temporary);
    await putInPlace(temporary, path, isWhole);
  } finally {
    await removeQuietly(temporary);
  }
}

/** Writes a text file atomically. */
export async function publishText(path: string, text: string): Promise<void> {
  await Deno.mkdir(folderOf(path), { recursive: true, mode: 0o700 });
  const temporary = temporaryBeside(path);
  try {
    await Deno.writeTextFile(temporary, text);
    await Deno.rename(temporary, path);
  } finally {
    await removeQuietly(temporary);
  }
}

/** Runs `work` with a temporary folder in `directory` and removes the folder afterwards. */
export async function withTemporary<T>(
  directory: string,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = temporaryBeside(`${directory}/work`);
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    return await work(folder);
  } finally {
    await removeQuietly(folder);
  }
}

/**
 * Removes entries of a folder that are older than an hour; returns their paths.
 *
 * @param keep Whether to keep the entry of that name; not called for temporary entries.
 */
export async function removeStale(
  directory: string,
  keep: (name: string) => boolean,
  nowMs: number,
): Promise<string[]> {
  const removed: string[] = [];
  const entries = await Array.fromAsync(Deno.readDir(directory)).catch(() => []);
  for (const { name } of entries) {
    if (!name.startsWith(TEMPORARY) && keep(name)) continue;
    const path = `${directory}/${name}`;
    const info = await Deno.stat(path).catch(() => undefined);
    if (!info?.mtime || nowMs - info.mtime.getTime() < STALE_MS) continue;
    await removeQuietly(path);
    removed.push(path);
  }
  return removed;
}

async function putInPlace(
  temporary: string,
  path: string,
  isWhole: () => Promise<boolean>,
): Promise<void> {
  for (let triesLeft = 3;; triesLeft--) {
    try {
      return await Deno.rename(temporary, path);
    } catch (thrown) {
      if (await isWhole()) return;
      if (triesLeft === 0) throw thrown;
    }
    // rename() replaces only empty folders, so the damaged one is moved away first.
    const aside = temporaryBeside(path);
    await Deno.rename(path, aside).catch(() => {}); // Another engine moved it first.
    await removeQuietly(aside);
  }
}

function temporaryBeside(path: string): string {
  return `${folderOf(path)}/${TEMPORARY}${crypto.randomUUID().slice(0, 8)}`;
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

async function removeQuietly(path: string): Promise<void> {
  await Deno.remove(path, { recursive: true }).catch(() => {}); // removeStale() gets it later.
}
