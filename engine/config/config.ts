/**
 * From a config.yaml and the environment to one checked {@linkcode Config}.
 *
 * The only place that knows which keys there are. It reports every problem of a file at once, each
 * with its path and line, and never returns a configuration with a problem.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  PING_INTERVAL_MS,
  SILENCE_MS,
  TIMEOUT_MS_MAX,
  WORKER_PORT,
} from "../../sdk/typescript/wire/limits.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type {
  Config,
  ConfigValue,
  EngineSettings,
  KnownWorker,
  LogSettings,
  WorkerEntry,
} from "../ports/config.ts";
import { defaultMemoryMb } from "../platform/memory_budget.ts";
import { MESSAGE_BYTES_MAX } from "../ports/connection.ts";
import { REPLICAS_MAX } from "../ports/supervision.ts";
import { type CertificateFiles, readCertificate } from "../transport/certificate.ts";
import { clusterOf } from "./cluster.ts";
import { checkSize } from "./file.ts";
import { httpFunctionsOf } from "./http_functions.ts";
import { listenersOf } from "./listeners.ts";
import { closest, Fields, issueTexts, isWorkerName, NAME_RULE, received } from "./fields.ts";
import { CONFIG_TEXTS, describedSchema, SCHEMA_DIALECT } from "./reference.ts";
import { variablesOf } from "./variables.ts";
import { configValues } from "./values.ts";
import type { Environment } from "./variables.ts";
import { invalidFile, problemText, readYaml, type YamlText } from "./yaml.ts";

/** Default of `invocation_timeout_ms`: the timeout of a call that names none. */
export const INVOCATION_TIMEOUT_MS = 600_000;
/** Default of `max_inflight_calls_per_worker`. */
export const INFLIGHT_CALLS_MAX = 10_000;
/** Default of `max_inflight_bytes_per_worker`: unfinished calls and unsent frames. */
export const INFLIGHT_BYTES_MAX = 256 * 1024 * 1024;

/** Entries of `shared_functions`. */
const SHARED_FUNCTIONS_MAX = 1_000;

const FILE = "config.yaml";
const ENGINE_KEYS = [
  "host",
  "port",
  "auth_token",
  "insecure",
  "allowed_origins",
  "transport",
  "tls",
  "max_message_bytes",
  "invocation_timeout_ms",
  "validate_payloads",
  "shared_functions",
  "max_inflight_calls_per_worker",
  "max_inflight_bytes_per_worker",
  "memory_mb",
  "heartbeat_ms",
  "silence_ms",
  "listeners",
  "http_functions",
  "cluster",
] as const;
const TLS_KEYS = ["cert", "key"] as const;
/** Keys of workers that are directories, beside name and path. */
const DIRECTORY_KEYS = ["isolation", "accel", "replicas", "env", "required"] as const;
const WORKER_KEYS = ["name", "path", ...DIRECTORY_KEYS, "config"] as const;
const MIB = 1024 * 1024;
/** Largest message that every SDK receives when it was forwarded, with a longer id. */
const FORWARDED_BYTES_MAX = 255 * MIB;
/** Upper bound of `memory_mb`: 1 TiB. */
const MEMORY_MB_MAX = 1024 * 1024;
/** Shortest time between pings. */
const HEARTBEAT_MS_MIN = 100;
/** Longest silence: an hour. */
const SILENCE_MS_MAX = 3_600_000;
/** Upper bound of settings in bytes or calls. */
const SETTING_MAX = 2 ** 40;

/** Where a configuration is looked for. */
export interface ConfigPlace {
  /** The config.yaml to run; left out: the one in `directory`, else embedded defaults. */
  readonly configPath?: string;
  /** Where the project is if `configPath` is left out. Default: the current directory. */
  readonly directory?: string;
}

/**
 * The configuration an engine starts with.
 *
 * @throws {EngineError} `config_invalid`, as {@linkcode loadConfig}.
 */
export async function findConfig(
  { configPath, directory }: ConfigPlace,
  builtins: readonly KnownWorker[],
  env: Environment,
): Promise<Config> {
  if (configPath !== undefined) return loadConfig(await withRealFolder(configPath), builtins, env);
  const folder = await Deno.realPath(directory ?? ".");
  const path = `${folder}/${FILE}`;
  const isThere = await Deno.stat(path).then(() => true, () => false);
  return isThere ? loadConfig(path, builtins, env) : defaultConfig(folder, builtins);
}

/**
 * Reads and checks a config.yaml.
 *
 * @throws {EngineError} `config_invalid` with `details.problems`, a list of lines such as
 * `workers[1].config.port: expected 1 to 65535, received "abc" (line 7)`.
 */
export function loadConfig(
  path: string,
  builtins: readonly KnownWorker[],
  env: Environment,
): Config {
  const absolute = absolutePath(path, Deno.cwd());
  return parseConfig(readText(absolute), absolute, builtins, env);
}

/**
 * Checks the text of a config.yaml as if it were read from `path` (absolute).
 *
 * @throws {EngineError} `config_invalid`, as {@linkcode loadConfig}.
 */
export function parseConfig(
  text: string,
  path: string,
  builtins: readonly KnownWorker[],
  env: Environment,
): Config {
  const source = readYaml(FILE, text, ...variablesOf(path, env));
  const problems = [...source.problems];
  const { value } = source;
  if (problems.length === 0 && (value === null || typeof value !== "object")) {
    problems.push(shapeProblem(source));
  } else if (Array.isArray(value)) problems.push(shapeProblem(source));
  if (problems.length > 0) throw invalidFile("config_invalid", path, problems);

  const top = new Fields(source, problems, ["engine", "log", "workers"]);
  const directory = path.slice(0, path.lastIndexOf("/")) || "/";
  const config = {
    path,
    text,
    directory,
    dataDirectory: dataDirectoryOf(directory),
    engine: engineOf(top.fields("engine", ENGINE_KEYS), directory),
    log: logOf(top.fields("log", ["level", "format"])),
    workers: workersOf(top, { source, problems, directory, builtins }),
  };
  if (problems.length > 0) throw invalidFile("config_invalid", path, problems);
  return { ...config, values: valuesOf(source, config, builtins) };
}

/**
 * Only the section `engine` of a config.yaml, for programs that look for the engine.
 *
 * @throws {EngineError} `config_invalid`, as {@linkcode loadConfig}.
 */
export function readEngineSettings(path: string, env: Environment): EngineSettings {
  const text = readText(path);
  const source = readYaml(FILE, text, ...variablesOf(path, env));
  const problems = [...source.problems];
  const top = new Fields(source, problems, ["engine", "log", "workers"]);
  const settings = engineOf(
    top.fields("engine", ENGINE_KEYS),
    path.slice(0, path.lastIndexOf("/")),
  );
  if (problems.length > 0) throw invalidFile("config_invalid", path, problems);
  return settings;
}

/**
 * JSON Schema of a config.yaml, for editors: from the code that checks the file, which also knows
 * what no schema can say. Values may be variables, such as `${PORT:3111}`.
 */
export function configSchema(builtins: readonly KnownWorker[]): JsonObject {
  const top = Fields.recording(["engine", "log", "workers"]);
  engineOf(top.fields("engine", ENGINE_KEYS), "/");
  logOf(top.fields("log", ["level", "format"]));
  const [item] = top.items("workers", WORKER_KEYS);
  nameOf(item!);
  const around = { source: readYaml(FILE, ""), problems: [], directory: "/", builtins: [] };
  directoryEntry("", item!, around);
  const { properties } = top.schema as { properties: Record<string, JsonObject> };
  const worker = properties.workers!.items as JsonObject;
  return describedSchema({
    $schema: SCHEMA_DIALECT,
    title: FILE,
    ...top.schema,
    properties: {
      ...properties,
      workers: { type: "array", items: { ...worker, ...workerRules(worker, builtins) } },
    },
  }, CONFIG_TEXTS);
}

/** What belongs to the name of a worker: built-in ones have a config, the others a path. */
function workerRules(worker: JsonObject, builtins: readonly KnownWorker[]): JsonObject {
  const named = (name: string): JsonObject => ({
    properties: { name: { const: name } },
    required: ["name"],
  });
  const rules = builtins.map(({ name, configSchema }): Json => ({
    if: named(name),
    then: { properties: { config: configSchema?.() ?? { type: "object" } } },
  }));
  const names = builtins.filter(({ runsAlways }) => !runsAlways).map(({ name }) => name);
  const { name } = worker.properties as { name: JsonObject };
  return {
    properties: {
      ...worker.properties as JsonObject,
      name: { ...name, examples: names },
      config: { type: "object" },
    },
    required: ["name"],
    allOf: rules,
  };
}

/** What runs in a directory (absolute) without a config.yaml. */
export function defaultConfig(directory: string, builtins: readonly KnownWorker[]): Config {
  const nothing = new Fields(readYaml(FILE, ""), [], []);
  const config: Omit<Config, "values"> = {
    path: null,
    text: null,
    directory,
    dataDirectory: dataDirectoryOf(directory),
    engine: engineOf(nothing, directory),
    log: logOf(nothing),
    workers: builtins.filter(({ runsByDefault }) => runsByDefault).map((worker) => ({
      kind: "builtin",
      name: worker.name,
      config: worker.parse({}),
      raw: {},
    })),
  };
  return { ...config, values: valuesOf(readYaml(FILE, ""), config, builtins) };
}

/** Every value in force, those of built-ins that always run included. */
function valuesOf(
  source: YamlText,
  config: Omit<Config, "values">,
  builtins: readonly KnownWorker[],
): ConfigValue[] {
  const nothing = new Fields(readYaml(FILE, ""), [], []);
  const defaults = { engine: engineOf(nothing, config.directory), log: logOf(nothing) };
  return configValues(source, config, defaults, builtins);
}

/** What the checks of workers use besides the worker's own fields. */
interface Surroundings {
  readonly source: YamlText;
  readonly problems: string[];
  readonly directory: string;
  readonly builtins: readonly KnownWorker[];
}

function engineOf(fields: Fields, directory: string): EngineSettings {
  const max_message_bytes = messageBytesOf(fields);
  const bytes = fields.integer("max_inflight_bytes_per_worker", 1_024, SETTING_MAX);
  if (bytes !== undefined && bytes < max_message_bytes) {
    const expected = `at least max_message_bytes (${max_message_bytes})`;
    fields.problem("max_inflight_bytes_per_worker", expected);
  }
  const token = fields.secret("auth_token");
  const tls = fields.has("tls") ? tlsOf(fields.fields("tls", TLS_KEYS), directory) : undefined;
  const cluster = clusterOf(fields, (path) => absolutePath(path, directory));
  const settings: EngineSettings = {
    host: fields.text("host") ?? "127.0.0.1",
    port: fields.integer("port", 0, 65_535) ?? WORKER_PORT,
    ...token === undefined ? {} : { auth_token: token },
    insecure: fields.flag("insecure") ?? false,
    allowed_origins: fields.texts("allowed_origins") ?? [],
    transport: fields.choice("transport", ["raw", "deno-serve"]) ?? "raw",
    ...tls === undefined ? {} : { tls },
    max_message_bytes,
    invocation_timeout_ms: fields.integer("invocation_timeout_ms", 1, TIMEOUT_MS_MAX) ??
      INVOCATION_TIMEOUT_MS,
    validate_payloads: fields.flag("validate_payloads") ?? true,
    ...sharedFunctionsOf(fields),
    max_inflight_calls_per_worker:
      fields.integer("max_inflight_calls_per_worker", 1, SETTING_MAX) ?? INFLIGHT_CALLS_MAX,
    max_inflight_bytes_per_worker: bytes ?? Math.max(INFLIGHT_BYTES_MAX, max_message_bytes),
    ...memoryOf(fields, max_message_bytes),
    ...heartbeatOf(fields),
    listeners: listenersOf(fields, (of) => tlsOf(of, directory)),
    http_functions: httpFunctionsOf(fields),
    ...cluster === undefined ? {} : { cluster },
  };
  if (!isLoopback(settings.host) && token === undefined && !settings.insecure) {
    fields.problem("host", "a loopback address, or auth_token, or insecure: true");
  }
  return settings;
}

/** A call that is forwarded gets a longer id, so there is some room below what SDKs receive. */
function messageBytesOf(fields: Fields): number {
  const bytes = fields.integer("max_message_bytes", 1_024, SETTING_MAX) ?? MESSAGE_BYTES_MAX;
  if (bytes > FORWARDED_BYTES_MAX) {
    const expected = `at most ${FORWARDED_BYTES_MAX} (255 MiB), since SDKs receive up to 256 MiB`;
    fields.problem("max_message_bytes", expected);
  }
  return bytes;
}

function memoryOf(
  fields: Fields,
  max_message_bytes: number,
): Pick<EngineSettings, "memory_mb"> {
  // A message and the results of handling it have to fit.
  const least = Math.ceil(max_message_bytes / MIB) * 2;
  const memory_mb = fields.integer("memory_mb", 1, MEMORY_MB_MAX);
  if (memory_mb !== undefined && memory_mb < least) {
    fields.problem("memory_mb", `at least ${least}, twice max_message_bytes`);
  }
  return { memory_mb: memory_mb ?? Math.max(defaultMemoryMb(), least) };
}

function sharedFunctionsOf(fields: Fields): Pick<EngineSettings, "shared_functions"> {
  if (!fields.has("shared_functions")) return {};
  const shared_functions = fields.texts("shared_functions", (text) => {
    return /^[^*]*\*?$/.test(text) ? undefined : "an id, or its beginning with one * behind";
  }) ?? [];
  if (shared_functions.length > SHARED_FUNCTIONS_MAX) {
    fields.problem("shared_functions", `at most ${SHARED_FUNCTIONS_MAX} entries`);
  }
  return { shared_functions };
}

function heartbeatOf(fields: Fields): Pick<EngineSettings, "heartbeat_ms" | "silence_ms"> {
  const heartbeat_ms = fields.integer("heartbeat_ms", HEARTBEAT_MS_MIN, SILENCE_MS_MAX) ??
    PING_INTERVAL_MS;
  const silence_ms = fields.integer("silence_ms", HEARTBEAT_MS_MIN, SILENCE_MS_MAX);
  const least = heartbeat_ms * 2;
  if (silence_ms !== undefined && silence_ms < least) {
    fields.problem("silence_ms", `at least ${least}, twice heartbeat_ms`);
  }
  return { heartbeat_ms, silence_ms: silence_ms ?? Math.max(SILENCE_MS, heartbeat_ms * 3) };
}

/** Reads both files, so that their problems are reported with all others. */
function tlsOf(fields: Fields, directory: string): CertificateFiles | undefined {
  const [cert, key] = TLS_KEYS.map((name) => {
    if (!fields.has(name)) return fields.problem(name, "the path of a PEM file");
    return fields.text(name, "the path of a PEM file");
  });
  if (cert === undefined || key === undefined) return undefined;
  const files = { cert: absolutePath(cert, directory), key: absolutePath(key, directory) };
  const read = readCertificate(files);
  if ("cert" in read) return files;
  for (const { file, expected, found } of read) fields.problem(file, expected, found);
  return undefined;
}

function logOf(fields: Fields): LogSettings {
  return {
    level: fields.choice("level", ["debug", "info", "warn", "error"]) ?? "info",
    format: fields.choice("format", ["auto", "text", "json"]) ?? "auto",
  };
}

function workersOf(top: Fields, around: Surroundings): WorkerEntry[] {
  const lines = new Map<string, number | undefined>();
  return top.items("workers", WORKER_KEYS).flatMap((fields) => {
    const name = nameOf(fields);
    if (name === undefined) return [];
    if (lines.has(name)) {
      fields.problem("name", "every name once", `${name} again, first in line ${lines.get(name)}`);
    } else lines.set(name, fields.lineOf("name"));
    const entry = fields.has("path")
      ? directoryEntry(name, fields, around)
      : builtinEntry(name, fields, around);
    return entry ? [entry] : [];
  });
}

function nameOf(fields: Fields): string | undefined {
  const name = fields.text("name", "the name of a worker");
  if (name === undefined) {
    if (!fields.has("name")) fields.problem("name", "the name of a worker");
    return undefined;
  }
  return isWorkerName(name) ? name : fields.problem("name", NAME_RULE);
}

function builtinEntry(
  name: string,
  fields: Fields,
  { source, problems, builtins }: Surroundings,
): WorkerEntry | undefined {
  for (const key of DIRECTORY_KEYS) {
    if (fields.has(key)) fields.problem(key, "no such key without path", "one");
  }
  const worker = builtins.find((builtin) => builtin.name === name);
  if (!worker) {
    const names = builtins.filter(({ runsAlways }) => !runsAlways).map(({ name }) => name);
    const meant = closest(name, names);
    const hint = meant ? `; did you mean ${meant}?` : "";
    const expected = `a built-in worker (${names.join(", ")}) or a path beside the name`;
    return fields.problem("name", expected, `${received(name)}${hint}`);
  }
  const raw = fields.value("config") ?? {};
  try {
    return { kind: "builtin", name, config: worker.parse(raw), raw };
  } catch (thrown) {
    problems.push(...issueTexts(thrown, fields.pathOf("config"), raw, source));
    return undefined;
  }
}

function directoryEntry(
  name: string,
  fields: Fields,
  { directory, builtins }: Surroundings,
): WorkerEntry | undefined {
  if (fields.has("config")) fields.problem("config", "either path or config", "both");
  if (builtins.some((builtin) => builtin.name === name)) {
    fields.problem("name", "a name that no built-in worker has", received(name));
  }
  const isolation = fields.choice("isolation", ["microvm", "process"]);
  const accel = fields.choice("accel", ["auto", "kvm", "tcg"]);
  const replicas = fields.integer("replicas", 1, REPLICAS_MAX);
  const env = fields.environment("env");
  const required = fields.flag("required");
  const written = fields.text("path", "a directory");
  if (written === undefined) return undefined;
  const path = absolutePath(written, directory);
  const kind = kindOf(path);
  if (kind !== "directory") {
    const what = kind === "file" ? "is a file" : "does not exist";
    return fields.problem("path", "a directory", `${received(written)}, which ${what}`);
  }
  return {
    kind: "directory",
    name,
    path,
    env,
    ...isolation && { isolation },
    ...accel && { accel },
    ...replicas && { replicas },
    ...required && { required },
  };
}

function shapeProblem(source: YamlText): string {
  const what = source.value === null ? "an empty file" : received(source.value);
  const line = source.value === null ? undefined : source.lineOf("");
  return problemText(FILE, "a mapping with engine, log or workers", what, line);
}

function readText(path: string): string {
  try {
    checkSize(path, Deno.statSync(path).size);
    return Deno.readTextFileSync(path);
  } catch (thrown) {
    if (thrown instanceof EngineError) throw thrown;
    if (thrown instanceof Deno.errors.NotFound) {
      const message = `${path} does not exist; make a project with engine create --directory ` +
        "<name>, or give the path of another file";
      throw new EngineError("config_invalid", message, { details: { problems: [message] } });
    }
    const problem = problemText(FILE, `a file at ${path}`, String(thrown));
    throw invalidFile("config_invalid", path, [problem]);
  }
}

/** The same file by a path without linked folders, so that workers below it get relative paths. */
async function withRealFolder(path: string): Promise<string> {
  const cut = path.lastIndexOf("/");
  const folder = cut < 0 ? "." : path.slice(0, cut) || "/";
  // Without the folder there is no file either, which loadConfig() reports.
  const real = await Deno.realPath(folder).catch(() => folder);
  return `${real}/${path.slice(cut + 1)}`;
}

function dataDirectoryOf(directory: string): string {
  return `${directory === "/" ? "" : directory}/.engine`;
}

/** The path without `.`, `..` and doubled slashes. */
function absolutePath(path: string, directory: string): string {
  const parts: string[] = [];
  for (const part of `${path.startsWith("/") ? "" : directory}/${path}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

function kindOf(path: string): "directory" | "file" | undefined {
  try {
    return Deno.statSync(path).isDirectory ? "directory" : "file";
  } catch {
    return undefined; // For whatever reason, it cannot be used.
  }
}
