/**
 * Which files of a worker's directory are sources, by the patterns under `watch`.
 *
 * A pattern without wildcards names a file, whatever it is, or a folder, of which everything counts
 * that is source code. A glob matches any files: `*` and `?` within a name, `**` for any folders,
 * `[ab]`, `{a,b}`, and a backslash before a literal character. Patterns after `!` are exceptions,
 * which always win. Caches, environments and temporary files of editors count only by their full
 * name. Matching backtracks to the last star only, so its work is bounded by the product of the
 * lengths. This file does not access the file system.
 *
 * @module
 */
import { generatedFolders, isDependencyFile, isSourceFile } from "../install/runtimes/mod.ts";

/** Alternatives in braces that a worker's patterns may have. */
const WATCH_PATTERNS_MAX = 1_000;

/** A folder on the way to what patterns name, below that, or neither. */
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
/** Temporary files of editors. */
const TEMPORARY =
  /^(\.#|#|\.goutputstream-)|~$|\.(sw[a-px]|tmp|part|kate-swp)$|___jb_(tmp|old)___$/;

/** The patterns of one worker. Paths are relative to its directory; the directory itself is "". */
export class WatchPatterns {
  readonly #included: readonly Glob[];
  readonly #excluded: readonly Glob[];

  /** Every pattern has to be valid; see {@linkcode globProblem}. */
  constructor(patterns: readonly string[]) {
    this.#included = patterns.filter((text) => !text.startsWith("!")).flatMap(Glob.parse);
    this.#excluded = patterns.filter((text) => text.startsWith("!"))
      .flatMap((text) => Glob.parse(text.slice(1)));
  }

  /** Whether this file is a source. */
  counts(path: string): boolean {
    const parts = partsOf(path);
    return this.#included.some((glob) => isIncluded(glob, parts)) && !this.#isException(parts);
  }

  /** Whether this folder, or one below it, may contain sources. */
  reach(folder: string): Reach {
    const parts = partsOf(folder);
    if (this.#isException(parts)) return "outside";
    const found = this.#included.map((glob) => reachOf(glob, parts));
    return found.find((reach) => reach === "named") ?? found.find((reach) => reach === "below") ??
      "outside";
  }

  #isException(parts: readonly string[]): boolean {
    return this.#excluded.some((glob) => glob.covers(parts));
  }
}

function isIncluded(glob: Glob, parts: readonly string[]): boolean {
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

/** Whether a path is below the names without wildcards, and in no ignored folder from there. */
function isBelowNames({ names }: Glob, parts: readonly string[]): boolean {
  return parts.length > names.length && names.every((name, i) => name === parts[i]) &&
    !parts.slice(names.length).some((part) => IGNORED_FOLDERS.has(part));
}

/** What was expected instead of an invalid pattern; `undefined` when it is valid. */
export function globProblem(text: string): string | undefined {
  const path = text.replace(/^!/, "");
  if (path === "") return "a path or glob after !";
  if (path.startsWith("/") || path.split("/").includes("..")) {
    return "a path or glob inside the worker's directory";
  }
  try {
    Glob.parse(path);
    return undefined;
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

/** A relative path, with or without wildcards. */
export class Glob {
  /** Leading names without wildcards. */
  readonly names: readonly string[];
  readonly #segments: readonly Segment[];

  private constructor(text: string) {
    this.#segments = partsOf(text).map(segmentOf);
    const wild = this.#segments.findIndex((segment) => segment.name === undefined);
    const named = wild < 0 ? this.#segments : this.#segments.slice(0, wild);
    this.names = named.map((segment) => segment.name!);
  }

  /** One glob for each combination of alternatives. @throws {Error} What was expected. */
  static parse(text: string): Glob[] {
    return alternatives(text).map((one) => new Glob(one));
  }

  /** Whether it has wildcards. */
  get isWild(): boolean {
    return this.names.length < this.#segments.length;
  }

  /** Whether it matches this path. */
  matches(parts: readonly string[]): boolean {
    return fitAll(this.#segments, parts, FOLDERS);
  }

  /** Whether it matches this path or a folder that contains it. */
  covers(parts: readonly string[]): boolean {
    if (!this.isWild) return this.names.every((name, i) => name === parts[i]);
    return parts.some((_, i) => this.matches(parts.slice(0, i + 1)));
  }

  /** Whether it may match a path in this folder or below. */
  mayMatchBelow(folder: readonly string[]): boolean {
    if (!this.isWild) return this.covers(folder);
    for (const [i, part] of folder.entries()) {
      const segment = this.#segments[i];
      if (segment?.isAnyFolders) return true;
      if (segment === undefined || !fits(segment, part)) return false;
    }
    return folder.length < this.#segments.length;
  }
}

/** The part between two slashes. */
interface Segment {
  /** Without wildcards; `undefined` when it has some. */
  readonly name: string | undefined;
  readonly isAnyFolders: boolean;
  /** One for each character; `*` stands for any number of them. */
  readonly characters: readonly (RegExp | string)[];
}

/** How a list of pattern parts is compared with a list of parts. */
interface Comparison<P, T> {
  isStar(part: P): boolean;
  fits(part: P, item: T): boolean;
}

const FOLDERS: Comparison<Segment, string> = {
  isStar: (segment) => segment.isAnyFolders,
  fits,
};
const CHARACTERS: Comparison<RegExp | string, string> = {
  isStar: (part) => part === STAR,
  fits: (part, character) => typeof part === "string" ? part === character : part.test(character),
};
/** Two characters, so that no single character equals it. */
const STAR = "**";

function fits(segment: Segment, name: string): boolean {
  return segment.name === undefined
    ? fitAll(segment.characters, [...name], CHARACTERS)
    : segment.name === name;
}

function fitAll<P, T>(
  pattern: readonly P[],
  items: readonly T[],
  { isStar, fits }: Comparison<P, T>,
): boolean {
  let [at, star, mark] = [0, -1, 0];
  for (let i = 0; i < items.length;) {
    if (at < pattern.length && isStar(pattern[at]!)) [star, mark] = [at++, i];
    else if (at < pattern.length && fits(pattern[at]!, items[i]!)) [at, i] = [at + 1, i + 1];
    else if (star >= 0) [at, i] = [star + 1, ++mark];
    else return false;
  }
  return pattern.slice(at).every(isStar);
}

function segmentOf(part: string): Segment {
  if (part === "**") return { name: undefined, isAnyFolders: true, characters: [] };
  const characters = charactersOf(part);
  const isPlain = characters.every((one) => typeof one === "string" && one !== STAR);
  return { name: isPlain ? characters.join("") : undefined, isAnyFolders: false, characters };
}

/** @throws {Error} What was expected. */
function charactersOf(part: string): (RegExp | string)[] {
  const found = part.matchAll(/\\(.)|\[([!^]?)(\]?[^\]]*)\]|([*?[])|(.)/gsu);
  return [...found].map(([, escaped, not, set, wild, plain]) => {
    if (set !== undefined) return setOf(set, not !== "");
    if (wild === "[") throw new Error("a glob whose [ has a ]");
    if (wild === "*") return STAR;
    return wild === "?" ? /./su : (escaped ?? plain)!;
  });
}

/** @throws {Error} What was expected. */
function setOf(set: string, isInverted: boolean): RegExp {
  const inside = set.replaceAll(/[\\\]^[]/g, "\\$&");
  try {
    return new RegExp(`[${isInverted ? "^" : ""}${inside}]`, "u");
  } catch {
    throw new Error(`a glob whose [${set}] names characters or rising ranges of them`);
  }
}

/** The pattern without braces, for each combination. @throws {Error} What was expected. */
function alternatives(text: string): string[] {
  let [done, open] = [[] as string[], [text]];
  while (open.length > 0) {
    const parts = open.map(splitBraces);
    done = [...done, ...parts.flatMap((part) => typeof part === "string" ? [part] : [])];
    open = parts.flatMap((part) => typeof part === "string" ? [] : part);
    if (done.length + open.length > WATCH_PATTERNS_MAX) {
      throw new Error(`a glob with at most ${WATCH_PATTERNS_MAX} alternatives`);
    }
  }
  return done;
}

/** Expands the first braces of a text, if it has any. @throws {Error} What was expected. */
function splitBraces(text: string): string | string[] {
  let [depth, start] = [0, -1];
  const cuts: number[] = [];
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "{" && depth++ === 0) start = i;
    else if (text[i] === "," && depth === 1) cuts.push(i);
    else if (text[i] === "}" && depth > 0 && --depth === 0) {
      const marks = [start, ...cuts, i];
      return marks.slice(1).map((mark, n) =>
        text.slice(0, start) + text.slice(marks[n]! + 1, mark) + text.slice(i + 1)
      );
    }
  }
  if (depth > 0) throw new Error("a glob whose { has a }");
  return text;
}

/** The names in a path; none for an empty one or `.`. */
export function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}
