/**
 * Workers as rows: supervised workers and connections, joined.
 *
 * The engine has two lists, of supervised workers by name and of connections by id. A supervised
 * worker names its connections; the other connections are grouped by name.
 *
 * @module
 */
import type { WorkerState, WorkerStatus } from "../../../../../engine/ports/supervision.ts";
import { ENGINE_GAUGES } from "./worker_gauges.ts";

/** A connection as `engine::workers::list` returns it. */
export interface ConnectedWorker {
  readonly id: string;
  readonly name: string | null;
  readonly namespace: string | null;
  readonly description: string | null;
  readonly version: string | null;
  /** Such as `deno 2.9.6`. */
  readonly runtime: string | null;
  readonly os: string | null;
  readonly status: "connected" | "draining";
  /** It does not answer pings. */
  readonly suspect: boolean;
  readonly function_count: number;
  readonly connected_at_ms: number;
  readonly active_invocations: number;
  readonly isolation: string | null;
  readonly ip_address: string | null;
  /** Name of the other engine that it is connected to. */
  readonly engine?: string;
  /** Part of its engine. */
  readonly internal?: boolean;
}

/** `managed`: started by the engine; `builtin`: part of it; `external`: connected by itself. */
type WorkerKind = "managed" | "builtin" | "external";

/** A row of the list: a supervised worker, or others by name. */
export interface WorkerRow {
  readonly key: string;
  readonly name: string;
  readonly kind: WorkerKind;
  /** `elsewhere`: another engine of the cluster, which keeps the state, runs it. */
  readonly state: WorkerState | "connected" | "draining" | "suspect" | "elsewhere";
  readonly since_ms: number;
  /** Why it is in that state. */
  readonly reason: string | null;
  readonly isolation: string | null;
  /** Name of the other engine where it is; `null`: here. */
  readonly engine: string | null;
  readonly runtime: string | null;
  readonly version: string | null;
  readonly pid: number | null;
  readonly started_at_ms: number | null;
  readonly functions: number;
  readonly in_flight: number;
  readonly replicas: number;
  readonly restarts: number;
  /** Ids of its connections. */
  readonly ids: readonly string[];
  /** `null` for workers that are not supervised. */
  readonly status: WorkerStatus | null;
  readonly connections: readonly ConnectedWorker[];
}

/** The colour of a state. */
type StateTone = "ok" | "warn" | "bad" | "neutral" | "accent";

/** Joins both lists by name. */
export function workerRows(
  supervised: readonly WorkerStatus[],
  connections: readonly ConnectedWorker[],
): WorkerRow[] {
  const owner = new Map<string, string>();
  for (const { name, replicas } of supervised) {
    for (const id of replicas.flatMap(({ worker_ids }) => worker_ids)) owner.set(id, name);
  }
  const builtins = new Set(
    supervised.filter(({ kind }) => kind === "builtin").map(({ name }) => name),
  );
  const own = new Map<string, ConnectedWorker[]>();
  const others = new Map<string, ConnectedWorker[]>();
  const near = connections.filter(({ engine }) => engine === undefined);
  for (const connection of near) {
    const name = connection.name ?? connection.id;
    const isBuiltin = builtins.has(name) && connection.ip_address === null;
    const of = owner.get(connection.id) ?? (isBuiltin ? name : undefined);
    const list = of === undefined ? others : own;
    list.set(of ?? name, [...list.get(of ?? name) ?? [], connection]);
  }
  return [
    ...supervised.map((status) => supervisedRow(status, own.get(status.name) ?? [])),
    ...[...others].map(([name, mine]) => otherRow(name, mine)),
    ...farRows(connections),
  ].sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

/** Workers of other engines by name and engine, without those that are part of an engine. */
function farRows(connections: readonly ConnectedWorker[]): WorkerRow[] {
  const far = connections.filter(({ engine, internal }) => engine !== undefined && !internal);
  const groups = Map.groupBy(far, ({ name, id, engine }) => `${name ?? id}~${engine}`);
  return [...groups].map(([key, [first, ...more]]) => ({
    ...otherRow(first!.name ?? first!.id, [first!, ...more]),
    key,
    kind: "external",
    engine: first!.engine!,
  }));
}

/** The ids of a row's gauges. */
export function gaugeIds({ kind, name, ids }: WorkerRow): readonly string[] {
  return kind === "builtin" && name === "engine" ? [...ids, ENGINE_GAUGES] : ids;
}

/** The colour of a state. */
export function stateTone(state: WorkerRow["state"]): StateTone {
  switch (state) {
    case "ready":
    case "connected":
      return "ok";
    case "failed":
      return "bad";
    case "waiting":
    case "draining":
    case "suspect":
      return "warn";
    case "stopped":
    case "elsewhere":
      return "neutral";
    default:
      return "accent";
  }
}

/** Whether a worker serves calls. */
export function isUp({ state }: Pick<WorkerRow, "state">): boolean {
  return state === "ready" || state === "connected";
}

/** How many workers there are and serve calls. */
export interface UpCount {
  readonly up: number;
  /** Of so many, without those that run elsewhere. */
  readonly all: number;
  /** Built-in workers that wait here because the engine that keeps the state runs them. */
  readonly elsewhere: number;
}

/** Counts workers that serve calls. */
export function upCount(rows: readonly WorkerRow[]): UpCount {
  const elsewhere = rows.filter(({ state }) => state === "elsewhere").length;
  return { up: rows.filter(isUp).length, all: rows.length - elsewhere, elsewhere };
}

/** Whether every word of a search occurs in a row. */
export function matchesSearch(row: WorkerRow, search: string): boolean {
  const { name, state, kind, runtime, isolation, reason, engine } = row;
  const text = [name, state, kind, runtime, isolation, reason, engine].join(" ")
    .toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** The isolation of a row, for people. */
export function isolationText({ kind, isolation }: WorkerRow): string {
  if (kind === "builtin") return "built in";
  if (isolation === "microvm") return "microVM";
  return isolation ?? (kind === "external" ? "external" : "–");
}

function supervisedRow(status: WorkerStatus, connections: readonly ConnectedWorker[]): WorkerRow {
  return {
    key: status.name,
    name: status.name,
    kind: status.kind === "builtin" ? "builtin" : "managed",
    state: stateOf(status),
    since_ms: status.since_ms,
    reason: status.reason,
    isolation: status.isolation,
    engine: null,
    runtime: connections[0]?.runtime ?? null,
    version: connections[0]?.version ?? null,
    pid: status.pid,
    started_at_ms: status.started_at_ms,
    functions: status.functions.length,
    in_flight: inFlight(connections),
    replicas: status.replicas.length || 1,
    restarts: status.restarts,
    ids: connections.map(({ id }) => id),
    status,
    connections,
  };
}

/** A built-in worker that waits for its start is queued as well, but then there is no reason. */
function stateOf({ kind, state, suspect, reason }: WorkerStatus): WorkerRow["state"] {
  if (suspect) return "suspect";
  return kind === "builtin" && state === "queued" && reason !== null ? "elsewhere" : state;
}

function otherRow(name: string, connections: readonly ConnectedWorker[]): WorkerRow {
  const first = connections[0]!;
  const since_ms = Math.min(...connections.map(({ connected_at_ms }) => connected_at_ms));
  return {
    key: `${name}~`, // A supervised worker may have the same name.
    name,
    kind: first.ip_address === null ? "builtin" : "external",
    state: stateOfOthers(connections),
    since_ms,
    reason: connections.some(({ suspect }) => suspect) ? suspectText(connections) : null,
    isolation: first.isolation,
    engine: null,
    runtime: first.runtime,
    version: first.version,
    pid: null,
    started_at_ms: since_ms,
    functions: Math.max(...connections.map(({ function_count }) => function_count)),
    in_flight: inFlight(connections),
    replicas: connections.length,
    restarts: 0,
    ids: connections.map(({ id }) => id),
    status: null,
    connections,
  };
}

function stateOfOthers(connections: readonly ConnectedWorker[]): WorkerRow["state"] {
  if (connections.every(({ suspect }) => suspect)) return "suspect";
  return connections.every(({ status }) => status === "draining") ? "draining" : "connected";
}

function suspectText(connections: readonly ConnectedWorker[]): string {
  const silent = connections.filter(({ suspect }) => suspect).length;
  const who = connections.length === 1 ? "It does" : `${silent} of ${connections.length} do`;
  return `${who} not answer; calls go to other workers that offer its functions`;
}

function inFlight(connections: readonly ConnectedWorker[]): number {
  return connections.reduce((sum, { active_invocations }) => sum + active_invocations, 0);
}
