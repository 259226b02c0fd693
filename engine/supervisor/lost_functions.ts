/**
 * The functions that a worker offered before it went away, and why it is not there now.
 *
 * A call of such a function can then say which worker is down and when it starts again. Connections
 * are recognised by the ids that they announced, since the program may be gone before its
 * connection is closed.
 *
 * @module
 */
import type { Absence, FunctionKey } from "../ports/absences.ts";
import type { TrackedStatus } from "./status.ts";

/** Connections of one worker that are remembered. */
const CONNECTIONS_MAX = 256;
/** Functions of one worker that are remembered. */
export const LOST_FUNCTIONS_MAX = 10_000;
/** Characters of a worker's own reason in one sentence. */
const REASON_CHARS_MAX = 200;

/** What one worker has lost. */
export class LostFunctions {
  readonly #connections = new Set<string>();
  readonly #keys = new Set<string>();

  /** The worker announced itself on a connection. */
  announced(worker_id: string): void {
    if (this.#connections.size >= CONNECTIONS_MAX) {
      this.#connections.delete(this.#connections.values().next().value!);
    }
    this.#connections.add(worker_id);
  }

  /** A connection ended, which may be one of another worker. */
  disconnected(worker_id: string, functions: readonly FunctionKey[]): void {
    if (!this.#connections.delete(worker_id)) return;
    for (const { namespace, id } of functions) {
      // What it offered long ago is of less use than what it offered last.
      if (this.#keys.size >= LOST_FUNCTIONS_MAX) this.#keys.clear();
      this.#keys.add(keyOf(namespace, id));
    }
  }

  /** Whether the worker once offered a function on a connection that has ended. */
  has(function_id: string, namespace: string): boolean {
    return this.#keys.size > 0 && this.#keys.has(keyOf(namespace, function_id));
  }
}

/** What a replica says of itself, for {@linkcode absenceOf}. */
export type AbsentReplica =
  & Pick<TrackedStatus, "state" | "reason" | "lastExit">
  & {
    /** Whether one of its connections is open. */
    readonly isConnected: boolean;
    /** When it starts again, in milliseconds since 1970; `null` unless it waits for that. */
    readonly next_start_ms: number | null;
  };

/**
 * Why a worker does not serve, such as `worker py is down (exit 1), next start in 8 s`;
 * `undefined` for one that serves.
 */
export function absenceOf(
  worker: string,
  { state, reason, lastExit, isConnected, next_start_ms }: AbsentReplica,
  nowMs: number,
): Absence | undefined {
  const exit = lastExit === null ? "" : ` (${exitText(lastExit.text)})`;
  const why = reason === null ? "" : `: ${reason.slice(0, REASON_CHARS_MAX)}`;
  switch (state) {
    case "ready":
      if (isConnected) return undefined;
      return { reason: `worker ${worker} has lost its connection to the engine`, worker };
    case "waiting": {
      const seconds = Math.max(0, Math.ceil(((next_start_ms ?? nowMs) - nowMs) / 1_000));
      return { reason: `worker ${worker} is down${exit}, next start in ${seconds} s`, worker };
    }
    case "failed": {
      const command = `engine worker status ${worker}`;
      return { reason: `worker ${worker} has failed${why}`, worker, command };
    }
    case "stopped": {
      const command = `engine worker start ${worker}`;
      return { reason: `worker ${worker} is stopped${why}`, worker, command };
    }
    case "stopping":
      return { reason: `worker ${worker} is stopping`, worker };
    default:
      return lastExit === null
        ? { reason: `worker ${worker} is ${state}`, worker }
        : { reason: `worker ${worker} is down${exit}, and is being started again`, worker };
  }
}

/** `exit 1` for `exit code 1`. */
function exitText(text: string): string {
  return text.replace(/^exit code /, "exit ").slice(0, REASON_CHARS_MAX);
}

function keyOf(namespace: string, id: string): string {
  return JSON.stringify([namespace, id]);
}
