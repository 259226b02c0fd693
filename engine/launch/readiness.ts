/**
 * Finds out, from what the core reports, which lines belong to a launch and when it is ready.
 *
 * A line belongs to it when it brought the launch's id; else, if it brought none, when the name or
 * the process id it announced fits. Ready means: announced, and nothing more was registered for a
 * short while after the first function (or for a longer while without any).
 *
 * @module
 */
import { READY_QUIET_MS, READY_WITHOUT_FUNCTIONS_MS } from "../../sdk/typescript/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Directory } from "../ports/directory.ts";
import type { EngineEvent } from "../ports/events.ts";

/** Who is told what comes of a launch. */
export interface ReadinessEvents {
  /** Everything it offers seems to be there. */
  ready(): void;
  /** Its last line has ended. */
  lost(reason: string): void;
}

/** Watches one launch of one worker. */
export class Readiness implements Disposable {
  readonly #clock: Clock;
  readonly #directory: Directory;
  readonly #name: string;
  readonly #launchId: string;
  readonly #events: ReadinessEvents;
  readonly #lines = new Set<string>();
  /** Process id of the program, once it is known. */
  pid: number | undefined;
  #cancelTimer: () => void = () => {};
  #isReady = false;

  /** Waits for lines from now on. */
  constructor(
    { clock, directory }: { readonly clock: Clock; readonly directory: Directory },
    name: string,
    launchId: string,
    events: ReadinessEvents,
  ) {
    this.#clock = clock;
    this.#directory = directory;
    this.#name = name;
    this.#launchId = launchId;
    this.#events = events;
  }

  /** Ids of all functions that the launch offers now, sorted. */
  get functions(): string[] {
    if (this.#lines.size === 0) return [];
    return this.#directory.functions()
      .filter(({ worker_ids }) => worker_ids.some((id) => this.#lines.has(id)))
      .map(({ function_id }) => function_id).sort();
  }

  /** Takes what the core reports. */
  onEvent(event: EngineEvent): void {
    switch (event.type) {
      case "worker_announced":
        if (!this.#isMine(event)) return;
        this.#lines.add(event.worker_id);
        return this.#wait();
      case "functions_changed":
        if (this.#lines.has(event.worker_id)) this.#wait();
        return;
      case "worker_disconnected":
        if (!this.#lines.delete(event.worker_id) || this.#lines.size > 0) return;
        this.#cancelTimer();
        this.#isReady = false;
        return this.#events.lost(event.reason);
    }
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
    this.#lines.clear();
  }

  #isMine(event: Extract<EngineEvent, { type: "worker_announced" }>): boolean {
    if (event.launch_id !== null) return event.launch_id === this.#launchId;
    return event.name === this.#name || event.pid === this.pid;
  }

  /** Starts the quiet time anew. */
  #wait(): void {
    if (this.#isReady) return;
    this.#cancelTimer();
    const hasFunctions = [...this.#lines].some((id) =>
      (this.#directory.worker(id)?.function_count ?? 0) > 0
    );
    const ms = hasFunctions ? READY_QUIET_MS : READY_WITHOUT_FUNCTIONS_MS;
    this.#cancelTimer = this.#clock.after(ms, () => {
      this.#isReady = true;
      this.#events.ready();
    });
  }
}
