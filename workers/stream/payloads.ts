/**
 * Payloads of `stream::*`: the checks, and the JSON Schemas that are published.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { UPDATE_OPS_MAX, UpdateOp } from "../state/update_ops.ts";

/** Longest name of a stream, and longest group, in UTF-8. */
export const NAME_BYTES_MAX = 400;
/** Longest id of an item, in UTF-8. */
export const ITEM_ID_BYTES_MAX = 900;
/** Longest name of an event, in UTF-8. */
export const EVENT_NAME_BYTES_MAX = 200;
/** Longest life of an item, in milliseconds: a hundred years. */
const TTL_MS_MAX = 3_155_760_000_000;
/** Items in one answer of `stream::list_items`, unless the payload says otherwise, and at most. */
const ITEMS_LIMIT = 100;
const ITEMS_LIMIT_MAX = 1_000;
/** UTF-8 bytes per UTF-16 code unit, at most. */
const UNIT_BYTES_MAX = 3;

const encoder = new TextEncoder();

/** A name that is part of a key of the store; NUL separates such parts. */
function name(bytesMax: number) {
  return v.pipe(
    v.string(),
    v.check((text) => text !== "", "expected at least 1 character"),
    v.check((text) => fits(text, bytesMax), `expected at most ${bytesMax} bytes`),
    v.check(
      (text) => text.length > bytesMax || text.isWellFormed(),
      "expected well-formed Unicode",
    ),
    v.check((text) => text.length > bytesMax || !text.includes("\0"), "expected no NUL character"),
  );
}

function fits(text: string, bytesMax: number): boolean {
  if (text.length > bytesMax) return false;
  if (text.length * UNIT_BYTES_MAX <= bytesMax) return true;
  return encoder.encode(text).length <= bytesMax;
}

/** The name of a stream, and a group. */
export const StreamName: v.Schema<string> = name(NAME_BYTES_MAX);
/** The id of an item. */
export const ItemId: v.Schema<string> = name(ITEM_ID_BYTES_MAX);

const group = { stream_name: StreamName, group_id: StreamName };
const place = { ...group, item_id: ItemId };

const Set = v.pipe(
  v.object({
    ...place,
    ttl_ms: v.nullish(v.int(0, TTL_MS_MAX)),
    data: v.optional(v.unknown()),
  }),
  v.forward(
    v.check((request) => Object.hasOwn(request, "data"), "expected a value, received nothing"),
    ["data"],
  ),
  v.transform((request) => ({ ...request, data: request.data as Json })),
);

const Items = v.pipe(
  v.object({
    ...group,
    prefix: v.pipe(
      v.nullish(v.string(), ""),
      v.check(
        (text) => text.length <= ITEM_ID_BYTES_MAX,
        `expected at most ${ITEM_ID_BYTES_MAX} bytes`,
      ),
    ),
    /** Larger limits count as the largest one. */
    limit: v.pipe(
      v.nullish(v.int(1), ITEMS_LIMIT),
      v.transform((limit) => Math.min(limit, ITEMS_LIMIT_MAX)),
    ),
    cursor: v.opt(ItemId),
  }),
  v.forward(
    v.check(
      ({ prefix, cursor }) => cursor === undefined || cursor.startsWith(prefix),
      "expected the cursor of an answer for the same prefix",
    ),
    ["cursor"],
  ),
);

/** Cursor of a page of groups of all streams: as the answer before has it. */
const PageEnd = v.pipe(
  v.string(),
  v.check((text) => {
    const parts = text.length > 2 * NAME_BYTES_MAX + 1 ? [] : text.split("\0");
    return parts.length === 2 && text.isWellFormed() &&
      parts.every((part) => part !== "" && fits(part, NAME_BYTES_MAX));
  }, "expected the cursor of an answer"),
);

/** The checks by the name after `stream::`. */
export const REQUESTS = {
  set: Set,
  get: v.object(place),
  delete: v.object(place),
  update: v.object({ ...place, ops: v.list(UpdateOp, UPDATE_OPS_MAX) }),
  list: v.object(group),
  list_items: Items,
  list_groups: v.object({
    stream_name: StreamName,
    limit: v.opt(v.int(1)),
    cursor: v.opt(StreamName),
  }),
  list_all: v.object({ limit: v.opt(v.int(1)), cursor: v.opt(PageEnd) }),
  send: v.object({
    ...group,
    id: v.nullish(ItemId),
    type: name(EVENT_NAME_BYTES_MAX),
    data: v.optional(v.unknown(), null),
  }),
} as const;

/** Name of a function after `stream::`. */
export type StreamOp = keyof typeof REQUESTS;

/**
 * The payload as its schema says it is.
 *
 * @throws {EngineError} `JSON_ERROR`, with everything that does not fit.
 */
export function fitRequest<Output>(
  op: StreamOp,
  schema: v.Schema<Output>,
  payload: Json | undefined,
): Output {
  try {
    return fit(`stream::${op}`, schema, payload ?? {});
  } catch (thrown) {
    if (!(thrown instanceof EngineError) || thrown.code !== "deserialization_error") throw thrown;
    const { details } = thrown;
    throw new EngineError("JSON_ERROR", thrown.message, { ...details && { details } });
  }
}

const streamName = { type: "string", description: "The stream, such as chat" };
const groupId = { type: "string", description: "The group within the stream, such as room-1" };
const itemId = { type: "string", description: "The item within the group" };
const places = { stream_name: streamName, group_id: groupId, item_id: itemId };
const PLACE = Object.keys(places);
const changed = {
  type: "object",
  properties: {
    old_value: { description: "The previous item; null if there was none" },
    new_value: { description: "The new item" },
  },
};

/** Description and schemas of each function, by the name after `stream::`. */
export const FORMATS: Readonly<
  Record<
    StreamOp,
    { description: string; request_format: JsonObject; response_format?: JsonObject }
  >
> = {
  set: {
    description: "Stores an item and sends it to the subscribers of its group",
    request_format: payload([...PLACE, "data"], {
      ...places,
      data: { description: "Any JSON" },
      ttl_ms: { type: ["integer", "null"], description: "Time to live in milliseconds" },
    }),
    response_format: changed,
  },
  get: {
    description: "An item; nothing if missing",
    request_format: payload(PLACE, places),
    response_format: { description: "The item" },
  },
  delete: {
    description: "Removes an item and notifies the subscribers of its group",
    request_format: payload(PLACE, places),
    response_format: {
      type: "object",
      properties: { old_value: { description: "The removed item; null if there was none" } },
    },
  },
  update: {
    description: "Changes an item in one step, as state::update does",
    request_format: payload([...PLACE, "ops"], {
      ...places,
      ops: {
        type: "array",
        items: { type: "object" },
        description: 'Such as {"type":"increment","path":"n","by":2}; those of state::update',
      },
    }),
    response_format: changed,
  },
  list: {
    description: "All items of a group, the oldest first",
    request_format: payload(["stream_name", "group_id"], {
      stream_name: streamName,
      group_id: groupId,
    }),
    response_format: { type: "array", description: "The items" },
  },
  list_items: {
    description: "Items of a group with their ids, sorted by id, page by page",
    request_format: payload(["stream_name", "group_id"], {
      stream_name: streamName,
      group_id: groupId,
      prefix: { type: ["string", "null"], description: "Only ids that begin with this text" },
      limit: {
        type: ["integer", "null"],
        description: "Maximum number of items: default 100, at most 1000",
      },
      cursor: { type: "string", description: "cursor of the previous result, for the next page" },
    }),
    response_format: {
      type: "object",
      properties: {
        items: { type: "array", items: { type: "object" }, description: "Each {id, data}" },
        cursor: { type: "string", description: "Cursor for the next page, if there is one" },
      },
    },
  },
  list_groups: {
    description: "Ids of the groups of a stream that have items",
    request_format: payload(["stream_name"], {
      stream_name: streamName,
      limit: { type: "integer", description: "Maximum number of entries" },
      cursor: {
        type: "string",
        description: "The last group of the previous result, for the next page",
      },
    }),
    response_format: { type: "array", items: { type: "string" } },
  },
  list_all: {
    description: "Streams that have items, with their groups, page by page",
    request_format: payload([], {
      limit: { type: "integer", description: "Maximum number of groups" },
      cursor: { type: "string", description: "cursor of the previous result, for the next page" },
    }),
    response_format: {
      type: "object",
      properties: {
        stream: { type: "array", items: { type: "object" }, description: "Each {id, groups}" },
        count: { type: "integer", description: "Streams in this page" },
        cursor: { type: "string", description: "Cursor for the next page, if there is one" },
      },
    },
  },
  send: {
    description: "Sends an event to the subscribers of a group, and stores nothing",
    request_format: payload(["stream_name", "group_id", "type"], {
      stream_name: streamName,
      group_id: groupId,
      id: { type: ["string", "null"], description: "Id of the item that the event is about" },
      type: { type: "string", description: "The name of the event" },
      data: { description: "Any JSON" },
    }),
  },
};

function payload(required: string[], properties: JsonObject): JsonObject {
  return { type: "object", properties, required };
}
