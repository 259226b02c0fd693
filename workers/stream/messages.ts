/**
 * The messages between subscribers and `engine-stream` (PROTOCOL 5.3).
 *
 * @module
 */
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import { isTooDeep } from "../../sdk/typescript/wire/json_depth.ts";
import { problemsOf } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import type { StreamEvent } from "./items.ts";
import { ItemId, StreamName } from "./payloads.ts";

/** Largest message of a subscriber. */
export const REQUEST_BYTES_MAX: number = 16 * 1024;
/** Longest id that a subscriber gives to a subscription, in characters. */
export const SUBSCRIPTION_ID_CHARS_MAX = 256;

const Request = v.object({
  type: v.picklist(["join", "leave"]),
  data: v.object({
    subscriptionId: v.text(1, SUBSCRIPTION_ID_CHARS_MAX),
    streamName: StreamName,
    groupId: StreamName,
    id: v.opt(ItemId),
  }),
});

/** What a subscriber follows: a group, or one item of it. */
export interface Topic {
  readonly stream_name: string;
  readonly group_id: string;
  /** `null`: the whole group. */
  readonly id: string | null;
}

/** A request of a subscriber. */
export interface SubscriberRequest {
  readonly type: "join" | "leave";
  readonly subscription_id: string;
  readonly topic: Topic;
}

/** What is wrong with a message, and the subscription that it is about, if it says. */
export interface RequestProblem {
  readonly problem: string;
  readonly subscription_id: string | null;
}

const encoder = new TextEncoder();

/** Reads a message of a subscriber. */
export function readRequest(text: string): SubscriberRequest | RequestProblem {
  let value: Json;
  try {
    if (isTooDeep(text)) return { problem: "the message is nested too deeply", ...ABOUT_NONE };
    value = JSON.parse(text);
  } catch {
    return { problem: "the message is not JSON", ...ABOUT_NONE };
  }
  const read = v.safeParse(Request, value);
  if (!read.success) {
    const problem = problemsOf(read.issues, value).join("; ");
    return { problem, subscription_id: subscriptionIn(value) };
  }
  const { type, data } = read.output;
  const { subscriptionId, streamName, groupId, id } = data;
  const topic = { stream_name: streamName, group_id: groupId, id: id ?? null };
  return { type, subscription_id: subscriptionId, topic };
}

const ABOUT_NONE = { subscription_id: null };

function subscriptionIn(value: Json): string | null {
  const data = (value as { data?: { subscriptionId?: Json } } | null)?.data;
  const id = data?.subscriptionId;
  return typeof id === "string" && id.length <= SUBSCRIPTION_ID_CHARS_MAX ? id : null;
}

/** A happening of a topic as its subscribers get it; `event` is JSON. */
export function topicMessage(
  { stream_name, group_id, id }: Topic,
  timestamp: number,
  event: string,
): Uint8Array {
  const about = `"streamName":${JSON.stringify(stream_name)},"groupId":${JSON.stringify(group_id)}`;
  return encoder.encode(
    `{"type":"stream","timestamp":${timestamp},${about},"id":${
      JSON.stringify(id)
    },"event":${event}}`,
  );
}

/** An event as its subscribers get it. */
export function eventMessage(event: StreamEvent): Uint8Array {
  return encoder.encode(JSON.stringify(event));
}

/** A subscription that was refused, because of a handler of `stream:join`. */
export function unauthorizedMessage(topic: Topic, timestamp: number): Uint8Array {
  return topicMessage(topic, timestamp, '{"type":"unauthorized"}');
}

/** A request that failed, or a subscription that did. */
export function errorMessage(subscriptionId: string | null, error: ErrorBody): Uint8Array {
  return encoder.encode(JSON.stringify({ type: "error", subscriptionId, error }));
}
