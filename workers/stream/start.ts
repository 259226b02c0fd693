/**
 * Runs `engine-stream`: items by stream and group, stored, with an event for every change.
 *
 * `functions.ts` has `stream::*`, `payloads.ts` their payloads, `items.ts` the items on the store,
 * `overrides.ts` the functions of workers that replace it, `triggers.ts` the trigger types.
 *
 * Of the subscribers, `server.ts` has the port, `subscriber.ts` a connection, `messages.ts` what it
 * says and gets, `joins.ts` who decides about it, `sync.ts` its first message, `audience.ts` the
 * way of an event to all of them.
 *
 * In a cluster one engine keeps the items; `front.ts` is what the others have, `kept.ts` and
 * `feeds.ts` what that one does for them.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { EngineHost } from "../kit/define.ts";
import { AnswerMemory } from "../state/answers.ts";
import { Expiry } from "../state/expiry.ts";
import { ChangeTriggers } from "../state/triggers.ts";
import { Audience } from "./audience.ts";
import type { StreamConfig } from "./config.ts";
import { Feeds, withFronts } from "./feeds.ts";
import { startFront } from "./front.ts";
import { registerFunctions, StreamFunctions } from "./functions.ts";
import { type StreamEvent, streamItems } from "./items.ts";
import { Joins, type JoinType } from "./joins.ts";
import { serveFronts } from "./kept.ts";
import { eventMessage } from "./messages.ts";
import { Overrides } from "./overrides.ts";
import { STREAM_PATH, StreamServer } from "./server.ts";
import { groupKey } from "./subscriber.ts";
import { SyncReads, TopicReader } from "./sync.ts";
import {
  JOIN_CALL_FORMAT,
  JOIN_TRIGGER_FORMAT,
  JOIN_TYPES,
  STREAM_CALL_FORMAT,
  STREAM_TRIGGER_FORMAT,
  STREAM_TRIGGERS,
} from "./triggers.ts";

/** What subscribers do, and what was sent to them. */
const STATS_FUNCTION = "engine::stream::stats";

/** Keeps items, and passes their changes on. */
export function startStream(
  worker: Worker,
  config: StreamConfig,
  host: EngineHost,
): Promise<AsyncDisposable> {
  const { store, clock, log, memory, directory, turns } = host;
  const started = new AsyncDisposableStack();
  const triggers = started.adopt(
    new ChangeTriggers<StreamEvent>({ kind: STREAM_TRIGGERS, worker, log, clock, memory }),
    (it) => it.close(),
  );
  const audience = started.use(new Audience({ turns, memory }));
  const feeds = started.use(new Feeds({ worker, clock, memory, audience }));
  const emit = (event: StreamEvent, bytes: number): void => {
    triggers.fire(event, bytes);
    const { streamName: stream_name, groupId: group_id, id } = event;
    server.count(stream_name);
    const key = groupKey({ stream_name, group_id });
    if (!audience.isFollowed(key)) return;
    if (!audience.publish(key, { id, bytes: eventMessage(event) })) server.lost();
  };
  const entries = streamItems({
    store,
    clock,
    changed: emit,
    expires: (atMs) => expiry.schedule(atMs),
  });
  const expiry = started.use(new Expiry({ clock, log, entries }));
  const answers = new AnswerMemory(memory, clock);
  const overrides = new Overrides({ worker, directory });
  registerFunctions(
    worker,
    new StreamFunctions({
      entries,
      expiry,
      clock,
      answers,
      overrides,
      isBehind: () => triggers.isBehind || audience.isBehind || feeds.isBehind,
      emit,
    }),
  );
  provideTriggers(worker, triggers);
  const { auth_function: authFunction, call_timeout_ms: timeoutMs } = config;
  const joins = new Joins({ worker, clock, log, authFunction, timeoutMs });
  provideJoins(worker, joins);
  const sync = new SyncReads(new TopicReader({ entries, overrides, answers, clock }));
  if (host.engines?.log) serveFronts({ worker, directory, feeds, joins, sync });
  const server = started.use(
    new StreamServer(config, host, { clock, memory, audience, joins, sync }),
  );
  serve(server, config, host);
  const stats = (): JsonObject => withFronts(server.stats(), feeds.stats);
  worker.registerFunction(STATS_FUNCTION, stats, {
    description: "Connections and subscriptions of streams, and what was sent",
    request_format: { type: "object", properties: {} },
  });
  void expiry.sweep();
  return Promise.resolve(started);
}

/** What runs at the engines of a cluster that do not keep the items. */
export function startElsewhere(
  worker: Worker,
  config: StreamConfig,
  host: EngineHost,
): Promise<AsyncDisposable> {
  const front = startFront(worker, config, host);
  serve(front.server, config, host);
  return Promise.resolve(front);
}

function provideTriggers(
  worker: Pick<Worker, "registerTriggerType">,
  triggers: ChangeTriggers<StreamEvent>,
): void {
  worker.registerTriggerType({
    id: "stream",
    description: "Runs a function for events of a stream, a group or an item",
    trigger_request_format: STREAM_TRIGGER_FORMAT,
    call_request_format: STREAM_CALL_FORMAT,
  }, {
    registerTrigger: (trigger) => triggers.add(trigger),
    unregisterTrigger: ({ id }) => triggers.remove(id),
  });
}

function provideJoins(worker: Pick<Worker, "registerTriggerType">, joins: Joins): void {
  for (const [type, description] of Object.entries(JOIN_TYPES)) {
    const id = type as JoinType;
    worker.registerTriggerType({
      id,
      description,
      trigger_request_format: JOIN_TRIGGER_FORMAT,
      call_request_format: JOIN_CALL_FORMAT,
    }, {
      registerTrigger: (trigger) => joins.add(id, trigger),
      unregisterTrigger: (trigger) => joins.remove(id, trigger.id),
    });
  }
}

/** Opens the path of the worker port, and closes everything when the engine stops. */
function serve(server: StreamServer, config: StreamConfig, host: EngineHost): void {
  host.serves({ name: "streams", url: server.url });
  // With an auth function that decides; without one the rules of the worker port do.
  const open = config.auth_function !== undefined;
  const stop = host.serveSockets(STREAM_PATH, (upgrade) => server.accept(upgrade), { open });
  host.signal.addEventListener("abort", stop, { once: true });
  const drain = (): void => host.delayStop(server.drain());
  host.draining.addEventListener("abort", drain, { signal: host.signal });
}
