/**
 * Triggers of type `state`: call a function for changed entries. Types of other workers that fire
 * for changes are a {@linkcode ChangeKind} of their own.
 *
 * Changes arrive in commit order. For each trigger, the calls of one key are sent in that order,
 * also when a condition delays them. Calls do not wait for results. A separate task makes them, so
 * that they do not inherit the deadline of the call that changed the entry; it gives way to others
 * every few milliseconds. While too many changes wait for it, {@linkcode ChangeTriggers.isBehind},
 * and writes are refused. Changes that wait for the conditions of one trigger are bounded for that
 * trigger alone: others must not wait for its condition.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { TriggerAction, type TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import * as v from "../kit/schema.ts";
import { fitTrigger } from "../kit/triggers.ts";
import type { StateEvent } from "./entries.ts";

/** The config of a trigger; absent members match everything. */
const Config = v.object({
  scope: v.nullish(v.string()),
  key: v.nullish(v.string()),
  condition_function_id: v.nullish(v.text(1)),
});

/** Bytes of changes that wait for their calls. */
const QUEUED_BYTES_MAX = 64 * 1024 * 1024;
/** Changes that wait for their calls. */
const QUEUED_EVENTS_MAX = 20_000;
/** How long calls are made before other work gets its turn. */
const SLICE_MS = 5;
/** Changes of one trigger that wait for its condition, and their bytes. */
const CONDITION_EVENTS_MAX = 1_000;
const CONDITION_BYTES_MAX = 16 * 1024 * 1024;
/** Time between two reports of the same trigger. */
const REPORT_MS = 10_000;
/** Estimated bytes of a change beside its values. */
const EVENT_OVERHEAD_BYTES = 512;

/** Part of a filter; absent: matches everything. */
type FilterPart = string | null | undefined;

/** One type of triggers for changes. */
export interface ChangeKind<Event> {
  /** The trigger type. */
  readonly type: string;
  /**
   * Reads the config of a trigger: its filter, and its condition.
   *
   * @throws {EngineError} `trigger_registration_failed` for an invalid config.
   */
  read(trigger: TriggerInstance): {
    readonly filter: readonly FilterPart[];
    readonly condition: string | undefined;
  };
  /** All filters that match an event. */
  filtersOf(event: Event): readonly (readonly FilterPart[])[];
  /** Calls for events of the same subject are sent in order. */
  subjectOf(event: Event): readonly FilterPart[];
}

/** Triggers of type `state`. */
export const STATE_TRIGGERS: ChangeKind<StateEvent> = {
  type: "state",
  read(trigger) {
    const { scope, key, condition_function_id } = fitTrigger(Config, trigger);
    return { filter: [scope, key], condition: condition_function_id ?? undefined };
  },
  filtersOf: ({ scope, key }) => [[null, null], [scope, null], [null, key], [scope, key]],
  subjectOf: ({ scope, key }) => [scope, key],
};

/** Dependencies of {@linkcode ChangeTriggers}. */
export interface ChangeTriggersSetup<Event> {
  readonly kind: ChangeKind<Event>;
  readonly worker: Pick<Worker, "trigger">;
  readonly log: Log;
  readonly clock: Pick<Clock, "now" | "after">;
  readonly memory: MemoryBudget;
}

interface Subscription {
  readonly trigger: TriggerInstance;
  readonly filter: string;
  readonly condition: string | undefined;
  /**
   * By scope and key: resolves when the last call has been sent. `undefined` before the first
   * change that waits for a condition: an empty `Map` takes 400 bytes.
   */
  pending: Map<string, Promise<void>> | undefined;
  /** Changes that wait for the condition. */
  waiting: number;
  waitingBytes: number;
  /** When a dropped change was reported last. */
  reportedAt: number;
}

/** A change that waits for its calls. */
interface Queued<Event> {
  readonly event: Event;
  readonly bytes: number;
  /** Bytes of the memory budget that it holds. */
  readonly taken: number;
}

/** Provider of one trigger type. */
export class ChangeTriggers<Event extends object> {
  readonly #setup: ChangeTriggersSetup<Event>;
  readonly #subscriptions = new Map<string, Subscription>();

  readonly #byFilter = new Map<string, Set<Subscription>>();
  #queue: Queued<Event>[] = [];
  #queuedEvents = 0;
  #queuedBytes = 0;
  #wake: (() => void) | undefined;
  #sliceEnd = Infinity;
  #isClosed = false;

  /** Starts the task that makes calls, until {@linkcode close}. */
  constructor(setup: ChangeTriggersSetup<Event>) {
    this.#setup = setup;
    void this.#run();
  }

  /** There is no trigger, so nothing is fired. */
  get isEmpty(): boolean {
    return this.#subscriptions.size === 0;
  }

  /** Too many changes wait for their calls; more should not be made. */
  get isBehind(): boolean {
    if (this.#queuedEvents === 0) return false;
    return this.#queuedBytes > QUEUED_BYTES_MAX || this.#queuedEvents > QUEUED_EVENTS_MAX ||
      this.#setup.memory.isTight;
  }

  /** @throws {EngineError} `trigger_registration_failed` for an invalid config. */
  add(trigger: TriggerInstance): void {
    const { filter: parts, condition } = this.#setup.kind.read(trigger);
    const filter = filterOf(parts);
    const subscription: Subscription = {
      trigger,
      filter,
      condition,
      pending: undefined,
      waiting: 0,
      waitingBytes: 0,
      reportedAt: -Infinity,
    };
    this.remove(trigger.id);
    this.#subscriptions.set(trigger.id, subscription);
    const group = this.#byFilter.get(filter);
    if (group) group.add(subscription);
    else this.#byFilter.set(filter, new Set([subscription]));
  }

  /** Removes a trigger and drops its calls that wait for a condition. */
  remove(id: string): void {
    const subscription = this.#subscriptions.get(id);
    if (!subscription) return;
    this.#subscriptions.delete(id);
    const group = this.#byFilter.get(subscription.filter)!;
    group.delete(subscription);
    if (group.size === 0) this.#byFilter.delete(subscription.filter);
  }

  /** Schedules the calls for a committed change; `bytes`: of its values. */
  fire(event: Event, bytes: number): void {
    if (this.#subscriptions.size === 0 || this.#isClosed) return;
    const cost = bytes + EVENT_OVERHEAD_BYTES;
    const taken = this.#setup.memory.take("queues", cost) ? cost : 0;
    this.#queue.push({ event, bytes: cost, taken });
    this.#queuedEvents++;
    this.#queuedBytes += cost;
    this.#wake?.();
  }

  /** Stops making calls. */
  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      const queue = this.#queue;
      this.#queue = [];
      for (const queued of queue) {
        for (const _ of this.#fireNow(queued)) {
          if (this.#setup.clock.now() >= this.#sliceEnd) await this.#giveWay();
          if (this.#isClosed) break;
        }
        this.#queuedEvents--;
        this.#queuedBytes -= queued.bytes;
        this.#setup.memory.release("queues", queued.taken);
      }
      if (this.#queue.length > 0) continue;
      await new Promise<void>((resolve) => this.#wake = resolve);
      this.#sliceEnd = this.#setup.clock.now() + SLICE_MS;
    }
    for (const { taken } of this.#queue) this.#setup.memory.release("queues", taken);
  }

  /** Makes the calls for a change; the caller may do other work after each. */
  *#fireNow({ event, bytes }: Queued<Event>): Generator<void> {
    for (const filter of this.#setup.kind.filtersOf(event)) {
      for (const subscription of this.#byFilter.get(filterOf(filter)) ?? []) {
        const { condition } = subscription;
        if (condition === undefined) this.#call(subscription, event);
        else this.#callInOrder(subscription, condition, event, bytes);
        yield;
      }
    }
  }

  /** Lets sockets, timers and other workers have their turn. */
  async #giveWay(): Promise<void> {
    const { clock } = this.#setup;
    await new Promise<void>((resolve) => clock.after(0, resolve));
    this.#sliceEnd = clock.now() + SLICE_MS;
  }

  /** Conditions are called at once; the calls of one key are sent in order. */
  #callInOrder(
    subscription: Subscription,
    condition: string,
    event: Event,
    bytes: number,
  ): void {
    const pending = subscription.pending ??= new Map();
    const isFull = subscription.waiting >= CONDITION_EVENTS_MAX ||
      subscription.waitingBytes + bytes > CONDITION_BYTES_MAX && subscription.waiting > 0;
    if (isFull) return this.#reportDropped(subscription, condition);
    subscription.waiting++;
    subscription.waitingBytes += bytes;
    const allowed = this.#allows(subscription, condition, event);
    const key = filterOf(this.#setup.kind.subjectOf(event));
    const call = (pending.get(key) ?? Promise.resolve()).then(async () => {
      if (await allowed) this.#call(subscription, event);
      subscription.waiting--;
      subscription.waitingBytes -= bytes;
      if (pending.get(key) === call) pending.delete(key);
    });
    pending.set(key, call);
  }

  #reportDropped(subscription: Subscription, function_id: string): void {
    const now = this.#setup.clock.now();
    if (now < subscription.reportedAt + REPORT_MS) return;
    subscription.reportedAt = now;
    this.#setup.log.warn(
      `changes are dropped for a ${this.#setup.kind.type} trigger whose condition is too slow`,
      {
        function_id,
        waiting: subscription.waiting,
      },
    );
  }

  /** Calls the condition, in the namespace of the trigger's function. */
  async #allows(
    { trigger: { namespace } }: Subscription,
    function_id: string,
    event: Event,
  ): Promise<boolean> {
    try {
      const answer = await this.#setup.worker.trigger<Event, Json | undefined>({
        function_id,
        payload: event,
        namespace,
      });
      return answer !== false;
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      this.#setup.log.warn(`the condition of a ${this.#setup.kind.type} trigger failed`, {
        function_id,
        reason,
      });
      return false;
    }
  }

  #call(subscription: Subscription, event: Event): void {
    const { id, function_id, metadata, namespace } = subscription.trigger;
    if (this.#isClosed || this.#subscriptions.get(id) !== subscription) return;
    const action = TriggerAction.Void();
    this.#setup.worker.trigger({ function_id, payload: event, action, metadata, namespace })
      .catch((thrown: unknown) => {
        const reason = thrown instanceof Error ? thrown.message : String(thrown);
        this.#setup.log.warn(`a ${this.#setup.kind.type} trigger could not be fired`, {
          function_id,
          reason,
        });
      });
  }
}

function filterOf(parts: readonly FilterPart[]): string {
  return JSON.stringify(parts.map((part) => part ?? null));
}
