/**
 * Layout of a directed graph, from left to right or from top to bottom. The only file that imports
 * dagre.
 *
 * An edge becomes the points of a smooth curve. It may start and end at a height of its own, such
 * as at a row of a card.
 *
 * @module
 */
import dagre from "@dagrejs/dagre";

const MARGIN = 16;
const CURVE_POINTS = 12;
/** Between parallel edges. */
const EDGE_GAP = 10;
/** How far the loop of an edge from a box to itself reaches from the box. */
const LOOP_REACH = 36;
/** A vertical layout is preferred if a horizontal one has less than this part of its scale. */
const DOWN_GAIN = 0.7;

/** A box to lay out. */
interface LayoutBox {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

/** An edge to lay out. */
interface LayoutEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  /** Where it leaves and enters its boxes: pixels above their middle. */
  readonly fromY?: number;
  readonly toY?: number;
}

/** A box with its top left corner, in pixels. */
interface PlacedBox extends LayoutBox {
  readonly x: number;
  readonly y: number;
}

/** An edge with its curve. */
interface PlacedEdge {
  readonly id: string;
  /** From `from` to `to`, close enough to look smooth. */
  readonly points: readonly Point[];
  /** The middle of the space for its label. */
  readonly label: Point;
}

/** In pixels. */
interface Point {
  readonly x: number;
  readonly y: number;
}

/** A whole graph with its size in pixels. */
export interface Layout {
  readonly boxes: ReadonlyMap<string, PlacedBox>;
  readonly edges: ReadonlyMap<string, PlacedEdge>;
  readonly width: number;
  readonly height: number;
}

/** Distances are in pixels. */
interface LayoutOptions {
  /** Between boxes of one column. @default 24 */
  readonly gap?: number;
  /** Between columns. @default 96 */
  readonly columnGap?: number;
  /** From top to bottom: columns become rows, and `fromY` and `toY` are ignored. */
  readonly isDown?: boolean;
  /** Space for the label of each edge, clear of boxes and of other labels. @default none */
  readonly label?: Size;
}

/** In pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

const NO_LABEL: Size = { width: 0, height: 0 };

/** Lays out boxes so that most edges run one way. Edges to missing boxes are left out. */
export function layoutGraph(
  boxes: readonly LayoutBox[],
  edges: readonly LayoutEdge[],
  options: LayoutOptions = {},
): Layout {
  const { isDown, label = NO_LABEL } = options;
  if (!isDown) return layoutToRight(boxes, edges, options);
  const transposedLabel = { width: label.height, height: label.width };
  return transpose(
    layoutToRight(boxes.map(transposeBox), edges, { ...options, label: transposedLabel }),
  );
}

/** Distance of the first edge beside a column from its boxes, and of the next ones, in pixels. */
const COLUMN_EDGE = { first: 16, next: 10, most: 5 } as const;

/**
 * Lays out in one column, for views that are too narrow for anything else: callers above callees,
 * edges beside the boxes. All boxes get the width of the widest.
 */
export function layoutColumn(
  boxes: readonly LayoutBox[],
  edges: readonly LayoutEdge[],
  gap = 24,
): Layout {
  const { boxes: ranked } = layoutGraph(boxes, edges, { isDown: true });
  const order = [...ranked.values()].sort((a, b) => a.y - b.y || a.x - b.x);
  const width = Math.max(0, ...boxes.map((box) => box.width));
  const placed = new Map<string, PlacedBox>();
  let y = MARGIN;
  for (const box of order) {
    placed.set(box.id, { ...box, width, x: MARGIN, y });
    y += box.height + gap;
  }
  const drawn = edges.filter(({ from, to }) => placed.has(from) && placed.has(to));
  const ends = drawn.map((edge) => ({
    edge,
    startY: heightOf(placed.get(edge.from)!, edge.fromY),
    endY: heightOf(placed.get(edge.to)!, edge.toY),
  }));
  // Short edges are nearer to the boxes, so that long ones run around them.
  ends.sort((a, b) => Math.abs(a.endY - a.startY) - Math.abs(b.endY - b.startY));
  const lines = ends.map(({ edge, startY, endY }, at) => {
    const reach = COLUMN_EDGE.first + COLUMN_EDGE.next * Math.min(at, COLUMN_EDGE.most);
    const right = MARGIN + width;
    const isFlat = Math.abs(startY - endY) < COLUMN_EDGE.first;
    const [from, to] = isFlat ? [startY - 8, startY + 8] : [startY, endY];
    const pull = reach / 0.75;
    const points = curve({ x: right, y: from }, pull, { x: right, y: to }, -pull);
    return [edge.id, { id: edge.id, points, label: middleOf(points) }] as const;
  });
  const reach = COLUMN_EDGE.first + COLUMN_EDGE.next * COLUMN_EDGE.most;
  return {
    boxes: placed,
    edges: new Map(lines),
    width: 2 * MARGIN + width + (drawn.length > 0 ? reach : 0),
    height: Math.max(2 * MARGIN, y - gap + MARGIN),
  };
}

function heightOf({ y, height }: PlacedBox, above = 0): number {
  return y + height / 2 - above;
}

/** Lays out to the right, or downwards if the graph is far larger in `room` that way. */
export function layoutGraphWithin(
  boxes: readonly LayoutBox[],
  edges: readonly LayoutEdge[],
  room: { readonly width: number; readonly height: number },
  options: LayoutOptions = {},
): Layout {
  const both = [
    layoutGraph(boxes, edges, options),
    layoutGraph(boxes, edges, { ...options, isDown: true }),
  ];
  const scaleOf = ({ width, height }: Layout): number =>
    Math.min(1, room.width / width, room.height / height);
  // Labels are easier to read above horizontal edges.
  return scaleOf(both[0]!) >= DOWN_GAIN * scaleOf(both[1]!) ? both[0]! : both[1]!;
}

function layoutToRight(
  boxes: readonly LayoutBox[],
  edges: readonly LayoutEdge[],
  { gap = 24, columnGap = 96, label = NO_LABEL }: LayoutOptions,
): Layout {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({
    rankdir: "LR",
    nodesep: gap,
    ranksep: columnGap,
    edgesep: EDGE_GAP,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  const drawn = edges.filter(({ from, to }) => graph.hasNode(from) && graph.hasNode(to));
  // Without labels, one edge per pair of boxes is enough for the layout, and far faster.
  const nameOf = ({ id }: LayoutEdge) => label.width === 0 ? undefined : id;
  for (const edge of drawn) {
    const { from, to } = edge;
    if (from !== to) graph.setEdge(from, to, { ...label, labelpos: "c" }, nameOf(edge));
  }
  if (boxes.length > 0) dagre.layout(graph);
  const placed = new Map(boxes.map((box) => {
    const { x = 0, y = 0 } = graph.node(box.id) as { x?: number; y?: number };
    return [box.id, { ...box, x: x - box.width / 2, y: y - box.height / 2 }] as const;
  }));
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const columns = columnsOf([...placed.values()]);
  const lanes = new Map(drawn.map((edge) => [
    edge.id,
    lanesOf(graph, { ...edge, name: nameOf(edge) }, columns, label),
  ]));
  uncross(drawn, lanes);
  return {
    boxes: placed,
    edges: new Map(drawn.map((edge) => [
      edge.id,
      edge.from === edge.to
        ? curveLoop(edge, placed)
        : curveEdge(edge, placed, lanes.get(edge.id)!),
    ])),
    width: Math.max(width, 2 * MARGIN),
    height: Math.max(height, 2 * MARGIN),
  };
}

/** Among edges between the same two boxes, one that starts higher gets a higher lane. */
function uncross(edges: readonly LayoutEdge[], lanes: Map<string, Lanes>): void {
  const pairs = Map.groupBy(edges, ({ from, to }) => JSON.stringify([from, to]));
  for (const beside of pairs.values()) {
    const free = beside.map(({ id }) => lanes.get(id)!)
      .sort((a, b) => (a.label?.y ?? 0) - (b.label?.y ?? 0));
    const down = [...beside].sort((a, b) =>
      (b.fromY ?? 0) - (a.fromY ?? 0) || (b.toY ?? 0) - (a.toY ?? 0)
    );
    down.forEach(({ id }, i) => lanes.set(id, free[i]!));
  }
}

/** Half the width of each column, by the middle of the column. */
function columnsOf(boxes: readonly PlacedBox[]): ReadonlyMap<number, number> {
  const columns = new Map<number, number>();
  for (const { x, width } of boxes) {
    const middle = Math.round(x + width / 2);
    columns.set(middle, Math.max(columns.get(middle) ?? 0, width / 2));
  }
  return columns;
}

/** Where an edge passes between boxes and other edges. */
interface Lanes {
  /** Each is crossed from side to side at one height. */
  readonly stops: readonly { readonly x: number; readonly y: number; readonly half: number }[];
  /** The middle of its label, if dagre placed one. */
  readonly label: Point | undefined;
}

/** The path that dagre found for an edge. */
function lanesOf(
  graph: InstanceType<typeof dagre.graphlib.Graph>,
  { name, from, to }: LayoutEdge & { readonly name: string | undefined },
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
    // Horizontal along half of its label; along all of it there would be no room to bend.
    const half = isLabel ? label.width / 4 : columns.get(Math.round(point.x)) ?? 0;
    return { x: point.x, y: point.y, half };
  });
  return { stops, label: x === undefined || y === undefined ? undefined : { x, y } };
}

/** Swaps the axes. */
function transpose({ boxes, edges, width, height }: Layout): Layout {
  const transposedBoxes = [...boxes].map(([id, box]) =>
    [id, { ...transposeBox(box), x: box.y, y: box.x }] as const
  );
  const transposedEdges = [...edges].map(([id, edge]) =>
    [id, {
      ...edge,
      points: edge.points.map(transposePoint),
      label: transposePoint(edge.label),
    }] as const
  );
  return {
    boxes: new Map(transposedBoxes),
    edges: new Map(transposedEdges),
    width: height,
    height: width,
  };
}

function transposeBox<Box extends LayoutBox>(box: Box): Box {
  return { ...box, width: box.height, height: box.width };
}

function transposePoint({ x, y }: Point): Point {
  return { x: y, y: x };
}

function curveLoop(edge: LayoutEdge, boxes: ReadonlyMap<string, PlacedBox>): PlacedEdge {
  const { x, y, width, height } = boxes.get(edge.from)!;
  const right = x + width;
  const startY = y + height / 2 - (edge.fromY ?? 0);
  const endY = y + height / 2 - (edge.toY ?? 0);
  // With some distance between its ends, so that it is a loop.
  const isFlat = Math.abs(startY - endY) < 16;
  const [top, bottom] = isFlat ? [startY - 8, startY + 8] : [startY, endY];
  const pull = LOOP_REACH / 0.75;
  const points = curve({ x: right, y: top! }, pull, { x: right, y: bottom! }, -pull);
  return { id: edge.id, points, label: { x: right + LOOP_REACH, y: (top! + bottom!) / 2 } };
}

function curveEdge(
  edge: LayoutEdge,
  boxes: ReadonlyMap<string, PlacedBox>,
  lanes: Lanes,
): PlacedEdge {
  const from = boxes.get(edge.from)!;
  const to = boxes.get(edge.to)!;
  const startY = from.y + from.height / 2 - (edge.fromY ?? 0);
  const endY = to.y + to.height / 2 - (edge.toY ?? 0);
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
  return { id: edge.id, points: rounded, label: lanes.label ?? middleOf(rounded) };
}

function middleOf(points: readonly Point[]): Point {
  return points[Math.floor(points.length / 2)]!;
}

/** Points of a Bézier curve that starts and ends horizontally; `pull`, `push`: its handles. */
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
