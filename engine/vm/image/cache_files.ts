/**
 * Writes files of the cache so that nobody sees half of one, also with two engines at once.
 *
 * What is made lies under a temporary name until it is whole. If a machine stops in between, that
 * stays behind and `removeStale` takes it away later.
 *
 * @module
 */

/** Names of what is being made begin with this. */
const TEMPORARY = ".tmp-";
/** So old a temporary file is nobody's any more, in milliseconds. */
const STALE_MS = 3_600_000;

/**
 * Makes a folder in one step; one that is there already and whole stays.
 *
 * @param fill Writes into a temporary folder, whose absolute path it gets.
 * @param isWhole Whether the folder that is there can be used; another engine may have made it.
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

/** Writes a text file in one step. */
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

/** Runs `work` with a temporary folder in `directory` that is gone afterwards. */
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
 * Removes from a folder what is older than an hour and not kept; returns the paths.
 *
 * @param keep Whether an entry of that name stays; temporary ones are not asked about.
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
    // A folder can only take the place of an empty one; the damaged one goes aside first.
    const aside = temporaryBeside(path);
    await Deno.rename(path, aside).catch(() => {}); // Another one was quicker.
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
  await Deno.remove(path, { recursive: true }).catch(() => {}); // It is gone, or goes next time.
}
