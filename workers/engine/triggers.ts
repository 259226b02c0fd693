/**
 * Trigger types of the engine itself: functions came or went, workers came, went or said who they
 * are.
 *
 * Functions usually come in heaps, so a change is told `FUNCTIONS_CHANGED_DEBOUNCE_MS` after the
 * first of a heap, and only if the set of ids is another one then.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Directory } from "../../engine/ports/directory.ts";
import type { EngineEvent } from "../../engine/ports/events.ts";
import { TriggerAction, type TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { functionSummary, listFunctions } from "./directory.ts";

/** Quiet time before `engine::functions-available` fires. */
export const FUNCTIONS_CHANGED_DEBOUNCE_MS = 100;
/** Delay from the first of several changes to one report of them, in milliseconds. */
export const CHANGES_DEBOUNCE_MS = 100;
/** Names of what changed in one report; listeners ask for the others. */
export const CHANGES_NAMED_MAX = 1_000;

/** Fires the engine's own triggers. */
export class AvailabilityTriggers {
  readonly #worker: Pick<Worker, "trigger">;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #functions = new Map<string, TriggerInstance>();
  readonly #workers = new Map<string, TriggerInstance>();
  #cancel: (() => void) | undefined;
  /** Ids as they were told last. */
  #told: string;

  /** Stores; fires nothing before an event. */
  constructor(worker: Pick<Worker, "trigger">, directory: Directory, clock: Clock) {
    this.#worker = worker;
    this.#directory = directory;
    this.#clock = clock;
    this.#told = this.#ids();
  }

  /** Provides the two types. */
  offer(worker: Pick<Worker, "registerTriggerType">): void {
    const provide = (
      id: string,
      description: string,
      call_request_format: Json,
      triggers: Map<string, TriggerInstance>,
    ): void => {
      worker.registerTriggerType({ id, description, call_request_format }, {
        registerTrigger: (trigger) => void triggers.set(trigger.id, trigger),
        unregisterTrigger: (trigger) => void triggers.delete(trigger.id),
      });
    };
    provide("engine::functions-available", "The set of functions changed", {
      type: "object",
      properties: { event: { const: "functions_changed" }, functions: { type: "array" } },
    }, this.#functions);
    provide("engine::workers-available", "A worker came, left or said who it is", {
      type: "object",
      properties: {
        event: { enum: ["worker_connected", "worker_disconnected", "worker_metadata_updated"] },
        worker_id: { type: "string" },
      },
    }, this.#workers);
  }

  /** Hears what happens in the engine. */
  onEvent(event: EngineEvent): void {
    switch (event.type) {
      case "worker_connected":
      case "worker_disconnected":
        this.#fire(this.#workers, { event: event.type, worker_id: event.worker_id });
        break;
      case "worker_announced": {
        const { worker_id } = event;
        this.#fire(this.#workers, { event: "worker_metadata_updated", worker_id });
        break;
      }
      case "functions_changed":
        if (event.ids_changed) this.#schedule();
        break;
    }
  }

  /** Fires nothing any more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#functions.clear();
    this.#workers.clear();
  }

  #schedule(): void {
    this.#cancel ??= this.#clock.after(FUNCTIONS_CHANGED_DEBOUNCE_MS, () => {
      this.#cancel = undefined;
      const ids = this.#ids();
      if (ids === this.#told) return;
      this.#told = ids;
      if (this.#functions.size === 0) return;
      const functions = listFunctions(this.#directory, {}).map(functionSummary);
      this.#fire(this.#functions, { event: "functions_changed", functions });
    });
  }

  /** All ids as one text that differs when they do. */
  #ids(): string {
    const ids = listFunctions(this.#directory, { include_internal: true });
    return JSON.stringify(ids.map(({ namespace, function_id }) => [namespace, function_id]));
  }

  #fire(triggers: ReadonlyMap<string, TriggerInstance>, payload: Json): void {
    for (const { function_id, namespace, metadata } of triggers.values()) {
      this.#worker.trigger({
        function_id,
        payload,
        action: TriggerAction.Void(),
        ...namespace !== undefined && { namespace },
        ...metadata !== undefined && { metadata },
      }).catch(() => {}); // The engine is stopping; nobody is left to hear of it.
    }
  }
}

/** One type of trigger. */
interface Kind {
  readonly description: string;
  /** JSON Schema of its payload. */
  readonly format: Json;
  /** What it tells of a heap. */
  payload(names: readonly string[]): Json;
}

const Names = { type: "array", items: { type: "string" } } as const;

const KINDS = {
  "engine::triggers-available": {
    description: "Triggers or types of triggers came or went",
    format: {
      type: "object",
      properties: { event: { const: "triggers_changed" }, worker_ids: Names },
    },
    payload: (worker_ids) => ({ event: "triggers_changed", worker_ids: [...worker_ids] }),
  },
  "engine::supervisor-changed": {
    description: "Workers that the engine runs fare otherwise",
    format: { type: "object", properties: { names: Names } },
    payload: (names) => ({ names: [...names] }),
  },
  "engine::config-changed": {
    description: "Another configuration is in force",
    format: { type: "object", properties: { event: { const: "config_changed" } } },
    payload: () => ({ event: "config_changed" }),
  },
} as const satisfies Record<string, Kind>;

type KindName = keyof typeof KINDS;

/** Fires triggers of these types. */
export class ChangeTriggers {
  readonly #worker: Pick<Worker, "trigger">;
  readonly #clock: Clock;
  readonly #triggers = new Map<KindName, Map<string, TriggerInstance>>();
  /** Whom a heap that is not told yet is about; the first `CHANGES_NAMED_MAX` of them. */
  readonly #heaps = new Map<KindName, Set<string>>();
  readonly #cancels = new Map<KindName, () => void>();

  /** Stores; fires nothing before an event. */
  constructor(worker: Pick<Worker, "trigger">, clock: Clock) {
    this.#worker = worker;
    this.#clock = clock;
  }

  /** Provides the types. */
  offer(worker: Pick<Worker, "registerTriggerType">): void {
    for (const [id, { description, format }] of Object.entries(KINDS)) {
      const triggers = new Map<string, TriggerInstance>();
      this.#triggers.set(id as KindName, triggers);
      worker.registerTriggerType({ id, description, call_request_format: format }, {
        registerTrigger: (trigger) => void triggers.set(trigger.id, trigger),
        unregisterTrigger: (trigger) => void triggers.delete(trigger.id),
      });
    }
  }

  /** Hears what happens in the engine. */
  onEvent(event: EngineEvent): void {
    switch (event.type) {
      case "triggers_changed":
        return this.#note("engine::triggers-available", event.worker_id);
      case "supervised_changed":
        return this.#note("engine::supervisor-changed", event.name);
      case "config_changed":
        return this.#note("engine::config-changed");
    }
  }

  /** Fires nothing any more. */
  stop(): void {
    for (const cancel of this.#cancels.values()) cancel();
    this.#cancels.clear();
    this.#triggers.clear();
  }

  #note(kind: KindName, name?: string): void {
    const names = this.#heaps.get(kind) ?? new Set();
    this.#heaps.set(kind, names);
    if (name !== undefined && names.size < CHANGES_NAMED_MAX) names.add(name);
    if (this.#cancels.has(kind)) return;
    this.#cancels.set(
      kind,
      this.#clock.after(CHANGES_DEBOUNCE_MS, () => {
        this.#cancels.delete(kind);
        this.#heaps.delete(kind);
        this.#fire(kind, KINDS[kind].payload([...names]));
      }),
    );
  }

  #fire(kind: KindName, payload: Json): void {
    for (const { function_id, namespace, metadata } of this.#triggers.get(kind)?.values() ?? []) {
      this.#worker.trigger({
        function_id,
        payload,
        action: TriggerAction.Void(),
        ...namespace !== undefined && { namespace },
        ...metadata !== undefined && { metadata },
      }).catch(() => {}); // The engine is stopping; nobody is left to hear of it.
    }
  }
}
