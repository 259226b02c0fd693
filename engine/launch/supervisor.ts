/**
 * Runs the workers that are directories, and keeps them running.
 *
 * It knows which workers there are; how each of them lives is {@linkcode WorkerLife}'s business. A
 * new list is applied by difference: what did not change is not touched.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import { STARTS_AT_ONCE_MAX } from "../../sdk/typescript/limits.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { EngineEvent } from "../ports/events.ts";
import type { WorkerStatus } from "../ports/supervision.ts";
import { StartSlots } from "./start_slots.ts";
import { type LifeTools, WorkerLife } from "./worker_life.ts";
import { watchWorker } from "./worker_watch.ts";

/** What a {@linkcode Supervisor} works with. */
export type SupervisorOptions =
  & Omit<LifeTools, "slots" | "watch" | "newId">
  & Partial<Pick<LifeTools, "watch" | "newId">>;

/** The workers of one engine that are directories. */
export class Supervisor {
  readonly #tools: LifeTools;
  readonly #lives = new Map<string, WorkerLife>();
  /** Removed ones that have not ended yet; one of the same name waits for them. */
  readonly #leaving = new Map<string, Promise<void>>();

  /** Runs nothing yet. */
  constructor(options: SupervisorOptions) {
    this.#tools = {
      watch: watchWorker,
      newId: () => crypto.randomUUID(),
      slots: new StartSlots(STARTS_AT_ONCE_MAX),
      ...options,
    };
  }

  /** Makes what runs equal to a list; returns at once, the rest happens in the background. */
  apply(entries: readonly DirectoryEntry[]): void {
    const names = new Set(entries.map(({ name }) => name));
    for (const [name, life] of this.#lives) if (!names.has(name)) this.#remove(name, life);
    for (const entry of entries) {
      const life = this.#lives.get(entry.name);
      if (!life) this.#add(entry);
      else if (!isSame(life.entry, entry)) life.update(entry);
    }
  }

  /** All workers, in the order in which they were added. */
  list(): WorkerStatus[] {
    return [...this.#lives.values()].map((life) => life.status());
  }

  /** @throws {EngineError} `NOT_FOUND` with the names there are. */
  status(name: string): WorkerStatus {
    return this.#life(name).status();
  }

  /** Wants it to run; clears a `failed`. @throws {EngineError} `NOT_FOUND`. */
  start(name: string): WorkerStatus {
    const life = this.#life(name);
    life.start();
    return life.status();
  }

  /**
   * Wants it not to run, until start() or the engine's next start.
   *
   * @throws {EngineError} `NOT_FOUND`.
   */
  stop(name: string): WorkerStatus {
    const life = this.#life(name);
    life.stop();
    return life.status();
  }

  /** Ends it and starts it again; `reinstall` throws the cached dependencies away first. */
  restart(name: string, { reinstall }: { readonly reinstall: boolean }): WorkerStatus {
    const life = this.#life(name);
    life.restart(reinstall);
    return life.status();
  }

  /** The last lines of its log with their times. Rejects with `NOT_FOUND`. */
  async logs(name: string, tail: number): Promise<string[]> {
    return await this.#life(name).logs(tail);
  }

  /** Takes what the core reports. */
  onEvent(event: EngineEvent): void {
    for (const life of this.#lives.values()) life.onEvent(event);
  }

  /** Stops all at once and waits until they have ended. */
  async close(): Promise<void> {
    for (const [name, life] of this.#lives) this.#remove(name, life);
    await Promise.all(this.#leaving.values());
  }

  #add(entry: DirectoryEntry): void {
    const life = new WorkerLife(entry, this.#tools, this.#leaving.get(entry.name));
    this.#lives.set(entry.name, life);
    life.start();
  }

  #remove(name: string, life: WorkerLife): void {
    this.#lives.delete(name);
    const before = this.#leaving.get(name);
    const gone = Promise.all([before, life.close()]).then(() => {
      if (this.#leaving.get(name) === gone) this.#leaving.delete(name);
    });
    this.#leaving.set(name, gone);
  }

  #life(name: string): WorkerLife {
    const life = this.#lives.get(name);
    if (life) return life;
    const names = [...this.#lives.keys()].join(", ") || "none";
    throw new EngineError("NOT_FOUND", `There is no worker ${name}; there are: ${names}`);
  }
}

function isSame(one: DirectoryEntry, other: DirectoryEntry): boolean {
  return one.path === other.path && one.isolation === other.isolation &&
    JSON.stringify(one.env) === JSON.stringify(other.env);
}
