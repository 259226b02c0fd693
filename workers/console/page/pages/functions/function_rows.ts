/**
 * Functions as rows: filtered, sorted, and grouped by namespace and by the first part of their ids.
 *
 * Made for tens of thousands of functions: one pass to filter and one sort.
 *
 * @module
 */
import { DEFAULT_NAMESPACE, type Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { objectOf } from "../../kit/json.ts";
import type { FunctionTraffic } from "../metrics/samples.ts";
import { functionKey } from "../references.tsx";

/** A function as `engine::functions::list` returns it. */
export interface FunctionItem {
  readonly function_id: string;
  readonly namespace: string;
  readonly worker_name: string;
  readonly description?: string;
  readonly metadata?: Json;
  /** How many workers run it; older engines leave it out. */
  readonly replicas?: number;
  /** Names of the workers that offer it, if they differ and it is not meant to be shared. */
  readonly contenders?: readonly string[];
  /** Origin of the URL that is its implementation. */
  readonly served_by?: string;
  /** Name of the other engine whose workers offer it. */
  readonly engine?: string;
}

/** The result of `engine::functions::info`, as far as it is used. */
export interface FunctionInfo {
  readonly function_id: string;
  readonly namespace: string;
  readonly worker_name: string;
  readonly description?: string;
  readonly metadata?: Json;
  readonly request_schema?: Json;
  readonly response_schema?: Json;
  /** Older engines leave it out. */
  readonly workers?: readonly { readonly worker_id: string; readonly name: string }[];
  readonly contenders?: readonly string[];
  readonly served_by?: string;
  readonly engine?: string;
  readonly registered_triggers: readonly {
    readonly id: string;
    readonly trigger_type: string;
    readonly config: Json;
    /** Older engines leave it out. */
    readonly status?: "active" | "parked" | "refused";
    readonly reason?: string;
  }[];
}

/** Whether a function is internal to its worker, such as one that only its trigger calls. */
export function isInternal({ metadata }: FunctionItem): boolean {
  return objectOf(metadata ?? null).internal === true;
}

/** The header of a group, or a function. */
export type FunctionRow =
  | {
    readonly kind: "group";
    readonly key: string;
    /** Such as `orders`, or `shop / orders` outside of the default namespace. */
    readonly title: string;
    readonly count: number;
    readonly isClosed: boolean;
  }
  | { readonly kind: "function"; readonly key: string; readonly item: FunctionItem };

/** What functions are sorted by; sorted by `name`, they are grouped. */
export type FunctionOrder = "name" | "calls" | "errors" | "p50" | "p99" | "worker" | "replicas";

/** Which functions are shown, and in which order. */
export interface FunctionView {
  /** Words that must all occur in id, description, worker or namespace. */
  readonly search: string;
  readonly worker: string;
  readonly order: FunctionOrder;
  readonly descending: boolean;
  /** Keys of collapsed groups, which a search expands. */
  readonly closed: ReadonlySet<string>;
}

/** The rows, and how many functions match. */
export function functionRows(
  items: readonly FunctionItem[],
  view: FunctionView,
  trafficOf: (key: string) => FunctionTraffic | undefined,
): { readonly rows: readonly FunctionRow[]; readonly count: number } {
  const found = items.filter(searching(view));
  const rows = view.order === "name" ? grouped(found, view) : ranked(found, view, trafficOf);
  return { rows, count: found.length };
}

function searching(view: FunctionView): (item: FunctionItem) => boolean {
  const words = view.search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return ({ function_id, description, worker_name, namespace, engine }) => {
    if (view.worker !== "" && worker_name !== view.worker) return false;
    if (words.length === 0) return true;
    const text = `${function_id} ${description ?? ""} ${worker_name} ${namespace} ${engine ?? ""}`
      .toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

function grouped(items: readonly FunctionItem[], view: FunctionView): FunctionRow[] {
  const groups = new Map<string, FunctionItem[]>();
  for (const item of items) {
    const key = functionKey(item.namespace, firstPart(item.function_id));
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  const sign = view.descending ? -1 : 1;
  const isBuiltin = (key: string) => groups.get(key)![0]!.worker_name.startsWith("engine-");
  const keys = [...groups.keys()].sort((a, b) => {
    return sign * (Number(isBuiltin(a)) - Number(isBuiltin(b)) || compareGroups(a, b));
  });
  return keys.flatMap((key): FunctionRow[] => {
    const group = groups.get(key)!;
    const isClosed = view.search === "" && view.closed.has(key);
    const { namespace, function_id } = group[0]!;
    const name = firstPart(function_id);
    const title = namespace === DEFAULT_NAMESPACE ? name : `${namespace} / ${name}`;
    const head: FunctionRow = { kind: "group", key, title, count: group.length, isClosed };
    if (isClosed) return [head];
    group.sort((a, b) => sign * compare(a.function_id, b.function_id));
    return [head, ...group.map(rowOf)];
  });
}

function ranked(
  items: FunctionItem[],
  { order, descending }: FunctionView,
  trafficOf: (key: string) => FunctionTraffic | undefined,
): FunctionRow[] {
  const sign = descending ? -1 : 1;
  const rows = items.map((item) => {
    const row = rowOf(item);
    return { row, item, value: valueOf(order, item, trafficOf(row.key)) };
  });
  rows.sort((a, b) => {
    // Functions without a value come last in both directions.
    if (a.value === null || b.value === null) {
      if (a.value !== b.value) return a.value === null ? 1 : -1;
    } else if (a.value !== b.value) return sign * (a.value < b.value ? -1 : 1);
    return compare(a.item.function_id, b.item.function_id);
  });
  return rows.map(({ row }) => row);
}

function valueOf(
  order: FunctionOrder,
  item: FunctionItem,
  traffic: FunctionTraffic | undefined,
): number | string | null {
  switch (order) {
    case "calls":
      return traffic?.calls_per_s ?? 0;
    case "errors":
      return traffic?.errors_per_s ?? 0;
    case "p50":
      return traffic?.p50_ms ?? null;
    case "p99":
      return traffic?.p99_ms ?? null;
    case "worker":
      return item.worker_name;
    case "replicas":
      return item.replicas ?? null;
    case "name":
      return item.function_id;
  }
}

function rowOf(item: FunctionItem): FunctionRow {
  return { kind: "function", key: functionKey(item.namespace, item.function_id), item };
}

/** The id up to its first `::`, or the whole id. */
function firstPart(function_id: string): string {
  const end = function_id.indexOf("::");
  return end > 0 ? function_id.slice(0, end) : function_id;
}

/**
 * Functions of built-in workers come after those of the user's. Of each, the default namespace
 * comes first, and in it the engine's functions last.
 */
function compareGroups(a: string, b: string): number {
  const rank = (key: string) =>
    key === functionKey(DEFAULT_NAMESPACE, "engine") ? 1 : key.startsWith("default/") ? 0 : 2;
  return rank(a) - rank(b) || compare(a, b);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
