/**
 * Whether a build still says what its sources say.
 *
 * A build lists its sources with the times of their last change. Compared is for equality, since
 * a checkout may also make a file older; a list whose sources are gone is of a build that stands by
 * itself, and then there is nothing to compare with.
 *
 * @module
 */

/** Name of the list, beside the built program. */
export const SOURCES_FILE = "sources.json";

/** What a build was made of. */
export interface BuildSources {
  /** Where the sources lie, from the list: a relative address that ends with a slash. */
  readonly root: string;
  /** Path below the root to the time of its last change, in milliseconds since 1970. */
  readonly files: Readonly<Record<string, number>>;
}

/**
 * The root of the sources, when one of them is no longer what the build was made of.
 *
 * @param list Where the list of the build lies.
 */
export function changedSources(list: URL): URL | undefined {
  const text = readIfThere(list);
  if (text === undefined) return undefined;
  const { root, files } = JSON.parse(text) as BuildSources;
  const at = new URL(root, list);
  if (!isThere(at)) return undefined;
  const folder = pathOf(at);
  const isSame = Object.entries(files).every(([path, ms]) => changedAt(folder + path) === ms);
  return isSame ? undefined : at;
}

/** When a file was last changed, in milliseconds since 1970; `undefined` when there is none. */
export function changedAt(path: string): number | undefined {
  try {
    return Deno.statSync(path).mtime?.getTime();
  } catch {
    return undefined; // Removed, which is a change too.
  }
}

function readIfThere(file: URL): string | undefined {
  try {
    return Deno.readTextFileSync(file);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    throw thrown;
  }
}

/** Whether these are sources, and not whatever lies where they were when it was built. */
function isThere(root: URL): boolean {
  return changedAt(pathOf(new URL("cli/run.ts", root))) !== undefined;
}

/** As the system has it; an address per file would take as long as asking for the file. */
function pathOf({ pathname }: URL): string {
  return decodeURIComponent(pathname).replace(/^\/(?=[A-Za-z]:\/)/, "");
}
