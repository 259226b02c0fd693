/**
 * How many triggers of one type there may be: of one worker, and of all.
 *
 * Without the first bound, one worker could take all places of a type. Built-in workers register
 * for many users, such as the pages of the console, and have the second bound only.
 *
 * @module
 */
import type { Directory } from "../../engine/ports/directory.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Triggers of a type of all workers. */
export const TELEMETRY_TRIGGERS_MAX = 1_000;
/** Triggers of a type of one worker. */
export const TELEMETRY_TRIGGERS_PER_WORKER_MAX = 100;

/** Counts the triggers of one type. */
export class TriggerQuota {
  readonly #directory: Pick<Directory, "trigger" | "worker">;
  /** Connection of the worker by trigger; `""`: not counted by worker. */
  readonly #owners = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  constructor(directory: Pick<Directory, "trigger" | "worker">) {
    this.#directory = directory;
  }

  /**
   * Takes a place; a trigger that has one keeps it, unless it moved to another worker.
   *
   * @throws {EngineError} `trigger_registration_failed` when there is none.
   */
  take({ id, trigger_type }: TriggerInstance): void {
    const { worker_id = "", worker_name = worker_id } = this.#directory.trigger(id) ?? {};
    const owner = this.#directory.worker(worker_id)?.builtin ? "" : worker_id;
    if (this.#owners.get(id) === owner) return;
    const count = this.#counts.get(owner) ?? 0;
    if (owner !== "" && count >= TELEMETRY_TRIGGERS_PER_WORKER_MAX) {
      throw failed(`Worker ${worker_name} has ${count} triggers of type ${trigger_type}`);
    }
    if (this.#owners.size >= TELEMETRY_TRIGGERS_MAX && !this.#owners.has(id)) {
      throw failed(`There are ${this.#owners.size} triggers of type ${trigger_type}`);
    }
    this.give(id);
    this.#owners.set(id, owner);
    this.#counts.set(owner, count + 1);
  }

  /** Frees the place of a trigger, if it has one. */
  give(id: string): void {
    const owner = this.#owners.get(id);
    if (owner === undefined) return;
    this.#owners.delete(id);
    const count = this.#counts.get(owner)! - 1;
    if (count > 0) this.#counts.set(owner, count);
    else this.#counts.delete(owner);
  }
}

function failed(what: string): EngineError {
  const message = `${what}, the maximum; remove some, or let one function pass on ` +
    "what it gets";
  return new EngineError("trigger_registration_failed", message);
}
