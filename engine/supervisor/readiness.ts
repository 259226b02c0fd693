/**
 * Finds out, from what the core reports, which lines belong to a launch and when it is ready.
 *
 * A line belongs to it when it brought the launch's id; else, if it brought none, when the process
 * id or the name it announced fits. Ready means: announced, and nothing more was registered for a
 * short while after the first function (or for a longer while without any).
 *
 * @module
 */
import { READY_QUIET_MS, READY_WITHOUT_FUNCTIONS_MS } from "./limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Directory } from "../ports/directory.ts";
import type { EngineEvent } from "../ports/events.ts";

/** A line that has said who it is. */
export type AnnouncedLine = Extract<EngineEvent, { type: "worker_announced" }>;

/** Who is told what comes of a launch. */
export interface ReadinessEvents {
  /** Everything it offers seems to be there. */
  ready(): void;
  /** Its last line has ended. */
  lost(reason: string): void;
}

/** Watches one launch of one replica. */
export class Readiness implements Disposable {
  /** The id that lines of this launch bring. */
  readonly launchId: string;
  /** Process id that lines without an id may announce; `undefined`: it says nothing. */
  pid: number | undefined;
  readonly #clock: Clock;
  readonly #directory: Directory;
  readonly #events: ReadinessEvents;
  readonly #lines = new Set<string>();
  #cancelTimer: () => void = () => {};
  #isReady = false;

  /** Waits for lines from now on. */
  constructor(
    { clock, directory }: { readonly clock: Clock; readonly directory: Directory },
    launchId: string,
    events: ReadinessEvents,
  ) {
    this.#clock = clock;
    this.#directory = directory;
    this.launchId = launchId;
    this.#events = events;
  }

  /** Ids of the lines it has now. */
  get lines(): readonly string[] {
    return [...this.#lines];
  }

  /** Takes a line that belongs to this launch. */
  take(workerId: string): void {
    this.#lines.add(workerId);
    this.#wait();
  }

  /** Takes what the core reports of lines that were taken. */
  onEvent(event: EngineEvent): void {
    switch (event.type) {
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

/** The launch, of all there are of a worker of that name, that a line belongs to. */
export function ownerOf(
  line: AnnouncedLine,
  name: string,
  launches: readonly Readiness[],
): Readiness | undefined {
  if (line.launch_id !== null) return launches.find(({ launchId }) => launchId === line.launch_id);
  const byProcess = launches.find(({ pid }) => pid === line.pid);
  if (byProcess || line.name !== name) return byProcess;
  return launches.find(({ lines }) => lines.length === 0);
}
