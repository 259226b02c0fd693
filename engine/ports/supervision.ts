/**
 * The workers the engine was asked to run, built-in ones and directories alike.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Accelerator, Ended, Isolation, Network, OutputChunk, Resources } from "./launcher.ts";

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
  /** Where it stands now; of several replicas, the state of the one that is furthest. */
  readonly state: WorkerState;
  /** When that state began, in milliseconds since 1970. */
  readonly since_ms: number;
  /** What it says of itself: a summary, or why it waits or failed. */
  readonly reason: string | null;
  /** Absolute path of its directory; `null` for built-in ones. */
  readonly path: string | null;
  /** How it is kept apart; `null` for built-in ones. */
  readonly isolation: Isolation | null;
  /** Process id, of the first replica that runs; `null` when none does. */
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
  /** Why it last failed or ended unasked, also after it has come back; `null`: it never did. */
  readonly last_error: string | null;
  /** What runs its microVM; `null` for other ones and while it does not run. */
  readonly accelerator: Accelerator | null;
  /** Where it may connect to; `null` when nothing restrains it. */
  readonly network: Network | null;
  /** What its microVM consists of; `null` for other ones. */
  readonly resources: Resources | null;
  /** Memory its processes hold now (resident), all replicas together; `null` when unknown. */
  readonly memory_bytes: number | null;
  /** Share of one processor it used lately, in percent, all replicas together; `null`: unknown. */
  readonly cpu_percent: number | null;
  /** Each copy that is wanted; one, unless `replicas` says otherwise. Empty for built-in ones. */
  readonly replicas: readonly ReplicaStatus[];
}

/** One copy of a supervised worker, as it is now. */
export interface ReplicaStatus {
  /** From 1. */
  readonly number: number;
  /** Where it stands now. */
  readonly state: WorkerState;
  /** When that state began, in milliseconds since 1970. */
  readonly since_ms: number;
  /** Why it waits or failed, or what it does now. */
  readonly reason: string | null;
  /** Process id; `null` when it does not run. */
  readonly pid: number | null;
  /** Connection ids that it announced itself on. */
  readonly worker_ids: readonly string[];
  /** Unasked ends since it was last started by hand. */
  readonly restarts: number;
  /** Milliseconds since 1970; `null` when it does not run. */
  readonly started_at_ms: number | null;
  /** How the last run ended, such as `exit code 1`. */
  readonly last_exit: string | null;
  /** Memory its processes hold now (resident); `null` when unknown. */
  readonly memory_bytes: number | null;
  /** Share of one processor it used lately, in percent; `null` when unknown. */
  readonly cpu_percent: number | null;
}

/**
 * Works on them. Any operation may throw `NOT_FOUND`, `INVALID_ARGUMENTS`, `config_invalid` or
 * `config_conflict`.
 */
export interface Supervision {
  list(): Promise<WorkerStatus[]>;
  /** @throws {EngineError} `NOT_FOUND` with the names there are. */
  status(name: string): Promise<WorkerStatus>;
  /** Wants it to run; clears a `failed`. */
  start(name: string): Promise<WorkerStatus>;
  /** Wants it not to run, until start() or the engine's next start. */
  stop(name: string): Promise<WorkerStatus>;
  /**
   * Ends it and starts it again, one replica after the other; `reinstall` throws the cached
   * dependencies away first.
   */
  restart(name: string, options: { reinstall: boolean }): Promise<WorkerStatus>;
  /**
   * Runs a command beside a worker that runs: same directory, environment and containment.
   *
   * @throws {EngineError} `NOT_FOUND`, `launch_failed`, `INVALID_ARGUMENTS` when it does not run.
   */
  exec(
    request: ExecRequest,
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended>;
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

/** What to run beside a worker. */
export interface ExecRequest {
  readonly name: string;
  /** The program and its arguments; no shell reads them. */
  readonly command: readonly string[];
  /** From 1; left out: the first that runs. */
  readonly replica?: number;
}

/** What to add: exactly one of `name` (a built-in) and `path` (an absolute directory). */
export interface AddRequest {
  readonly name?: string;
  readonly path?: string;
  readonly isolation?: Isolation;
  /** What runs its microVM. */
  readonly accel?: Accelerator | "auto";
  readonly replicas?: number;
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
  /** What the engine runs on, as `Deno.build.os` names it: `linux`, `darwin`, `windows` … */
  readonly platform: string;
  /** How a command line proves that it is the engine's own user on its machine. */
  readonly control_key: ControlKeyInfo;
}

/** The file with which a command line proves whose it is. */
export interface ControlKeyInfo {
  /** Absolute path. */
  readonly path: string;
  /** Why the file is not there, so that nobody may change workers; `null`: it is there. */
  readonly problem: string | null;
}

/** One address the engine serves. */
export interface Endpoint {
  /** Such as `workers` or `http`. */
  readonly name: string;
  /** Such as `http://127.0.0.1:3111`. */
  readonly url: string;
}
