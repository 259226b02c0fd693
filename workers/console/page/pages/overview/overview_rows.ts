/**
 * What the Overview page says: what needs attention, which functions are slow or fail, and what
 * changed last. All of it is made from lists that other pages show whole.
 *
 * @module
 */
import type { ClusterView } from "../../../../../engine/ports/directory.ts";
import { formatCount, formatPercent, link } from "../../kit/mod.ts";
import type { ConfigurationRow } from "../configuration/configuration_rows.ts";
import type { Alert } from "../metrics/alerts.tsx";
import type { FunctionTraffic } from "../metrics/samples.ts";
import { type QueueRow, titleOf } from "../queues/queue_rows.ts";
import { functionAddress } from "../references.tsx";
import type { TriggerItem } from "../triggers/trigger_rows.ts";
import { upCount, type WorkerRow } from "../workers/worker_rows.ts";

/** A function fails noticeably from this share of its calls on, in percent. */
const FAILING_PERCENT = 10;
/** Fewer calls in a minute say nothing about the share that fails. */
const FAILING_CALLS_MIN = 6;
/** Findings, functions, queues and changes shown. */
export const SHOWN_MAX = 6;

/** Something that needs attention. */
export interface Finding {
  readonly tone: "bad" | "warn";
  readonly text: string;
  /** Why, as far as it is known. */
  readonly detail: string | null;
  /** The page that shows it. */
  readonly to: string;
}

/** What findings are made from. */
export interface OverviewInput {
  readonly workers: readonly WorkerRow[];
  readonly alerts: readonly Alert[];
  readonly queues: readonly QueueRow[];
  readonly triggers: readonly TriggerItem[];
  readonly configurations: readonly ConfigurationRow[];
  readonly functions: readonly FunctionLoad[];
  /** `null`: not known yet. */
  readonly cluster: ClusterView | null;
}

/** A function and its traffic in the last minute. */
export interface FunctionLoad extends FunctionTraffic {
  readonly function_id: string;
  readonly namespace: string;
}

/** What needs attention, the worst first. */
export function findingsOf(input: OverviewInput): Finding[] {
  const all = [
    ...clusterFindings(input.cluster),
    ...input.workers.flatMap(workerFinding),
    ...input.alerts.flatMap(alertFinding),
    ...input.configurations.flatMap(configurationFinding),
    ...input.functions.flatMap(functionFinding),
    ...input.queues.flatMap(queueFindings),
    ...triggerFindings(input.triggers),
  ];
  return [
    ...all.filter(({ tone }) => tone === "bad"),
    ...all.filter(({ tone }) => tone === "warn"),
  ];
}

/** What stops more than one engine. */
function clusterFindings(view: ClusterView | null): Finding[] {
  if (view === null || view.cluster === null) return [];
  const finding = (text: string, detail: string | null): Finding[] => [
    { tone: "bad", text, detail, to: link("/cluster") },
  ];
  if (!view.connected) return finding("NATS cannot be reached", view.problem ?? null);
  if (!view.log) return []; // Each engine keeps its own state.
  if (view.log.problem !== null) {
    return finding("The log of the state cannot be used", view.log.problem);
  }
  if ((view.keeper ?? null) !== null) return [];
  return finding("No engine keeps the state", "State, queues and cron wait until one does");
}

function workerFinding({ name, key, state, reason }: WorkerRow): Finding[] {
  const said = reason?.startsWith(RELOAD_FAILED)
    ? "serves the version before its last edit"
    : WORKER_WORDS[state];
  if (said === undefined) return [];
  const tone = state === "failed" ? "bad" : "warn";
  return [{ tone, text: `${name} ${said}`, detail: reason, to: link("/workers", key) }];
}

/** How the supervisor's reason begins while an old version serves because the new one failed. */
const RELOAD_FAILED = "Reload failed: ";
const WORKER_WORDS: Partial<Record<WorkerRow["state"], string>> = {
  failed: "has failed",
  waiting: "waits before its next start",
  suspect: "does not answer",
};

function alertFinding({ name, state }: Alert): Finding[] {
  if (state !== "firing") return [];
  const to = link("/metrics", { tab: "alerts" });
  return [{ tone: "bad", text: `The alert ${name} fires`, detail: null, to }];
}

function configurationFinding({ id, problem }: ConfigurationRow): Finding[] {
  if (problem === null) return [];
  const to = link("/configuration", id);
  return [{ tone: "bad", text: `The configuration ${id} is not valid`, detail: problem, to }];
}

function functionFinding(load: FunctionLoad): Finding[] {
  const { function_id, namespace, calls_per_s, errors_per_s } = load;
  const percent = failedPercent(load);
  if (calls_per_s * 60 < FAILING_CALLS_MIN || percent < FAILING_PERCENT) return [];
  const failed = formatCount(Math.round(errors_per_s * 60));
  return [{
    tone: "warn",
    text: `${function_id} fails in ${formatPercent(percent)} of its calls`,
    detail: `${failed} in the last minute`,
    to: functionAddress(function_id, namespace, { tab: "metrics" }),
  }];
}

function queueFindings(row: QueueRow): Finding[] {
  const findings: Finding[] = [];
  if (row.dead > 0) {
    const letters = row.dead === 1 ? "1 dead letter" : `${formatCount(row.dead)} dead letters`;
    findings.push({
      tone: "warn",
      text: `${titleOf(row)} has ${letters}`,
      detail: "Jobs that failed too often",
      to: link("/queues", row.name, { tab: "dead" }),
    });
  }
  if (row.paused) {
    const detail = `${formatCount(row.waiting)} jobs wait`;
    const to = link("/queues", row.name);
    findings.push({ tone: "warn", text: `${titleOf(row)} is paused`, detail, to });
  }
  return findings;
}

/** Triggers that do not fire, by their type: a missing provider stops all of them. */
function triggerFindings(triggers: readonly TriggerItem[]): Finding[] {
  const idle = triggers.filter(({ status = "active" }) => status !== "active");
  return [...Map.groupBy(idle, ({ trigger_type }) => trigger_type)].map(([type, own]) => ({
    tone: "warn",
    text: own.length === 1
      ? `A ${type} trigger of ${own[0]!.function_id} does not fire`
      : `${formatCount(own.length)} ${type} triggers do not fire`,
    detail: own[0]!.reason ?? null,
    to: link("/triggers", { type }),
  }));
}

/** What is good while nothing needs attention. */
export function wellText({ workers, queues, triggers }: OverviewInput): string {
  const parts = [
    ...upTexts(workers),
    "no alert fires",
    ...queues.length > 0 ? ["no job is dead"] : [],
    ...triggers.length > 0 ? ["every trigger is active"] : [],
  ];
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}.`;
}

/** Workers that an operator stopped are no finding, but not up either. */
function upTexts(workers: readonly WorkerRow[]): string[] {
  const { up, all, elsewhere } = upCount(workers);
  return [
    all === 1
      ? (up === 1 ? "Its worker is up" : "Its worker is not up")
      : up === all
      ? `All ${formatCount(all)} workers are up`
      : `${formatCount(up)} of ${formatCount(all)} workers are up`,
    ...elsewhere > 0
      ? [
        `${formatCount(elsewhere)} more ${elsewhere === 1 ? "runs" : "run"} at the engine that ` +
        "keeps the state",
      ]
      : [],
  ];
}

/** The share of the calls that failed in the last minute, in percent. */
export function failedPercent({ calls_per_s, errors_per_s }: FunctionTraffic): number {
  return calls_per_s > 0 ? Math.min(100, 100 * errors_per_s / calls_per_s) : 0;
}

/** The functions with the longest p99 in the last minute, of those that were called in it. */
export function slowestOf(functions: readonly FunctionLoad[]): FunctionLoad[] {
  return functions.filter(({ calls_per_s, p99_ms }) => calls_per_s > 0 && p99_ms !== null)
    .sort((a, b) => b.p99_ms! - a.p99_ms!)
    .slice(0, SHOWN_MAX);
}

/** The queues to look at: those with dead letters, then the longest. */
export function queuesInOrder(queues: readonly QueueRow[]): QueueRow[] {
  return [...queues].sort((a, b) => {
    return Number(b.dead > 0) - Number(a.dead > 0) || b.waiting - a.waiting ||
      (titleOf(a) < titleOf(b) ? -1 : 1);
  }).slice(0, SHOWN_MAX);
}

/** Something that happened. */
export interface Change {
  readonly at_ms: number;
  readonly name: string;
  /** Such as `started`. */
  readonly what: string;
  readonly tone: "neutral" | "ok" | "bad" | "accent";
  readonly to: string;
}

/** Starts and failures of workers, and edits of configurations, the newest first. */
export function changesOf(
  workers: readonly WorkerRow[],
  configurations: readonly ConfigurationRow[],
): Change[] {
  return [...workers.flatMap(workerChange), ...configurations.map(configurationChange)]
    .sort((a, b) => b.at_ms - a.at_ms)
    .slice(0, SHOWN_MAX);
}

/** Built-in workers start with the engine, which stands for them. */
function workerChange(row: WorkerRow): Change[] {
  const { name, key, kind, state, since_ms, started_at_ms, status, engine } = row;
  if (engine !== null || (kind === "builtin" && name !== "engine")) return [];
  const to = link("/workers", key);
  if (state === "failed" || state === "stopped") {
    const tone = state === "failed" ? "bad" : "neutral";
    return [{ at_ms: since_ms, name, what: state, tone, to }];
  }
  if (started_at_ms === null) return [];
  const what = kind === "external"
    ? "connected"
    : (status?.launch ?? 1) > 1
    ? "was deployed or restarted"
    : "started";
  return [{ at_ms: started_at_ms, name, what, tone: "ok", to }];
}

function configurationChange({ id, version, updated_at_ms }: ConfigurationRow): Change {
  const what = version <= 1 ? "was registered" : `was set to version ${version}`;
  const to = link("/configuration", id, { tab: "history" });
  return { at_ms: updated_at_ms, name: id, what, tone: "accent", to };
}
