/**
 * Boxes and the lines between them, placed from left to right.
 *
 * The only file that knows the library which does it. Lines are smooth paths for SVG; a line may
 * begin and end at a height of its own, such as at a row of a card.
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
  /** For the `d` of an SVG path, from the caller to the called. */
  readonly path: string;
  /** Where a label stands. */
  readonly labelX: number;
  readonly labelY: number;
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
  const isForward = endX > startX;
  const bend = isForward ? Math.max(24, (endX - startX) / 2) : 48;
  // What runs back leaves to the right and comes in from the left, around the boxes.
  const around = isForward ? 0 : Math.max(from.height, to.height) / 2 + 28;
  const middleX = (startX + endX) / 2;
  const middleY = isForward ? (startY + endY) / 2 : Math.max(startY, endY) + around;
  const round = (n: number): number => Math.round(n * 10) / 10;
  const at = (...numbers: number[]): string => numbers.map(round).join(" ");
  const path = isForward
    ? `M${at(startX, startY)} C${at(startX + bend, startY, endX - bend, endY, endX, endY)}`
    : `M${at(startX, startY)} C${at(startX + bend, startY, startX + bend, middleY, middleX)} ` +
      `${at(middleY)} C${at(endX - bend, middleY, endX - bend, endY, endX, endY)}`;
  return { id: line.id, path, labelX: round(middleX), labelY: round(middleY) };
}
