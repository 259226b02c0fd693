/**
 * Queues that functions declare: a trigger of type `queue` says how the jobs of its function are
 * given out (PROTOCOL 4.16).
 *
 * | key in the store | value |
 * | --- | --- |
 * | `queue_declared`, name | settings of the queue |
 *
 * A queue outlives the worker that declared it: its jobs wait, also over a restart of the engine.
 * It ends when its last trigger is unregistered while a worker still offers the function, or when
 * the engine starts and finds it without one; its jobs stay on disk, and are back with its name.
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
import {
  isQueueName,
  QUEUE_ENTRIES,
  QUEUE_NAME_CHARS_MAX,
  type QueueOptions,
  QUEUES_MAX,
} from "./settings.ts";

/** Queues that are read at once. */
const PAGE = 500;
const TABLE = "queue_declared";

const Config = v.pipe(
  v.strictObject({
    name: v.opt(v.pipe(
      v.string(),
      v.check(
        isQueueName,
        `expected 1 to ${QUEUE_NAME_CHARS_MAX} letters, digits and _ . : -`,
      ),
    )),
    ...QUEUE_ENTRIES,
  }),
  v.forward(
    v.check(
      ({ type, message_group_field }) => type !== "fifo" || message_group_field !== undefined,
      "expected the member of the payload that selects the group of a fifo queue",
    ),
    ["message_group_field"],
  ),
);

/** Dependencies of {@linkcode DeclaredQueues}. */
export interface DeclaredQueuesSetup {
  readonly store: Store;
  readonly named: NamedQueues;
  readonly directory: Pick<Directory, "function">;
  /** Names of the configuration, whose settings stay. */
  readonly configured: ReadonlySet<string>;
}

/** What a trigger declares. */
interface Declared {
  readonly name: string;
  readonly function_id: string;
  readonly namespace: string;
}

/** All queues that functions declare. */
export class DeclaredQueues {
  readonly #setup: DeclaredQueuesSetup;
  readonly #byTrigger = new Map<string, Declared>();

  constructor(setup: DeclaredQueuesSetup) {
    this.#setup = setup;
  }

  /** Brings the queues back that there were before. */
  async start(): Promise<void> {
    const { store, named, configured } = this.#setup;
    let found: readonly Entry[];
    let after: StoreKey | undefined;
    do {
      found = await store.list([TABLE], PAGE, after);
      for (const { key, value, damaged } of found) {
        if (damaged !== undefined || configured.has(key[1]!)) continue;
        await named.add(key[1]!, value as unknown as QueueOptions);
      }
      after = found.at(-1)?.key;
    } while (found.length === PAGE);
  }

  /**
   * A trigger was registered; resolves when its queue is on disk. Of two triggers for one queue the
   * later one counts; a queue of the configuration stays as it is.
   *
   * @throws {EngineError} `trigger_registration_failed`
   */
  async add(trigger: TriggerInstance): Promise<void> {
    const { name: given, ...options } = fitTrigger(Config, trigger);
    const { function_id, namespace = DEFAULT_NAMESPACE } = trigger;
    const name = given ?? nameOf(function_id);
    if (!this.#setup.configured.has(name)) {
      const adding = this.#add(name, JSON.parse(JSON.stringify(options)));
      this.#setup.named.announce(name, adding);
      await adding;
    }
    this.#byTrigger.set(trigger.id, { name, function_id, namespace });
  }

  async #add(name: string, record: JsonObject): Promise<void> {
    const { store, named } = this.#setup;
    if (!named.names.includes(name) && named.names.length >= QUEUES_MAX) {
      const message = `There are ${QUEUES_MAX} queues already; ${name} is not added`;
      throw new EngineError("trigger_registration_failed", message);
    }
    await store.write([[[TABLE, name], () => record]]);
    await named.add(name, record as unknown as QueueOptions);
  }

  /** A trigger was unregistered, or its worker has left. */
  async remove(id: string): Promise<void> {
    const declared = this.#byTrigger.get(id);
    if (!declared || !this.#byTrigger.delete(id)) return;
    const { name, namespace, function_id } = declared;
    if ([...this.#byTrigger.values()].some((each) => each.name === name)) return;
    if (!this.#setup.directory.function(namespace, function_id)) return; // Its worker is away.
    // It goes on until the engine stops, so that jobs which wait are not lost sight of.
    await this.#setup.store.write([[[TABLE, name], () => undefined]]);
  }
}

/** @throws {EngineError} `trigger_registration_failed` for an id that can be no name. */
function nameOf(function_id: string): string {
  if (isQueueName(function_id)) return function_id;
  const message = "The id of the function can be no name of a queue; say name in the config of " +
    "the queue trigger";
  throw new EngineError("trigger_registration_failed", message);
}

/** What a trigger of the type has in its config. */
export const QUEUE_TRIGGER_FORMAT: Json = {
  type: "object",
  properties: {
    name: { type: ["string", "null"], description: "Default: the id of the function" },
    type: {
      enum: ["standard", "fifo"],
      description: "standard (default), or fifo: the jobs of a group run one at a time",
    },
    message_group_field: {
      type: ["string", "null"],
      description: "For fifo: member of the payload that selects the group",
    },
    max_retries: {
      type: "integer",
      description: "Attempts in total, the first included; default 3",
    },
    concurrency: { type: "integer", description: "Default 10" },
    concurrency_per_worker: {
      type: ["integer", "null"],
      description: "Jobs that each worker runs at the same time",
    },
    backoff_ms: {
      type: "integer",
      description: "Delay before the second attempt; doubles with each further attempt",
    },
    backoff_max_ms: { type: "integer", description: "Longest delay between two attempts" },
    jitter: { type: "number", description: "Share by which delays vary, 0 to 1" },
    timeout_ms: { type: ["integer", "null"], description: "Timeout of each attempt" },
    poll_interval_ms: {
      type: "integer",
      description: "Delay before a job whose function was overloaded is tried again",
    },
    rate: {
      type: ["object", "null"],
      description: "{jobs, per_ms}: at most this many jobs begin within per_ms",
    },
    expires_ms: {
      type: ["integer", "null"],
      description: "A job that has not begun by then becomes a dead letter",
    },
  },
};
