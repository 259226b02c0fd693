/**
 * What the status of a worker means to somebody who waits for it.
 *
 * @module
 */
import type { WorkerState, WorkerStatus } from "../../../engine/mod.ts";
import { printable } from "../../render.ts";

/** What is said of a worker that stays in a state. */
const OUTCOMES: Partial<Record<WorkerState, string>> = {
  failed: "failed",
  stopped: "ended",
};

/** Whether a worker is where it is wanted, on its way there, or has ended on its way. */
export type Stand = "ready" | "moving" | "ended";

/** Where a worker stands; it is ready when all its replicas are. */
export function standOf({ state, replicas }: WorkerStatus): Stand {
  if (isMoving(state)) return "moving";
  if (state !== "ready") return "ended";
  const others = replicas.filter((replica) => replica.state !== "ready");
  if (others.length === 0) return "ready";
  return others.some((replica) => isMoving(replica.state)) ? "moving" : "ended";
}

/** What takes its time, in words, with what the engine says of it. */
export function phaseOf(status: WorkerStatus): string {
  const { state, reason } = status;
  const text = state === "ready" ? `${readyOf(status)} ready` : wordsOf(status);
  if (reason === null || state === "ready") return text;
  return reason.startsWith(text) ? reason : `${text}: ${reason}`;
}

/** How many replicas are ready, such as `2 of 3`. */
export function readyOf({ replicas }: WorkerStatus): string {
  const ready = replicas.filter(({ state }) => state === "ready").length;
  return `${ready} of ${replicas.length}`;
}

/** Why a worker is not going to be ready: one sentence that says where to look. */
export function failureOf(status: WorkerStatus): string {
  const { name, state, last_exit, log_path } = status;
  const broken = state === "ready"
    ? status.replicas.find((replica) => replica.state !== "ready")
    : undefined;
  const of = broken ?? status;
  const who = broken ? `replica ${broken.number} of ${name}` : name;
  const why = of.reason ?? of.last_exit ?? status.last_error ?? last_exit ?? "no reason was given";
  const log = log_path === null ? "" : `; all it printed: engine worker logs ${name}`;
  if (of.state === "stopped" && of.reason === null) {
    return printable(`${who} was stopped meanwhile${log}`);
  }
  if (of.state === "ready") return printable(`${who}: ${why}${log}`); // It runs as it did before.
  const what = OUTCOMES[of.state] ?? "ended and will be tried again";
  return printable(`${who} ${what}: ${why}${log}`);
}

/** What a worker is to be; what is left out may be anything. */
export type Wish =
  & {
    readonly [Key in "isolation" | "accelerator"]?: NonNullable<WorkerStatus[Key]>;
  }
  & {
    /** How many copies. */
    readonly replicas?: number;
  };

/** Whether what runs is what is wished for, rather than what ran before. */
export function fits(status: WorkerStatus, { isolation, accelerator, replicas }: Wish): boolean {
  return (isolation === undefined || status.isolation === isolation) &&
    (accelerator === undefined || status.isolation === "process" ||
      status.accelerator === accelerator) &&
    (replicas === undefined || status.replicas.length === replicas);
}

/** Whether nothing runs any more of what ran before. */
export function isRenewed(before: WorkerStatus, now: WorkerStatus): boolean {
  return now.launch > before.launch &&
    !before.replicas.some((old) =>
      now.replicas.some((replica) =>
        replica.number === old.number && replica.started_at_ms !== null &&
        replica.started_at_ms === old.started_at_ms
      )
    );
}

function isMoving(state: WorkerState): boolean {
  return state === "queued" || state === "installing" || state === "starting" ||
    state === "stopping";
}

function wordsOf({ state, reason, isolation }: WorkerStatus): string {
  switch (state) {
    case "queued":
      return "waiting for its turn";
    case "installing":
      return reason === null ? "checking dependencies" : "installing dependencies";
    case "starting":
      if (isolation === "process") return "starting as a plain process, which keeps nothing apart";
      return isolation === "microvm" ? "starting in a microVM" : "starting";
    default:
      return state;
  }
}
