/**
 * The graph of the Flow page and its layout: cards with rows, and edges between rows.
 *
 * A worker is a card whose rows are its functions; a trigger type is a card whose rows are its
 * triggers. The graph depends on what is registered and on which calls were seen, never on their
 * rate, so it keeps its shape while the numbers change.
 *
 * @module
 */
import { type Layout, layoutColumn, layoutGraph } from "../../kit/graph_layout.ts";
import type { MapNode, ServiceMap } from "../traces/service_map.ts";
import { triggerLabel } from "../references.tsx";

/** Sizes of a card and its parts in pixels, as in the style sheet. */
export const CARD = { head: 34, row: 24, frame: 1, foot: 6, minWidth: 190, maxWidth: 330 } as const;
/** Space for the rate of an edge, whatever its digits. */
const LABEL = { width: 52, height: 16 };
/** With more edges than this, they have no labels. */
const LABELLED_MAX = 120;
/** Width of the cards of a phone, and the space between them. */
const NARROW_WIDTH = 250;
const NARROW_GAP = 20;
const CHAR_WIDTH = 7;
/** Space for the rate beside a name. */
const RATE_WIDTH = 92;

/** A function, as `engine::functions::list` returns it. */
export interface FlowFunction {
  readonly function_id: string;
  readonly worker_name: string;
  /** Name of the other engine whose workers offer it. */
  readonly engine?: string;
}

/** A trigger, as `engine::registered-triggers::list` returns it. */
export interface FlowTrigger {
  readonly id: string;
  readonly trigger_type: string;
  readonly function_id: string;
  readonly config: unknown;
  readonly config_summary?: string;
  /** Older engines leave it out. */
  readonly status?: "active" | "parked" | "refused";
}

/** What the graph is made from. */
export interface FlowInput {
  readonly functions: readonly FlowFunction[];
  readonly triggers: readonly FlowTrigger[];
  /** Names of workers, also of those without functions. */
  readonly workers: readonly string[];
  /** Trigger type to the worker that provides it. */
  readonly providers: ReadonlyMap<string, string>;
  /** Calls that were seen. */
  readonly map: ServiceMap;
}

/** Which part of the graph is shown. */
export interface FlowView {
  /** Only cards that contain this text, and their neighbours. */
  readonly text: string;
  /** Only this worker and its neighbours; empty: all. */
  readonly focus: string;
  readonly cardsMax: number;
  readonly rowsMax: number;
}

/** A row of a card. */
export interface FlowRow {
  readonly id: string;
  readonly label: string;
  /** The function that it is or fires; `null` when there is none. */
  readonly functionId: string | null;
}

/** A worker, a trigger type, or another caller. */
export interface FlowCard {
  readonly id: string;
  readonly kind: "worker" | "trigger" | "other";
  readonly title: string;
  readonly rows: readonly FlowRow[];
  /** How many rows were left out. */
  readonly hidden: number;
}

/** An end of an edge: one row of a card, or the card itself. */
interface FlowEnd {
  readonly card: string;
  readonly row: string | null;
}

/** An edge between two cards. */
export interface FlowEdge {
  readonly id: string;
  readonly from: FlowEnd;
  readonly to: FlowEnd;
  /** A call that was seen, or a registered trigger. */
  readonly kind: "call" | "trigger";
  /** The function at its end; `null` when it leads to a whole card. */
  readonly functionId: string | null;
  /** Keys of the edges of the service map that it represents, see {@linkcode mapEdgeKey}. */
  readonly mapEdges: readonly string[];
}

/** The graph to draw. */
export interface FlowGraph {
  readonly cards: readonly FlowCard[];
  readonly edges: readonly FlowEdge[];
  /** How many cards were left out. */
  readonly hidden: number;
}

/** Makes the graph. The same input gives the same graph in the same order. */
export function flowGraph(given: FlowInput, view: FlowView): FlowGraph {
  // A parked or refused trigger carries nothing.
  const active = given.triggers.filter(({ status = "active" }) => status === "active");
  const input = { ...given, triggers: uniqueTriggers(active) };
  const owners = new Map(input.functions.map((fn) => [fn.function_id, fn.worker_name]));
  const edges = [...triggerEdges(input, owners), ...callEdges(input, owners)];
  const touched = new Set(edges.flatMap(({ from, to }) => [from.row, to.row]));
  const cards = [
    ...triggerCards(input, owners),
    ...workerCards(input, owners, touched),
    ...otherCards(input.map, edges),
  ];
  const busy = new Set(edges.flatMap(({ from, to }) => [from.card, to.card]));
  const near = cardsInView(cards, edges, busy, view);
  const wanted = cards.filter(({ id }) => near.has(id))
    .sort((a, b) => Number(busy.has(b.id)) - Number(busy.has(a.id)));
  const shown = wanted.slice(0, view.cardsMax).map((card) => cutRows(card, touched, view.rowsMax));
  const rows = new Set(shown.flatMap((card) => card.rows.map(({ id }) => id)));
  const ids = new Set(shown.map(({ id }) => id));
  const kept = edges.filter(({ from, to }) => ids.has(from.card) && ids.has(to.card));
  return {
    cards: shown,
    edges: mergeEdges(kept.map((edge) => ({
      ...edge,
      from: endOrCard(edge.from, rows),
      to: endOrCard(edge.to, rows),
    }))),
    hidden: wanted.length - shown.length,
  };
}

/** Identifies an edge of the service map. */
export function mapEdgeKey({ from, to }: { readonly from: string; readonly to: string }): string {
  return `${from}\n${to}`;
}

/** Replicas of a worker register equal triggers, which are shown once. */
function uniqueTriggers(triggers: readonly FlowTrigger[]): FlowTrigger[] {
  const found = new Map<string, FlowTrigger>();
  for (const trigger of triggers) {
    const key = JSON.stringify([trigger.trigger_type, trigger.function_id, trigger.config]);
    if (!found.has(key)) found.set(key, trigger);
  }
  return [...found.values()];
}

function triggerEdges(input: FlowInput, owners: ReadonlyMap<string, string>): FlowEdge[] {
  const firings = firingsOf(input);
  return input.triggers.filter(({ function_id }) => owners.has(function_id)).map((trigger) => {
    const label = labelOf(trigger);
    const all = firings.get(firingKey(input, trigger)) ?? [];
    // A function may have several routes: only requests to this one belong to it.
    const own = all.filter(({ from }) => from.kind !== "http" || from.label === label);
    return {
      id: `trigger ${trigger.id}`,
      from: { card: `type:${trigger.trigger_type}`, row: `trigger:${trigger.id}` },
      to: endAtFunction(trigger.function_id, owners),
      kind: "trigger",
      functionId: trigger.function_id,
      mapEdges: own.map(({ key }) => key),
    };
  });
}

/** Edges of the map that start at providers of triggers, by provider and function. */
function firingsOf(input: FlowInput): Map<string, { from: MapNode; key: string }[]> {
  const nodes = new Map(input.map.nodes.map((node) => [node.id, node]));
  const firings = new Map<string, { from: MapNode; key: string }[]>();
  for (const mapEdge of input.map.edges) {
    const from = nodes.get(mapEdge.from);
    const to = nodes.get(mapEdge.to);
    if (from === undefined || to?.kind !== "function") continue;
    const key = `${from.worker} ${to.label}`;
    const known = firings.get(key);
    const firing = { from, key: mapEdgeKey(mapEdge) };
    if (known === undefined) firings.set(key, [firing]);
    else known.push(firing);
  }
  return firings;
}

function firingKey({ providers }: FlowInput, trigger: FlowTrigger): string {
  return `${providers.get(trigger.trigger_type)} ${trigger.function_id}`;
}

function callEdges(input: FlowInput, owners: ReadonlyMap<string, string>): FlowEdge[] {
  const nodes = new Map(input.map.nodes.map((node) => [node.id, node]));
  const fired = new Set(input.triggers.map((trigger) => firingKey(input, trigger)));
  const edges: FlowEdge[] = [];
  for (const mapEdge of input.map.edges) {
    const from = nodes.get(mapEdge.from);
    const to = nodes.get(mapEdge.to);
    if (from === undefined || to === undefined) continue;
    const source = endOf(from, owners);
    const target = endOf(to, owners);
    // The worker that runs a function is on the same card.
    if (source.card === target.card && to.kind === "worker") continue;
    const functionId = to.kind === "function" ? to.label : null;
    // The edge of the trigger represents it already.
    if (functionId !== null && fired.has(`${from.worker} ${functionId}`)) continue;
    const key = mapEdgeKey(mapEdge);
    const ends = { from: source, to: target };
    edges.push({ id: `call ${key}`, ...ends, kind: "call", functionId, mapEdges: [key] });
  }
  return edges;
}

function triggerCards(input: FlowInput, owners: ReadonlyMap<string, string>): FlowCard[] {
  const rows = new Map<string, FlowRow[]>();
  for (const trigger of input.triggers) {
    if (!owners.has(trigger.function_id)) continue;
    const known = rows.get(trigger.trigger_type) ?? [];
    known.push({
      id: `trigger:${trigger.id}`,
      label: labelOf(trigger),
      functionId: trigger.function_id,
    });
    rows.set(trigger.trigger_type, known);
  }
  return [...rows].sort(([a], [b]) => compare(a, b)).map(([type, rows]) => ({
    id: `type:${type}`,
    kind: "trigger",
    title: type,
    rows: rows.sort((a, b) => compare(a.label, b.label) || compare(a.id, b.id)),
    hidden: 0,
  }));
}

/**
 * Workers with functions or traffic; functions of built-ins, and of the one card that stands for
 * all workers of another engine, only if something calls them.
 */
function workerCards(
  input: FlowInput,
  owners: ReadonlyMap<string, string>,
  touched: ReadonlySet<string | null>,
): FlowCard[] {
  const rows = new Map<string, FlowRow[]>(input.workers.map((name) => [name, []]));
  const add = (worker: string, id: string) => {
    const known = rows.get(worker);
    const row = { id: `function:${id}`, label: id, functionId: id };
    if (known === undefined) rows.set(worker, [row]);
    else known.push(row);
  };
  const far = new Set(input.functions.map(({ engine }) => engine));
  for (const [id, worker] of owners) {
    const isShown = !isBuiltin(worker) && !far.has(worker);
    if (isShown || touched.has(`function:${id}`)) add(worker, id);
  }
  for (const node of input.map.nodes) {
    const isUnlisted = node.kind === "function" && !owners.has(node.label) && node.worker !== "";
    if (isUnlisted && touched.has(`function:${node.label}`)) add(node.worker, node.label);
  }
  for (const node of input.map.nodes) {
    if (node.worker !== "" && !rows.has(node.worker)) rows.set(node.worker, []);
  }
  return [...rows].sort(([a], [b]) => compare(a, b)).map(([worker, rows]) => ({
    id: `worker:${worker}`,
    kind: "worker",
    title: worker,
    rows: rows.sort((a, b) => compare(a.label, b.label)),
    hidden: 0,
  }));
}

/** Callers that are no workers, such as an HTTP client. */
function otherCards(map: ServiceMap, edges: readonly FlowEdge[]): FlowCard[] {
  const used = new Set(edges.flatMap(({ from, to }) => [from.card, to.card]));
  return map.nodes.filter(({ id }) => used.has(`other:${id}`)).map(({ id, label }) => ({
    id: `other:${id}`,
    kind: "other",
    title: label,
    rows: [],
    hidden: 0,
  }));
}

/** The cards that match the view, and their neighbours. */
function cardsInView(
  cards: readonly FlowCard[],
  edges: readonly FlowEdge[],
  busy: ReadonlySet<string>,
  view: FlowView,
): ReadonlySet<string> {
  const word = view.text.trim().toLowerCase();
  const matches = (card: FlowCard): boolean =>
    (view.focus === "" || card.id === `worker:${view.focus}`) &&
    (word === "" || card.title.toLowerCase().includes(word) ||
      card.rows.some(({ label }) => label.toLowerCase().includes(word)));
  const all = view.focus === "" && word === "";
  const isUseful = (card: FlowCard): boolean => card.rows.length > 0 || busy.has(card.id);
  const chosen = new Set(cards.filter(all ? isUseful : matches).map(({ id }) => id));
  if (all) return chosen;
  const near = edges.flatMap(({ from, to }) =>
    chosen.has(from.card) ? [to.card] : chosen.has(to.card) ? [from.card] : []
  );
  return new Set([...chosen, ...near]);
}

/** A card with at most `most` rows: those with edges first, then in order. */
function cutRows(card: FlowCard, touched: ReadonlySet<string | null>, most: number): FlowCard {
  if (card.rows.length <= most) return card;
  const first = card.rows.filter(({ id }) => touched.has(id));
  const rest = card.rows.filter(({ id }) => !touched.has(id));
  const kept = new Set([...first, ...rest].slice(0, most));
  return {
    ...card,
    rows: card.rows.filter((row) => kept.has(row)),
    hidden: card.rows.length - most,
  };
}

function endOf(node: MapNode, owners: ReadonlyMap<string, string>): FlowEnd {
  if (node.kind === "function") return endAtFunction(node.label, owners, node.worker);
  if (node.worker !== "") return { card: `worker:${node.worker}`, row: null };
  return { card: `other:${node.id}`, row: null };
}

function endAtFunction(id: string, owners: ReadonlyMap<string, string>, fallback = ""): FlowEnd {
  return { card: `worker:${owners.get(id) ?? fallback}`, row: `function:${id}` };
}

/** The end at its row, or at the card if the row was left out. */
function endOrCard(end: FlowEnd, rows: ReadonlySet<string>): FlowEnd {
  return end.row !== null && rows.has(end.row) ? end : { card: end.card, row: null };
}

/** Edges with the same ends become one. */
function mergeEdges(edges: readonly FlowEdge[]): FlowEdge[] {
  const found = new Map<string, FlowEdge>();
  for (const edge of edges) {
    const key = JSON.stringify([edge.from, edge.to]);
    const known = found.get(key);
    found.set(
      key,
      known === undefined ? edge : {
        ...known,
        functionId: known.functionId === edge.functionId ? edge.functionId : null,
        mapEdges: [...new Set([...known.mapEdges, ...edge.mapEdges])],
      },
    );
  }
  return [...found.values()];
}

function labelOf({ trigger_type, config, config_summary }: FlowTrigger): string {
  return triggerLabel(trigger_type, config, config_summary);
}

/** Built-in workers, of which only functions in use are shown. */
function isBuiltin(worker: string): boolean {
  return worker === "engine" || worker.startsWith("engine-");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Lays out the graph; `isNarrow`: in one column, which fits a phone. */
export function layoutFlow(graph: FlowGraph, isNarrow = false): Layout {
  const cards = new Map(graph.cards.map((card) => [card.id, card]));
  const boxes = graph.cards.map((card) => ({ id: card.id, ...sizeOf(card) }));
  const edges = graph.edges.map(({ id, from, to }) => ({
    id,
    from: from.card,
    to: to.card,
    fromY: aboveMiddle(from, cards),
    toY: aboveMiddle(to, cards),
  }));
  if (isNarrow) {
    return layoutColumn(boxes.map((box) => ({ ...box, width: NARROW_WIDTH })), edges, NARROW_GAP);
  }
  const label = edges.length > LABELLED_MAX ? undefined : LABEL;
  return layoutGraph(boxes, edges, { ...label && { label }, gap: 20, columnGap: 72 });
}

/** The size of a card in pixels. */
export function sizeOf(card: FlowCard): { readonly width: number; readonly height: number } {
  const texts = [card.title, ...card.rows.map(({ label }) => label)];
  const longest = Math.max(...texts.map((text) => text.length));
  const wanted = longest * CHAR_WIDTH + RATE_WIDTH;
  const rows = card.rows.length + (card.hidden > 0 ? 1 : 0);
  return {
    width: Math.round(Math.min(CARD.maxWidth, Math.max(CARD.minWidth, wanted))),
    height: 2 * CARD.frame + CARD.head + rows * CARD.row + (rows > 0 ? CARD.foot : 0),
  };
}

/** How far above the middle of its card an edge ends: at its row, or at the head. */
function aboveMiddle({ card, row }: FlowEnd, cards: ReadonlyMap<string, FlowCard>): number {
  const found = cards.get(card);
  if (found === undefined) return 0;
  const { height } = sizeOf(found);
  const at = found.rows.findIndex(({ id }) => id === row);
  const y = at < 0
    ? CARD.frame + CARD.head / 2
    : CARD.frame + CARD.head + at * CARD.row + CARD.row / 2;
  return height / 2 - y;
}
