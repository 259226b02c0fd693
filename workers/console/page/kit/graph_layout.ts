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
  /** The middle of the room for its words. */
  readonly label: Point;
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
  /** Room that each line has for words, clear of boxes and of other words; default none. */
  readonly label?: Size;
}

/** In pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

const MARGIN = 16;
const CURVE_POINTS = 12;
/** Between lines that run beside each other. */
const LINE_GAP = 10;
/** What words of a line to its own box stand off from that box. */
const LOOP = 36;
/** Going down has to leave what goes to the right no more than this part of its size. */
const DOWN_GAIN = 0.7;
const NO_LABEL: Size = { width: 0, height: 0 };

/** Places boxes so that lines run one way as far as they can. Lines to nowhere are left out. */
export function layOut(
  boxes: readonly BoxToPlace[],
  lines: readonly LineToPlace[],
  options: LayoutOptions = {},
): Layout {
  const { isDown, label = NO_LABEL } = options;
  if (!isDown) return toTheRight(boxes, lines, options);
  const turnedLabel = { width: label.height, height: label.width };
  return turned(toTheRight(boxes.map(turnedBox), lines, { ...options, label: turnedLabel }));
}

/** To the right, unless it would be far larger in a window of this size when it goes down. */
export function layOutWithin(
  boxes: readonly BoxToPlace[],
  lines: readonly LineToPlace[],
  room: { readonly width: number; readonly height: number },
  options: LayoutOptions = {},
): Layout {
  const both = [layOut(boxes, lines, options), layOut(boxes, lines, { ...options, isDown: true })];
  const scaleOf = ({ width, height }: Layout): number =>
    Math.min(1, room.width / width, room.height / height);
  // Words stand clear above lines that run level.
  return scaleOf(both[0]!) >= DOWN_GAIN * scaleOf(both[1]!) ? both[0]! : both[1]!;
}

function toTheRight(
  boxes: readonly BoxToPlace[],
  lines: readonly LineToPlace[],
  { gap = 24, columnGap = 96, label = NO_LABEL }: LayoutOptions,
): Layout {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({
    rankdir: "LR",
    nodesep: gap,
    ranksep: columnGap,
    edgesep: LINE_GAP,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  const drawn = lines.filter(({ from, to }) => graph.hasNode(from) && graph.hasNode(to));
  // Without words, one edge per pair is enough to place the boxes, and far faster.
  const nameOf = ({ id }: LineToPlace) => label.width === 0 ? undefined : id;
  for (const line of drawn) {
    const { from, to } = line;
    if (from !== to) graph.setEdge(from, to, { ...label, labelpos: "c" }, nameOf(line));
  }
  if (boxes.length > 0) dagre.layout(graph);
  const placed = new Map(boxes.map((box) => {
    const { x = 0, y = 0 } = graph.node(box.id) as { x?: number; y?: number };
    return [box.id, { ...box, x: x - box.width / 2, y: y - box.height / 2 }] as const;
  }));
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const columns = columnsOf([...placed.values()]);
  const lanes = new Map(drawn.map((line) => [
    line.id,
    lanesOf(graph, { ...line, name: nameOf(line) }, columns, label),
  ]));
  untwist(drawn, lanes);
  return {
    boxes: placed,
    lines: new Map(drawn.map((line) => [
      line.id,
      line.from === line.to ? drawLoop(line, placed) : drawLine(line, placed, lanes.get(line.id)!),
    ])),
    width: Math.max(width, 2 * MARGIN),
    height: Math.max(height, 2 * MARGIN),
  };
}

/** Of lines between the same two boxes, the one that starts above gets the lane above. */
function untwist(lines: readonly LineToPlace[], lanes: Map<string, Lanes>): void {
  const pairs = Map.groupBy(lines, ({ from, to }) => JSON.stringify([from, to]));
  for (const beside of pairs.values()) {
    const free = beside.map(({ id }) => lanes.get(id)!)
      .sort((a, b) => (a.label?.y ?? 0) - (b.label?.y ?? 0));
    const down = [...beside].sort((a, b) =>
      (b.fromY ?? 0) - (a.fromY ?? 0) || (b.toY ?? 0) - (a.toY ?? 0)
    );
    down.forEach(({ id }, i) => lanes.set(id, free[i]!));
  }
}

/** How far boxes reach to both sides of the middle of their column, by that middle. */
function columnsOf(boxes: readonly PlacedBox[]): ReadonlyMap<number, number> {
  const columns = new Map<number, number>();
  for (const { x, width } of boxes) {
    const middle = Math.round(x + width / 2);
    columns.set(middle, Math.max(columns.get(middle) ?? 0, width / 2));
  }
  return columns;
}

/** Where a line passes between boxes and other lines. */
interface Lanes {
  /** Each passed from side to side at one height. */
  readonly stops: readonly { readonly x: number; readonly y: number; readonly half: number }[];
  /** Where its words have room, if the library said. */
  readonly label: Point | undefined;
}

/** The way that the library found for a line. */
function lanesOf(
  graph: InstanceType<typeof dagre.graphlib.Graph>,
  { name, from, to }: LineToPlace & { readonly name: string | undefined },
  columns: ReadonlyMap<number, number>,
  label: Size,
): Lanes {
  const { points = [], x, y } = (from === to ? {} : graph.edge(from, to, name)) as {
    points?: readonly Point[];
    x?: number;
    y?: number;
  };
  const stops = points.slice(1, -1).map((point) => {
    const isLabel = x !== undefined && Math.abs(point.x - x) < 1;
    // Level along half of its words; all of it would leave no room to bend.
    const half = isLabel ? label.width / 4 : columns.get(Math.round(point.x)) ?? 0;
    return { x: point.x, y: point.y, half };
  });
  return { stops, label: x === undefined || y === undefined ? undefined : { x, y } };
}

/** The same with the axes changed for each other. */
function turned({ boxes, lines, width, height }: Layout): Layout {
  const turnedBoxes = [...boxes].map(([id, box]) =>
    [id, { ...turnedBox(box), x: box.y, y: box.x }] as const
  );
  const turnedLines = [...lines].map(([id, line]) =>
    [id, { ...line, points: line.points.map(turnedPoint), label: turnedPoint(line.label) }] as const
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

function turnedPoint({ x, y }: Point): Point {
  return { x: y, y: x };
}

function drawLoop(line: LineToPlace, boxes: ReadonlyMap<string, PlacedBox>): PlacedLine {
  const { x, y, width, height } = boxes.get(line.from)!;
  const right = x + width;
  const startY = y + height / 2 - (line.fromY ?? 0);
  const endY = y + height / 2 - (line.toY ?? 0);
  // Apart by a little at least, so that it is a loop.
  const isFlat = Math.abs(startY - endY) < 16;
  const [top, bottom] = isFlat ? [startY - 8, startY + 8] : [startY, endY];
  const pull = LOOP / 0.75;
  const points = curve({ x: right, y: top! }, pull, { x: right, y: bottom! }, -pull);
  return { id: line.id, points, label: { x: right + LOOP, y: (top! + bottom!) / 2 } };
}

function drawLine(
  line: LineToPlace,
  boxes: ReadonlyMap<string, PlacedBox>,
  lanes: Lanes,
): PlacedLine {
  const from = boxes.get(line.from)!;
  const to = boxes.get(line.to)!;
  const startY = from.y + from.height / 2 - (line.fromY ?? 0);
  const endY = to.y + to.height / 2 - (line.toY ?? 0);
  const isBack = to.x < from.x + from.width;
  const start = { x: isBack ? from.x : from.x + from.width, y: startY };
  const end = { x: isBack ? to.x + to.width : to.x, y: endY };
  const way = isBack ? -1 : 1;
  const stops: Point[] = [start];
  for (const { x, y, half } of lanes.stops) {
    for (const at of [x - way * half, x + way * half]) {
      const isAhead = (at - stops.at(-1)!.x) * way > 0 && (end.x - at) * way > 0;
      if (isAhead) stops.push({ x: at, y });
    }
  }
  const points = [...stops, end].slice(1).flatMap((stop, i) => {
    const last = stops[i]!;
    const bend = (stop.x - last.x) / 2;
    const part = last.y === stop.y ? [last, stop] : curve(last, bend, stop, bend);
    return i === 0 ? part : part.slice(1);
  });
  const rounded = points.map(({ x, y }) => ({ x: round(x), y: round(y) }));
  return { id: line.id, points: rounded, label: lanes.label ?? middleOf(rounded) };
}

function middleOf(points: readonly Point[]): Point {
  return points[Math.floor(points.length / 2)]!;
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
