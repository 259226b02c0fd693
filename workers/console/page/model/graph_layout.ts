/**
 * Boxes and the lines between them, placed from left to right or from top to bottom.
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
  /** From top to bottom; then columns are rows, and heights of lines' ends are not heeded. */
  readonly isDown?: boolean;
}

const MARGIN = 16;
/** Even, so that one of them is the middle. */
const CURVE_POINTS = 12;

/** Places boxes so that lines run one way as far as they can. Lines to nowhere are left out. */
export function layOut(
  boxes: readonly BoxToPlace[],
  lines: readonly LineToPlace[],
  options: LayoutOptions = {},
): Layout {
  return options.isDown
    ? turned(toTheRight(boxes.map(turnedBox), lines, options))
    : toTheRight(boxes, lines, options);
}

/** To the right or down: whichever needs less room in a window of this size. */
export function layOutWithin(
  boxes: readonly BoxToPlace[],
  lines: readonly LineToPlace[],
  room: { readonly width: number; readonly height: number },
  options: LayoutOptions = {},
): Layout {
  const both = [layOut(boxes, lines, options), layOut(boxes, lines, { ...options, isDown: true })];
  const scaleOf = ({ width, height }: Layout): number =>
    Math.min(1, room.width / width, room.height / height);
  return scaleOf(both[0]!) >= scaleOf(both[1]!) ? both[0]! : both[1]!;
}

function toTheRight(
  boxes: readonly BoxToPlace[],
  lines: readonly LineToPlace[],
  { gap = 24, columnGap = 96 }: LayoutOptions,
): Layout {
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
    lines: new Map(drawn.map((line) => {
      const between = line.from === line.to ? [] : wayOf(graph, line);
      return [line.id, drawLine(line, placed, between)];
    })),
    width: Math.max(width, 2 * MARGIN),
    height: Math.max(height, 2 * MARGIN),
  };
}

/** Points that the library gave the line between two boxes. */
function wayOf(
  graph: InstanceType<typeof dagre.graphlib.Graph>,
  { from, to }: LineToPlace,
): readonly Point[] {
  const { points = [] } = graph.edge(from, to) as { points?: readonly Point[] };
  return points;
}

/** The same with the axes changed for each other. */
function turned({ boxes, lines, width, height }: Layout): Layout {
  const turnedBoxes = [...boxes].map(([id, box]) =>
    [id, { ...turnedBox(box), x: box.y, y: box.x }] as const
  );
  const turnedLines = [...lines].map(([id, line]) =>
    [id, { ...line, points: line.points.map(({ x, y }) => ({ x: y, y: x })) }] as const
  );
  return {
    boxes: new Map(turnedBoxes),
    lines: new Map(turnedLines),
    width: height,
    height: width,
  };
}

function turnedBox<Box extends BoxToPlace>(box: Box): Box {
  return { ...box, width: box.height, height: box.width };
}

function drawLine(
  line: LineToPlace,
  boxes: ReadonlyMap<string, PlacedBox>,
  between: readonly Point[],
): PlacedLine {
  const from = boxes.get(line.from)!;
  const to = boxes.get(line.to)!;
  const right = from.x + from.width;
  const startY = from.y + from.height / 2 - (line.fromY ?? 0);
  const endY = to.y + to.height / 2 - (line.toY ?? 0);
  if (from === to) {
    // Apart by a little at least, so that it is a loop.
    const ends = Math.abs(startY - endY) < 16 ? [startY - 8, startY + 8] : [startY, endY];
    const [top = startY, bottom = endY] = ends;
    const points = curve({ x: right, y: top }, 48, { x: right, y: bottom }, -48);
    return { id: line.id, points };
  }
  if (to.x > right) {
    const bend = Math.max(24, (to.x - right) / 2);
    const points = curve({ x: right, y: startY }, bend, { x: to.x, y: endY }, bend);
    return { id: line.id, points };
  }
  // What runs back goes where the library found room, around the boxes between.
  const start = { x: from.x, y: startY };
  const end = { x: to.x + to.width, y: endY };
  const way = between.slice(1, -1).map(({ x, y }) => ({ x: round(x), y: round(y) }));
  return { id: line.id, points: [start, ...way, end] };
}

/** Points of a curve that leaves and arrives level, pulled so far to the right and to the left. */
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
