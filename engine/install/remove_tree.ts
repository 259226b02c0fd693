/**
 * Removes folders that a worker filled.
 *
 * A contained worker may have made folders in folders, thousands deep: the runtime's own removal
 * calls itself for each and would end the whole engine. So a program does it, which can take its
 * time or fail alone; it follows no links.
 *
 * @module
 */
import { REMOVAL_TIMEOUT_MS } from "../supervisor/limits.ts";

/** Where systems keep their programs; what else the PATH says may be a worker's. */
const SYSTEM_PATH = "/usr/bin:/bin:/run/current-system/sw/bin";

/** Arguments of one program. */
const AT_ONCE = 200;

/** Removes a folder or file; see {@linkcode removeOthers}. */
export async function removeTree(path: string): Promise<void> {
  await remove([path], AbortSignal.timeout(REMOVAL_TIMEOUT_MS));
}

/**
 * Removes what is in a folder, except for these names. Never rejects: what cannot be removed, or
 * not within `REMOVAL_TIMEOUT_MS`, is left for the next time.
 */
export async function removeOthers(folder: string, kept: readonly string[]): Promise<void> {
  const signal = AbortSignal.timeout(REMOVAL_TIMEOUT_MS);
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(() => []); // It is not there.
  const paths = entries.filter(({ name }) => !kept.includes(name))
    .map(({ name }) => `${folder}/${name}`);
  for (let at = 0; at < paths.length && !signal.aborted; at += AT_ONCE) {
    await remove(paths.slice(at, at + AT_ONCE), signal);
  }
}

async function remove(paths: readonly string[], signal: AbortSignal): Promise<void> {
  if (Deno.build.os === "windows") {
    const removals = paths.map((path) => Deno.remove(path, { recursive: true }));
    await Promise.allSettled(removals); // Gone, or still in use.
    return;
  }
  const command = new Deno.Command("/bin/sh", {
    args: ["-c", 'exec rm -rf -- "$@"', "sh", ...paths],
    env: { PATH: SYSTEM_PATH },
    signal,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  });
  await command.output().catch(() => {}); // No shell: nothing else would run here either.
}
