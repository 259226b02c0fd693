/**
 * What the state functions take and return, as JSON Schemas for listings and for help.
 *
 * Nothing is checked by them: payloads.ts does that, with errors that name the function.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";

const scope = { type: "string", description: "Such as orders" };
const key = { type: "string", description: "The name within the scope" };
const place = { scope, key };
const anything = (description: string): JsonObject => ({ description });

/** The two schemas of one function, and what it does in a line. */
export interface StateFormat {
  readonly description: string;
  readonly request_format: JsonObject;
  readonly response_format: JsonObject;
}

/** By the name behind `state::`. */
export const FORMATS = {
  set: {
    description: "Stores a value",
    request_format: payload(["scope", "key", "value"], {
      ...place,
      value: anything("Any JSON"),
      expected_version: {
        type: "integer",
        description: "Only if the value has this version; 0: only if there is none",
      },
      ttl_ms: { type: "integer", description: "Forget it after so many milliseconds" },
    }),
    response_format: result({
      old_value: anything("What was there; null when there was none"),
      new_value: anything("What is there now"),
    }),
  },
  get: {
    description: "The value at a scope and key; nothing when missing",
    request_format: payload(["scope", "key"], place),
    response_format: anything("The value"),
  },
  entry: {
    description: "The value at a scope and key with its version and times",
    request_format: payload(["scope", "key"], place),
    response_format: result({
      value: anything("The value"),
      version: { type: "integer", description: "One more with every change" },
      updated_at_ms: { type: "integer", description: "Milliseconds since 1970" },
      expires_at_ms: { type: "integer", description: "Milliseconds since 1970, with a ttl_ms" },
    }),
  },
  delete: {
    description: "Removes the value at a scope and key, returns it",
    request_format: payload(["scope", "key"], place),
    response_format: anything("The value that was there"),
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
      old_value: anything("What was there; null when there was none"),
      new_value: anything("What is there now"),
      errors: { type: "array", items: { type: "object" }, description: "Changes that did not fit" },
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
      prefix: { type: "string", description: "Only keys that begin with it" },
      limit: { type: "integer", description: "How many at most" },
      cursor: { type: "string", description: "From the answer before: what comes after it" },
    }),
    response_format: result({
      entries: { type: "array", items: { type: "object" }, description: "Keys and values" },
      cursor: { type: ["string", "null"], description: "For the next page, if there is one" },
    }),
  },
  list_groups: {
    description: "Names of all scopes that have values",
    request_format: payload([], {}),
    response_format: result({ groups: { type: "array", items: { type: "string" } } }),
  },
} as const satisfies Readonly<Record<string, StateFormat>>;

function payload(required: string[], properties: JsonObject): JsonObject {
  return { type: "object", properties, required };
}

function result(properties: JsonObject): JsonObject {
  return { type: "object", properties };
}
