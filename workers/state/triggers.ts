/**
 * Triggers of type `state`: which functions a change concerns, and calling them.
 *
 * Changes come in the order in which they are on disk, and the calls for one key leave in that
 * order for each trigger, also when a condition takes its time. Calls are void: nobody here waits
 * for a handler. They are made by a task of its own, so that they do not inherit the deadline of
 * the call that made the change.
 *
 * @module
 */
import * as v from "../kit/schema.ts";
import type { Log } from "../../engine/ports/log.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { TriggerAction, type TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { problemsOf } from "../kit/fit.ts";
import type { StateEvent } from "./entries.ts";

/** What a trigger of type `state` is told; what is left out matches everything. */
const Config = v.object({
  scope: v.nullish(v.string()),
  key: v.nullish(v.string()),
  condition_function_id: v.nullish(v.text(1)),
});

interface Watch {
  readonly trigger: TriggerInstance;
  readonly filter: string;
  readonly condition: string | undefined;
  /** By scope and key: resolves when the last call for them has left. */
  readonly turns: Map<string, Promise<void>>;
}

/** The triggers of type `state` that are registered now. */
export class StateTriggers {
  readonly #worker: Pick<Worker, "trigger">;
  readonly #log: Log;
  readonly #watches = new Map<string, Watch>();
  /** The same by what they ask for. */
  readonly #byFilter = new Map<string, Set<Watch>>();
  #events: StateEvent[] = [];
  #wake: (() => void) | undefined;
  #isClosed = false;

  /** Starts the task that makes the calls; {@linkcode close} ends it. */
  constructor(worker: Pick<Worker, "trigger">, log: Log) {
    this.#worker = worker;
    this.#log = log;
    void this.#run();
  }

  /** @throws {EngineError} `trigger_registration_failed` for a config that does not fit. */
  add(trigger: TriggerInstance): void {
    const read = v.safeParse(Config, trigger.config ?? {});
    if (!read.success) {
      const problems = problemsOf(read.issues, trigger.config).join("; ");
      const message = `The config of the state trigger does not fit: ${problems}`;
      throw new EngineError("trigger_registration_failed", message);
    }
    const { scope, key, condition_function_id } = read.output;
    const filter = filterOf(scope, key);
    const condition = condition_function_id ?? undefined;
    const watch: Watch = { trigger, filter, condition, turns: new Map() };
    this.remove(trigger.id);
    this.#watches.set(trigger.id, watch);
    const alike = this.#byFilter.get(filter);
    if (alike) alike.add(watch);
    else this.#byFilter.set(filter, new Set([watch]));
  }

  /** Forgets a trigger; calls that wait for its condition are not made. */
  remove(id: string): void {
    const watch = this.#watches.get(id);
    if (!watch) return;
    this.#watches.delete(id);
    const alike = this.#byFilter.get(watch.filter)!;
    alike.delete(watch);
    if (alike.size === 0) this.#byFilter.delete(watch.filter);
  }

  /** A change is on disk; the calls leave soon. */
  fire(event: StateEvent): void {
    if (this.#watches.size === 0 || this.#isClosed) return;
    this.#events.push(event);
    this.#wake?.();
  }

  /** Makes no more calls. */
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
      for (const watch of this.#byFilter.get(filterOf(scope, key)) ?? []) {
        if (watch.condition === undefined) this.#call(watch, event);
        else this.#callInTurn(watch, event, this.#allows(watch, watch.condition, event));
      }
    }
  }

  /** Conditions are asked at once; the calls of one key wait for each other. */
  #callInTurn(watch: Watch, event: StateEvent, allowed: Promise<boolean>): void {
    const { turns } = watch;
    const key = filterOf(event.scope, event.key);
    const turn = (turns.get(key) ?? Promise.resolve()).then(async () => {
      if (await allowed) this.#call(watch, event);
      if (turns.get(key) === turn) turns.delete(key);
    });
    turns.set(key, turn);
  }

  /** The condition is looked for where the function of the trigger is. */
  async #allows(
    { trigger: { namespace } }: Watch,
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

  #call(watch: Watch, event: StateEvent): void {
    const { id, function_id, metadata, namespace } = watch.trigger;
    if (this.#isClosed || this.#watches.get(id) !== watch) return;
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
