/**
 * Durable topics: each function that subscribes has a queue of its own, which gets a copy of every
 * message (PROTOCOL 4.6).
 *
 * | key in the store | value |
 * | --- | --- |
 * | `queue_topics`, topic, function | settings of the subscription |
 *
 * A subscription outlives its worker: messages that come while it is away wait in its queue. It
 * ends when its last trigger is unregistered while a worker still offers the function; what is in
 * its queue is still delivered.
 *
 * @module
 */
import type { Directory } from "../../engine/ports/directory.ts";
import type { Entry, Store, StoreKey } from "../../engine/ports/store.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  DEFAULT_NAMESPACE,
  type Json,
  type JsonObject,
} from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import { fitTrigger } from "../kit/triggers.ts";
import type { NamedQueues } from "./named_queues.ts";
import { QueueConfig, type QueueOptions, QUEUES_MAX } from "./settings.ts";

/** Longest name of a topic and of a function that subscribes, in bytes of its encoded form. */
const NAME_BYTES_MAX = 400;
/** Subscriptions that are read at once. */
const PAGE = 500;

const Config = v.object({
  topic: v.pipe(
    v.text(1, NAME_BYTES_MAX),
    v.check(
      (topic) => !/(^|\.)[*>](\.|$)/.test(topic),
      "expected no wildcard: durable topics have no patterns, those of subscribe do",
    ),
  ),
  condition_function_id: v.opt(v.text(1, 1_024)),
  queue_config: v.opt(v.object({
    type: v.opt(v.picklist(["standard", "fifo"])),
    maxRetries: v.opt(v.int(1, 1_000)),
    concurrency: v.opt(v.int(1, 1_000)),
    /** Seconds. */
    visibilityTimeout: v.opt(v.int(1, 604_800)),
    delaySeconds: v.opt(v.int(0, 31_536_000)),
    backoffType: v.opt(v.picklist(["exponential", "fixed"])),
    backoffDelayMs: v.opt(v.int(0, 31_536_000_000)),
    maxPriority: v.opt(v.int(0, 255)),
  })),
});

/** A function that subscribes to a topic. */
export interface Subscription {
  readonly topic: string;
  readonly function_id: string;
  readonly namespace: string;
  /** Name of its queue. */
  readonly queue: string;
  readonly options: QueueOptions;
  readonly delay_ms: number;
  readonly condition: string | undefined;
  readonly metadata: Json | undefined;
}

/** Dependencies of {@linkcode Topics}. */
export interface TopicsSetup {
  readonly store: Store;
  readonly named: NamedQueues;
  readonly directory: Pick<Directory, "function">;
}

/** All subscriptions. */
export class Topics {
  readonly #setup: TopicsSetup;
  /** By the name of the queue. */
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #byTopic = new Map<string, Set<string>>();
  /** Ids of triggers by queue, and the other way round. */
  readonly #triggers = new Map<string, Set<string>>();
  readonly #queueOf = new Map<string, string>();
  /** Subscriptions that are being added, with their topics. */
  readonly #coming = new Map<Promise<void>, string>();

  constructor(setup: TopicsSetup) {
    this.#setup = setup;
  }

  /** Brings the subscriptions back that there were before. */
  async start(): Promise<void> {
    let found: readonly Entry[];
    let after: StoreKey | undefined;
    do {
      found = await this.#setup.store.list(["queue_topics"], PAGE, after);
      for (const { value, damaged } of found) {
        if (damaged === undefined) await this.#keep(value as unknown as Subscription);
      }
      after = found.at(-1)?.key;
    } while (found.length === PAGE);
  }

  /** Topics with subscriptions, sorted. */
  get topics(): string[] {
    return [...this.#byTopic.keys()].sort();
  }

  /** The subscriptions of a topic. */
  of(topic: string): readonly Subscription[] {
    return [...this.#byTopic.get(topic) ?? []].map((queue) => this.#subscriptions.get(queue)!);
  }

  /** The subscription whose queue has this name. */
  byQueue(queue: string): Subscription | undefined {
    return this.#subscriptions.get(queue);
  }

  /**
   * A trigger was registered; resolves when its subscription is on disk.
   *
   * @throws {EngineError} `trigger_registration_failed`
   */
  async add(trigger: TriggerInstance): Promise<void> {
    const subscription = subscriptionOf(trigger);
    const { queue, topic } = subscription;
    const isNew = !this.#subscriptions.has(queue);
    if (isNew && this.#setup.named.names.length >= QUEUES_MAX) {
      throw new EngineError(
        "trigger_registration_failed",
        `There are ${QUEUES_MAX} queues already; topic ${topic} gets no further subscriber`,
      );
    }
    const adding = this.#add(subscription);
    this.#coming.set(adding, topic);
    await adding.finally(() => this.#coming.delete(adding));
    this.#queueOf.set(trigger.id, queue);
    const triggers = this.#triggers.get(queue) ?? new Set();
    this.#triggers.set(queue, triggers.add(trigger.id));
  }

  /** A trigger was unregistered, or its worker has left. */
  async remove(id: string): Promise<void> {
    const queue = this.#queueOf.get(id);
    if (queue === undefined) return;
    this.#queueOf.delete(id);
    const triggers = this.#triggers.get(queue)!;
    triggers.delete(id);
    if (triggers.size > 0) return;
    this.#triggers.delete(queue);
    const { topic, function_id, namespace } = this.#subscriptions.get(queue)!;
    if (!this.#setup.directory.function(namespace, function_id)) return; // Its worker is away.
    this.#subscriptions.delete(queue);
    const others = this.#byTopic.get(topic)!;
    others.delete(queue);
    if (others.size === 0) this.#byTopic.delete(topic);
    await this.#setup.store.write([[["queue_topics", topic, queue], () => undefined]]);
  }

  /**
   * Adds a copy of a message for every subscription, also for those that were registered before
   * the message came and are still being added; resolves when all copies are on disk.
   */
  async publish(topic: string, data: Json, traceparent: string | undefined): Promise<void> {
    if (this.#coming.size > 0) {
      const own = [...this.#coming].filter(([, each]) => each === topic);
      await Promise.allSettled(own.map(([adding]) => adding));
    }
    await Promise.all(
      this.of(topic).map((each) => {
        const { queue, function_id, namespace, delay_ms, metadata, condition } = each;
        return this.#setup.named.put(queue, {
          function_id,
          namespace,
          data,
          ...delay_ms > 0 && { delay_ms },
          ...metadata !== undefined && { metadata },
          ...condition !== undefined && { condition },
        }, traceparent);
      }),
    );
  }

  async #add(subscription: Subscription): Promise<void> {
    const { topic, queue } = subscription;
    const record = JSON.parse(JSON.stringify(subscription)) as JsonObject;
    await this.#setup.store.write([[["queue_topics", topic, queue], () => record]]);
    await this.#keep(subscription);
  }

  async #keep(subscription: Subscription): Promise<void> {
    const { queue, topic, options } = subscription;
    this.#subscriptions.set(queue, subscription);
    const queues = this.#byTopic.get(topic) ?? new Set();
    this.#byTopic.set(topic, queues.add(queue));
    await this.#setup.named.add(queue, options);
  }
}

function subscriptionOf(trigger: TriggerInstance): Subscription {
  const { topic, condition_function_id, queue_config = {} } = fitTrigger(Config, trigger);
  const { function_id, namespace = DEFAULT_NAMESPACE, metadata } = trigger;
  const { type, maxRetries, concurrency, visibilityTimeout, backoffType } = queue_config;
  const { backoffDelayMs, delaySeconds } = queue_config;
  const options = v.parse(QueueConfig, {
    ...type === "fifo" && { type, message_group_field: "-" },
    ...maxRetries !== undefined && { max_retries: maxRetries },
    ...concurrency !== undefined && { concurrency },
    ...visibilityTimeout !== undefined && { timeout_ms: visibilityTimeout * 1_000 },
    ...backoffDelayMs !== undefined && { backoff_ms: backoffDelayMs },
    ...backoffType === "fixed" && { backoff_max_ms: backoffDelayMs ?? 1_000 },
  });
  return {
    topic,
    function_id,
    namespace,
    queue: `topic/${encoded("topic", topic)}/${encoded("function", `${namespace} ${function_id}`)}`,
    options,
    delay_ms: (delaySeconds ?? 0) * 1_000,
    condition: condition_function_id,
    metadata,
  };
}

/** A text as part of a name; two different ones stay different. */
function encoded(what: string, text: string): string {
  const long = text.length > NAME_BYTES_MAX || !text.isWellFormed();
  const name = long ? "" : encodeURIComponent(text);
  if (name !== "" && name.length <= NAME_BYTES_MAX) return name;
  throw new EngineError(
    "trigger_registration_failed",
    `The ${what} of a durable:subscriber trigger is too long or no Unicode; encoded it may have ` +
      `${NAME_BYTES_MAX} bytes`,
  );
}
