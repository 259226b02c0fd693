/**
 * The boxes of a flame graph, of two kinds.
 *
 * *In time*: one box per span at the time when it ran; spans that ran at once are in different
 * lanes. *Merged*: one box for all spans with the same functions above them, as wide as the time
 * they took. Positions are fractions of the width, 0 to 1.
 *
 * @module
 */
import { type SpanTree, startTimes } from "./span_tree.ts";
import type { TimeWindow } from "./waterfall.ts";

/** A box of a flame graph. */
export interface FlameBox {
  /** Index of the span's row in the tree; of merged spans, the longest one's. */
  readonly row: number;
  /** 0 to 1 across the whole graph. */
  readonly left: number;
  readonly width: number;
  /** From 0 at the top. */
  readonly lane: number;
  readonly label: string;
  readonly service: string;
  readonly failed: boolean;
  /** How many spans it merges. */
  readonly count: number;
  /** Duration in milliseconds, or the sum of the merged spans. */
  readonly ms: number;
  /** Milliseconds in which no child ran. */
  readonly selfMs: number;
}

/** A flame graph: its boxes by lane, each lane from left to right. */
export interface Flame {
  readonly lanes: readonly (readonly FlameBox[])[];
  readonly totalMs: number;
}

/** The spans in time; running ones end with the window. */
export function flameInTime(tree: SpanTree, window: TimeWindow): Flame {
  const total = window.endMs - window.startMs;
  const self = selfTimes(tree, window.endMs);
  const lanes: FlameBox[][] = [];
  const laneOf: number[] = [];
  const busyUntil: number[] = [];
  const starts = startTimes(tree);
  // Sorted by start, so that the last box of a lane is the one to the left.
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

interface MergedNode {
  readonly row: number;
  readonly label: string;
  readonly service: string;
  readonly depth: number;
  readonly below: Map<string, MergedNode>;
  longest: { row: number; ms: number };
  failed: boolean;
  count: number;
  ms: number;
  selfMs: number;
  /** Its own time and that of its children: the width. */
  weight: number;
}

/** The spans merged by the functions above them. */
export function flameMerged(tree: SpanTree, nowMs: number): Flame {
  const self = selfTimes(tree, nowMs);
  const root = newMergedNode(-1, "", "", -1);
  const all: MergedNode[] = [];
  const nodeOf: MergedNode[] = [];
  tree.rows.forEach(({ span, parent, depth }, i) => {
    const above = parent < 0 ? root : nodeOf[parent]!;
    const key = `${span.service}\n${span.name}`;
    let node = above.below.get(key);
    if (node === undefined) {
      node = newMergedNode(i, span.name, span.service, depth);
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
  // Children follow their parent, so in reverse order their weights are known first.
  for (const node of all.toReversed()) node.weight = node.selfMs + sumOfWeights(node);
  const total = sumOfWeights(root);
  return { lanes: lanesOf(root, total || 1), totalMs: total };
}

/** The box at a position in a lane; `null` between boxes. */
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
 * The boxes of a lane to draw between two positions. Those narrower than `least` are drawn only
 * where there is no other box.
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

/** The milliseconds of each row in which none of its children ran. */
function selfTimes(tree: SpanTree, nowMs: number): number[] {
  const covered = new Array<number>(tree.rows.length).fill(0);
  const coveredUntil = new Array<number>(tree.rows.length).fill(-Infinity);
  // Children are sorted by start, so one pass joins those that overlap.
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

function lanesOf(root: MergedNode, total: number): FlameBox[][] {
  const lanes: FlameBox[][] = [];
  let level: { node: MergedNode; left: number }[] = [{ node: root, left: 0 }];
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

function boxOf(node: MergedNode, left: number, total: number): FlameBox {
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

function sumOfWeights(node: MergedNode): number {
  let sum = 0;
  for (const child of node.below.values()) sum += child.weight;
  return sum;
}

function newMergedNode(row: number, label: string, service: string, depth: number): MergedNode {
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
