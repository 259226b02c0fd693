/**
 * Which files of a worker's directory count as its sources.
 *
 * A name without wildcards is a file, which counts whatever it is, or a folder, in which and below
 * which sources count but not what programs write there. A glob says itself which files count. `!`
 * before one makes exceptions, which always win. Caches, environments and what editors leave for a
 * moment count only by their full name.
 *
 * @module
 */
import { generatedFolders, isDependencyFile, isSourceFile } from "../install/runtimes/mod.ts";
import { Glob, partsOf } from "./glob.ts";

/** How a folder stands to the patterns: on the way to what they name, below that, or neither. */
export type Reach = "named" | "below" | "outside";

/** Folders that programs write, by name. */
const IGNORED_FOLDERS: ReadonlySet<string> = new Set([
  ".cache",
  ".engine",
  ".git",
  ".hg",
  ".idea",
  ".svn",
  ".vscode",
  ...generatedFolders(),
]);
/** Sources that no language claims: templates, queries, settings. */
const OTHER_SOURCE = /\.(html|css|sql|graphql|toml|ini|cfg)$|^\.env$/;
/** What editors leave for a moment. */
const TEMPORARY =
  /^(\.#|#|\.goutputstream-)|~$|\.(sw[a-px]|tmp|part|kate-swp)$|___jb_(tmp|old)___$/;

/** The patterns of one worker. Paths are relative to its directory; the directory itself is "". */
export class WatchPatterns {
  readonly #wanted: readonly Glob[];
  readonly #unwanted: readonly Glob[];

  /** Takes patterns that `globProblem` has no word against, some with `!` before them. */
  constructor(patterns: readonly string[]) {
    this.#wanted = patterns.filter((text) => !text.startsWith("!")).flatMap(Glob.parse);
    this.#unwanted = patterns.filter((text) => text.startsWith("!"))
      .flatMap((text) => Glob.parse(text.slice(1)));
  }

  /** Whether an edit of this file counts. */
  counts(path: string): boolean {
    const parts = partsOf(path);
    return this.#wanted.some((glob) => isWanted(glob, parts)) && !this.#isException(parts);
  }

  /** Whether files in this folder, or in one below it, may count. */
  reach(folder: string): Reach {
    const parts = partsOf(folder);
    if (this.#isException(parts)) return "outside";
    const found = this.#wanted.map((glob) => reachOf(glob, parts));
    return found.find((reach) => reach === "named") ?? found.find((reach) => reach === "below") ??
      "outside";
  }

  #isException(parts: readonly string[]): boolean {
    return this.#unwanted.some((glob) => glob.covers(parts));
  }
}

function isWanted(glob: Glob, parts: readonly string[]): boolean {
  if (!glob.isWild && glob.matches(parts)) return true;
  const name = parts.at(-1) ?? "";
  if (!isBelowNames(glob, parts) || TEMPORARY.test(name)) return false;
  return glob.isWild ? glob.matches(parts) : isSource(name);
}

function isSource(name: string): boolean {
  return isSourceFile(name) || OTHER_SOURCE.test(name) || isDependencyFile(name);
}

function reachOf(glob: Glob, folder: readonly string[]): Reach {
  const { names } = glob;
  const isOnTheWay = folder.length <= names.length;
  if (isOnTheWay) return folder.every((part, i) => part === names[i]) ? "named" : "outside";
  return isBelowNames(glob, folder) && glob.mayMatchBelow(folder) ? "below" : "outside";
}

/** Below what is written without wildcards, and from there on in no folder that programs fill. */
function isBelowNames({ names }: Glob, parts: readonly string[]): boolean {
  return parts.length > names.length && names.every((name, i) => name === parts[i]) &&
    !parts.slice(names.length).some((part) => IGNORED_FOLDERS.has(part));
}
