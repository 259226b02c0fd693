/**
 * The functions `configuration::*`.
 *
 * A value is stored as it was set, with its references; `get` expands them. What leaves here beside
 * `get` has its secrets masked: lists, answers to changes, events, history.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Directory } from "../../engine/ports/directory.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import type { Turns } from "../../engine/ports/turns.ts";
import type { SchemaCheck, Schemas, ValidationError } from "../../engine/ports/schemas.ts";
import type { CallContext, Handler } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { similarNames } from "../../sdk/typescript/wire/similar.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { problemsOf } from "../kit/fit.ts";
import { mapInTurns } from "../kit/in_turns.ts";
import * as v from "../kit/schema.ts";
import { expander, type References } from "./expand.ts";
import {
  CHANGES_KEPT,
  CONFIGURATION_ID,
  type ConfigurationChange,
  type ConfigurationRecord,
  type ConfigurationRecords,
  ENTRIES_MAX,
} from "./records.ts";
import { CompiledSchemas } from "./compiled_schemas.ts";
import { WriteTurns } from "./write_turns.ts";
import { expanded, hasSecrets, masked, unmasked } from "./schema.ts";
import type { ConfigurationEvent } from "./triggers.ts";

/** Largest value, as characters of its JSON. */
export const VALUE_CHARS_MAX: number = 256 * 1024;
/** Longest name, description, and metadata as JSON. */
const NAME_CHARS_MAX = 200;
const DESCRIPTION_CHARS_MAX = 2_000;
const METADATA_CHARS_MAX = 16 * 1024;
/** Longest payload of a change: value, schema, metadata and texts, and what is between them. */
const PAYLOAD_CHARS_MAX = 2 * VALUE_CHARS_MAX;
/** A change with longer values than this is kept without them. */
const CHANGE_CHARS_MAX = 16 * 1024;
const ID_CHARS_MAX = 64;

const Value = v.optional(v.unknown());
const Id = v.described("1 to 64 lower case letters, digits, _ and -", v.string());
const REQUESTS = {
  register: v.object({
    id: Id,
    name: v.described("Name shown to people; default: the id", v.opt(v.text(1, NAME_CHARS_MAX))),
    description: v.described("Text shown to people", v.opt(v.text(0, DESCRIPTION_CHARS_MAX))),
    schema: v.described("JSON Schema of the value; without it, any value is valid", Value),
    initial_value: v.described("Value to set if the configuration has none yet", Value),
    metadata: v.described("Any JSON, kept with the configuration", Value),
  }),
  set: v.object({
    id: Id,
    value: v.described(
      "The whole value; [redacted] in the place of a secret keeps that secret",
      Value,
    ),
    expected_version: v.described(
      "Sets the value only if this is its current version",
      v.nullish(v.int(0)),
    ),
  }),
  get: v.object({
    id: Id,
    raw: v.described(
      "Returns references as they were set, and secrets masked",
      v.nullish(v.boolean(), false),
    ),
    masked: v.described("Returns secrets masked", v.nullish(v.boolean(), false)),
  }),
  list: v.object({
    cursor: v.described(
      "cursor of the previous result, for the next page",
      v.opt(v.text(1, ID_CHARS_MAX)),
    ),
  }),
  schema: v.object({ id: Id }),
  history: v.object({ id: Id }),
} as const;

/** Dependencies of {@linkcode Configurations}. */
export interface ConfigurationsSetup {
  readonly records: ConfigurationRecords;
  readonly schemas: Schemas;
  /** For changes that wait. */
  readonly memory: MemoryBudget;
  /** For lists, whose entries are checked. */
  readonly turns: Turns;
  readonly references: References;
  readonly clock: Clock;
  readonly directory: Pick<Directory, "worker">;
  /** Called with each change that is on disk. */
  changed(event: ConfigurationEvent): void;
}

/** The implementation of each function. */
export class Configurations {
  readonly #setup: ConfigurationsSetup;
  readonly #turns: WriteTurns;
  /** Ids of all entries; `undefined` before they were read. */
  #ids: Set<string> | undefined;
  readonly #schemas: CompiledSchemas;

  constructor(setup: ConfigurationsSetup) {
    this.#setup = setup;
    this.#turns = new WriteTurns(setup.memory);
    this.#schemas = new CompiledSchemas(setup.schemas, setup.clock);
  }

  /** `configuration::register` */
  register(payload: Json, context: CallContext): Promise<JsonObject> {
    return this.#serialized(payload, context, () => this.#register(payload, context));
  }

  async #register(payload: Json, context: CallContext): Promise<JsonObject> {
    const request = read("register", REQUESTS.register, payload);
    const { id, name = id, description, metadata = null, initial_value } = request;
    checkId(id);
    const schema = (request.schema ?? true) as Json;
    checkSize("metadata", metadata as Json, METADATA_CHARS_MAX);
    const check = await this.#compile(schema);
    const initial = initial_value === null ? undefined : initial_value as Json | undefined;
    if (initial !== undefined) this.#checkValue(id, schema, check, initial);
    await this.#checkRoom(id);
    let event: ConfigurationEvent | undefined;
    const record = await this.#setup.records.write(id, (old) => {
      const now = this.#setup.clock.wall();
      const about = {
        id,
        name,
        description: description ?? null,
        schema,
        metadata: metadata as Json,
      };
      const value = old?.value ?? initial;
      const isFirst = old?.value === undefined && value !== undefined;
      const made = {
        version: 0,
        updated_at_ms: now,
        changes: [],
        ...old,
        ...about,
        value: old?.value,
      };
      const next = isFirst ? this.#changedTo(made, value, context) : made;
      if (!old || isFirst || !isSameAbout(old, next)) {
        event = eventOf("configuration:registered", old, next);
      }
      return next;
    });
    this.#ids?.add(id);
    if (event) this.#setup.changed(event);
    return this.#view(record);
  }

  /** `configuration::set` */
  set(payload: Json, context: CallContext): Promise<JsonObject> {
    return this.#serialized(payload, context, () => this.#set(payload, context));
  }

  async #set(payload: Json, context: CallContext): Promise<JsonObject> {
    const request = read("set", REQUESTS.set, payload);
    const { id } = request;
    if (!Object.hasOwn(request, "value") || request.value === undefined) {
      throw invalidRequest("set", "value: expected a value, received nothing");
    }
    checkId(id);
    const known = await this.#find(id);
    const check = await this.#compile(known.schema);
    let event: ConfigurationEvent | undefined;
    await this.#setup.records.write(id, (old) => {
      const before = old ?? known;
      checkVersion(before, request.expected_version);
      const { value, lost } = unmasked(before.schema, request.value as Json, before.value);
      if (lost.length > 0) throw lostSecrets(id, lost);
      this.#checkValue(id, before.schema, check, value);
      const next = this.#changedTo(before, value, context);
      event = eventOf("configuration:updated", before, next);
      return next;
    });
    this.#setup.changed(event!);
    return { old_value: event!.old_value, new_value: event!.new_value };
  }

  /** Runs a change in its turn; a bad id and a payload that is too large are refused before. */
  async #serialized(
    payload: Json,
    { caller = "" }: CallContext,
    change: () => Promise<JsonObject>,
  ): Promise<JsonObject> {
    const { id } = (payload ?? {}) as Partial<JsonObject>;
    if (typeof id === "string") checkId(id);
    const chars = checkSize("payload", payload ?? null, PAYLOAD_CHARS_MAX);
    return await this.#turns.run(caller, chars, change);
  }

  /** `configuration::get` */
  async get(payload: Json): Promise<JsonObject> {
    const { id, raw, masked: hides } = read("get", REQUESTS.get, payload);
    checkId(id);
    const { schema, value, version } = await this.#find(id);
    if (value === undefined) {
      const message = `Configuration ${id} has no value yet; set one with configuration::set`;
      throw new EngineError("NOT_FOUND", message, { details: { id } });
    }
    if (raw) return { id, value: masked(schema, value), version };
    // Masked before it is expanded, so that no secret is read for it.
    if (hides) return { id, value: this.#expand(schema, masked(schema, value)), version };
    const whole = this.#expand(schema, value);
    const problems = (await this.#compile(schema))(whole);
    if (problems.length > 0) throw invalidValue(id, problems, schema);
    return { id, value: whole, version };
  }

  /** `configuration::list` */
  async list(payload: Json): Promise<JsonObject> {
    const { cursor: after } = read("list", REQUESTS.list, payload);
    const { records, turns } = this.#setup;
    await this.#schemas.prepare();
    const { records: found, cursor } = await records.page(after);
    const configurations = await mapInTurns(turns, found, (record) => this.#view(record));
    return { configurations, ...cursor !== undefined && { cursor } };
  }

  /** `configuration::schema` */
  async schema(payload: Json): Promise<Json> {
    const { id } = read("schema", REQUESTS.schema, payload);
    checkId(id);
    const { schema } = await this.#find(id);
    if (schema !== true) return schema;
    const message = `Configuration ${id} was registered without a schema`;
    throw new EngineError("SCHEMA_UNAVAILABLE", message, { details: { id } });
  }

  /** `configuration::history` */
  async history(payload: Json): Promise<JsonObject> {
    const { id } = read("history", REQUESTS.history, payload);
    checkId(id);
    const { changes, schema } = await this.#find(id);
    // The schema may have other secrets than when the change was made.
    const shown = changes.map(({ old_value, new_value, ...change }) => ({
      ...change,
      old_value: masked(schema, old_value),
      new_value: masked(schema, new_value),
    }));
    return { id, changes: shown };
  }

  /** @throws {EngineError} `NOT_REGISTERED`, with similar ids. */
  async #find(id: string): Promise<ConfigurationRecord> {
    const record = await this.#setup.records.get(id);
    if (record) return record;
    const similar = similarNames(id, await this.#known());
    const hint = similar.length > 0 ? `; did you mean ${similar.join(" or ")}?` : "";
    throw new EngineError("NOT_REGISTERED", `There is no configuration ${id}${hint}`, {
      details: { id, similar },
    });
  }

  async #known(): Promise<Set<string>> {
    return this.#ids ??= await this.#setup.records.ids();
  }

  async #checkRoom(id: string): Promise<void> {
    const known = await this.#known();
    if (known.has(id) || known.size < ENTRIES_MAX) return;
    const message = `There are ${ENTRIES_MAX} configurations already, the maximum`;
    throw new EngineError("overloaded", message, { retryable: false });
  }

  /** @throws {EngineError} `SCHEMA_INVALID` for a schema that cannot be used. */
  async #compile(schema: Json): Promise<SchemaCheck> {
    try {
      return await this.#schemas.of(schema);
    } catch (thrown) {
      if (!(thrown instanceof EngineError) || thrown.code !== "invalid_schema") throw thrown;
      throw new EngineError("SCHEMA_INVALID", thrown.message, { cause: thrown });
    }
  }

  /** @throws {EngineError} `VALUE_TOO_LARGE`, `EXPAND_FAILED`, `SCHEMA_INVALID`. */
  #checkValue(id: string, schema: Json, check: SchemaCheck, value: Json): void {
    checkSize("value", value, VALUE_CHARS_MAX);
    const problems = check(this.#expand(schema, value));
    if (problems.length > 0) throw invalidValue(id, problems, schema);
  }

  #expand(schema: Json, value: Json): Json {
    return expanded(schema, value, expander(this.#setup.references));
  }

  /** The entry with another value, and the change in its history. */
  #changedTo(
    record: ConfigurationRecord,
    value: Json,
    { caller }: CallContext,
  ): ConfigurationRecord {
    const { clock, directory } = this.#setup;
    const at_ms = clock.wall();
    const version = record.version + 1;
    const change: ConfigurationChange = {
      version,
      at_ms,
      by: caller === undefined ? null : directory.worker(caller)?.name ?? caller,
      old_value: keptOf(record.schema, record.value),
      new_value: keptOf(record.schema, value),
    };
    const changes = [change, ...record.changes].slice(0, CHANGES_KEPT);
    return { ...record, value, version, updated_at_ms: at_ms, changes };
  }

  /** An entry as lists have it. */
  #view(record: ConfigurationRecord): JsonObject {
    const { id, name, description, schema, metadata, value, version, updated_at_ms } = record;
    return {
      id,
      name,
      description,
      schema,
      value: value === undefined ? null : masked(schema, value),
      has_value: value !== undefined,
      has_secrets: hasSecrets(schema),
      metadata,
      version,
      updated_at_ms,
      problem: this.#problemOf(record),
    };
  }

  /** Why `get` would fail now. */
  #problemOf({ id, schema, value }: ConfigurationRecord): string | null {
    if (value === undefined) return null;
    try {
      const problems = this.#schemas.at(schema)(this.#expand(schema, value));
      return problems.length > 0 ? invalidValue(id, problems, schema).message : null;
    } catch (thrown) {
      return thrown instanceof EngineError ? thrown.message : String(thrown);
    }
  }
}

const DESCRIPTIONS: Readonly<Record<keyof typeof REQUESTS, string>> = {
  register: "Registers a configuration with its schema; a value that it has stays",
  set: "Sets the value of a configuration, which has to fit its schema",
  get:
    "The value of a configuration, with its references expanded unless raw; secrets if not masked",
  list: "Lists the configurations, with secrets masked",
  schema: "The JSON Schema of a configuration",
  history: "The last changes of a configuration, the newest first, with secrets masked",
};

/** Registers all of them. */
export function registerFunctions(
  worker: Pick<Worker, "registerFunction">,
  configurations: Configurations,
): void {
  const functions: Record<keyof typeof REQUESTS, Handler> = {
    register: (payload, _metadata, context) => configurations.register(payload, context),
    set: (payload, _metadata, context) => configurations.set(payload, context),
    get: (payload) => configurations.get(payload),
    list: (payload) => configurations.list(payload),
    schema: (payload) => configurations.schema(payload),
    history: (payload) => configurations.history(payload),
  };
  for (const [name, schema] of Object.entries(REQUESTS)) {
    const op = name as keyof typeof REQUESTS;
    worker.registerFunction(`configuration::${op}`, functions[op], {
      description: DESCRIPTIONS[op],
      request_format: v.jsonSchema(schema),
    });
  }
}

/** As `fit` of the kit, without what was received: that may be a secret. */
function read<Output>(op: string, schema: v.Schema<Output>, payload: Json): Output {
  const result = v.safeParse(schema, payload ?? {});
  if (result.success) return result.output;
  throw invalidRequest(op, problemsOf(result.issues, payload ?? {}).join("; "));
}

function invalidRequest(op: string, problem: string): EngineError {
  const message = `Failed to deserialize input for configuration::${op}: ${problem}`;
  return new EngineError("INVALID_ARGUMENTS", message);
}

function checkId(id: string): void {
  if (CONFIGURATION_ID.test(id)) return;
  const shown = JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id);
  const message =
    `${shown} is not an id of a configuration: 1 to 64 lower case letters, digits, _ ` +
    "and -";
  throw new EngineError("INVALID_ID", message);
}

/** @throws {EngineError} `version_mismatch` */
function checkVersion(
  { id, version }: ConfigurationRecord,
  expected_version: number | null | undefined,
): void {
  if (typeof expected_version !== "number" || expected_version === version) return;
  const message = `Configuration ${id} has version ${version}, not ${expected_version}`;
  throw new EngineError("version_mismatch", message, { details: { expected_version, version } });
}

/** The masked secrets of a value have none to keep, or it is not known which. */
function lostSecrets(id: string, paths: readonly string[]): EngineError {
  const rule = "is a masked secret that cannot be kept; set it again";
  const errors = paths.map((path) => ({ path, message: rule }));
  const texts = errors.map(({ path, message }) => `${path || "/"} ${message}`);
  const message = `The value of configuration ${id} cannot be set: ${texts.join("; ")}`;
  return new EngineError("SCHEMA_INVALID", message, { details: { id, errors } });
}

function checkSize(what: string, value: Json, max: number): number {
  const chars = JSON.stringify(value).length;
  if (chars <= max) return chars;
  const message = `The ${what} has ${chars} characters of JSON; ${max} are allowed`;
  throw new EngineError("VALUE_TOO_LARGE", message, { details: { chars, chars_max: max } });
}

/** The message names places and rules, but of a schema with secrets no values. */
function invalidValue(id: string, problems: readonly ValidationError[], schema: Json): EngineError {
  const hides = hasSecrets(schema);
  const errors = problems.map(({ path, message }) => {
    return { path, message: hides ? message.replace(/ \(.*\)$|: .*$/, "") : message };
  });
  const texts = errors.map(({ path, message }) => `${path || "/"} ${message}`);
  const message = `The value of configuration ${id} does not fit its schema: ${texts.join("; ")}`;
  return new EngineError("SCHEMA_INVALID", message, { details: { id, errors } });
}

function eventOf(
  event_type: ConfigurationEvent["event_type"],
  old: ConfigurationRecord | undefined,
  { id, name, description, schema, metadata, value }: ConfigurationRecord,
): ConfigurationEvent {
  return {
    type: "configuration",
    event_type,
    id,
    name,
    description,
    schema,
    old_value: old?.value === undefined ? null : masked(schema, old.value),
    new_value: value === undefined ? null : masked(schema, value),
    ...metadata !== null && { metadata },
  };
}

/** Whether an entry is described as before. */
function isSameAbout(a: ConfigurationRecord, b: ConfigurationRecord): boolean {
  const about = ({ name, description, schema, metadata }: ConfigurationRecord): string =>
    JSON.stringify([name, description, schema, metadata]);
  return about(a) === about(b);
}

/** A value as the history keeps it. */
function keptOf(schema: Json, value: Json | undefined): Json {
  if (value === undefined) return null;
  const safe = masked(schema, value);
  return JSON.stringify(safe).length > CHANGE_CHARS_MAX ? "[too large to be kept]" : safe;
}
