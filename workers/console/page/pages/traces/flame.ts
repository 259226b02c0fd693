/**
 * Boxes of a flame graph, in two ways.
 *
 * *In time*: each span where it ran; spans that ran at once get lanes of their own. *Merged*: spans
 * with the same functions above them become one box, as wide as they kept the trace busy; so a
 * thousand equal calls can be seen at a glance. Places are parts of the width, 0 to 1.
 *
 * @module
 */
import { type SpanTree, startTimes } from "./span_tree.ts";
import type { TimeWindow } from "./waterfall.ts";

/** One box. */
export interface FlameBox {
  /** Place of the span's row in the tree; of merged ones, of the longest. */
  readonly row: number;
  /** 0 to 1 over the whole graph. */
  readonly left: number;
  readonly width: number;
  /** From 0 at the top. */
  readonly lane: number;
  readonly label: string;
  readonly service: string;
  readonly failed: boolean;
  /** Spans in it. */
  readonly count: number;
  /** Milliseconds: how long it took, or all that are in it. */
  readonly ms: number;
  /** Milliseconds in which nothing below it ran. */
  readonly selfMs: number;
}

/** A graph: its boxes by lane, each lane from left to right. */
export interface Flame {
  readonly lanes: readonly (readonly FlameBox[])[];
  readonly totalMs: number;
}

/** Spans as they ran; running ones reach to the window's end. */
export function flameInTime(tree: SpanTree, window: TimeWindow): Flame {
  const total = window.endMs - window.startMs;
  const self = selfTimes(tree, window.endMs);
  const lanes: FlameBox[][] = [];
  const laneOf: number[] = [];
  const busyUntil: number[] = [];
  const starts = startTimes(tree);
  // By start, so that the box to the left is always the last one of a lane.
  const order = tree.rows.map((_, i) => i).sort((a, b) => starts[a]! - starts[b]! || a - b);
  for (const i of order) {
    const { span, parent } = tree.rows[i]!;
    const startMs = starts[i]!;
    const endMs = Math.max(span.endMs ?? window.endMs, startMs);
    let lane = parent < 0 ? 0 : laneOf[parent]! + 1;
    while ((busyUntil[lane] ?? -Infinity) > startMs) lane++;
    laneOf[i] = lane;
    busyUntil[lane] = endMs;
    while (lanes.length <= lane) lanes.push([]);
    lanes[lane]!.push({
      row: i,
      left: (startMs - window.startMs) / total,
      width: (endMs - startMs) / total,
      lane,
      label: span.name,
      service: span.service,
      failed: span.failed,
      count: 1,
      ms: (span.endMs ?? endMs) - span.startMs,
      selfMs: self[i]!,
    });
  }
  return { lanes, totalMs: total };
}

interface Merging {
  readonly row: number;
  readonly label: string;
  readonly service: string;
  readonly depth: number;
  readonly below: Map<string, Merging>;
  longest: { row: number; ms: number };
  failed: boolean;
  count: number;
  ms: number;
  selfMs: number;
  /** Own time and all below: the width. */
  weight: number;
}

/** Spans with the same names above them as one box each. */
export function flameMerged(tree: SpanTree, nowMs: number): Flame {
  const self = selfTimes(tree, nowMs);
  const root = emptyMerging(-1, "", "", -1);
  const all: Merging[] = [];
  const nodeOf: Merging[] = [];
  tree.rows.forEach(({ span, parent, depth }, i) => {
    const above = parent < 0 ? root : nodeOf[parent]!;
    const key = `${span.service}\n${span.name}`;
    let node = above.below.get(key);
    if (node === undefined) {
      node = emptyMerging(i, span.name, span.service, depth);
      above.below.set(key, node);
      all.push(node);
    }
    const ms = (span.endMs ?? nowMs) - span.startMs;
    if (ms > node.longest.ms) node.longest = { row: i, ms };
    node.failed ||= span.failed;
    node.count++;
    node.ms += ms;
    node.selfMs += self[i]!;
    nodeOf.push(node);
  });
  // Each node stands behind the one above it, so from behind all weights below are known.
  for (const node of all.toReversed()) node.weight = node.selfMs + sumOfWeights(node);
  const total = sumOfWeights(root);
  return { lanes: lanesOf(root, total || 1), totalMs: total };
}

/** The box at a place of a lane; `null` between boxes. */
export function boxAt(flame: Flame, lane: number, at: number): FlameBox | null {
  const boxes = flame.lanes[lane] ?? [];
  let low = 0;
  let high = boxes.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const box = boxes[middle]!;
    if (at < box.left) high = middle - 1;
    else if (at > box.left + box.width) low = middle + 1;
    else return box;
  }
  return null;
}

/**
 * The boxes of a lane to draw between two places; those narrower than `least` are drawn only when
 * nothing else stands there.
 */
export function boxesToDraw(
  boxes: readonly FlameBox[],
  from: number,
  to: number,
  least: number,
): FlameBox[] {
  const drawn: FlameBox[] = [];
  let free = -Infinity;
  for (let i = firstEndingAfter(boxes, from); i < boxes.length; i++) {
    const box = boxes[i]!;
    if (box.left > to) break;
    const right = box.left + box.width;
    if (box.width < least && right < free) continue;
    drawn.push(box);
    free = Math.max(right, box.left + least);
  }
  return drawn;
}

/** Milliseconds of each row in which none of its children ran. */
function selfTimes(tree: SpanTree, nowMs: number): number[] {
  const covered = new Array<number>(tree.rows.length).fill(0);
  const coveredUntil = new Array<number>(tree.rows.length).fill(-Infinity);
  // Children stand in the order of their start, so one pass joins what overlaps.
  for (const { span, parent } of tree.rows) {
    const above = tree.rows[parent]?.span;
    if (above === undefined) continue;
    const startMs = Math.max(span.startMs, above.startMs, coveredUntil[parent]!);
    const endMs = Math.min(span.endMs ?? nowMs, above.endMs ?? nowMs);
    if (endMs <= startMs) continue;
    covered[parent]! += endMs - startMs;
    coveredUntil[parent] = endMs;
  }
  return tree.rows.map(({ span }, i) =>
    Math.max(0, (span.endMs ?? nowMs) - span.startMs - covered[i]!)
  );
}

function lanesOf(root: Merging, total: number): FlameBox[][] {
  const lanes: FlameBox[][] = [];
  let level: { node: Merging; left: number }[] = [{ node: root, left: 0 }];
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { node, left } of level) {
      let at = left;
      const below = [...node.below.values()].sort((a, b) => b.weight - a.weight);
      for (const child of below) {
        next.push({ node: child, left: at });
        at += child.weight / total;
      }
    }
    if (next.length > 0) lanes.push(next.map(({ node, left }) => boxOf(node, left, total)));
    level = next;
  }
  return lanes;
}

function boxOf(node: Merging, left: number, total: number): FlameBox {
  return {
    row: node.longest.row,
    left,
    width: node.weight / total,
    lane: node.depth,
    label: node.label,
    service: node.service,
    failed: node.failed,
    count: node.count,
    ms: node.ms,
    selfMs: node.selfMs,
  };
}

function sumOfWeights(node: Merging): number {
  let sum = 0;
  for (const child of node.below.values()) sum += child.weight;
  return sum;
}

function emptyMerging(row: number, label: string, service: string, depth: number): Merging {
  const counts = { failed: false, count: 0, ms: 0, selfMs: 0, weight: 0 };
  return { row, label, service, depth, below: new Map(), longest: { row, ms: -1 }, ...counts };
}

function firstEndingAfter(boxes: readonly FlameBox[], from: number): number {
  let low = 0;
  let high = boxes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const box = boxes[middle]!;
    if (box.left + box.width < from) low = middle + 1;
    else high = middle;
  }
  return low;
}
