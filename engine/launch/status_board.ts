/**
 * What is known of a supervised worker, in the words that people and programs get to see.
 *
 * Holds no decisions: it is told what happens, dates it, logs it and answers.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { WorkerState, WorkerStatus } from "../ports/supervision.ts";
import type { OutputLog } from "./output_log.ts";

/** Last lines that go with a failure. */
const FAILURE_LINES = 20;

/** The status of one worker. */
export class StatusBoard {
  readonly #name: string;
  readonly #output: OutputLog;
  readonly #clock: Clock;
  readonly #log: Log;
  /** What the installation did. */
  dependencies: WorkerStatus["dependencies"] = null;
  #state: WorkerState = "stopped";
  #reason: string | null = null;
  #pid: number | null = null;
  #launch = 0;
  #restarts = 0;
  #startedAtMs: number | null = null;
  #began = 0;
  #readyAt: number | undefined;
  #readyAfterMs: number | null = null;
  #lastExit: string | null = null;
  /** Lines of output before what this launch does now: install, or run. */
  #mark = 0;
  #preparedAtMs = 0;

  /** Starts as `stopped`. */
  constructor(
    name: string,
    output: OutputLog,
    { clock, log }: { readonly clock: Clock; readonly log: Log },
  ) {
    this.#name = name;
    this.#output = output;
    this.#clock = clock;
    this.#log = log;
  }

  get state(): WorkerState {
    return this.#state;
  }

  get pid(): number | null {
    return this.#pid;
  }

  /** When the program of this launch began to read its files, in milliseconds since 1970. */
  get preparedAtMs(): number {
    return this.#preparedAtMs;
  }

  /** Another state, with what there is to say about it. */
  set(state: WorkerState, reason: string | null = null): void {
    const isNew = state !== this.#state;
    this.#state = state;
    this.#reason = reason;
    if (!isNew) return;
    const fields = { worker: this.#name, reason: reason ?? undefined };
    if (state === "failed") this.#log.error("worker failed", fields);
    else if (state === "waiting") this.#log.warn("worker waits for its next start", fields);
    else if (state === "stopped") this.#log.info("worker stopped", fields);
    else this.#log.debug("worker changed state", { ...fields, state });
  }

  /** A new launch. */
  begin(): void {
    this.#launch++;
    this.#mark = this.#output.count;
    this.set("queued");
  }

  /** Preparations are done; from now on edits are news. */
  starting(): void {
    this.#preparedAtMs = this.#clock.wall();
    this.#mark = this.#output.count;
    this.#began = this.#clock.now();
    this.#readyAfterMs = null;
    this.#readyAt = undefined;
    this.set("starting");
  }

  started(pid: number): void {
    this.#pid = pid;
    this.#startedAtMs = this.#clock.wall();
  }

  ready(): void {
    this.#readyAt ??= this.#clock.now();
    this.#readyAfterMs ??= Math.round(this.#readyAt - this.#began);
    this.set("ready");
    this.#log.info("worker ready", {
      worker: this.#name,
      pid: this.#pid,
      ms: this.#readyAfterMs,
    });
  }

  /** Its line is gone while it still runs. */
  lost(reason: string): void {
    if (this.#state === "ready") this.set("starting", reason);
  }

  /** The program has ended; returns for how long it had been ready. */
  ended(how: string): number {
    const readyForMs = this.#readyAt === undefined ? 0 : this.#clock.now() - this.#readyAt;
    this.#lastExit = how;
    this.#pid = null;
    this.#startedAtMs = null;
    this.#readyAt = undefined;
    return readyForMs;
  }

  countRestart(): void {
    this.#restarts++;
  }

  forgetRestarts(): void {
    this.#restarts = 0;
  }

  /** All of it, with what only the worker's life knows. */
  status(
    known: Pick<WorkerStatus, "path" | "isolation" | "functions">,
  ): WorkerStatus {
    const hasFailed = this.#state === "waiting" || this.#state === "failed";
    return {
      name: this.#name,
      kind: "directory",
      state: this.#state,
      reason: this.#reason,
      pid: this.#pid,
      restarts: this.#restarts,
      started_at_ms: this.#startedAtMs,
      ready_after_ms: this.#state === "ready" ? this.#readyAfterMs : null,
      last_exit: this.#lastExit,
      dependencies: this.dependencies,
      launch: this.#launch,
      tail: hasFailed ? this.#output.since(this.#mark, FAILURE_LINES) : [],
      log_path: this.#output.path,
      ...known,
    };
  }
}
