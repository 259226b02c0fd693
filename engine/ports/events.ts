/**
 * Rare events of the engine; the log, the supervisor and built-in workers receive them.
 *
 * @module
 */

import type { FunctionKey } from "./absences.ts";

/** Warnings that one connection may cause within {@linkcode WARNINGS_WINDOW_MS}. */
export const WARNINGS_MAX = 20;
/** See {@linkcode WARNINGS_MAX}. */
export const WARNINGS_WINDOW_MS = 10_000;

/** An event; never one per call. */
export type EngineEvent =
  | { type: "worker_connected"; worker_id: string; address: string | null }
  | {
    type: "worker_announced";
    worker_id: string;
    name: string;
    pid: number;
    /** Id of the launch, if the engine started this worker. */
    launch_id: string | null;
  }
  /** A worker has left a ping unanswered, or something arrived from it again. */
  | { type: "worker_suspected"; worker_id: string; name: string | null; is_suspect: boolean }
  | {
    type: "worker_disconnected";
    worker_id: string;
    name: string | null;
    reason: string;
    /** The functions that it had registered; to be read at once. */
    functions?: readonly FunctionKey[];
  }
  /** A worker's functions changed; `ids_changed`: the set of all ids did, too. */
  | { type: "functions_changed"; worker_id: string; ids_changed: boolean }
  | { type: "triggers_changed"; worker_id: string }
  /** A supervised worker changed its state, reason, process or functions. */
  | { type: "supervised_changed"; name: string }
  /** Another configuration is in force. */
  | { type: "config_changed" }
  /** A trigger of the worker `worker_id` is parked because its type has no provider. */
  | {
    type: "trigger_parked";
    worker_id: string;
    trigger_id: string;
    trigger_type: string;
    function_id: string;
    /** Why the type has no provider, and what to do. */
    why: string;
  }
  /** Something that needs attention. */
  | { type: "warning"; text: string; worker_id: string | null; detail: string };

/** Receives events; must not throw. */
export type EventListener = (event: EngineEvent) => void;
