/**
 * The live picture of workers, functions and triggers: cards with rows, and lines between rows.
 *
 * A worker is a card with its functions as rows; a trigger type is a card with its triggers. What
 * is shown depends on what there is and on who was seen calling whom, never on how much; so the
 * picture stays as it is while the numbers move.
 *
 * @module
 */
import { type Layout, layOut } from "../../kit/graph_layout.ts";
import type { MapNode, ServiceMap } from "../traces/service_map.ts";
import { triggerLabel } from "../references.tsx";

/** A function, as `engine::functions::list` has it. */
export interface FlowFunction {
  readonly function_id: string;
  readonly worker_name: string;
}

/** A trigger, as `engine::registered-triggers::list` has it. */
export interface FlowTrigger {
  readonly id: string;
  readonly trigger_type: string;
  readonly function_id: string;
  readonly config: unknown;
  readonly config_summary?: string;
}

/** What there is. */
export interface FlowInput {
  readonly functions: readonly FlowFunction[];
  readonly triggers: readonly FlowTrigger[];
  /** Workers that have no function too. */
  readonly workers: readonly string[];
  /** Trigger type to the worker that provides it. */
  readonly providers: ReadonlyMap<string, string>;
  /** Who was seen calling whom. */
  readonly map: ServiceMap;
}

/** What of it to show. */
export interface FlowView {
  /** Only what has this in its name, and what is next to it. */
  readonly text: string;
  /** Only this worker and what is next to it; empty: all. */
  readonly focus: string;
  readonly cardsMax: number;
  readonly rowsMax: number;
}

/** A line of a card. */
export interface FlowRow {
  readonly id: string;
  readonly label: string;
  /** The function that it is or calls; `null` when it stands for others. */
  readonly functionId: string | null;
}

/** A worker, a trigger type, or somebody from outside. */
export interface FlowCard {
  readonly id: string;
  readonly kind: "worker" | "trigger" | "other";
  readonly title: string;
  readonly rows: readonly FlowRow[];
  /** Rows that had no room. */
  readonly hidden: number;
}

/** An end of a line: a card, and one of its rows or the card itself. */
export interface FlowEnd {
  readonly card: string;
  readonly row: string | null;
}

/** A line. */
export interface FlowLine {
  readonly id: string;
  readonly from: FlowEnd;
  readonly to: FlowEnd;
  /** Calls seen, or only that a trigger is registered. */
  readonly kind: "call" | "trigger";
  /** Id of the function at the end of the line; `null` when that is not one of ours. */
  readonly functionId: string | null;
  /** Edges of the map that it stands for, as {@linkcode edgeKey} names them. */
  readonly edges: readonly string[];
}

/** The picture. */
export interface FlowGraph {
  readonly cards: readonly FlowCard[];
  readonly lines: readonly FlowLine[];
  /** Cards that had no room. */
  readonly hidden: number;
}

/** Makes the picture. The same input gives the same picture, in the same order. */
export function flowGraph(given: FlowInput, view: FlowView): FlowGraph {
  const input = { ...given, triggers: ofReplicasOnce(given.triggers) };
  const owners = new Map(input.functions.map((fn) => [fn.function_id, fn.worker_name]));
  const lines = [...triggerLines(input, owners), ...callLines(input, owners)];
  const touched = new Set(lines.flatMap(({ from, to }) => [from.row, to.row]));
  const cards = [
    ...triggerCards(input, owners),
    ...workerCards(input, owners, touched),
    ...otherCards(input.map, lines),
  ];
  const busy = new Set(lines.flatMap(({ from, to }) => [from.card, to.card]));
  const near = chosenCards(cards, lines, busy, view);
  const wanted = cards.filter(({ id }) => near.has(id))
    .sort((a, b) => Number(busy.has(b.id)) - Number(busy.has(a.id)));
  const shown = wanted.slice(0, view.cardsMax).map((card) => cut(card, touched, view.rowsMax));
  const rows = new Set(shown.flatMap((card) => card.rows.map(({ id }) => id)));
  const ids = new Set(shown.map(({ id }) => id));
  const kept = lines.filter(({ from, to }) => ids.has(from.card) && ids.has(to.card));
  return {
    cards: shown,
    lines: distinct(kept.map((line) => ({
      ...line,
      from: ending(line.from, rows),
      to: ending(line.to, rows),
    }))),
    hidden: wanted.length - shown.length,
  };
}

/** The name of an edge of the map. */
export function edgeKey({ from, to }: { readonly from: string; readonly to: string }): string {
  return `${from}\n${to}`;
}

/** Each replica of a worker registers the same triggers: they are one thing that can happen. */
function ofReplicasOnce(triggers: readonly FlowTrigger[]): FlowTrigger[] {
  const found = new Map<string, FlowTrigger>();
  for (const trigger of triggers) {
    const key = JSON.stringify([trigger.trigger_type, trigger.function_id, trigger.config]);
    if (!found.has(key)) found.set(key, trigger);
  }
  return [...found.values()];
}

function triggerLines(input: FlowInput, owners: ReadonlyMap<string, string>): FlowLine[] {
  const firings = firingsOf(input);
  return input.triggers.filter(({ function_id }) => owners.has(function_id)).map((trigger) => {
    const label = labelOf(trigger);
    const all = firings.get(firingKey(input, trigger)) ?? [];
    // A route's own requests are told apart from those to other routes of the function.
    const own = all.filter(({ from }) => from.kind !== "http" || from.label === label);
    return {
      id: `trigger ${trigger.id}`,
      from: { card: `type:${trigger.trigger_type}`, row: `trigger:${trigger.id}` },
      to: functionEnd(trigger.function_id, owners),
      kind: "trigger",
      functionId: trigger.function_id,
      edges: own.map(({ key }) => key),
    };
  });
}

/** Edges from providers of triggers, by provider and function. */
function firingsOf(input: FlowInput): Map<string, { from: MapNode; key: string }[]> {
  const nodes = new Map(input.map.nodes.map((node) => [node.id, node]));
  const firings = new Map<string, { from: MapNode; key: string }[]>();
  for (const edge of input.map.edges) {
    const from = nodes.get(edge.from);
    const to = nodes.get(edge.to);
    if (from === undefined || to?.kind !== "function") continue;
    const key = `${from.worker} ${to.label}`;
    const known = firings.get(key);
    const firing = { from, key: edgeKey(edge) };
    if (known === undefined) firings.set(key, [firing]);
    else known.push(firing);
  }
  return firings;
}

function firingKey({ providers }: FlowInput, trigger: FlowTrigger): string {
  return `${providers.get(trigger.trigger_type)} ${trigger.function_id}`;
}

function callLines(input: FlowInput, owners: ReadonlyMap<string, string>): FlowLine[] {
  const nodes = new Map(input.map.nodes.map((node) => [node.id, node]));
  const fired = new Set(input.triggers.map((trigger) => firingKey(input, trigger)));
  const lines: FlowLine[] = [];
  for (const edge of input.map.edges) {
    const from = nodes.get(edge.from);
    const to = nodes.get(edge.to);
    if (from === undefined || to === undefined) continue;
    const source = endOf(from, owners);
    const target = endOf(to, owners);
    // A function's own worker runs it: they are one card.
    if (source.card === target.card && to.kind === "worker") continue;
    const functionId = to.kind === "function" ? to.label : null;
    // A trigger's own line says that already.
    if (functionId !== null && fired.has(`${from.worker} ${functionId}`)) continue;
    const key = edgeKey(edge);
    const ends = { from: source, to: target };
    lines.push({ id: `call ${key}`, ...ends, kind: "call", functionId, edges: [key] });
  }
  return lines;
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

/** Workers with functions or traffic; functions of built-ins only when something calls them. */
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
  for (const [id, worker] of owners) {
    if (!isBuiltin(worker) || touched.has(`function:${id}`)) add(worker, id);
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

/** What is neither worker nor function, such as a request from outside. */
function otherCards(map: ServiceMap, lines: readonly FlowLine[]): FlowCard[] {
  const used = new Set(lines.flatMap(({ from, to }) => [from.card, to.card]));
  return map.nodes.filter(({ id }) => used.has(`other:${id}`)).map(({ id, label }) => ({
    id: `other:${id}`,
    kind: "other",
    title: label,
    rows: [],
    hidden: 0,
  }));
}

/** Cards that the view asks for, with those next to them. */
function chosenCards(
  cards: readonly FlowCard[],
  lines: readonly FlowLine[],
  busy: ReadonlySet<string>,
  view: FlowView,
): ReadonlySet<string> {
  const word = view.text.trim().toLowerCase();
  const isWanted = (card: FlowCard): boolean =>
    (view.focus === "" || card.id === `worker:${view.focus}`) &&
    (word === "" || card.title.toLowerCase().includes(word) ||
      card.rows.some(({ label }) => label.toLowerCase().includes(word)));
  const all = view.focus === "" && word === "";
  const isWorth = (card: FlowCard): boolean => card.rows.length > 0 || busy.has(card.id);
  const chosen = new Set(cards.filter(all ? isWorth : isWanted).map(({ id }) => id));
  if (all) return chosen;
  const near = lines.flatMap(({ from, to }) =>
    chosen.has(from.card) ? [to.card] : chosen.has(to.card) ? [from.card] : []
  );
  return new Set([...chosen, ...near]);
}

/** A card with as many rows as it may have: those with lines first, then in order. */
function cut(card: FlowCard, touched: ReadonlySet<string | null>, most: number): FlowCard {
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
  if (node.kind === "function") return functionEnd(node.label, owners, node.worker);
  if (node.worker !== "") return { card: `worker:${node.worker}`, row: null };
  return { card: `other:${node.id}`, row: null };
}

function functionEnd(id: string, owners: ReadonlyMap<string, string>, fallback = ""): FlowEnd {
  return { card: `worker:${owners.get(id) ?? fallback}`, row: `function:${id}` };
}

/** The end at its row, or at the card when the row had no room. */
function ending(end: FlowEnd, rows: ReadonlySet<string>): FlowEnd {
  return end.row !== null && rows.has(end.row) ? end : { card: end.card, row: null };
}

/** Lines that end at the same places are one. */
function distinct(lines: readonly FlowLine[]): FlowLine[] {
  const found = new Map<string, FlowLine>();
  for (const line of lines) {
    const key = JSON.stringify([line.from, line.to]);
    const known = found.get(key);
    found.set(
      key,
      known === undefined ? line : {
        ...known,
        functionId: known.functionId === line.functionId ? line.functionId : null,
        edges: [...new Set([...known.edges, ...line.edges])],
      },
    );
  }
  return [...found.values()];
}

function labelOf({ trigger_type, config, config_summary }: FlowTrigger): string {
  return triggerLabel(trigger_type, config, config_summary);
}

/** Workers of the engine offer much that nobody here uses. */
function isBuiltin(worker: string): boolean {
  return worker === "engine" || worker.startsWith("engine-");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Heights of a card's parts, and its frame at the top and at the bottom. */
export const CARD = { head: 34, row: 24, frame: 1, foot: 6, minWidth: 190, maxWidth: 330 } as const;

/** Room for the rate of a line, however many digits it has just now. */
const LABEL = { width: 52, height: 16 };
/** Of more lines than these the picture would be mostly rates. */
const LABELLED_MAX = 120;
const CHAR_WIDTH = 7;
/** Room beside a name, for its rate. */
const RATE_WIDTH = 92;

/**
 * Places all of it. `isNarrow`: from top to bottom, where lines end at cards and not at their rows.
 */
export function layOutFlow(graph: FlowGraph, isNarrow = false): Layout {
  const cards = new Map(graph.cards.map((card) => [card.id, card]));
  const boxes = graph.cards.map((card) => ({ id: card.id, ...sizeOf(card) }));
  const lines = graph.lines.map(({ id, from, to }) => ({
    id,
    from: from.card,
    to: to.card,
    ...!isNarrow && { fromY: aboveMiddle(from, cards), toY: aboveMiddle(to, cards) },
  }));
  const label = lines.length > LABELLED_MAX ? undefined : LABEL;
  return layOut(boxes, lines, {
    ...label && { label },
    ...isNarrow ? { gap: 16, columnGap: 40, isDown: true } : { gap: 20, columnGap: 72 },
  });
}

/** How large a card is. */
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

/** How far above the middle of its card an end is: at its row, or at the head. */
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
