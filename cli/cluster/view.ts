/**
 * The engines of a cluster as the command line reads and shows them.
 *
 * @module
 */
import type { ClusterLogView, ClusterView, EngineRow } from "../../engine/mod.ts";
import type { EngineConnection } from "../connect.ts";
import { count, printable, renderBytes, renderShortDuration, renderTable } from "../render.ts";

/** Shown where an engine has no cluster. */
export const ALONE = "This engine is alone; see docs/how-to/cluster.md";

/** Reads what `engine::cluster::engines` answers; an engine without that function is alone. */
export async function readCluster(
  engine: Pick<EngineConnection, "call">,
  logs = false,
): Promise<ClusterView> {
  try {
    const answer = await engine.call("engine::cluster::engines", logs ? { logs } : {});
    return answer as unknown as ClusterView;
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code !== "function_not_found") throw thrown;
    return { cluster: null, connected: false, engines: [] };
  }
}

/** Why NATS cannot be reached, in parentheses. */
export function whyAway({ problem }: ClusterView): string {
  return problem === null || problem === undefined ? "" : ` (${problem})`;
}

/** All of it, as lines. */
export function renderCluster(view: ClusterView): string[] {
  if (view.cluster === null) return [ALONE];
  const { cluster, connected, engines } = view;
  const away = `NATS cannot be reached${whyAway(view)}: this engine works alone until it is back`;
  return [
    `Cluster ${cluster}: ${count(engines.length, "engine")}, ${
      connected ? "connected to NATS" : away
    }`,
    "",
    ...renderEngines(engines),
    "",
    keeperLine(view),
    ...logLines(view),
    ...endsLines(view),
  ].map(printable);
}

/** A table of engines, the one that answers first. */
export function renderEngines(engines: readonly EngineRow[]): string[] {
  const head = [
    "ENGINE",
    "STATE",
    "AGE",
    "RTT",
    "CALLS OUT/IN",
    "BYTES OUT/IN",
    "QUEUED",
    "VERSION",
  ];
  return renderTable(
    head,
    engines.map(({ name, state, link, version, keeper }) => [
      keeper ? `${name} (keeper)` : name,
      state,
      ...link === null ? ["-", "-", "-", "-", "-"] : [
        renderShortDuration(link.age_ms),
        link.rtt_ms === null ? "-" : `${link.rtt_ms.toFixed(1)} ms`,
        `${link.calls_out}/${link.calls_in}`,
        `${renderBytes(link.bytes_out)}/${renderBytes(link.bytes_in)}`,
        link.queued_bytes === 0 ? "-" : renderBytes(link.queued_bytes),
      ],
      version,
    ]),
  );
}

/** Which engine keeps the state. */
export function keeperLine({ keeper = null, log, engines }: ClusterView): string {
  if (log === null) return "State: each engine keeps its own (log: none)";
  const found = engines.find(({ life }) => life === keeper);
  if (keeper === null) return "Keeper: none; state, queues and cron wait for one";
  return `Keeper: ${found?.name ?? "an engine without a link to this one"}, life ${keeper}`;
}

function logLines({ log, engines }: ClusterView): string[] {
  if (!log) return [];
  const copies = log.copies === 1 ? "1 copy" : `${log.copies} copies`;
  const where = log.kind === "postgres" ? "Postgres" : `JetStream, ${copies}`;
  const sync = log.require_sync ? "refused unless it is safe on disk" : "not checked for sync";
  const lags = engines.flatMap(({ name, log }) => log ? [`${name} ${lagOf(log)}`] : []);
  return [
    `Log: ${where}, ${sync}, ${renderBytes(log.bytes)} since its snapshot`,
    `Applied: ${lags.length === 0 ? lagOf(log) : lags.join("; ")}`,
    ...log.problem === null ? [] : [`Problem: ${log.problem}`],
  ];
}

function lagOf({ applied, behind, seen_ms_ago }: ClusterLogView): string {
  if (applied === null || behind === null) return "nothing yet";
  const seen = seen_ms_ago === null || seen_ms_ago < 1_000
    ? ""
    : `, not seen for ${renderShortDuration(seen_ms_ago)}`;
  return `message ${applied}, ${behind === 0 ? "all" : `${behind} behind`}${seen}`;
}

function endsLines({ link_ends = {} }: ClusterView): string[] {
  const ends = Object.entries(link_ends).filter(([, times]) => times > 0);
  if (ends.length === 0) return [];
  return [`Links that ended: ${ends.map(([reason, times]) => `${reason} ${times}`).join(", ")}`];
}

/** A worker of another engine, as `engine::workers::list` returns it. */
export interface FarWorker {
  readonly name: string | null;
  readonly id: string;
  readonly engine?: string;
  readonly status: string;
  readonly suspect?: boolean;
  /** Part of its engine. */
  readonly internal?: boolean;
  readonly runtime: string | null;
  readonly function_count: number;
  readonly active_invocations: number;
  readonly connected_at_ms: number;
}

/** The workers of other engines, without those that are part of an engine. */
export async function readFarWorkers(
  engine: Pick<EngineConnection, "call">,
): Promise<readonly FarWorker[]> {
  const answer = await engine.call("engine::workers::list", { limit: 1 }).catch(() => undefined);
  const { workers = [] } = (answer ?? {}) as unknown as { workers?: readonly FarWorker[] };
  return workers.filter((worker) => worker.engine !== undefined && !worker.internal);
}

/** A table of them; nothing without any. */
export function renderFarWorkers(workers: readonly FarWorker[], wallMs: number): string[] {
  if (workers.length === 0) return [];
  const head = ["AT OTHER ENGINES", "ENGINE", "STATE", "SINCE", "FUNCS", "RUNNING", "RUNTIME"];
  const rows = workers.toSorted((a, b) => compare(keyOf(a), keyOf(b))).map((worker) => [
    worker.name ?? worker.id,
    worker.engine!,
    worker.suspect ? "suspect" : worker.status,
    renderShortDuration(wallMs - worker.connected_at_ms),
    String(worker.function_count),
    String(worker.active_invocations),
    worker.runtime ?? "-",
  ]);
  return ["", ...renderTable(head, rows)];
}

function keyOf({ engine, name, id }: FarWorker): string {
  return `${engine} ${name ?? id}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
