/**
 * Triggers of type `stream`: call a function for events of a stream, a group or an item, in the way
 * of `engine-state`, whose queue and bounds they have.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import { fitTrigger } from "../kit/triggers.ts";
import type { ChangeKind } from "../state/triggers.ts";
import type { StreamEvent } from "./items.ts";
import { ItemId, StreamName } from "./payloads.ts";

/** The config of a trigger; absent members but the stream match everything. */
const Config = v.object({
  stream_name: StreamName,
  group_id: v.nullish(StreamName),
  item_id: v.nullish(ItemId),
  condition_function_id: v.nullish(v.text(1)),
});

/** Triggers of type `stream`. */
export const STREAM_TRIGGERS: ChangeKind<StreamEvent> = {
  type: "stream",
  read(trigger) {
    const { stream_name, group_id, item_id, condition_function_id } = fitTrigger(Config, trigger);
    return {
      filter: [stream_name, group_id, item_id],
      condition: condition_function_id ?? undefined,
    };
  },
  filtersOf({ streamName, groupId, id }) {
    const all = [[streamName, null, null], [streamName, groupId, null]];
    return id === null ? all : [...all, [streamName, null, id], [streamName, groupId, id]];
  },
  subjectOf: ({ streamName, groupId, id }) => [streamName, groupId, id],
};

const optional = { type: ["string", "null"] };

/** What a trigger of the type has in its config. */
export const STREAM_TRIGGER_FORMAT: JsonObject = {
  type: "object",
  required: ["stream_name"],
  properties: {
    stream_name: { type: "string", description: "The stream, such as chat" },
    group_id: optional,
    item_id: optional,
    condition_function_id: optional,
  },
};

/** What its function gets. */
export const STREAM_CALL_FORMAT: JsonObject = {
  type: "object",
  properties: {
    type: { const: "stream" },
    timestamp: { type: "integer", description: "Milliseconds since 1970" },
    streamName: { type: "string" },
    groupId: { type: "string" },
    id: { type: ["string", "null"] },
    event: {
      type: "object",
      properties: { type: { enum: ["create", "update", "delete", "event"] } },
    },
  },
};

/** The trigger types for subscriptions, and what they are for. */
export const JOIN_TYPES = {
  "stream:join": "Runs a function for each subscription, which it may refuse",
  "stream:leave": "Runs a function for each subscription that ended",
} as const;

/** What their triggers have in their config. */
export const JOIN_TRIGGER_FORMAT: JsonObject = {
  type: "object",
  properties: {
    stream_name: { ...optional, description: "Default: all streams" },
    condition_function_id: optional,
  },
};

/** What their functions get. */
export const JOIN_CALL_FORMAT: JsonObject = {
  type: "object",
  properties: {
    subscription_id: { type: "string" },
    stream_name: { type: "string" },
    group_id: { type: "string" },
    id: { type: ["string", "null"], description: "null: the whole group" },
    context: { description: "What the auth function of engine-stream returned" },
  },
};
