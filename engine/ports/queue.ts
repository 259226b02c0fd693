/**
 * Queues: jobs that outlive the process.
 *
 * A job is given out at least once: again when its attempt failed, or when the process that ran it
 * ended. Jobs of one lane begin in their order; with `fifo` one at a time. No lane waits for
 * another one.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** Highest priority of a job; the lowest is 0, the default. */
export const PRIORITY_MAX = 255;
/** Longest name of a lane, in bytes of its percent-encoded form. */
export const LANE_BYTES_MAX = 600;

/** A job to keep. */
export interface JobInput {
  /** Any text; a random one by default. */
  readonly id: string;
  /** The same id again within a day is the same job: nothing is added. */
  readonly isUnique?: boolean;
  readonly payload: Json;
  /** Jobs of one lane begin in their order. */
  readonly lane: string;
  /** 0 to {@linkcode PRIORITY_MAX}; higher ones begin first. Without effect in a `fifo` queue. */
  readonly priority?: number | undefined;
  /** Not before this time, in milliseconds since 1970. */
  readonly at_ms?: number | undefined;
  /** A job that has not begun by then is moved to the dead ones. */
  readonly expires_at_ms?: number | undefined;
}

/** Why an attempt failed. */
export interface JobFailure {
  /** Milliseconds since 1970. */
  readonly at_ms: number;
  readonly code: string;
  readonly message: string;
  readonly stacktrace?: string;
}

/** A job as it is kept and given out. */
export interface Job {
  readonly id: string;
  readonly payload: Json;
  readonly lane: string;
  readonly priority: number;
  /** Attempts that failed since it was enqueued or redriven. */
  readonly attempts: number;
  /** Milliseconds since 1970. */
  readonly enqueued_at_ms: number;
  readonly due_at_ms?: number | undefined;
  readonly expires_at_ms?: number | undefined;
  /** Of the last attempts, the oldest first. */
  readonly failures: readonly JobFailure[];
}

/** What became of an attempt. */
export type Verdict =
  | { readonly done: true }
  /** It failed; `isNow`: the next attempt needs no delay. */
  | { readonly retry: JobFailure; readonly isNow?: boolean }
  /** It did not begin: no attempt is counted, and its lane waits for so long. */
  | { readonly wait_ms: number };

/** How a queue gives its jobs out. */
export interface QueueSettings {
  /** One job of a lane at a time, in their order, also over failed attempts. */
  readonly fifo: boolean;
  /** Jobs that run at the same time. */
  readonly concurrency: number;
  /** Attempts of a job before it is dead. */
  readonly max_attempts: number;
  /** Delay behind the first failed attempt; each further one is twice as long. */
  readonly backoff_ms: number;
  readonly backoff_max_ms: number;
  /** Share by which a delay varies in both directions, 0 to 1. */
  readonly jitter: number;
  /** Jobs that begin within a time. */
  readonly rate?: { readonly jobs: number; readonly per_ms: number } | undefined;
}

/** Runs the jobs of a queue. */
export interface QueueRunner {
  /**
   * `undefined`: the job may begin. Otherwise the key of what it waits for; its lane rests until
   * {@linkcode Queues.wake} is called with that key. Must not throw.
   */
  gate(job: Job): string | undefined;
  /** Runs one attempt. `signal`: the queue ends, and the job is given out again later. */
  run(job: Job, signal: AbortSignal): Promise<Verdict>;
}

/** A job that cannot be done, and since when. */
export interface DeadJob extends Job {
  /** Milliseconds since 1970. */
  readonly failed_at_ms: number;
  /** Length of the kept record. */
  readonly bytes: number;
  /** For the next page. */
  readonly position: string;
}

/** A job that waits or runs. */
export interface WaitingJob extends Job {
  readonly state: "waiting" | "running" | "delayed";
  /** Length of the kept record. */
  readonly bytes: number;
}

/** What a queue holds, and what it did since the engine started. */
export interface QueueCounts {
  readonly waiting: number;
  readonly running: number;
  readonly delayed: number;
  readonly dead: number;
  /** The numbers are still being counted after a start; those above are too small. */
  readonly is_counting: boolean;
  /** Since the start: jobs that came, were done, attempts that failed, jobs that died. */
  readonly enqueued_total: number;
  readonly done_total: number;
  readonly failed_total: number;
  readonly dead_total: number;
  /** When the job that is next was enqueued; `null`: none waits. */
  readonly oldest_at_ms: number | null;
  readonly paused: boolean;
}

/** All queues of an engine, by name. Methods other than `serve` are for queues that are served. */
export interface Queues extends AsyncDisposable {
  /**
   * Keeps a job; resolves when a crash cannot lose it. `false`: one of its id is there already.
   *
   * @throws {EngineError} `VALUE_TOO_LARGE`, `SET_ERROR`, `overloaded` as the store.
   */
  put(queue: string, job: JobInput): Promise<boolean>;
  /** Gives the jobs of a queue out until it is disposed of; called once per queue. */
  serve(queue: string, settings: QueueSettings, runner: QueueRunner): Promise<AsyncDisposable>;
  /** Changes how the jobs of a queue are given out. */
  configure(queue: string, settings: QueueSettings): void;
  /** What the lanes behind a gate wait for may be there: all of a queue, or those of one key. */
  wake(queue: string, key?: string): void;
  /** What the queue holds. */
  counts(queue: string): QueueCounts;
  /** Jobs that run now, with what the runner noted about them. */
  running(queue: string): readonly Job[];
  /** Jobs that wait, the delayed ones last. */
  peek(queue: string, limit: number): Promise<WaitingJob[]>;
  /** Dead jobs, the oldest first; `after` is the position of one of them. */
  dead(queue: string, limit: number, after?: string): Promise<DeadJob[]>;
  /**
   * Gives dead jobs out again, with all their attempts and the payload that `edit` returns; returns
   * how many there were.
   */
  redrive(
    queue: string,
    ids: readonly string[] | "all",
    edit?: (payload: Json) => Json,
  ): Promise<number>;
  /** Deletes dead jobs; returns how many there were. */
  discard(queue: string, ids: readonly string[] | "all"): Promise<number>;
  /** Deletes all jobs that wait or are delayed; returns how many. */
  purge(queue: string): Promise<number>;
  /** Gives no more jobs out, over restarts too, or goes on. */
  pause(queue: string, isPaused: boolean): Promise<void>;
  /** Begins no more jobs; resolves when none runs. */
  drain(): Promise<void>;
}
