/**
 * The workers the engine was asked to run, built-in ones and directories alike.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/protocol.ts";
import type { Isolation } from "./launcher.ts";

/** Where a supervised worker stands. */
export type WorkerState =
  | "queued"
  | "installing"
  | "starting"
  | "ready"
  | "waiting"
  | "stopping"
  | "stopped"
  | "failed";

/** One supervised worker, as it is now. */
export interface WorkerStatus {
  /** Unique among the workers of an engine. */
  readonly name: string;
  /** Part of the engine, or a directory with an engine.worker.yaml. */
  readonly kind: "builtin" | "directory";
  /** Where it stands now. */
  readonly state: WorkerState;
  /** What it says of itself: a summary, or why it waits or failed. */
  readonly reason: string | null;
  /** Absolute path of its directory; `null` for built-in ones. */
  readonly path: string | null;
  /** How it is kept apart; `null` for built-in ones. */
  readonly isolation: Isolation | null;
  /** Process id; `null` when it does not run. */
  readonly pid: number | null;
  /** Functions it offers now. */
  readonly functions: readonly string[];
  /** Unasked ends since it was last started by hand. */
  readonly restarts: number;
  /** Milliseconds since 1970; `null` when it does not run. */
  readonly started_at_ms: number | null;
  /** Whole milliseconds from start to ready; `null` while it is not ready. */
  readonly ready_after_ms: number | null;
  /** How the last run ended, such as `exit code 1`. */
  readonly last_exit: string | null;
  /** What the installation did. */
  readonly dependencies: "none" | "installed" | "cached" | null;
  /** Grows with every start, so that a restart can be told from the run before it. */
  readonly launch: number;
  /** Last lines it printed while it failed; empty otherwise. */
  readonly tail: readonly string[];
  /** Its log file; `null` for built-in ones. */
  readonly log_path: string | null;
}

/**
 * Works on them. Any operation may throw `NOT_FOUND`, `INVALID_ARGUMENTS`, `config_invalid` or
 * `config_conflict`.
 */
export interface Supervision {
  list(): WorkerStatus[];
  /** @throws {EngineError} `NOT_FOUND` with the names there are. */
  status(name: string): WorkerStatus;
  /** Wants it to run; clears a `failed`. */
  start(name: string): WorkerStatus;
  /** Wants it not to run, until start() or the engine's next start. */
  stop(name: string): WorkerStatus;
  /** Ends it and starts it again; `reinstall` throws the cached dependencies away first. */
  restart(name: string, options: { reinstall: boolean }): WorkerStatus;
  /**
   * Adds a worker to `config.yaml`, or changes its isolation or configuration there, and wants it
   * to run. `added` is `false` when it was there already, `changed` says whether it is another now.
   */
  add(request: AddRequest): Promise<AddAnswer>;
  /** Takes a worker out of `config.yaml` and stops it. */
  remove(name: string): Promise<{ config_path: string }>;
  /** The last lines of its log with their times; `NOT_FOUND` for built-in ones. */
  logs(name: string, tail: number): Promise<string[]>;
  /** Where this engine's project lies. */
  info(): EngineInfo;
}

/** What adding did. */
export interface AddAnswer {
  readonly added: boolean;
  readonly changed: boolean;
  readonly config_path: string;
  readonly worker: WorkerStatus;
}

/** What to add: exactly one of `name` (a built-in) and `path` (an absolute directory). */
export interface AddRequest {
  readonly name?: string;
  readonly path?: string;
  readonly isolation?: Isolation;
  readonly reinstall?: boolean;
  /** Configuration of a built-in. */
  readonly config?: JsonObject;
}

/** What a client may want to know of the engine itself. */
export interface EngineInfo {
  /** Such as `0.1.0`. */
  readonly version: string;
  /** Process id of the engine. */
  readonly pid: number;
  /** Absolute path; `null` when the embedded defaults are in use. */
  readonly config_path: string | null;
  /** Absolute path of `.engine/`. */
  readonly data_directory: string;
  /** Lines such as `worker listener  ws://127.0.0.1:49134`. */
  readonly endpoints: readonly Endpoint[];
  /** Milliseconds since 1970. */
  readonly started_at_ms: number;
}

/** One address the engine serves. */
export interface Endpoint {
  /** Such as `workers` or `http`. */
  readonly name: string;
  /** Such as `http://127.0.0.1:3111`. */
  readonly url: string;
}
