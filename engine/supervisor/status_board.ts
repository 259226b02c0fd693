/**
 * What is known of one replica, in the words that people and programs get to see.
 *
 * Holds no decisions: it is told what happens, dates it, logs it and answers.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { Log, LogFields } from "../ports/log.ts";
import type { ReplicaStatus, WorkerState } from "../ports/supervision.ts";

/** Last lines that go with a failure. */
const FAILURE_LINES = 20;

/** Something that was said, and when, in milliseconds since 1970. */
export interface Dated {
  readonly text: string;
  readonly atMs: number;
}

/** What a board says; the rest of a replica's status is known elsewhere. */
export type BoardView =
  & Pick<ReplicaStatus, "state" | "since_ms" | "reason" | "pid" | "restarts" | "started_at_ms">
  & {
    readonly ready_after_ms: number | null;
    readonly lastExit: Dated | null;
    readonly lastError: Dated | null;
    /** Last lines it printed, while it waits after an end or has failed; empty otherwise. */
    readonly tail: readonly string[];
  };

/** The status of one replica. */
export class StatusBoard {
  readonly #clock: Clock;
  readonly #log: Log;
  /** Fields that every line of the log about it has. */
  readonly #who: () => LogFields;
  readonly #changed: () => void;
  #state: WorkerState = "stopped";
  #sinceMs: number;
  #reason: string | null = null;
  #pid: number | null = null;
  #restarts = 0;
  #startedAtMs: number | null = null;
  #readyAfterMs: number | null = null;
  #lastExit: Dated | null = null;
  #lastError: Dated | null = null;
  #tail: string[] = [];

  /**
   * Starts as `stopped`; `who` gives the fields that name it in the log, `changed` hears whenever
   * the view is another.
   */
  constructor(
    { clock, log }: { readonly clock: Clock; readonly log: Log },
    who: () => LogFields,
    changed: () => void = () => {},
  ) {
    this.#clock = clock;
    this.#log = log;
    this.#who = who;
    this.#changed = changed;
    this.#sinceMs = clock.wall();
  }

  get state(): WorkerState {
    return this.#state;
  }

  /** Another state, with what there is to say about it. */
  set(state: WorkerState, reason: string | null = null): void {
    const isNew = state !== this.#state;
    if (!isNew && reason === this.#reason) return;
    this.#state = state;
    this.#reason = reason;
    if (isNew) this.#sinceMs = this.#clock.wall();
    this.#changed();
    if (!isNew) return;
    const fields = { ...this.#who(), reason: reason ?? undefined };
    if (state === "failed") this.#log.error("worker failed", fields);
    else if (state === "waiting") this.#log.warn("worker waits for its next start", fields);
    else if (state === "stopped") this.#log.info("worker stopped", fields);
    else if (state !== "ready") this.#log.debug("worker changed state", { ...fields, state });
  }

  /** Preparations or a program begin: lines from before say nothing of what comes. */
  begin(state: "queued" | "starting"): void {
    this.#tail = [];
    this.set(state);
  }

  /** The program runs. */
  started(pid: number): void {
    this.#pid = pid;
    this.#startedAtMs = this.#clock.wall();
    this.#changed();
  }

  /** It offers what it has to offer, so many milliseconds after its start. */
  ready(afterMs: number): void {
    this.#readyAfterMs = Math.round(afterMs);
    this.set("ready");
    this.#log.info("worker ready", { ...this.#who(), pid: this.#pid, ms: this.#readyAfterMs });
  }

  /** The program has ended. */
  ended(how: string): void {
    this.#lastExit = this.#dated(how);
    this.#pid = null;
    this.#startedAtMs = null;
    this.#changed();
  }

  /** Something went wrong; it is remembered when all is well again. */
  error(reason: string): void {
    this.#lastError = this.#dated(reason);
    this.#changed();
  }

  /** An end that nobody asked for. */
  countRestart(): void {
    this.#restarts++;
  }

  /** Somebody started it by hand or changed it. */
  forgetRestarts(): void {
    this.#restarts = 0;
  }

  /** A line that it, or its installation, printed. */
  print(text: string): void {
    this.#tail.push(text);
    if (this.#tail.length > FAILURE_LINES) this.#tail.shift();
  }

  /** All of it. */
  view(): BoardView {
    const hasFailed = this.#state === "waiting" || this.#state === "failed";
    return {
      state: this.#state,
      since_ms: this.#sinceMs,
      reason: this.#reason,
      pid: this.#pid,
      restarts: this.#restarts,
      started_at_ms: this.#startedAtMs,
      ready_after_ms: this.#state === "ready" ? this.#readyAfterMs : null,
      lastExit: this.#lastExit,
      lastError: this.#lastError,
      tail: hasFailed ? [...this.#tail] : [],
    };
  }

  #dated(text: string): Dated {
    return { text, atMs: this.#clock.wall() };
  }
}
