/**
 * The function by which the other engines of a cluster serve subscribers: they ask here whether one
 * may follow a group, what the group is now, and for the events that follow.
 *
 * @module
 */
import type { EngineHost } from "../kit/define.ts";
import { registerForEngines } from "../kit/engines.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { Feeds } from "./feeds.ts";
import type { Joins } from "./joins.ts";
import { SUBSCRIPTION_ID_CHARS_MAX, type Topic } from "./messages.ts";
import { ItemId, StreamName } from "./payloads.ts";
import type { SyncReads } from "./sync.ts";

/** Serves engines; the engine that keeps the streams has it. */
export const FRONT_FUNCTION = "stream::front";
/** Subscriptions that ended, in one call. */
export const LEAVES_MAX = 1_000;
/** Streams of which an engine says its subscriptions. */
export const FRONT_STREAMS_MAX = 1_000;

const Count = v.int(0, Number.MAX_SAFE_INTEGER);
const Session = { life: v.text(1, 64), session: v.text(1, 64) };
const Group = v.object({ stream_name: StreamName, group_id: StreamName });
const TopicShape = v.object({
  stream_name: StreamName,
  group_id: StreamName,
  id: v.nullable(ItemId),
});
const Subscription = v.object({
  subscription_id: v.text(1, SUBSCRIPTION_ID_CHARS_MAX),
  topic: TopicShape,
  context: v.unknown(),
});
const Stats = v.object({
  connections: Count,
  connections_max: Count,
  subscriptions: Count,
  events_sent: Count,
  closed_slow: Count,
  streams: v.list(v.tuple([v.string(), Count]), FRONT_STREAMS_MAX),
});

const Request = v.variant("op", [
  v.object({ op: v.literal("open"), ...Session }),
  v.object({ op: v.literal("alive"), ...Session, stats: Stats }),
  v.object({ op: v.literal("close"), ...Session }),
  v.object({ op: v.literal("follow"), ...Session, group: Group }),
  v.object({ op: v.literal("unfollow"), ...Session, group: Group }),
  v.object({ op: v.literal("read"), topic: TopicShape }),
  v.object({ op: v.literal("join"), subscription: Subscription }),
  v.object({ op: v.literal("leave"), subscriptions: v.list(Subscription, LEAVES_MAX) }),
]);

/** What the other engines ask. */
export type FrontRequest = v.InferOutput<typeof Request>;

/** Dependencies of {@linkcode serveFronts}. */
export interface KeptSetup {
  readonly worker: Pick<Worker, "registerFunction">;
  readonly directory: Pick<EngineHost["directory"], "worker">;
  readonly feeds: Feeds;
  readonly joins: Pick<Joins, "allows" | "left">;
  readonly sync: Pick<SyncReads, "read">;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Registers the function. */
export function serveFronts({ worker, directory, ...setup }: KeptSetup): void {
  const about = {
    function_id: FRONT_FUNCTION,
    description: "Serves engines of the cluster whose clients follow streams",
  };
  registerForEngines({ worker, directory }, about, (payload) => {
    return answer(fit(FRONT_FUNCTION, Request, payload), setup);
  });
}

function answer(
  request: FrontRequest,
  { feeds, joins, sync }: Pick<KeptSetup, "feeds" | "joins" | "sync">,
): Json | Promise<Json> {
  switch (request.op) {
    case "open":
      feeds.open(request.life, request.session);
      return null;
    case "alive":
      feeds.of(request.life, request.session).heard(request.stats);
      return null;
    case "close":
      feeds.of(request.life, request.session).end();
      return null;
    case "follow":
      feeds.of(request.life, request.session).follow(request.group);
      return null;
    case "unfollow":
      feeds.of(request.life, request.session).unfollow(request.group);
      return null;
    case "read":
      return sync.read(request.topic).then((message) => decoder.decode(message));
    case "join":
      return joins.allows(infoOf(request.subscription));
    case "leave":
      for (const subscription of request.subscriptions) joins.left(infoOf(subscription));
      return null;
  }
}

function infoOf({ subscription_id, topic, context }: v.InferOutput<typeof Subscription>) {
  return { subscription_id, topic: topic as Topic, context: (context ?? null) as Json };
}
