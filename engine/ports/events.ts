/**
 * Rare things the core reports; log, supervisor and built-in workers read them.
 *
 * @module
 */

/** Something that happened; never one per call. */
export type EngineEvent =
  | { type: "worker_connected"; worker_id: string; address: string | null }
  | {
    type: "worker_announced";
    worker_id: string;
    name: string;
    pid: number;
    /** Which start of the engine's own this is, if it is one. */
    launch_id: string | null;
  }
  | { type: "worker_disconnected"; worker_id: string; name: string | null; reason: string }
  /** A worker's functions changed; `ids_changed` says whether the set of all ids did. */
  | { type: "functions_changed"; worker_id: string; ids_changed: boolean }
  | { type: "triggers_changed"; worker_id: string }
  /** A worker that the engine runs fares otherwise: its state, reason, process or functions. */
  | { type: "supervised_changed"; name: string }
  /** Another configuration is in force. */
  | { type: "config_changed" }
  /** Nobody provides the type of a trigger; `worker_id` asked for it. It waits. */
  | {
    type: "trigger_parked";
    worker_id: string;
    trigger_id: string;
    trigger_type: string;
    function_id: string;
  }
  /** Something a person should look at. */
  | { type: "warning"; text: string; worker_id: string | null; detail: string };

/** Hears of events; must not throw. */
export type EventListener = (event: EngineEvent) => void;
