/**
 * The workers that the engine runs, built-in ones and directories, and the operations on them.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type {
  Accelerator,
  Ended,
  ExecOptions,
  Isolation,
  Network,
  OutputChunk,
  Resources,
} from "./launcher.ts";

/** Maximum number of replicas of one worker. */
export const REPLICAS_MAX = 64;

/** State of a supervised worker. */
export type WorkerState =
  | "queued"
  | "installing"
  | "starting"
  | "ready"
  | "waiting"
  | "stopping"
  | "stopped"
  | "failed";

/** Status of one supervised worker. */
export interface WorkerStatus {
  /** Unique among the workers of an engine. */
  readonly name: string;
  /** Part of the engine, or a directory with an engine.worker.yaml. */
  readonly kind: "builtin" | "directory";
  /** Current state; of several replicas, that of the one that is furthest. */
  readonly state: WorkerState;
  /** When that state began, in milliseconds since 1970. */
  readonly since_ms: number;
  /** A summary, or why it waits or failed. */
  readonly reason: string | null;
  /** Absolute path of its directory; `null` for built-in ones. */
  readonly path: string | null;
  /** Its isolation; `null` for built-in ones. */
  readonly isolation: Isolation | null;
  /** The engine is not ready while it is not, as config.yaml says. */
  readonly required: boolean;
  /** None of its connections answers pings; calls go to other workers that offer its functions. */
  readonly suspect: boolean;
  /** Process id of the first running replica; `null` when none runs. */
  readonly pid: number | null;
  /** Functions that it provides now. */
  readonly functions: readonly string[];
  /** Unexpected exits since its last manual start. */
  readonly restarts: number;
  /** Milliseconds since 1970; `null` when it does not run. */
  readonly started_at_ms: number | null;
  /** Whole milliseconds from start to ready; `null` while it is not ready. */
  readonly ready_after_ms: number | null;
  /** How the last run ended, such as `exit code 1`. */
  readonly last_exit: string | null;
  /** What the installation of dependencies did. */
  readonly dependencies: "none" | "installed" | "cached" | null;
  /** Incremented with every start, to tell a restart from the run before it. */
  readonly launch: number;
  /** Last lines of output before it failed; empty otherwise. */
  readonly tail: readonly string[];
  /** Its log file; `null` for built-in ones. */
  readonly log_path: string | null;
  /**
   * Why it last failed or exited unexpectedly, until it has been ready for a minute; `null`: it
   * never did, or recovered.
   */
  readonly last_error: string | null;
  /** Accelerator of its microVM; `null` for others, and while it does not run. */
  readonly accelerator: Accelerator | null;
  /** Where it may connect to; `null` without restrictions. */
  readonly network: Network | null;
  /** Resources of its microVM; `null` for others. */
  readonly resources: Resources | null;
  /** Resident memory of all its processes; `null` when unknown. */
  readonly memory_bytes: number | null;
  /** Recent CPU use of all its processes in percent of one processor; `null` when unknown. */
  readonly cpu_percent: number | null;
  /** Its desired replicas; one unless `replicas` says otherwise. Empty for built-in ones. */
  readonly replicas: readonly ReplicaStatus[];
}

/** Status of one replica of a supervised worker. */
export interface ReplicaStatus {
  /** From 1. */
  readonly number: number;
  /** Current state. */
  readonly state: WorkerState;
  /** When that state began, in milliseconds since 1970. */
  readonly since_ms: number;
  /** Why it waits or failed, or its current step. */
  readonly reason: string | null;
  /** Process id; `null` when it does not run. */
  readonly pid: number | null;
  /** None of its connections answers pings. */
  readonly suspect: boolean;
  /** Worker ids of the connections that it announced itself on. */
  readonly worker_ids: readonly string[];
  /** Unexpected exits since its last manual start. */
  readonly restarts: number;
  /** Milliseconds since 1970; `null` when it does not run. */
  readonly started_at_ms: number | null;
  /** How the last run ended, such as `exit code 1`. */
  readonly last_exit: string | null;
  /** Resident memory of its processes; `null` when unknown. */
  readonly memory_bytes: number | null;
  /** Recent CPU use in percent of one processor; `null` when unknown. */
  readonly cpu_percent: number | null;
}

/**
 * Operations on supervised workers. Any of them may throw `NOT_FOUND`, `INVALID_ARGUMENTS`,
 * `config_invalid` or `config_conflict`.
 */
export interface Supervision {
  list(): Promise<WorkerStatus[]>;
  /**
   * @throws {EngineError} `NOT_FOUND` with the existing names.
   */
  status(name: string): Promise<WorkerStatus>;
  /** Marks it as desired; clears a `failed`. */
  start(name: string): Promise<WorkerStatus>;
  /** Stops it until start() or the next start of the engine. */
  stop(name: string): Promise<WorkerStatus>;
  /**
   * Restarts it, one replica after the other; `reinstall` deletes the cached dependencies first.
   */
  restart(name: string, options: { reinstall: boolean }): Promise<WorkerStatus>;
  /**
   * Runs a command in the directory, environment and containment of a running worker.
   *
   * @throws {EngineError} `NOT_FOUND`, `launch_failed`, `INVALID_ARGUMENTS` when it does not run.
   */
  exec(
    request: ExecRequest,
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
    options?: ExecOptions,
  ): Promise<Ended>;
  /**
   * Adds a worker to `config.yaml`, or changes its isolation or configuration there, and marks it
   * as desired. `added` is `false` if it was there already; `changed` says whether its entry
   * changed.
   */
  add(request: AddRequest): Promise<AddAnswer>;
  /** Removes a worker from `config.yaml` and stops it. */
  remove(name: string): Promise<{ config_path: string }>;
  /** The last lines of its log with their times; `NOT_FOUND` for built-in ones. */
  logs(name: string, tail: number): Promise<string[]>;
  /** Facts about this engine. */
  info(): EngineInfo;
}

/** Result of {@linkcode Supervision.add}. */
export interface AddAnswer {
  readonly added: boolean;
  readonly changed: boolean;
  readonly config_path: string;
  readonly worker: WorkerStatus;
}

/** A command to run beside a worker. */
export interface ExecRequest {
  readonly name: string;
  /** The program and its arguments; not passed through a shell. */
  readonly command: readonly string[];
  /** From 1. Default: the first running one. */
  readonly replica?: number;
}

/** What to add: exactly one of `name` (a built-in) and `path` (an absolute directory). */
export interface AddRequest {
  readonly name?: string;
  readonly path?: string;
  readonly isolation?: Isolation;
  /** Accelerator of its microVM. */
  readonly accel?: Accelerator | "auto";
  readonly replicas?: number;
  readonly reinstall?: boolean;
  /** Configuration of a built-in. */
  readonly config?: JsonObject;
}

/** Facts about the engine. */
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
  /** Worker listeners besides the default one. */
  readonly listeners: readonly ListenerInfo[];
  /** Milliseconds since 1970. */
  readonly started_at_ms: number;
  /** Operating system, as in `Deno.build.os`: `linux`, `darwin`, `windows` … */
  readonly platform: string;
  /** File descriptors of the process: sockets, files and pipes. */
  readonly descriptors: {
    /** How many may be open. */
    readonly limit: number;
    /** How many are open; `null` when unknown. */
    readonly open: number | null;
  };
  /** How a command line proves that it runs as the engine's own user on its machine. */
  readonly control_key: ControlKeyInfo;
}

/** The key file that proves it. */
export interface ControlKeyInfo {
  /** Absolute path. */
  readonly path: string;
  /** Why the file is missing, so that no command may change workers; `null` if it exists. */
  readonly problem: string | null;
}

/** A worker listener besides the default one, and what it asks for. */
export interface ListenerInfo {
  /** As in config.yaml. */
  readonly name: string;
  /** Such as `wss://10.0.0.1:49200`. */
  readonly url: string;
  /** Clients have to present a token. */
  readonly asks_for_token: boolean;
  /** It has a block `rbac`: what is not exposed or granted cannot be called. */
  readonly has_rules: boolean;
  /** The functions that decide about access: to authorise, middleware, hooks. */
  readonly functions: readonly string[];
  /** Decides about each connection; `null`: no function does. */
  readonly auth_function_id: string | null;
  /** Called in place of others; `null`: there is none. */
  readonly middleware_function_id: string | null;
}

/** An address that the engine serves. */
export interface Endpoint {
  /** Such as `workers` or `http`. */
  readonly name: string;
  /** Such as `http://127.0.0.1:3111`. */
  readonly url: string;
}
