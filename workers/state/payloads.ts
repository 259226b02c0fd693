/**
 * Payloads of `state::*`: the checks, and the JSON Schemas that are published. Optional members may
 * also be null.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";

import type { Place } from "./record.ts";
import { UPDATE_OPS_MAX, UpdateOp } from "./update_ops.ts";

/** Default number of entries in one answer of `state::list_entries`. */
const STATE_ENTRIES_LIMIT = 100;
/** Entries in one answer of `state::list_entries` at most. */
const STATE_ENTRIES_LIMIT_MAX = 1_000;
/** Longest name of a scope and longest key, in UTF-8; together they fit into a key of the store. */
export const STATE_NAME_BYTES_MAX = 900;
/** Longest life of an entry, in milliseconds: a hundred years. */
const STATE_TTL_MS_MAX = 3_155_760_000_000;

const encoder = new TextEncoder();

/** UTF-8 bytes per UTF-16 code unit, at most. */
const UNIT_BYTES_MAX = 3;

/** A string that the store accepts as part of a key. */
const Part = v.pipe(
  v.string(),
  v.check(fitsIntoKey, `expected at most ${STATE_NAME_BYTES_MAX} bytes`),
  v.check(
    (text) => text.length > STATE_NAME_BYTES_MAX || text.isWellFormed(),
    "expected well-formed Unicode",
  ),
);
/** A scope or a key. */
export const Name = v.pipe(Part, v.check((text) => text !== "", "expected at least 1 character"));

/** A time to live. */
export const Ttl = v.int(0, STATE_TTL_MS_MAX);

/** A scope, for `state::list`. */
export const ScopeRequest = v.object({ scope: Name });

/** A scope and a key, for `state::get`, `state::entry` and `state::delete`. */
export const PlaceRequest = v.object({ scope: Name, key: Name });

/** For `state::set`. */
export const SetRequest = v.pipe(
  v.object({
    scope: Name,
    key: Name,
    /** 0: the entry must not exist. */
    expected_version: v.nullish(v.int(0)),
    ttl_ms: v.nullish(Ttl),
    value: v.optional(v.unknown()),
    /** Another name of `value`. */
    data: v.optional(v.unknown()),
  }),
  v.forward(
    v.check(
      (request) => Object.hasOwn(request, "value") || Object.hasOwn(request, "data"),
      "expected a value, received nothing",
    ),
    ["value"],
  ),
  v.transform(({ scope, key, expected_version, ttl_ms, value, data }) => {
    const isAlias = value === undefined;
    return { scope, key, expected_version, ttl_ms, value: (isAlias ? data : value) as Json };
  }),
);

/**
 * A name that needs no closer look. Most payloads are an object of short texts, which costs less to
 * see than to walk through a schema.
 */
function isShortName(name: unknown): name is string {
  return typeof name === "string" && name !== "" &&
    name.length * UNIT_BYTES_MAX <= STATE_NAME_BYTES_MAX && name.isWellFormed();
}

/** Scope and key of a payload. @throws {EngineError} `deserialization_error` */
export function readPlace(function_id: string, payload: Json): Place {
  const { scope, key } = (payload ?? {}) as Partial<JsonObject>;
  return isShortName(scope) && isShortName(key)
    ? { scope, key }
    : fit(function_id, PlaceRequest, payload);
}

/** The payload of `state::set`. @throws {EngineError} `deserialization_error` */
export function readSet(payload: Json): v.InferOutput<typeof SetRequest> {
  const { scope, key, value, ttl_ms, expected_version } = (payload ?? {}) as Partial<JsonObject>;
  const isPlain = value !== undefined && ttl_ms === undefined && expected_version === undefined;
  return isPlain && isShortName(scope) && isShortName(key)
    ? { scope, key, value, ttl_ms, expected_version }
    : fit("state::set", SetRequest, payload);
}

/** For `state::update`. */
export const UpdateRequest = v.object({
  scope: Name,
  key: Name,
  ops: v.list(UpdateOp, UPDATE_OPS_MAX),
});

/** For `state::list_entries`. */
export const EntriesRequest = v.pipe(
  v.object({
    scope: Name,
    prefix: v.nullish(Part, ""),
    /** Larger limits count as the largest one. */
    limit: v.pipe(
      v.nullish(v.int(1), STATE_ENTRIES_LIMIT),
      v.transform((limit) => Math.min(limit, STATE_ENTRIES_LIMIT_MAX)),
    ),
    cursor: v.opt(Name),
  }),
  v.forward(
    v.check(
      ({ prefix, cursor }) => cursor === undefined || cursor.startsWith(prefix),
      "expected the cursor of an answer for the same prefix",
    ),
    ["cursor"],
  ),
);

/** For `state::list_groups`. */
export const GroupsRequest = v.object({ limit: v.opt(v.int(1)), cursor: v.opt(Name) });

/**
 * Skips the encoding of short names, which would dominate their check, and that of names of
 * megabytes, which take as many bytes at least. A NUL takes two bytes.
 */
function fitsIntoKey(text: string): boolean {
  if (text.length > STATE_NAME_BYTES_MAX) return false;
  if (text.length * UNIT_BYTES_MAX <= STATE_NAME_BYTES_MAX) return true;
  return encoder.encode(text).length + text.split("\0").length - 1 <= STATE_NAME_BYTES_MAX;
}

const scope = { type: "string", description: "The scope, such as orders" };
const key = { type: "string", description: "The key within the scope" };
const place = { scope, key };
const anything = (description: string): JsonObject => ({ description });

/** Description and schemas of one function. */
export interface StateFormat {
  readonly description: string;
  readonly request_format: JsonObject;
  readonly response_format: JsonObject;
}

/** Formats by the name after `state::`. */
export const FORMATS = {
  set: {
    description: "Stores a value",
    request_format: payload(["scope", "key", "value"], {
      ...place,
      value: anything("Any JSON"),
      expected_version: {
        type: "integer",
        description: "Writes only if the value has this version; 0: only if there is no value",
      },
      ttl_ms: { type: "integer", description: "Time to live in milliseconds" },
    }),
    response_format: result({
      old_value: anything("The previous value; null if there was none"),
      new_value: anything("The new value"),
    }),
  },
  get: {
    description: "The value at a scope and key; nothing if missing",
    request_format: payload(["scope", "key"], place),
    response_format: anything("The value"),
  },
  entry: {
    description: "The value at a scope and key with its version and times",
    request_format: payload(["scope", "key"], place),
    response_format: result({
      value: anything("The value"),
      version: { type: "integer", description: "Version of the value; larger after every change" },
      updated_at_ms: { type: "integer", description: "Milliseconds since 1970" },
      expires_at_ms: { type: "integer", description: "Milliseconds since 1970, with a ttl_ms" },
    }),
  },
  delete: {
    description: "Removes the value at a scope and key and returns it",
    request_format: payload(["scope", "key"], place),
    response_format: anything("The removed value"),
  },
  update: {
    description: "Changes a value in one step",
    request_format: payload(["scope", "key", "ops"], {
      ...place,
      ops: {
        type: "array",
        items: { type: "object" },
        description: 'Such as {"type":"increment","path":"items","by":2}; ' +
          "set, merge, increment, decrement, append, remove",
      },
    }),
    response_format: result({
      old_value: anything("The previous value; null if there was none"),
      new_value: anything("The new value"),
      errors: {
        type: "array",
        items: { type: "object" },
        description: "Skipped operations",
      },
    }),
  },
  list: {
    description: "All values of a scope, the oldest first",
    request_format: payload(["scope"], { scope }),
    response_format: { type: "array", description: "The values" },
  },
  list_entries: {
    description: "Keys and values of a scope, sorted by key, page by page",
    request_format: payload(["scope"], {
      scope,
      prefix: { type: "string", description: "Only keys that begin with this text" },
      limit: { type: "integer", description: "Maximum number of entries" },
      cursor: { type: "string", description: "cursor of the previous result, for the next page" },
    }),
    response_format: result({
      entries: { type: "array", items: { type: "object" }, description: "Keys and values" },
      cursor: {
        type: ["string", "null"],
        description: "Cursor for the next page, if there is one",
      },
    }),
  },
  list_groups: {
    description: "Names of the scopes that have values, sorted",
    request_format: payload([], {
      limit: { type: "integer", description: "Maximum number of entries" },
      cursor: { type: "string", description: "cursor of the previous result, for the next page" },
    }),
    response_format: result({
      groups: {
        type: "array",
        items: { type: "string" },
        description: "Scopes that have keys, sorted",
      },
      cursor: { type: "string", description: "Cursor for the next page, if there is one" },
    }),
  },
} as const satisfies Readonly<Record<string, StateFormat>>;

function payload(required: string[], properties: JsonObject): JsonObject {
  return { type: "object", properties, required };
}

function result(properties: JsonObject): JsonObject {
  return { type: "object", properties };
}
