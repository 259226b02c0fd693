/**
 * Triggers as rows: filtered and grouped by type.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { triggerLabel } from "../references.tsx";

/** A trigger as `engine::registered-triggers::list` returns it. */
export interface TriggerItem {
  readonly id: string;
  readonly trigger_type: string;
  readonly function_id: string;
  readonly worker_name: string;
  /** Name of the other engine whose worker registered it. */
  readonly engine?: string;
  readonly config: Json;
  readonly config_summary: string;
  /** Older engines leave it out. */
  readonly status?: TriggerStatus;
  /** Why it does not fire; only of one that does not. */
  readonly reason?: string;
  /** Open connections of its path; only of a WebSocket. */
  readonly connections?: number;
}

/** A path of WebSockets as `websocket::routes` returns it. */
export interface SocketRouteItem {
  readonly api_path: string;
  readonly connections: number;
}

/** The path of a trigger's route, with its leading slash; `undefined`: it has none. */
export function socketPathOf({ trigger_type, config }: TriggerItem): string | undefined {
  if (trigger_type !== "websocket" || config === null || typeof config !== "object") {
    return undefined;
  }
  const { api_path } = config as { api_path?: Json };
  if (typeof api_path !== "string") return undefined;
  return api_path.startsWith("/") ? api_path : `/${api_path}`;
}

/** The triggers, those of WebSockets with their number of connections. */
export function withConnections(
  items: readonly TriggerItem[],
  routes: readonly SocketRouteItem[],
): readonly TriggerItem[] {
  if (routes.length === 0) return items;
  const counts = new Map(routes.map(({ api_path, connections }) => [api_path, connections]));
  return items.map((item) => {
    const connections = counts.get(socketPathOf(item) ?? "");
    return connections === undefined ? item : { ...item, connections };
  });
}

/** `parked`: no worker provides its type; `refused`: the provider said no. */
export type TriggerStatus = "active" | "parked" | "refused";

/** A trigger type as `engine::triggers::list` returns it. */
export interface TriggerTypeItem {
  readonly id: string;
  readonly namespace: string;
  readonly worker_name: string;
  readonly description: string;
}

/** The header of a type, or a trigger. */
export type TriggerRow =
  | {
    readonly kind: "type";
    readonly key: string;
    /** `null`: no worker provides the type, so its triggers wait. */
    readonly type: TriggerTypeItem | null;
    readonly id: string;
    readonly count: number;
    readonly isClosed: boolean;
  }
  | { readonly kind: "trigger"; readonly key: string; readonly item: TriggerItem };

/** Which triggers are shown. */
export interface TriggerView {
  readonly search: string;
  /** Only this type; empty: all. */
  readonly type: string;
  readonly closed: ReadonlySet<string>;
  /** Shows types of the engine even without triggers. */
  readonly own: boolean;
}

/** The rows by type, sorted by id, and how many triggers match. */
export function triggerRows(
  items: readonly TriggerItem[],
  types: readonly TriggerTypeItem[],
  view: TriggerView,
): { readonly rows: readonly TriggerRow[]; readonly count: number } {
  const words = view.search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const groups = new Map<string, TriggerItem[]>();
  for (const { id } of words.length === 0 ? types : []) {
    if (view.own || !id.startsWith("engine::")) groups.set(id, []);
  }
  let count = 0;
  for (const item of items) {
    if (view.type !== "" && item.trigger_type !== view.type) continue;
    if (!fits(item, words)) continue;
    count++;
    const group = groups.get(item.trigger_type);
    if (group) group.push(item);
    else groups.set(item.trigger_type, [item]);
  }
  const known = new Map(types.map((type) => [type.id, type]));
  const ids = [...groups.keys()].filter((id) => view.type === "" || id === view.type)
    // Types with triggers come first.
    .sort((a, b) =>
      Number(groups.get(a)!.length === 0) - Number(groups.get(b)!.length === 0) || compare(a, b)
    );
  const rows = ids.flatMap((id): TriggerRow[] => {
    const group = groups.get(id)!;
    const isClosed = words.length === 0 && view.closed.has(id);
    const type = known.get(id) ?? null;
    const head: TriggerRow = {
      kind: "type",
      key: `type/${id}`,
      type,
      id,
      count: group.length,
      isClosed,
    };
    if (isClosed) return [head];
    const named = group.map((item) => ({ item, name: nameOf(item) }));
    named.sort((a, b) => compare(a.name, b.name) || compare(a.item.id, b.item.id));
    return [
      head,
      ...named.map(({ item }): TriggerRow => ({
        kind: "trigger",
        key: `trigger/${item.id}`,
        item,
      })),
    ];
  });
  return { rows, count };
}

function fits(item: TriggerItem, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const { trigger_type, function_id, worker_name, id } = item;
  const text = `${trigger_type} ${function_id} ${worker_name} ${id} ${nameOf(item)}`
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

function nameOf({ trigger_type, config, config_summary }: TriggerItem): string {
  return triggerLabel(trigger_type, config, config_summary);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
