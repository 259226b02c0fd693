/**
 * One program of a replica, from its start to its end.
 *
 * Knows what it was started from, which lines are its own, whether it is ready, and whether it
 * takes too long to become so. Does not decide what follows from any of it.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { Directory } from "../ports/directory.ts";
import type { EngineEvent } from "../ports/events.ts";
import type { Ended, LaunchSpec, Running } from "../ports/launcher.ts";
import { OUTPUT_MARKS_VARIABLE, OutputMarks, type UnmarkedLine } from "../process/output.ts";
import { READY_QUIET_MS, READY_TIMEOUT_MS, READY_WITHOUT_FUNCTIONS_MS } from "./limits.ts";
import type { Release } from "./releases.ts";

/** What runs work with. */
export interface RunTools {
  readonly clock: Clock;
  readonly directory: Directory;
  /** Where workers dial. */
  engineUrl(): string;
  /** A fresh id of a launch. */
  newId(): string;
}

/** Who is told what happens. */
export interface RunEvents extends ReadinessEvents {
  /** A line that the program printed. */
  line(line: UnmarkedLine): void;
  /** What takes its time before the program runs. */
  phase(what: string): void;
  /** The program runs. */
  started(running: Running): void;
  /** The program and all that it started are gone. Told before {@linkcode ReplicaRun.over}. */
  ended(ended: Ended): void;
}

/** How a run is over, or no use any more. */
export type RunOver =
  | { readonly type: "ended"; readonly ended: Ended }
  /** It still runs, but has no line to the engine; `wasReady`: it once had. */
  | { readonly type: "silent"; readonly wasReady: boolean };

/** A program that was started, or is being started. */
export class ReplicaRun {
  readonly release: Release;
  readonly readiness: Readiness;
  /** The first that happens. */
  readonly over: Promise<RunOver>;
  readonly #tools: RunTools;
  readonly #events: RunEvents;
  readonly #settle: (over: RunOver) => void;
  #running: Running | undefined;
  #isReady = false;
  /** Its lines were ready before the launcher had said that it runs. */
  #isEarly = false;
  #hasEnded = false;
  #beganAt = 0;
  #readyAt: number | undefined;
  #cancelLimit: () => void = () => {};

  /** Starts nothing yet, but knows its lines. */
  constructor(release: Release, tools: RunTools, events: RunEvents) {
    this.release = release;
    this.#tools = tools;
    this.#events = events;
    const { promise, resolve } = Promise.withResolvers<RunOver>();
    this.over = promise;
    this.#settle = resolve;
    this.readiness = new Readiness(tools, tools.newId(), {
      ready: () => this.#ready(),
      lost: (reason) => this.#lost(reason),
    });
  }

  /** The program, while it runs. */
  get running(): Running | undefined {
    return this.#hasEnded ? undefined : this.#running;
  }

  /** Whether it has lines and offers what it has to offer. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Milliseconds from its start to its first readiness; 0 before that. */
  get readyAfterMs(): number {
    return this.#readyAt === undefined ? 0 : this.#readyAt - this.#beganAt;
  }

  /** Milliseconds since it was ready first; 0: it never was. */
  get readyForMs(): number {
    return this.#readyAt === undefined ? 0 : this.#tools.clock.now() - this.#readyAt;
  }

  /**
   * Starts the program under a name of its own; the signal gives up what takes its time before.
   *
   * @throws {EngineError} `launch_failed`, `isolation_unavailable`, `cancelled`.
   */
  async start(name: string, signal: AbortSignal): Promise<void> {
    this.#beganAt = this.#tools.clock.now();
    const { launcher } = this.release.prepared;
    const marks = new OutputMarks();
    try {
      const running = await launcher.start(
        this.#spec(name),
        (line) => this.#events.line(marks.read(line)),
        (what) => this.#events.phase(what),
        signal,
      );
      this.#running = running;
      // In a machine of its own a program has other process ids than here.
      if (launcher.isolation === "process") this.readiness.pid = running.pid;
      this.#events.started(running);
      if (this.#isEarly) this.#ready();
      else this.#limit();
      void running.ended.then((ended) => this.#ended(ended));
    } catch (thrown) {
      this.#close();
      throw thrown;
    }
  }

  #spec(name: string): LaunchSpec {
    const { entry, spec, prepared: { env, containment } } = this.release;
    const ENGINE_LAUNCH_ID = this.readiness.launchId;
    return {
      name,
      command: spec.start,
      directory: entry.path,
      env: {
        [OUTPUT_MARKS_VARIABLE]: "1", // Before the worker's own, which may say otherwise.
        ...env,
        ENGINE_URL: this.#tools.engineUrl(),
        ENGINE_LAUNCH_ID,
      },
      ...containment ? { containment } : {},
    };
  }

  #ready(): void {
    this.#isEarly = !this.#running;
    if (this.#isEarly) return;
    this.#cancelLimit();
    this.#isReady = true;
    this.#readyAt ??= this.#tools.clock.now();
    this.#events.ready();
  }

  #lost(reason: string): void {
    this.#isReady = false;
    this.#isEarly = false;
    if (!this.#running) return;
    this.#limit();
    this.#events.lost(reason);
  }

  /** From now on it has so long to become ready. */
  #limit(): void {
    this.#cancelLimit();
    const wasReady = this.#readyAt !== undefined;
    const silent = (): void => this.#settle({ type: "silent", wasReady });
    this.#cancelLimit = this.#tools.clock.after(READY_TIMEOUT_MS, silent);
  }

  #ended(ended: Ended): void {
    this.#close();
    this.#events.ended(ended);
    this.#settle({ type: "ended", ended });
  }

  #close(): void {
    this.#hasEnded = true;
    this.#isReady = false;
    this.#cancelLimit();
    this.readiness[Symbol.dispose]();
  }
}

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
