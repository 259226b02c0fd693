/**
 * Boxes and the lines between them, placed from left to right.
 *
 * The only file that knows the library which does it. Lines are points of a smooth curve; a line
 * may begin and end at a height of its own, such as at a row of a card.
 *
 * @module
 */
import dagre from "@dagrejs/dagre";

/** A box to place. */
export interface BoxToPlace {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

/** A line to draw. */
export interface LineToPlace {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  /** Heights above the middle of its boxes, in pixels; 0 is the middle. */
  readonly fromY?: number;
  readonly toY?: number;
}

/** A box at its place: its top left corner, in pixels. */
export interface PlacedBox extends BoxToPlace {
  readonly x: number;
  readonly y: number;
}

/** A line at its place. */
export interface PlacedLine {
  readonly id: string;
  /** From the caller to the called, in pixels; as close as a smooth curve needs them. */
  readonly points: readonly Point[];
}

/** A place, in pixels. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** All of it, with the size of the whole. */
export interface Layout {
  readonly boxes: ReadonlyMap<string, PlacedBox>;
  readonly lines: ReadonlyMap<string, PlacedLine>;
  readonly width: number;
  readonly height: number;
}

/** Distances, in pixels. */
export interface LayoutOptions {
  /** Between boxes above each other; default 24. */
  readonly gap?: number;
  /** Between columns; default 96. */
  readonly columnGap?: number;
}

const MARGIN = 16;
/** Even, so that one of them is the middle. */
const CURVE_POINTS = 12;

/** Places boxes so that lines run to the right as far as they can. Lines to nowhere are left out. */
export function layOut(
  boxes: readonly BoxToPlace[],
  lines: readonly LineToPlace[],
  options: LayoutOptions = {},
): Layout {
  const { gap = 24, columnGap = 96 } = options;
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({
    rankdir: "LR",
    nodesep: gap,
    ranksep: columnGap,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  const drawn = lines.filter(({ from, to }) => graph.hasNode(from) && graph.hasNode(to));
  // One edge per pair is enough to place the boxes; each line is then drawn by itself.
  for (const { from, to } of drawn) {
    if (from !== to) graph.setEdge(from, to, { width: 0, height: 0 });
  }
  if (boxes.length > 0) dagre.layout(graph);
  const placed = new Map(boxes.map((box) => {
    const { x = 0, y = 0 } = graph.node(box.id) as { x?: number; y?: number };
    return [box.id, { ...box, x: x - box.width / 2, y: y - box.height / 2 }] as const;
  }));
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    boxes: placed,
    lines: new Map(drawn.map((line) => [line.id, drawLine(line, placed)])),
    width: Math.max(width, 2 * MARGIN),
    height: Math.max(height, 2 * MARGIN),
  };
}

function drawLine(line: LineToPlace, boxes: ReadonlyMap<string, PlacedBox>): PlacedLine {
  const from = boxes.get(line.from)!;
  const to = boxes.get(line.to)!;
  const startX = from.x + from.width;
  const startY = from.y + from.height / 2 - (line.fromY ?? 0);
  const endX = to.x;
  const endY = to.y + to.height / 2 - (line.toY ?? 0);
  const start = { x: startX, y: startY };
  const end = { x: endX, y: endY };
  if (endX > startX) {
    const bend = Math.max(24, (endX - startX) / 2);
    return { id: line.id, points: curve(start, bend, end, bend) };
  }
  // What runs back leaves to the right and comes in from the left, below the boxes.
  const below = Math.max(from.y + from.height, to.y + to.height) + 28;
  const middle = { x: (startX + endX) / 2, y: below };
  const points = [...curve(start, 56, middle, -56), ...curve(middle, -56, end, 56).slice(1)];
  return { id: line.id, points };
}

/** Points of a curve that leaves and arrives level, pulled so far to the right and from the left. */
function curve(start: Point, pull: number, end: Point, push: number): Point[] {
  return Array.from({ length: CURVE_POINTS + 1 }, (_, i) => {
    const t = i / CURVE_POINTS;
    const [a, b, c, d] = [(1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t ** 2, t ** 3];
    return {
      x: round(a * start.x + b * (start.x + pull) + c * (end.x - push) + d * end.x),
      y: round((a + b) * start.y + (c + d) * end.y),
    };
  });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
