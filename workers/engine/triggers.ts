/**
 * Trigger types for changes in the engine: functions, workers, triggers, supervision,
 * configuration.
 *
 * Changes usually come in bursts, so all types but `engine::workers-available` fire once, a short
 * time after the first change of a burst. `engine::functions-available` fires only if the set of
 * function ids differs then. Payloads name what changed, and have a bound; subscribers query the
 * details. The number of triggers of a worker is bounded, since each change concerns all of them.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Directory } from "../../engine/ports/directory.ts";
import type { EngineEvent } from "../../engine/ports/events.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { listFunctions } from "./directory.ts";
import { FanOut, Subscribers } from "./fan_out.ts";
import { pageAnswer, type PageBounds } from "./pages.ts";

/** Delay from the first change of a burst until `engine::functions-available` fires. */
export const FUNCTIONS_CHANGED_DEBOUNCE_MS = 100;
/** The same for the other types. */
export const CHANGES_DEBOUNCE_MS = 100;
/** Names in one payload; subscribers query the others. */
export const CHANGES_NAMED_MAX = 1_000;
/** Triggers of these types that one worker may register. */
export const CHANGE_TRIGGERS_PER_WORKER_MAX = 100;
/** Of the functions in one payload; subscribers query the others. */
const FUNCTIONS_NAMED: PageBounds = { entries: CHANGES_NAMED_MAX, chars: 256 * 1024 };

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
  cancel: () => void;
}

/** Provider of these trigger types. */
export class EngineTriggers {
  readonly #directory: Directory;
  readonly #clock: Clock;
  readonly #fanOut: FanOut;
  readonly #triggers = new Map<TypeId, Subscribers>();
  /** The worker that registered each trigger, by the trigger's id. */
  readonly #owners = new Map<string, string>();
  /** Number of triggers by worker. */
  readonly #counts = new Map<string, number>();
  readonly #bursts = new Map<TypeId, Burst>();
  /** The set of function ids at the last comparison. */
  #functionsMark: string;

  /** `dropped` is called for each event that is dropped because too many wait. */
  constructor(
    worker: Pick<Worker, "trigger">,
    directory: Directory,
    clock: Clock,
    dropped: () => void = () => {},
  ) {
    this.#directory = directory;
    this.#clock = clock;
    this.#fanOut = new FanOut(worker, clock, dropped);
    this.#functionsMark = directory.functionsMark();
  }

  /** Registers the trigger types. */
  register(worker: Pick<Worker, "registerTriggerType">): void {
    for (const [id, { description, format }] of Object.entries(TYPES)) {
      const triggers = new Subscribers();
      this.#triggers.set(id as TypeId, triggers);
      worker.registerTriggerType({ id, description, call_request_format: format }, {
        registerTrigger: (trigger) => {
          this.#count(trigger);
          this.#fanOut.subscribe(triggers, trigger);
        },
        unregisterTrigger: (trigger) => {
          triggers.remove(trigger.id);
          this.#uncount(trigger.id);
        },
      });
    }
  }

  onEvent(event: EngineEvent): void {
    switch (event.type) {
      case "worker_connected":
      case "worker_disconnected":
        return this.#fireWorkers(event.type, event.worker_id);
      case "worker_announced":
      case "worker_suspected":
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
    this.#fanOut.stop();
    this.#triggers.clear();
  }

  /** @throws {EngineError} `trigger_registration_failed` when its worker has too many. */
  #count({ id }: TriggerInstance): void {
    this.#uncount(id);
    const { worker_id = "", worker_name } = this.#directory.trigger(id) ?? {};
    const count = this.#counts.get(worker_id) ?? 0;
    if (count >= CHANGE_TRIGGERS_PER_WORKER_MAX) {
      throw new EngineError(
        "trigger_registration_failed",
        `Worker ${worker_name} has ${count} triggers for changes in the engine, the ` +
          "maximum; one per type is enough",
      );
    }
    this.#owners.set(id, worker_id);
    this.#counts.set(worker_id, count + 1);
  }

  #uncount(id: string): void {
    const worker_id = this.#owners.get(id);
    if (worker_id === undefined) return;
    this.#owners.delete(id);
    const count = this.#counts.get(worker_id)! - 1;
    if (count > 0) this.#counts.set(worker_id, count);
    else this.#counts.delete(worker_id);
  }

  /** Fires `type` after a burst of changes, unless `payload` then returns `undefined`. */
  #debounce(
    type: TypeId,
    payload: (names: string[]) => Json | undefined,
    { name, ms = CHANGES_DEBOUNCE_MS }: { readonly name?: string; readonly ms?: number } = {},
  ): void {
    let burst = this.#bursts.get(type);
    if (!burst) {
      burst = { names: new Set(), cancel: () => {} };
      this.#bursts.set(type, burst);
      this.#arm(type, burst, payload, ms);
    }
    if (name !== undefined && burst.names.size < CHANGES_NAMED_MAX) burst.names.add(name);
  }

  #arm(
    type: TypeId,
    burst: Burst,
    payload: (names: string[]) => Json | undefined,
    ms: number,
  ): void {
    burst.cancel = this.#clock.after(ms, () => {
      // The one before has not reached all triggers: this burst becomes longer.
      if (this.#triggers.get(type)?.waiting) return this.#arm(type, burst, payload, ms);
      this.#bursts.delete(type);
      const value = payload([...burst.names]);
      if (value !== undefined) this.#fire(type, value);
    });
  }

  #fireWorkers(event: string, worker_id: string): void {
    this.#fire("engine::workers-available", { event, worker_id });
  }

  /**
   * The payload of `engine::functions-available`; `undefined` if the ids are the same as before.
   */
  #compareFunctions(): Json | undefined {
    const mark = this.#directory.functionsMark();
    if (mark === this.#functionsMark) return undefined;
    this.#functionsMark = mark;
    if (!this.#triggers.get("engine::functions-available")?.size) return undefined;
    const page = listFunctions(this.#directory, {}, FUNCTIONS_NAMED);
    return { event: "functions_changed", ...pageAnswer("functions", page) };
  }

  #fire(type: TypeId, payload: Json): void {
    const triggers = this.#triggers.get(type);
    if (triggers) this.#fanOut.send(triggers, payload);
  }
}
