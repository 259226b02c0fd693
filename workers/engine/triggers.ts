/**
 * Trigger types for changes in the engine: functions, workers, triggers, supervision,
 * configuration.
 *
 * Changes usually come in bursts, so all types but `engine::workers-available` fire once, a short
 * time after the first change of a burst. `engine::functions-available` fires only if the set of
 * function ids differs then. Payloads name what changed; subscribers query the details.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Directory } from "../../engine/ports/directory.ts";
import type { EngineEvent } from "../../engine/ports/events.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fireTriggers } from "../kit/triggers.ts";
import { functionSummary, listFunctions } from "./directory.ts";

/** Delay from the first change of a burst until `engine::functions-available` fires. */
export const FUNCTIONS_CHANGED_DEBOUNCE_MS = 100;
/** The same for the other types. */
export const CHANGES_DEBOUNCE_MS = 100;
/** Names in one payload; subscribers query the others. */
export const CHANGES_NAMED_MAX = 1_000;

const Names = { type: "array", items: { type: "string" } } as const;

/** The trigger types, with the JSON Schema of their payloads. */
const TYPES = {
  "engine::functions-available": {
    description: "The set of functions changed",
    format: {
      type: "object",
      properties: { event: { const: "functions_changed" }, functions: { type: "array" } },
    },
  },
  "engine::workers-available": {
    description: "A worker connected, disconnected or announced itself",
    format: {
      type: "object",
      properties: {
        event: { enum: ["worker_connected", "worker_disconnected", "worker_metadata_updated"] },
        worker_id: { type: "string" },
      },
    },
  },
  "engine::triggers-available": {
    description: "Triggers or trigger types were registered or removed",
    format: {
      type: "object",
      properties: { event: { const: "triggers_changed" }, worker_ids: Names },
    },
  },
  "engine::supervisor-changed": {
    description: "The status of supervised workers changed",
    format: { type: "object", properties: { names: Names } },
  },
  "engine::config-changed": {
    description: "A new configuration is in force",
    format: { type: "object", properties: { event: { const: "config_changed" } } },
  },
} as const satisfies Record<string, { readonly description: string; readonly format: Json }>;

type TypeId = keyof typeof TYPES;

/** A burst of changes that has not been reported yet. */
interface Burst {
  /** What changed; the first {@linkcode CHANGES_NAMED_MAX} names. */
  readonly names: Set<string>;
  readonly cancel: () => void;
}

/** Provider of these trigger types. */
export class EngineTriggers {
  readonly #worker: Pick<Worker, "trigger">;
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #triggers = new Map<TypeId, Map<string, TriggerInstance>>();
  readonly #bursts = new Map<TypeId, Burst>();
  /** The function ids at the last comparison. */
  #functionIds: string;

  constructor(worker: Pick<Worker, "trigger">, directory: Directory, clock: Clock) {
    this.#worker = worker;
    this.#directory = directory;
    this.#clock = clock;
    this.#functionIds = this.#currentFunctionIds();
  }

  /** Registers the trigger types. */
  register(worker: Pick<Worker, "registerTriggerType">): void {
    for (const [id, { description, format }] of Object.entries(TYPES)) {
      const triggers = new Map<string, TriggerInstance>();
      this.#triggers.set(id as TypeId, triggers);
      worker.registerTriggerType({ id, description, call_request_format: format }, {
        registerTrigger: (trigger) => void triggers.set(trigger.id, trigger),
        unregisterTrigger: (trigger) => void triggers.delete(trigger.id),
      });
    }
  }

  onEvent(event: EngineEvent): void {
    switch (event.type) {
      case "worker_connected":
      case "worker_disconnected":
        return this.#fireWorkers(event.type, event.worker_id);
      case "worker_announced":
        return this.#fireWorkers("worker_metadata_updated", event.worker_id);
      case "functions_changed":
        if (!event.ids_changed) return;
        return this.#debounce("engine::functions-available", () => this.#compareFunctions(), {
          ms: FUNCTIONS_CHANGED_DEBOUNCE_MS,
        });
      case "triggers_changed":
        return this.#debounce("engine::triggers-available", (worker_ids) => ({
          event: "triggers_changed",
          worker_ids,
        }), { name: event.worker_id });
      case "supervised_changed":
        return this.#debounce("engine::supervisor-changed", (names) => ({ names }), {
          name: event.name,
        });
      case "config_changed":
        return this.#debounce("engine::config-changed", () => ({ event: "config_changed" }));
    }
  }

  /** Removes all triggers and discards pending changes. */
  stop(): void {
    for (const { cancel } of this.#bursts.values()) cancel();
    this.#bursts.clear();
    this.#triggers.clear();
  }

  /** Fires `type` after a burst of changes, unless `payload` then returns `undefined`. */
  #debounce(
    type: TypeId,
    payload: (names: string[]) => Json | undefined,
    { name, ms = CHANGES_DEBOUNCE_MS }: { readonly name?: string; readonly ms?: number } = {},
  ): void {
    let burst = this.#bursts.get(type);
    if (!burst) {
      const names = new Set<string>();
      const cancel = this.#clock.after(ms, () => {
        this.#bursts.delete(type);
        const value = payload([...names]);
        if (value !== undefined) this.#fire(type, value);
      });
      this.#bursts.set(type, burst = { names, cancel });
    }
    if (name !== undefined && burst.names.size < CHANGES_NAMED_MAX) burst.names.add(name);
  }

  #fireWorkers(event: string, worker_id: string): void {
    this.#fire("engine::workers-available", { event, worker_id });
  }

  /**
   * The payload of `engine::functions-available`; `undefined` if the ids are the same as before.
   */
  #compareFunctions(): Json | undefined {
    const ids = this.#currentFunctionIds();
    if (ids === this.#functionIds) return undefined;
    this.#functionIds = ids;
    if (!this.#triggers.get("engine::functions-available")?.size) return undefined;
    const functions = listFunctions(this.#directory, {}).map(functionSummary);
    return { event: "functions_changed", functions };
  }

  /** All function ids, serialized for comparison. */
  #currentFunctionIds(): string {
    const views = listFunctions(this.#directory, { include_internal: true });
    return JSON.stringify(views.map(({ namespace, function_id }) => [namespace, function_id]));
  }

  #fire(type: TypeId, payload: Json): void {
    fireTriggers(this.#worker, this.#triggers.get(type)?.values() ?? [], payload);
  }
}
