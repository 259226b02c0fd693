/**
 * The status of workers as text: the list, one worker in full, its phase, its failure.
 *
 * The list stays below 100 columns; reasons and errors stand on lines of their own.
 *
 * @module
 */
import type { WorkerState, WorkerStatus } from "../../../engine/mod.ts";
import {
  count,
  printable,
  renderBytes,
  renderDuration,
  renderShortDuration,
  renderTable,
} from "../../render.ts";

type Replica = WorkerStatus["replicas"][number];

/** A longer name gets a line of its own. */
const NAME_CHARS_MAX = 20;
/** Width of the list. */
const LIST_CHARS_MAX = 100;

/** A table of workers, head first; `wallMs` is the time now, in milliseconds since 1970. */
export function renderWorkers(workers: readonly WorkerStatus[], wallMs: number): string[] {
  const head = [
    "NAME",
    "STATE",
    "SINCE",
    "READY",
    "PID",
    "RESTARTS",
    "FUNCS",
    "MEMORY",
    "CPU%",
    "ISOLATION",
  ];
  const rows = workers.map((worker) => [
    worker.name.length > NAME_CHARS_MAX ? "" : worker.name,
    worker.suspect ? "suspect" : worker.state,
    renderShortDuration(wallMs - worker.since_ms),
    worker.kind === "builtin" ? "-" : readyOf(worker).replace(" of ", "/"),
    worker.kind === "directory" && worker.pid !== null ? String(worker.pid) : "-",
    String(worker.restarts),
    String(worker.functions.length),
    worker.memory_bytes === null ? "-" : renderBytes(worker.memory_bytes),
    worker.cpu_percent === null ? "-" : String(Math.round(worker.cpu_percent)),
    isolationOf(worker) ?? "-",
  ]);
  const [first = "", ...lines] = renderTable(head, rows);
  return [
    first,
    ...workers.flatMap((worker, i) => [
      ...worker.name.length > NAME_CHARS_MAX ? [printable(worker.name)] : [],
      lines[i] ?? "",
      ...remarksOf(worker).flatMap((remark) => wrap(remark, LIST_CHARS_MAX, "  ")),
    ]),
  ];
}

/** The whole status of one worker, one line per property. */
export function renderStatus(worker: WorkerStatus, wallMs: number): string[] {
  const ago = (atMs: number | null): string | null =>
    atMs === null ? null : renderDuration(wallMs - atMs);
  const { resources } = worker;
  const lines: (readonly [string, string | null])[] = [
    ["state", worker.suspect ? `${worker.state}, suspect` : worker.state],
    ["since", `${ago(worker.since_ms)} ago`],
    ["remark", worker.reason],
    ["last error", otherErrorOf(worker)],
    ["kind", worker.kind],
    ["directory", worker.path],
    ["isolation", isolationOf(worker)?.replace(/\/(.*)/, " ($1)") ?? null],
    ["resources", resources && `${count(resources.cpus, "cpu")}, ${resources.memory_mb} MiB`],
    ["network", worker.network],
    ["required", worker.required ? "yes: the engine is not ready without it" : null],
    ["replicas", worker.replicas.length > 1 ? `${readyOf(worker)} ready` : null],
    ["pid", worker.pid === null ? null : String(worker.pid)],
    ["up", ago(worker.started_at_ms)],
    ["ready after", worker.ready_after_ms === null ? null : renderDuration(worker.ready_after_ms)],
    ["memory", worker.memory_bytes === null ? null : renderBytes(worker.memory_bytes)],
    ["cpu", worker.cpu_percent === null ? null : `${worker.cpu_percent.toFixed(1)} %`],
    ["restarts", String(worker.restarts)],
    ["last exit", worker.last_exit],
    ["dependencies", worker.dependencies],
    ["log", worker.log_path],
    ["functions", worker.functions.join(", ") || "none"],
  ];
  const shown = lines.filter((line): line is readonly [string, string] => line[1] !== null);
  const replicas = worker.replicas.length > 1 ? renderReplicas(worker.replicas, wallMs) : [];
  return [
    printable(worker.name),
    ...shown.map(([name, value]) => `  ${name.padEnd(12)}  ${printable(value)}`),
    ...replicas.map((line) => `  ${line}`),
    ...worker.tail.length > 0 ? ["  last lines"] : [],
    ...worker.tail.map((line) => `    | ${printable(line)}`),
  ];
}

/** The line for a worker that is ready: name, pid, time, functions. */
export function renderReady(worker: WorkerStatus): string {
  const { kind, pid, replicas } = worker;
  const processes = replicas.length > 1
    ? `${replicas.length} replicas, pids ${replicas.map((replica) => replica.pid ?? "?").join(" ")}`
    : `pid ${pid ?? "unknown"}`;
  const facts = [
    kind === "builtin" ? "part of the engine" : processes,
    ...worker.ready_after_ms === null ? [] : [renderDuration(worker.ready_after_ms)],
    functionsOf(worker),
  ];
  return printable(`${worker.name} is ready: ${facts.join(", ")}`);
}

function renderReplicas(replicas: readonly Replica[], wallMs: number): string[] {
  const head = ["REPLICA", "STATE", "SINCE", "PID", "RESTARTS", "MEMORY", "CPU%", "REMARK"];
  return renderTable(
    head,
    replicas.map((replica) => [
      String(replica.number),
      replica.suspect ? "suspect" : replica.state,
      renderShortDuration(wallMs - replica.since_ms),
      replica.pid === null ? "-" : String(replica.pid),
      String(replica.restarts),
      replica.memory_bytes === null ? "-" : renderBytes(replica.memory_bytes),
      replica.cpu_percent === null ? "-" : String(Math.round(replica.cpu_percent)),
      replica.reason ?? (replica.last_exit === null ? "" : `last exit: ${replica.last_exit}`),
    ]),
  );
}

/** Why it is not ready, a warning, and the last error. */
function remarksOf(worker: WorkerStatus): string[] {
  const { reason } = worker;
  const error = otherErrorOf(worker);
  return [
    ...reason === null || isSummary(worker) ? [] : [reason],
    ...error === null ? [] : [`last error: ${error}`],
  ];
}

/** Whether its reason only says what it is: that of a built-in worker without a problem. */
export function isSummary({ kind, state, reason, last_error }: WorkerStatus): boolean {
  const isWarning = last_error !== null && reason !== null && reason.includes(last_error);
  return kind === "builtin" && state === "ready" && !isWarning;
}

/** The last error, unless the reason of its state contains it. */
function otherErrorOf({ reason, last_error }: WorkerStatus): string | null {
  return last_error !== null && reason?.includes(last_error) ? null : last_error;
}

/** Text in lines of at most `width` characters that start with `indent`. */
function wrap(text: string, width: number, indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of printable(text).split(/\s+/).filter((word) => word !== "")) {
    const longer = line === indent ? `${indent}${word}` : `${line} ${word}`;
    if (longer.length > width && line !== indent) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = longer;
  }
  return line === indent ? lines : [...lines, line];
}

function isolationOf({ isolation, accelerator }: WorkerStatus): string | null {
  return accelerator === null ? isolation : `${isolation}/${accelerator}`;
}

function functionsOf({ functions }: WorkerStatus): string {
  if (functions.length === 0) return "no functions";
  if (functions.length <= 4) return functions.join(", ");
  return count(functions.length, "function");
}

const OUTCOMES: Partial<Record<WorkerState, string>> = {
  failed: "failed",
  stopped: "ended",
};

/** What a worker is doing, with the reason that the engine gives. */
export function phaseOf(status: WorkerStatus): string {
  const { state, reason } = status;
  const text = state === "ready" ? `${readyOf(status)} ready` : stateText(status);
  if (reason === null || state === "ready") return text;
  return reason.startsWith(text) ? reason : `${text}: ${reason}`;
}

/** How many replicas are ready, such as `2 of 3`. */
export function readyOf({ replicas }: WorkerStatus): string {
  const ready = replicas.filter(({ state }) => state === "ready").length;
  return `${ready} of ${replicas.length}`;
}

/** Why a worker will not be ready, and where to look, in one sentence. */
export function failureOf(status: WorkerStatus): string {
  const { name, state, last_exit, log_path } = status;
  const broken = state === "ready"
    ? status.replicas.find((replica) => replica.state !== "ready")
    : undefined;
  const of = broken ?? status;
  const subject = broken ? `replica ${broken.number} of ${name}` : name;
  const why = of.reason ?? of.last_exit ?? status.last_error ?? last_exit ?? "no reason was given";
  const log = log_path === null ? "" : `; all it printed: engine worker logs ${name}`;
  if (of.state === "stopped" && of.reason === null) {
    return printable(`${subject} was stopped meanwhile${log}`);
  }
  if (of.state === "ready") return printable(`${subject}: ${why}${log}`); // It runs as before.
  const what = OUTCOMES[of.state] ?? "ended and will be tried again";
  return printable(`${subject} ${what}: ${why}${log}`);
}

function stateText({ state, reason, isolation }: WorkerStatus): string {
  switch (state) {
    case "queued":
      return "waiting for its turn";
    case "installing":
      return reason === null ? "checking dependencies" : "installing dependencies";
    case "starting":
      if (isolation === "process") return "starting as a plain process, without isolation";
      return isolation === "microvm" ? "starting in a microVM" : "starting";
    default:
      return state;
  }
}
