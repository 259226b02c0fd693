/**
 * From an engine.worker.yaml to a checked {@linkcode WorkerSpec}.
 *
 * Strict, with all problems told at once. What the manifest leaves out follows from the kind of
 * worker and the files that lie in its directory; nothing is run here.
 *
 * @module
 */
import { Fields, isWorkerName, NAME_RULE, received } from "../config_fields.ts";
import type { Isolation } from "../ports/launcher.ts";
import { invalidFile, problemText, readYaml } from "../yaml_text.ts";

/** Name of the manifest in a worker's directory. */
export const MANIFEST = "engine.worker.yaml";

/** Language of a worker. */
export type Kind = "python" | "typescript" | "javascript";
/** Who brings its dependencies. */
export type PackageManager = "pip" | "uv" | "deno" | "npm";

/** What is to be known of a worker before it can run. */
export interface WorkerSpec {
  readonly name: string;
  /** Absolute. */
  readonly directory: string;
  readonly kind: Kind;
  readonly packageManager: PackageManager;
  /** Its entry file, relative; `null` when the start command names it itself. */
  readonly entry: string | null;
  /** Its own command for dependencies; `null`: what follows from the package manager. */
  readonly install: string | null;
  /** The command that starts it, as a shell understands it. */
  readonly start: string;
  readonly env: Readonly<Record<string, string>>;
  /** Files and folders, relative, whose edits restart it; empty: none do. */
  readonly watch: readonly string[];
  readonly isolation?: Isolation;
}

const TOP_KEYS = ["name", "runtime", "scripts", "env", "watch", "isolation"];
const KINDS: Readonly<Record<Kind, readonly [PackageManager, ...PackageManager[]]>> = {
  python: ["pip", "uv"],
  typescript: ["deno", "npm"],
  javascript: ["npm", "deno"],
};
const ENDINGS: Readonly<Record<Kind, readonly string[]>> = {
  python: ["py"],
  typescript: ["ts", "mts"],
  javascript: ["js", "mjs"],
};

/**
 * Reads the manifest of a worker's directory (absolute).
 *
 * @throws {EngineError} `manifest_invalid` with `details.problems`.
 */
export function readManifest(directory: string): WorkerSpec {
  const path = `${directory}/${MANIFEST}`;
  const source = readYaml(MANIFEST, readText(path));
  const problems = [...source.problems];
  if (problems.length > 0) throw invalidFile("manifest_invalid", path, problems);
  if (source.value === null) {
    const expected = "a mapping with name and runtime";
    problems.push(problemText(MANIFEST, expected, "an empty file"));
    throw invalidFile("manifest_invalid", path, problems);
  }

  const spec = new ManifestReader(directory, new Fields(source, problems, TOP_KEYS)).read();
  if (problems.length > 0) throw invalidFile("manifest_invalid", path, problems);
  return spec;
}

/** Puts a text into a shell command as one word. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Takes the parts of one manifest together; problems go to the fields. */
class ManifestReader {
  readonly #directory: string;
  readonly #top: Fields;
  readonly #runtime: Fields;
  readonly #scripts: Fields;

  constructor(directory: string, top: Fields) {
    this.#directory = directory;
    this.#top = top;
    this.#runtime = top.fields("runtime", ["kind", "package_manager", "entry"]);
    this.#scripts = top.fields("scripts", ["install", "start"]);
  }

  read(): WorkerSpec {
    const name = this.#name();
    const kind = this.#kind();
    const packageManager = this.#packageManager(kind);
    const install = this.#scripts.text("install", "a command") ?? null;
    const command = this.#scripts.text("start", "a command");
    const written = this.#entry(install !== null);
    const entry = written ?? (command ? null : this.#usualEntry(kind));
    const isolation = this.#top.choice("isolation", ["microvm", "process"]);
    return {
      name,
      directory: this.#directory,
      kind,
      packageManager,
      entry,
      install,
      start: command ?? this.#start(kind, packageManager, entry),
      env: this.#top.environment("env"),
      watch: this.#watch(),
      ...isolation ? { isolation } : {},
    };
  }

  #name(): string {
    const name = this.#top.text("name", "the name of the worker");
    if (name !== undefined && isWorkerName(name)) return name;
    if (name !== undefined) this.#top.problem("name", NAME_RULE);
    else if (!this.#top.has("name")) this.#top.problem("name", "the name of the worker");
    return "";
  }

  #kind(): Kind {
    const kinds = Object.keys(KINDS) as Kind[];
    if (!this.#runtime.has("kind")) {
      this.#runtime.problem("kind", `one of ${kinds.join(", ")}`);
    }
    return this.#runtime.choice("kind", kinds) ?? "python";
  }

  #packageManager(kind: Kind): PackageManager {
    const all = ["pip", "uv", "deno", "npm"] as const;
    const allowed = KINDS[kind];
    const written = this.#runtime.choice("package_manager", all);
    if (written === undefined || allowed.includes(written)) return written ?? allowed[0];
    if (!this.#runtime.has("kind")) return written;
    const expected = `one of ${allowed.join(", ")} for ${kind}`;
    return this.#runtime.problem("package_manager", expected) ?? allowed[0];
  }

  /** The entry as written; it may appear with the installation. */
  #entry(isMadeLater: boolean): string | undefined {
    const entry = this.#runtime.text("entry", "a file");
    if (entry === undefined) return undefined;
    if (!isInside(entry)) {
      this.#runtime.problem("entry", "a path inside the worker's directory");
    } else if (!isMadeLater && !this.#isFile(entry)) {
      this.#runtime.problem("entry", "a file", `${received(entry)}, which does not exist`);
    }
    return entry;
  }

  #usualEntry(kind: Kind): string | null {
    return usualEntries(kind).find((path) => this.#isFile(path)) ?? null;
  }

  #start(kind: Kind, packageManager: PackageManager, entry: string | null): string {
    if (packageManager === "npm" && entry === null && this.#hasStartScript()) {
      return "exec npm run --silent start";
    }
    if (entry === null) {
      const usual = usualEntries(kind).join(", ");
      const expected = `the entry file, or scripts.start, or one of the files ${usual}`;
      this.#runtime.problem("entry", expected);
      return "";
    }
    if (kind === "python") return `exec python3 ${shellWord(entry)}`;
    if (packageManager === "deno") return `exec deno run -A ${shellWord(entry)}`;
    if (kind === "typescript") {
      const expected = "a command, since npm does not say how to run TypeScript";
      this.#scripts.problem("start", expected);
    }
    return `exec node ${shellWord(entry)}`;
  }

  #watch(): string[] {
    const written = this.#top.texts("watch");
    if (written?.every(isInside) === false) {
      const what = received(written.find((path) => !isInside(path)));
      this.#top.problem("watch", "paths inside the worker's directory", what);
    }
    return written ?? ["."];
  }

  #isFile(path: string): boolean {
    try {
      return Deno.statSync(`${this.#directory}/${path}`).isFile;
    } catch {
      return false; // Whatever the reason, it cannot be run.
    }
  }

  #hasStartScript(): boolean {
    try {
      const text = Deno.readTextFileSync(`${this.#directory}/package.json`);
      return typeof JSON.parse(text).scripts?.start === "string";
    } catch {
      return false; // No package.json, or one that npm itself will complain about.
    }
  }
}

function usualEntries(kind: Kind): string[] {
  const names = kind === "python" ? ["main", "worker"] : ["main", "worker", "index"];
  const files = names.flatMap((name) => ENDINGS[kind].map((ending) => `${name}.${ending}`));
  return [...files, ...files.map((file) => `src/${file}`)];
}

function isInside(path: string): boolean {
  return !path.startsWith("/") && !path.split("/").includes("..");
}

function readText(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (thrown) {
    const isMissing = thrown instanceof Deno.errors.NotFound ||
      thrown instanceof Deno.errors.NotADirectory;
    const what = isMissing ? "nothing there" : String(thrown);
    const problem = problemText(MANIFEST, `a file at ${path}`, what);
    throw invalidFile("manifest_invalid", path, [problem]);
  }
}
