/**
 * One program of a replica, from its start to its end.
 *
 * Knows what it was started from, which lines are its own, whether it is ready, and whether it
 * takes too long to become so. Does not decide what follows from any of it.
 *
 * @module
 */
import { READY_TIMEOUT_MS } from "./limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Directory } from "../ports/directory.ts";
import type { Ended, LaunchSpec, Running } from "../ports/launcher.ts";
import { OUTPUT_MARKS_VARIABLE, OutputMarks, type UnmarkedLine } from "../process/output_marks.ts";
import { Readiness, type ReadinessEvents } from "./readiness.ts";
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
