/**
 * From an engine.worker.yaml to a checked {@linkcode WorkerSpec}.
 *
 * Strict, with all problems told at once. What the manifest leaves out follows from the kind of
 * worker and the files that lie in its directory; nothing is run here.
 *
 * @module
 */
import { thrownText } from "../../sdk/typescript/wire/errors.ts";
import {
  GUEST_CPUS_MAX,
  GUEST_MEMORY_MB,
  GUEST_MEMORY_MB_MAX,
  MANIFEST_BYTES_MAX,
  PACKAGE_JSON_BYTES_MAX,
  RESTART_ENDS_MAX,
  RESTART_MAX_MS,
  RESTART_WITHIN_S_MAX,
} from "../supervisor/limits.ts";
import { GUEST_MEMORY_MB_MIN, REPLICAS_MAX } from "../../sdk/typescript/wire/limits.ts";
import { Fields, isWorkerName, NAME_RULE, received } from "../config/fields.ts";
import type { Isolation, Network, Resources } from "../ports/launcher.ts";
import { invalidFile, problemText, readYaml } from "../config/yaml_text.ts";
import { globProblem } from "../watch/glob.ts";
import { RESTART_DEFAULTS, type RestartSettings } from "../supervisor/restart_policy.ts";
import { shellWord } from "../process/programs.ts";
import { readWorkerText } from "./worker_files.ts";

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
  /** Relative files, folders and globs whose edits restart it, `!` before exceptions. */
  readonly watch: readonly string[];
  readonly isolation?: Isolation;
  /** Where it may connect to, if it is contained. */
  readonly network: Network;
  /** What its microVM consists of, if it has one. */
  readonly resources: Resources;
  /** How many copies run at once, unless config.yaml says. */
  readonly replicas: number;
  readonly restart: RestartSettings;
  /** Keys the manifest has that say something to a microVM only; left out: none. */
  readonly microvmKeys?: readonly string[];
}

const TOP_KEYS = [
  "name",
  "runtime",
  "scripts",
  "env",
  "watch",
  "isolation",
  "network",
  "resources",
  "restart",
  "replicas",
];
const MICROVM_KEYS = ["network", "resources"];
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
  const source = readYaml(MANIFEST, readText(directory));
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

/**
 * What a person should know who runs it so: keys of its manifest that have no effect then, as one
 * sentence; `undefined` when all have.
 */
export function withoutEffect(spec: WorkerSpec, isolation: Isolation): string | undefined {
  if (isolation === "microvm" || !spec.microvmKeys) return undefined;
  const keys = spec.microvmKeys.join(" and ");
  return `${keys} of its ${MANIFEST} ${spec.microvmKeys.length > 1 ? "have" : "has"} no effect, ` +
    "since a plain process is not contained; use isolation: microvm";
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
    const microvmKeys = MICROVM_KEYS.filter((key) => this.#top.has(key));
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
      network: this.#network(),
      resources: this.#resources(),
      replicas: this.#top.integer("replicas", 1, REPLICAS_MAX) ?? 1,
      restart: this.#restart(),
      ...microvmKeys.length > 0 ? { microvmKeys } : {},
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
    const written = this.#top.texts("watch", globProblem) ?? ["."];
    // Exceptions alone are exceptions from all there is.
    return written.length > 0 && written.every((text) => text.startsWith("!"))
      ? [".", ...written]
      : written;
  }

  #network(): Network {
    if (this.#top.value("network") === "none") {
      const why = "a worker has to reach the engine, and with engine it reaches nothing else";
      this.#top.problem("network", `engine, since ${why}`);
    } else return this.#top.choice("network", ["full", "engine"]) ?? "full";
    return "engine";
  }

  #resources(): Resources {
    const fields = this.#top.fields("resources", ["cpus", "memory_mb"]);
    const memory = fields.integer("memory_mb", GUEST_MEMORY_MB_MIN, GUEST_MEMORY_MB_MAX);
    return {
      cpus: fields.integer("cpus", 1, GUEST_CPUS_MAX) ?? 1,
      memory_mb: memory ?? GUEST_MEMORY_MB,
    };
  }

  #restart(): RestartSettings {
    const fields = this.#top.fields("restart", Object.keys(RESTART_DEFAULTS));
    const { policy, max, within_s, backoff_ms } = RESTART_DEFAULTS;
    return {
      policy: fields.choice("policy", ["always", "on-failure", "never"]) ?? policy,
      max: fields.integer("max", 1, RESTART_ENDS_MAX) ?? max,
      within_s: fields.integer("within_s", 1, RESTART_WITHIN_S_MAX) ?? within_s,
      backoff_ms: fields.integer("backoff_ms", 1, RESTART_MAX_MS) ?? backoff_ms,
    };
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
      const text = readWorkerText(this.#directory, "package.json", PACKAGE_JSON_BYTES_MAX);
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

function readText(directory: string): string {
  try {
    return readWorkerText(directory, MANIFEST, MANIFEST_BYTES_MAX);
  } catch (thrown) {
    const isMissing = thrown instanceof Deno.errors.NotFound ||
      thrown instanceof Deno.errors.NotADirectory;
    const path = `${directory}/${MANIFEST}`;
    const what = isMissing ? "nothing there" : thrownText(thrown);
    const problem = problemText(MANIFEST, `a file at ${path}`, what);
    throw invalidFile("manifest_invalid", path, [problem]);
  }
}
