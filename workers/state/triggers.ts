/**
 * Triggers of type `state`: call a function for changed entries.
 *
 * Changes arrive in commit order. For each trigger, the calls of one key are sent in that order,
 * also when a condition delays them. Calls do not wait for results. A separate task makes them, so
 * that they do not inherit the deadline of the call that changed the entry.
 *
 * @module
 */
import type { Log } from "../../engine/ports/log.ts";
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

interface Subscription {
  readonly trigger: TriggerInstance;
  readonly filter: string;
  readonly condition: string | undefined;
  /** By scope and key: resolves when the last call has been sent. */
  readonly pending: Map<string, Promise<void>>;
}

/** Provider of the trigger type `state`. */
export class StateTriggers {
  readonly #worker: Pick<Worker, "trigger">;
  readonly #log: Log;
  readonly #subscriptions = new Map<string, Subscription>();

  readonly #byFilter = new Map<string, Set<Subscription>>();
  #events: StateEvent[] = [];
  #wake: (() => void) | undefined;
  #isClosed = false;

  /** Starts the task that makes calls, until {@linkcode close}. */
  constructor(worker: Pick<Worker, "trigger">, log: Log) {
    this.#worker = worker;
    this.#log = log;
    void this.#run();
  }

  /** @throws {EngineError} `trigger_registration_failed` for an invalid config. */
  add(trigger: TriggerInstance): void {
    const { scope, key, condition_function_id } = fitTrigger(Config, trigger);
    const filter = filterOf(scope, key);
    const condition = condition_function_id ?? undefined;
    const subscription: Subscription = { trigger, filter, condition, pending: new Map() };
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

  /** Schedules the calls for a committed change. */
  fire(event: StateEvent): void {
    if (this.#subscriptions.size === 0 || this.#isClosed) return;
    this.#events.push(event);
    this.#wake?.();
  }

  /** Stops making calls. */
  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      const events = this.#events;
      this.#events = [];
      for (const event of events) this.#fireNow(event);
      if (this.#events.length > 0) continue;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  #fireNow(event: StateEvent): void {
    const { scope, key } = event;
    const filters = [[], [scope], [undefined, key], [scope, key]] as const;
    for (const [scope, key] of filters) {
      for (const subscription of this.#byFilter.get(filterOf(scope, key)) ?? []) {
        const { condition } = subscription;
        if (condition === undefined) this.#call(subscription, event);
        else this.#callInOrder(subscription, event, this.#allows(subscription, condition, event));
      }
    }
  }

  /** Conditions are called at once; the calls of one key are sent in order. */
  #callInOrder(subscription: Subscription, event: StateEvent, allowed: Promise<boolean>): void {
    const { pending } = subscription;
    const key = filterOf(event.scope, event.key);
    const call = (pending.get(key) ?? Promise.resolve()).then(async () => {
      if (await allowed) this.#call(subscription, event);
      if (pending.get(key) === call) pending.delete(key);
    });
    pending.set(key, call);
  }

  /** Calls the condition, in the namespace of the trigger's function. */
  async #allows(
    { trigger: { namespace } }: Subscription,
    function_id: string,
    event: StateEvent,
  ): Promise<boolean> {
    try {
      const answer = await this.#worker.trigger<StateEvent, Json | undefined>({
        function_id,
        payload: event,
        namespace,
      });
      return answer !== false;
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      this.#log.warn("the condition of a state trigger failed", { function_id, reason });
      return false;
    }
  }

  #call(subscription: Subscription, event: StateEvent): void {
    const { id, function_id, metadata, namespace } = subscription.trigger;
    if (this.#isClosed || this.#subscriptions.get(id) !== subscription) return;
    const action = TriggerAction.Void();
    this.#worker.trigger({ function_id, payload: event, action, metadata, namespace })
      .catch((thrown: unknown) => {
        const reason = thrown instanceof Error ? thrown.message : String(thrown);
        this.#log.warn("a state trigger could not be fired", { function_id, reason });
      });
  }
}

function filterOf(scope: string | null | undefined, key: string | null | undefined): string {
  return JSON.stringify([scope ?? null, key ?? null]);
}
