/**
 * One run of a replica: a program from its start to its end, and when it is ready.
 *
 * Ready means that the program has announced itself on a connection and then registered nothing
 * for a short while after its first function, or for a longer while without any. A connection
 * belongs to a run by the launch id that it announces; without one, by its process id or name. A
 * run decides nothing: it reports events, and whether it took too long to become ready.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { Directory } from "../ports/directory.ts";
import type { EngineEvent } from "../ports/events.ts";
import type { Ended, LaunchSpec, Running } from "../ports/launcher.ts";
import { OUTPUT_MARKS_VARIABLE, OutputMarks, type UnmarkedLine } from "../process/output.ts";
import type { Release } from "./releases.ts";

/** How long a run may take to become ready, and may stay without a connection afterwards. */
export const READY_TIMEOUT_MS = 120_000;
/** A worker is ready when it has registered nothing for so long after its first function. */
const READY_QUIET_MS = 100;
/** A worker without functions is ready so long after it announced itself. */
const READY_WITHOUT_FUNCTIONS_MS = 2_000;

/** What runs work with. */
export interface RunTools {
  readonly clock: Clock;
  readonly directory: Directory;
  /** The address that workers dial. */
  engineUrl(): string;
  /** Generates the id of a launch. */
  newId(): string;
}

/** Events of a run. */
export interface RunEvents extends ReadinessEvents {
  /** The program printed a line. */
  line(line: UnmarkedLine): void;
  /** A step begins that takes time before the program runs. */
  phase(what: string): void;
  /** The program runs. */
  started(running: Running): void;
  /** The program and its children are gone. Comes before {@linkcode ReplicaRun.over}. */
  ended(ended: Ended): void;
}

/** Why a run is over or of no further use. */
export type RunOver =
  | { readonly type: "ended"; readonly ended: Ended }
  /** It still runs, but has no connection to the engine; `wasReady`: it once had one. */
  | { readonly type: "silent"; readonly wasReady: boolean };

/** One program of a replica. */
export class ReplicaRun {
  readonly release: Release;
  readonly readiness: Readiness;
  /** Settles with the first reason. */
  readonly over: Promise<RunOver>;
  readonly #tools: RunTools;
  readonly #events: RunEvents;
  readonly #settle: (over: RunOver) => void;
  #running: Running | undefined;
  #isReady = false;
  /** It was ready before the launcher reported that it runs. */
  #wasReadyEarly = false;
  #hasEnded = false;
  #beganAt = 0;
  #readyAt: number | undefined;
  #cancelTimeout: () => void = () => {};

  /** Recognizes connections of its launch from now on; {@linkcode start} starts the program. */
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

  /** Whether it is connected and has registered its functions. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Milliseconds from its start to its first readiness; 0 before that. */
  get readyAfterMs(): number {
    return this.#readyAt === undefined ? 0 : this.#readyAt - this.#beganAt;
  }

  /** Milliseconds since its first readiness; 0 before that. */
  get readyForMs(): number {
    return this.#readyAt === undefined ? 0 : this.#tools.clock.now() - this.#readyAt;
  }

  /**
   * Starts the program under a unique name; the signal aborts the steps before it runs.
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
      // A guest has process ids of its own.
      if (launcher.isolation === "process") this.readiness.pid = running.pid;
      this.#events.started(running);
      if (this.#wasReadyEarly) this.#ready();
      else this.#startTimeout();
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
        [OUTPUT_MARKS_VARIABLE]: "1", // The worker's own environment may override it.
        ...env,
        ENGINE_URL: this.#tools.engineUrl(),
        ENGINE_LAUNCH_ID,
      },
      ...containment ? { containment } : {},
    };
  }

  #ready(): void {
    this.#wasReadyEarly = !this.#running;
    if (this.#wasReadyEarly) return;
    this.#cancelTimeout();
    this.#isReady = true;
    this.#readyAt ??= this.#tools.clock.now();
    this.#events.ready();
  }

  #lost(reason: string): void {
    this.#isReady = false;
    this.#wasReadyEarly = false;
    if (!this.#running) return;
    this.#startTimeout();
    this.#events.lost(reason);
  }

  #startTimeout(): void {
    this.#cancelTimeout();
    const wasReady = this.#readyAt !== undefined;
    const silent = (): void => this.#settle({ type: "silent", wasReady });
    this.#cancelTimeout = this.#tools.clock.after(READY_TIMEOUT_MS, silent);
  }

  #ended(ended: Ended): void {
    this.#close();
    this.#events.ended(ended);
    this.#settle({ type: "ended", ended });
  }

  #close(): void {
    this.#hasEnded = true;
    this.#isReady = false;
    this.#cancelTimeout();
    this.readiness[Symbol.dispose]();
  }
}

/** A connection that has announced its worker. */
export type AnnouncedConnection = Extract<EngineEvent, { type: "worker_announced" }>;

/** Changes of the readiness of a launch. */
export interface ReadinessEvents {
  /** The worker seems to have registered everything. */
  ready(): void;
  /** Its last connection has closed. */
  lost(reason: string): void;
}

/** Tracks the connections of one launch. */
export class Readiness implements Disposable {
  /** The id that connections of this launch announce. */
  readonly launchId: string;
  /** Process id that connections without a launch id may announce; `undefined`: none. */
  pid: number | undefined;
  readonly #clock: Clock;
  readonly #directory: Directory;
  readonly #events: ReadinessEvents;
  readonly #connections = new Set<string>();
  #cancelTimer: () => void = () => {};
  #isReady = false;

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

  /** Ids of its connections. */
  get connections(): readonly string[] {
    return [...this.#connections];
  }

  /** Adds a connection of this launch. */
  add(workerId: string): void {
    this.#connections.add(workerId);
    this.#restartTimer();
  }

  /** Handles an event of the core about added connections. */
  onEvent(event: EngineEvent): void {
    switch (event.type) {
      case "functions_changed":
        if (this.#connections.has(event.worker_id)) this.#restartTimer();
        return;
      case "worker_disconnected":
        if (!this.#connections.delete(event.worker_id) || this.#connections.size > 0) return;
        this.#cancelTimer();
        this.#isReady = false;
        return this.#events.lost(event.reason);
    }
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
    this.#connections.clear();
  }

  #restartTimer(): void {
    if (this.#isReady) return;
    this.#cancelTimer();
    const hasFunctions = [...this.#connections].some((id) =>
      (this.#directory.worker(id)?.function_count ?? 0) > 0
    );
    const ms = hasFunctions ? READY_QUIET_MS : READY_WITHOUT_FUNCTIONS_MS;
    this.#cancelTimer = this.#clock.after(ms, () => {
      this.#isReady = true;
      this.#events.ready();
    });
  }
}

/** The launch that a connection belongs to, among all launches of the worker `name`. */
export function launchOf(
  connection: AnnouncedConnection,
  name: string,
  launches: readonly Readiness[],
): Readiness | undefined {
  const { launch_id, pid } = connection;
  if (launch_id !== null) return launches.find(({ launchId }) => launchId === launch_id);
  const byProcess = launches.find((launch) => launch.pid === pid);
  if (byProcess || connection.name !== name) return byProcess;
  return launches.find(({ connections }) => connections.length === 0);
}
