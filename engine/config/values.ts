/**
 * Every effective value of a configuration and its source, for people who ask why a value is set.
 *
 * Nothing is checked here: a checked configuration is compared with the text it came from. Values
 * that may be secrets are shortened here, so that listings never contain them.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type {
  ClusterSettings,
  Config,
  ConfigValue,
  EngineSettings,
  KnownWorker,
  LogSettings,
  WorkerEntry,
} from "../ports/config.ts";
import { isSecretPath } from "./fields.ts";
import { pathOf, type YamlText } from "./yaml.ts";

/** Settings of the section `engine` that the listener reads when it opens, and never again. */
export const FIXED_SETTINGS = [
  "host",
  "port",
  "auth_token",
  "allowed_origins",
  "transport",
  "tls",
  "max_message_bytes",
  "memory_mb",
  "heartbeat_ms",
  "silence_ms",
  "listeners",
  "cluster",
] as const;

/** Values for keys that a file does not set. */
export interface ConfigDefaults {
  readonly engine: EngineSettings;
  readonly log: LogSettings;
}

const SHOWN_CHARS = 4;

/** All values in the order of the file, then those of built-ins that the file does not name. */
export function configValues(
  source: YamlText,
  config: Omit<Config, "values">,
  defaults: ConfigDefaults,
  builtins: readonly KnownWorker[],
): ConfigValue[] {
  const listing = new Listing(source);
  const fixed: readonly string[] = FIXED_SETTINGS;
  const keys = Object.keys({
    ...defaults.engine,
    auth_token: null,
    shared_functions: null,
  }) as (keyof EngineSettings)[];
  for (const key of keys) {
    if (key === "tls" || key === "cluster") continue;
    if (key === "http_functions") {
      listing.addAll(`engine.${key}`, config.engine[key], defaults.engine[key]);
      continue;
    }
    listing.add(`engine.${key}`, config.engine[key], defaults.engine[key], fixed.includes(key));
  }
  for (const key of ["cert", "key"] as const) {
    const file = config.engine.tls?.[key];
    if (file !== undefined) listing.add(`engine.tls.${key}`, file, null, true);
  }
  const { cluster } = config.engine;
  if (cluster) listing.addAll("engine.cluster", { ...cluster, log: shownLog(cluster) }, {}, true);
  for (const key of Object.keys(defaults.log) as (keyof LogSettings)[]) {
    listing.add(`log.${key}`, config.log[key], defaults.log[key]);
  }
  const named = new Set(config.workers.map(({ name }) => name));
  config.workers.forEach((entry, at) => {
    const worker = builtins.find(({ name }) => name === entry.name);
    addWorker(listing, config.path === null ? undefined : at, entry, worker);
  });
  for (const worker of builtins) {
    if (!worker.runsAlways || named.has(worker.name)) continue;
    const path = pathOf(pathOf("workers", worker.name), "config");
    listing.addAll(path, worker.parse({}), worker.parse({}));
  }
  return listing.values;
}

/** The same values with one that an option of the command line overrides. */
export function withOption(
  values: readonly ConfigValue[],
  key: string,
  value: Json | undefined,
): readonly ConfigValue[] {
  if (value === undefined) return values;
  return values.map((one) =>
    one.key === key ? { ...one, value, source: "option", line: null, variable: null } : one
  );
}

/**
 * The same values with those that built-in workers run with: a worker whose change failed runs with
 * its configuration from before.
 */
export function withRunning(
  values: readonly ConfigValue[],
  { path, workers }: Pick<Config, "path" | "workers">,
  running: (name: string) => unknown,
): readonly ConfigValue[] {
  const places = workers.map((entry, at): [prefix: string, config: unknown] => {
    const config = entry.kind === "builtin" ? running(entry.name) : undefined;
    const prefix = pathOf(pathOf("workers", path === null ? entry.name : at), "config");
    return [prefix, config];
  }).filter(([, config]) => config !== undefined);
  if (places.length === 0) return values;
  return values.map((one) => {
    const place = places.find(([prefix]) => one.key.startsWith(`${prefix}.`));
    if (!place) return one;
    const value = memberAt(place[1], one.key.slice(place[0].length + 1));
    return value === undefined ? one : { ...one, value: shown(one.key, value) };
  });
}

/** The member of a value at a path of plain keys; `undefined` when there is none. */
function memberAt(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>(
    (of, key) => isPlain(of) && Object.hasOwn(of, key) ? of[key] : undefined,
    value,
  );
}

function addWorker(
  listing: Listing,
  at: number | undefined,
  entry: WorkerEntry,
  worker: KnownWorker | undefined,
): void {
  const path = pathOf("workers", at ?? entry.name);
  if (entry.kind === "builtin") {
    listing.add(pathOf(path, "name"), entry.name, null);
    return listing.addAll(pathOf(path, "config"), entry.config, worker?.parse({}));
  }
  const { kind: _kind, env, ...keys } = entry;
  for (const [key, value] of Object.entries(keys)) listing.add(pathOf(path, key), value, null);
  for (const [name, value] of Object.entries(env)) {
    listing.add(pathOf(pathOf(path, "env"), name), shortened(value), null);
  }
}

/** Collects values. */
class Listing {
  readonly values: ConfigValue[] = [];
  readonly #source: YamlText;

  constructor(source: YamlText) {
    this.#source = source;
  }

  /** Adds the members of a value one by one, at any depth. */
  addAll(path: string, value: unknown, otherwise: unknown, needs_restart = false): void {
    if (!isPlain(value)) return this.add(path, value, otherwise, needs_restart);
    for (const [key, member] of Object.entries(value)) {
      const known = isPlain(otherwise) ? otherwise[key] : undefined;
      this.addAll(pathOf(path, key), member, known, needs_restart);
    }
  }

  add(path: string, value: unknown, otherwise: unknown, needs_restart = false): void {
    const isWritten = this.#isWritten(path);
    const variable = this.#source.variableOf(path) ?? null;
    // What is in a file of its own is there because it is a secret.
    const isSecret = variable?.startsWith("file:") && typeof value === "string";
    this.values.push({
      key: path,
      value: isSecret ? shortened(value) : shown(path, value),
      default: shown(path, otherwise),
      source: variable !== null ? "variable" : isWritten ? "file" : "default",
      line: isWritten ? this.#source.lineOf(path) ?? null : null,
      variable,
      needs_restart,
    });
  }

  /** Whether the file has a value at a path, so that its line is the value's own. */
  #isWritten(path: string): boolean {
    let value: Json | undefined = this.#source.value;
    for (
      const [, key, quoted, index] of path.matchAll(/([\w-]+)(?=[.[]|$)|\["(.*?)"\]|\[(\d+)\]/g)
    ) {
      if (value === null || typeof value !== "object") return false;
      const name = key ?? quoted ?? index!;
      if (!Object.hasOwn(value, name)) return false;
      value = (value as JsonObject)[name];
    }
    return value !== undefined && value !== null;
  }
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(path: string, value: unknown): Json {
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return isSecretPath(path) ? shortened(value) : value;
  if (Array.isArray(value)) return value.map((item, at) => shown(pathOf(path, at), item));
  if (!isPlain(value)) return value as Json;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, shown(pathOf(path, key), member)]),
  );
}

/** Where the state is kept, without the password that an address may have. */
function shownLog({ log }: ClusterSettings): string {
  return log.replace(/^(\w+:\/\/)([^:@/]*):.*@/, "$1$2:…@");
}

/** Enough to tell two secrets apart, too little to use one. */
function shortened(text: string): string {
  return text.length <= SHOWN_CHARS * 3 ? "…" : `${text.slice(0, SHOWN_CHARS)}…`;
}
