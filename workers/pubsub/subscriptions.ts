/**
 * Triggers of type `subscribe`: call a function for each message of a topic.
 *
 * No subscriber can slow another: what one worker has not read or answered is bounded, and further
 * messages for it are dropped, counted and logged, until it has caught up.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type {
  FiringBounds,
  FiringPayload,
  Firings,
  FiringTarget,
} from "../../engine/ports/firings.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { Topics } from "../../engine/ports/topics.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import * as v from "../kit/schema.ts";
import { fireTriggers, fitTrigger } from "../kit/triggers.ts";
import { patternProblem } from "./topic_tree.ts";

/** Time between two reports of dropped messages. */
const REPORT_MS = 10_000;
/** Subscriptions in one answer of `engine::pubsub::list`. */
export const SUBSCRIPTIONS_LISTED_MAX = 1_000;

/** The config of a trigger. */
const Config = v.object({ topic: v.string() });

/** Dependencies of {@linkcode Subscriptions}. */
export interface SubscriptionsSetup {
  /** Name of the worker that provides the type. */
  readonly name: string;
  readonly worker: Pick<Worker, "trigger">;
  readonly topics: Topics;
  readonly firings: Firings;
  readonly bounds: FiringBounds;
  readonly clock: Clock;
  readonly log: Log;
}

/** One trigger. */
interface Subscription {
  readonly trigger: TriggerInstance;
  readonly topic: string;
  readonly target: FiringTarget;
  readonly stop: () => void;
  sent: number;
  dropped: number;
  droppedAtMs: number | undefined;
}

/** Provider of the trigger type `subscribe`. */
export class Subscriptions implements Disposable {
  readonly #setup: SubscriptionsSetup;
  readonly #byId = new Map<string, Subscription>();
  /** Dropped messages that were not reported yet. */
  #unreported = 0;
  #cancelReport: (() => void) | undefined;

  /** Messages that were sent to functions since the worker started. */
  sent = 0;
  /** Messages that were dropped because a subscriber was behind. */
  dropped = 0;

  constructor(setup: SubscriptionsSetup) {
    this.#setup = setup;
  }

  /** @throws {EngineError} `trigger_registration_failed` for an invalid topic. */
  add(trigger: TriggerInstance): void {
    const { topic } = fitTrigger(Config, trigger);
    const problem = patternProblem(topic);
    if (problem !== undefined) {
      const message = `The config of the subscribe trigger does not fit: topic: ${problem}`;
      throw new EngineError("trigger_registration_failed", message);
    }
    this.remove(trigger.id);
    const { topics, firings } = this.#setup;
    const subscription: Subscription = {
      trigger,
      topic,
      target: firings.prepare(trigger),
      stop: topics.subscribe(topic, (message) => this.#deliver(subscription, message)),
      sent: 0,
      dropped: 0,
      droppedAtMs: undefined,
    };
    this.#byId.set(trigger.id, subscription);
  }

  /** Removes a trigger; other triggers of its topic stay. */
  remove(id: string): void {
    this.#byId.get(id)?.stop();
    this.#byId.delete(id);
  }

  /** The subscriptions, those that lost most first, then by topic. */
  list(): JsonObject {
    const all = [...this.#byId.values()].sort((a, b) =>
      b.dropped - a.dropped || (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : 0)
    );
    const subscriptions = all.slice(0, SUBSCRIPTIONS_LISTED_MAX).map(viewOf);
    return { subscriptions, count: all.length, sent: this.sent, dropped: this.dropped };
  }

  /** Ends all subscriptions. */
  [Symbol.dispose](): void {
    for (const id of [...this.#byId.keys()]) this.remove(id);
    this.#cancelReport?.();
  }

  #deliver(subscription: Subscription, message: FiringPayload): void {
    const { name, firings, bounds, worker } = this.#setup;
    switch (firings.fire(name, subscription.target, message, bounds)) {
      case "behind":
        return this.#drop(subscription);
      case "ordinary":
        fireTriggers(worker, [subscription.trigger], textOf(message));
    }
    this.sent++;
    subscription.sent++;
  }

  #drop(subscription: Subscription): void {
    const { clock, log } = this.#setup;
    this.dropped++;
    subscription.dropped++;
    subscription.droppedAtMs = clock.wall();
    if (this.#unreported++ > 0) return;
    const { topic, trigger: { function_id } } = subscription;
    const why = "its worker has too many calls or bytes waiting";
    log.warn("messages are dropped for a slow subscriber", { topic, function_id, why });
    this.#cancelReport = clock.after(REPORT_MS, () => {
      if (this.#unreported > 1) {
        log.warn("messages were dropped for slow subscribers", { dropped: this.#unreported });
      }
      this.#unreported = 0;
    });
  }
}

function viewOf({ trigger, topic, sent, dropped, droppedAtMs }: Subscription): JsonObject {
  const { id, function_id, namespace } = trigger;
  return {
    trigger_id: id,
    topic,
    function_id,
    ...namespace !== undefined && { namespace },
    sent,
    dropped,
    ...droppedAtMs !== undefined && { dropped_at_ms: droppedAtMs },
  };
}

const decoder = new TextDecoder();

/** For functions that are called as any other: with all digits of its numbers, too. */
function textOf({ json }: FiringPayload): JsonText {
  return new JsonText(decoder.decode(json));
}
