/**
 * From an engine.worker.yaml to a checked {@linkcode WorkerSpec}.
 *
 * Strict: all problems are reported at once. What the manifest leaves out follows from the runtime
 * and from the files in the worker's directory; no program runs for that.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { thrownText } from "../../sdk/typescript/wire/errors.ts";
import { REPLICAS_MAX } from "../ports/supervision.ts";
import {
  GUEST_MEMORY_MB_MIN,
  type Isolation,
  type Network,
  type Resources,
} from "../ports/launcher.ts";
import { Fields, isWorkerName, NAME_RULE, received } from "../config/fields.ts";
import { describedSchema, MANIFEST_TEXTS, SCHEMA_DIALECT } from "../config/reference.ts";
import { invalidFile, problemText, readYaml } from "../config/yaml.ts";
import { globProblem } from "../watch/patterns.ts";
import { type Kind, KINDS, packageManagers, toolchainOf, usualEntries } from "./runtimes/mod.ts";
import type { Toolchain } from "./runtimes/runtime.ts";
import { MANIFEST, readWorkerText } from "./worker_files.ts";

/** Largest manifest, in bytes: the engine's only thread reads it. */
const MANIFEST_BYTES_MAX = 16 * 1024;
/** Memory of a microVM unless the manifest says, in MiB. */
const GUEST_MEMORY_MB = 512;
/** Most memory of a microVM, in MiB. */
const GUEST_MEMORY_MB_MAX = 1_048_576;
/** Most processors of a microVM. */
const GUEST_CPUS_MAX = 64;
/** Largest `restart.max`. */
const RESTART_EXITS_MAX = 1_000;
/** Largest `restart.within_s`: a day. */
const RESTART_WITHIN_S_MAX = 86_400;
/** Longest wait before a restart, in milliseconds. */
export const RESTART_MAX_MS = 30_000;

/** What a manifest says about unexpected exits; spelled as there. */
export interface RestartSettings {
  /** Restart after any exit, after one with another code than 0, or after none. */
  readonly policy: "always" | "on-failure" | "never";
  /** So many exits within `within_s`, and the worker is given up; at least 1. */
  readonly max: number;
  /** Seconds, without those in which the worker waited for a restart. */
  readonly within_s: number;
  /** The first wait, in milliseconds; doubles with each exit, up to `RESTART_MAX_MS`. */
  readonly backoff_ms: number;
}

/** The settings of a manifest that has none. */
export const RESTART_DEFAULTS: RestartSettings = {
  policy: "always",
  max: 5,
  within_s: 60,
  backoff_ms: 1_000,
};

/** Everything that a manifest determines about a worker. */
export interface WorkerSpec {
  readonly name: string;
  /** Absolute. */
  readonly directory: string;
  readonly kind: Kind;
  /** One of {@linkcode packageManagers} of the kind. */
  readonly packageManager: string;
  /** Its entry file, relative; `null` when the start command names it. */
  readonly entry: string | null;
  /** Its own install command; `null`: the toolchain's. */
  readonly install: string | null;
  /** The shell command that starts it. */
  readonly start: string;
  readonly env: Readonly<Record<string, string>>;
  /** Relative files, folders and globs whose edits restart it; `!` marks exceptions. */
  readonly watch: readonly string[];
  readonly isolation?: Isolation;
  /** Where it may connect to, if it is contained. */
  readonly network: Network;
  /** Processors and memory of its microVM, if it has one. */
  readonly resources: Resources;
  /** How many copies run at once, unless config.yaml says. */
  readonly replicas: number;
  /** Whether a new version starts beside the running one, or after that has ended. */
  readonly reload: "start-first" | "stop-first";
  readonly restart: RestartSettings;
  /** Keys of the manifest that only concern a microVM; left out: none. */
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
  "reload",
  "restart",
  "replicas",
];
const MICROVM_KEYS = ["network", "resources"];

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

/** JSON Schema of a manifest, for editors: from the code that checks it. */
export function manifestSchema(): JsonObject {
  const top = Fields.recording(TOP_KEYS);
  new ManifestReader("/nowhere", top).read();
  const { properties } = top.schema as { properties: Record<string, JsonObject> };
  const runtime = { ...properties.runtime!, required: ["kind"] };
  return describedSchema({
    $schema: SCHEMA_DIALECT,
    title: MANIFEST,
    ...top.schema,
    properties: { ...properties, runtime },
    required: ["name", "runtime"],
  }, MANIFEST_TEXTS);
}

/**
 * A sentence about keys of the manifest that have no effect with this isolation; `undefined` when
 * all have one.
 */
export function withoutEffect(spec: WorkerSpec, isolation: Isolation): string | undefined {
  if (isolation === "microvm" || !spec.microvmKeys) return undefined;
  const keys = spec.microvmKeys.join(" and ");
  return `${keys} of its ${MANIFEST} ${spec.microvmKeys.length > 1 ? "have" : "has"} no effect, ` +
    "since a plain process is not contained; use isolation: microvm";
}

/** Where a worker may start from. */
interface Entries {
  /** The entry file; `null`: there is none. */
  readonly entry: string | null;
  /** The entry as the manifest has it. */
  readonly written: string | undefined;
}

/** Reads one manifest; problems go to its fields. */
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
    const usual = (): string | undefined => usualEntries(kind).find((path) => this.#isFile(path));
    const entry = written ?? (command ? null : usual() ?? null);
    const isolation = this.#top.choice("isolation", ["microvm", "process"]);
    const microvmKeys = MICROVM_KEYS.filter((key) => this.#top.has(key));
    return {
      name,
      directory: this.#directory,
      kind,
      packageManager,
      entry,
      install,
      start: command ?? this.#start(toolchainOf(kind, packageManager), kind, { entry, written }),
      env: this.#top.environment("env"),
      watch: this.#watch(),
      ...isolation ? { isolation } : {},
      network: this.#network(),
      resources: this.#resources(),
      replicas: this.#top.integer("replicas", 1, REPLICAS_MAX) ?? 1,
      reload: this.#top.choice("reload", ["start-first", "stop-first"]) ?? "start-first",
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
    if (!this.#runtime.has("kind")) {
      this.#runtime.problem("kind", `one of ${KINDS.join(", ")}`);
    }
    return this.#runtime.choice("kind", KINDS) ?? "python";
  }

  #packageManager(kind: Kind): string {
    const allowed = packageManagers(kind);
    const written = this.#runtime.choice("package_manager", packageManagers());
    if (written === undefined || allowed.includes(written)) return written ?? allowed[0]!;
    if (this.#runtime.has("kind")) {
      this.#runtime.problem("package_manager", `one of ${allowed.join(", ")} for ${kind}`);
    }
    return allowed[0]!;
  }

  /** The entry as written; an install script may create it later. */
  #entry(isCreatedLater: boolean): string | undefined {
    const entry = this.#runtime.text("entry", "a file");
    if (entry === undefined) return undefined;
    if (!isInside(entry)) {
      this.#runtime.problem("entry", "a path inside the worker's directory");
    } else if (!isCreatedLater && !this.#isFile(entry)) {
      this.#runtime.problem("entry", "a file", `${received(entry)}, which does not exist`);
    }
    return entry;
  }

  /** An entry that is written comes first, then the worker's own command, then a usual entry. */
  #start(toolchain: Toolchain, kind: Kind, { entry, written }: Entries): string {
    const byEntry = entry === null ? undefined : toolchain.startCommand(entry);
    if (written !== undefined && typeof byEntry === "string") return byEntry;
    const own = toolchain.ownStartCommand?.(this.#directory);
    if (own !== undefined) return own;
    if (typeof byEntry === "string") return byEntry;
    if (byEntry === undefined) {
      const usual = usualEntries(kind).join(", ");
      const expected = `the entry file, or scripts.start, or one of the files ${usual}`;
      this.#runtime.problem("entry", expected);
    } else this.#scripts.problem("start", byEntry.expected);
    return "";
  }

  #watch(): string[] {
    const written = this.#top.texts("watch", globProblem) ?? ["."];
    // Exceptions alone are exceptions from the whole directory.
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
      max: fields.integer("max", 1, RESTART_EXITS_MAX) ?? max,
      within_s: fields.integer("within_s", 1, RESTART_WITHIN_S_MAX) ?? within_s,
      backoff_ms: fields.integer("backoff_ms", 1, RESTART_MAX_MS) ?? backoff_ms,
    };
  }

  #isFile(path: string): boolean {
    try {
      return Deno.statSync(`${this.#directory}/${path}`).isFile;
    } catch {
      return false; // It cannot be run, for any reason.
    }
  }
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
    const problem = isMissing
      ? `${path} not found; a worker's directory has one, see engine create --template`
      : problemText(MANIFEST, `a file at ${path}`, thrownText(thrown));
    throw invalidFile("manifest_invalid", path, [problem]);
  }
}
