/**
 * Workers as text: the list, one in full, and the line that says one is ready.
 *
 * @module
 */
import type { WorkerStatus } from "../engine/mod.ts";
import { count, printable, renderDuration, renderTable } from "./render.ts";

/** A table of workers, head first; `wallMs` is the time now, in milliseconds since 1970. */
export function renderWorkers(workers: readonly WorkerStatus[], wallMs: number): string[] {
  const rows = workers.map((worker) => [
    worker.name,
    worker.state,
    worker.kind === "directory" && worker.pid !== null ? String(worker.pid) : "-",
    worker.started_at_ms === null ? "-" : renderDuration(wallMs - worker.started_at_ms),
    String(worker.functions.length),
    worker.isolation ?? "-",
    String(worker.restarts),
    worker.reason ?? "",
  ]);
  const head = ["NAME", "STATE", "PID", "UP", "FUNCTIONS", "ISOLATION", "RESTARTS", "REMARK"];
  return renderTable(head, rows);
}

/** All that is known of one worker, one line each. */
export function renderStatus(worker: WorkerStatus, wallMs: number): string[] {
  const up = worker.started_at_ms === null ? null : renderDuration(wallMs - worker.started_at_ms);
  const ready = worker.ready_after_ms === null ? null : renderDuration(worker.ready_after_ms);
  const lines: (readonly [string, string | null])[] = [
    ["state", worker.state],
    ["remark", worker.reason],
    ["kind", worker.kind],
    ["directory", worker.path],
    ["isolation", worker.isolation],
    ["pid", worker.pid === null ? null : String(worker.pid)],
    ["up", up],
    ["ready after", ready],
    ["restarts", String(worker.restarts)],
    ["last exit", worker.last_exit],
    ["dependencies", worker.dependencies],
    ["log", worker.log_path],
    ["functions", worker.functions.join(", ") || "none"],
  ];
  const shown = lines.filter((line): line is readonly [string, string] => line[1] !== null);
  return [
    printable(worker.name),
    ...shown.map(([name, value]) => `  ${name.padEnd(12)}  ${printable(value)}`),
    ...worker.tail.length > 0 ? ["  last lines"] : [],
    ...worker.tail.map((line) => `    | ${printable(line)}`),
  ];
}

/** The one line of result of a worker that is ready: name, pid, time, functions. */
export function renderReady(worker: WorkerStatus): string {
  const facts = [
    worker.kind === "builtin" ? "part of the engine" : `pid ${worker.pid ?? "unknown"}`,
    ...worker.ready_after_ms === null ? [] : [renderDuration(worker.ready_after_ms)],
    functionsOf(worker),
  ];
  return printable(`${worker.name} is ready: ${facts.join(", ")}`);
}

function functionsOf({ functions }: WorkerStatus): string {
  if (functions.length === 0) return "no functions";
  if (functions.length <= 4) return functions.join(", ");
  return count(functions.length, "function");
}
