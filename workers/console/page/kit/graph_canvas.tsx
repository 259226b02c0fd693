/**
 * A graph of boxes and edges that is panned and zoomed with mouse, fingers or keys.
 *
 * Positions are given; `graph_layout.ts` makes them.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Tone } from "./icons.tsx";
import { Button } from "./controls.tsx";

/** Smallest scale of a drawing. */
export const ZOOM_MIN = 0.1;
/** Largest scale of a drawing. */
export const ZOOM_MAX = 4;
/** Pixels that an arrow key moves by. */
const STEP = 40;
/** In a view narrower than this, the graph is shown at `READABLE` scale, even if it is cut. */
const NARROW = 640;
const READABLE = 0.7;

/** A box of a graph; `x` and `y` are its top left corner. */
export interface GraphNode extends Box {
  readonly id: string;
  /** Read by screen readers. */
  readonly label: string;
  /** HTML inside of the box. */
  readonly content: ComponentChildren;
}

/** An edge of a graph. */
export interface GraphEdge {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  /** At least two points of a smooth line. */
  readonly points: readonly { readonly x: number; readonly y: number }[];
  /** In pixels. @default 1.5 */
  readonly width?: number | undefined;
  readonly tone?: Tone | undefined;
  readonly text?: string | undefined;
  /** The text is above this point; left out: the middle of the line. */
  readonly textAt?: { readonly x: number; readonly y: number } | undefined;
  /** Dashes run along the line, for traffic. */
  readonly moving?: boolean | undefined;
}

/** Draws a graph. Boxes that are not connected to the selected one are faint. */
export function GraphCanvas(
  { label, nodes, edges, chosen = null, onChoose, fitKey }: {
    label: string;
    nodes: readonly GraphNode[];
    edges: readonly GraphEdge[];
    chosen?: string | null | undefined;
    onChoose?: ((id: string | null) => void) | undefined;
    /** The graph is fitted into the view whenever this changes, such as with another layout. */
    fitKey: string;
  },
): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState<Viewport>({ x: 0, y: 0, scale: 1 });
  const fit = (least?: number) => {
    const { clientWidth: width, clientHeight: height } = box.current!;
    // Edges may run around all boxes.
    const bends = edges.flatMap(({ points }) =>
      points.map((at) => ({ ...at, width: 0, height: 0 }))
    );
    setView(fitViewport(boundsOf([...nodes, ...bends]), { width, height }, least));
  };
  useLayoutEffect(() => fit(box.current!.clientWidth < NARROW ? READABLE : undefined), [fitKey]);
  useWheel(box, setView);
  const drag = useDrag(setView);
  const near = neighbours(edges, chosen);
  const zoom = (factor: number) => {
    const { clientWidth, clientHeight } = box.current!;
    setView((was) => zoomViewport(was, factor, clientWidth / 2, clientHeight / 2));
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return;
    const move = MOVES[event.key];
    if (move) setView((was) => ({ ...was, x: was.x + move[0], y: was.y + move[1] }));
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  };
  return (
    <div class="graph" role="group" aria-label={label}>
      <div
        ref={box}
        class="graph-window"
        tabIndex={0}
        role="application"
        aria-label={`${label}: arrows move, plus and minus zoom, 0 shows all`}
        onKeyDown={keyDown}
        {...drag}
        onClick={() => onChoose?.(null)}
      >
        <div
          class="graph-all"
          style={{ transform: `translate(${view.x}px, ${view.y}px) scale(${view.scale})` }}
        >
          <svg class="graph-lines" width="1" height="1" aria-hidden="true">
            <Arrow />
            {edges.map((edge) => (
              <Edge
                key={edge.id}
                edge={edge}
                faint={near !== null && edge.from !== chosen && edge.to !== chosen}
              />
            ))}
          </svg>
          {nodes.map((node) => (
            <button
              type="button"
              key={node.id}
              class={`graph-node ${node.id === chosen ? "chosen" : ""} ${
                near !== null && !near.has(node.id) ? "faint" : ""
              }`}
              style={{
                transform: `translate(${node.x}px, ${node.y}px)`,
                width: `${node.width}px`,
                height: `${node.height}px`,
              }}
              aria-pressed={node.id === chosen}
              onClick={(event) => (event.stopPropagation(), onChoose?.(node.id))}
            >
              <span class="offscreen">{node.label}</span>
              {node.content}
            </button>
          ))}
        </div>
      </div>
      <div class="graph-tools">
        <Button small icon="plus" label="Larger" onPress={() => zoom(1.25)} />
        <Button small icon="fit" label="Show all" onPress={() => fit()} />
      </div>
    </div>
  );
}

const MOVES: Readonly<Record<string, readonly [number, number] | undefined>> = {
  ArrowLeft: [STEP, 0],
  ArrowRight: [-STEP, 0],
  ArrowUp: [0, STEP],
  ArrowDown: [0, -STEP],
};

function Arrow(): VNode {
  return (
    <defs>
      <marker
        id="graph-arrow"
        viewBox="0 0 8 8"
        refX="7"
        refY="4"
        markerWidth="7"
        markerHeight="7"
        markerUnits="userSpaceOnUse"
        orient="auto"
      >
        <path d="M0 0.500 7.500 4 0 7.500z" />
      </marker>
    </defs>
  );
}

function Edge({ edge, faint }: { edge: GraphEdge; faint: boolean }): VNode {
  const middle = edge.textAt ?? edge.points[Math.floor(edge.points.length / 2)];
  return (
    <g class={`graph-edge ${edge.tone ?? ""} ${faint ? "faint" : ""}`}>
      <path
        d={curve(edge.points)}
        stroke-width={edge.width ?? 1.5}
        marker-end="url(#graph-arrow)"
      />
      {edge.moving && (
        <path class="graph-moving" d={curve(edge.points)} stroke-width={edge.width ?? 1.5} />
      )}
      {edge.text && middle && <text x={middle.x} y={middle.y - 5}>{edge.text}</text>}
    </g>
  );
}

/** A line through the points, with round corners. */
function curve(points: GraphEdge["points"]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let path = `M${first.x} ${first.y}`;
  rest.forEach((point, at) => {
    const after = rest[at + 1];
    if (after === undefined) path += at === 0 ? `L${point.x} ${point.y}` : `T${point.x} ${point.y}`;
    else path += `Q${point.x} ${point.y} ${(point.x + after.x) / 2} ${(point.y + after.y) / 2}`;
  });
  return path;
}

function neighbours(edges: readonly GraphEdge[], chosen: string | null): Set<string> | null {
  if (chosen === null) return null;
  const near = new Set([chosen]);
  for (const { from, to } of edges) {
    if (from === chosen) near.add(to);
    if (to === chosen) near.add(from);
  }
  return near;
}

type SetView = (change: (was: Viewport) => Viewport) => void;

/** The wheel zooms. A passive listener could not keep the page from scrolling. */
function useWheel(box: { readonly current: HTMLElement | null }, setView: SetView): void {
  useEffect(() => {
    const element = box.current!;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const { left, top } = element.getBoundingClientRect();
      const factor = Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015));
      setView((was) => zoomViewport(was, factor, event.clientX - left, event.clientY - top));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);
}

/** One pointer pans, two zoom. */
function useDrag(setView: SetView): object {
  const pointers = useRef(new Map<number, { x: number; y: number }>()).current;
  const down = (event: PointerEvent) => {
    if ((event.target as Element).closest(".graph-node")) return;
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  };
  const move = (event: PointerEvent) => {
    const was = pointers.get(event.pointerId);
    if (was === undefined) return;
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    const now = { x: event.clientX, y: event.clientY };
    pointers.set(event.pointerId, now);
    if (other === undefined) {
      setView((view) => ({ ...view, x: view.x + now.x - was.x, y: view.y + now.y - was.y }));
      return;
    }
    const { left, top } = (event.currentTarget as Element).getBoundingClientRect();
    const factor = Math.hypot(now.x - other.x, now.y - other.y) /
      Math.max(1, Math.hypot(was.x - other.x, was.y - other.y));
    setView((view) =>
      zoomViewport(view, factor, (now.x + other.x) / 2 - left, (now.y + other.y) / 2 - top)
    );
  };
  const up = (event: PointerEvent) => pointers.delete(event.pointerId);
  return { onPointerDown: down, onPointerMove: move, onPointerUp: up, onPointerCancel: up };
}

/** A point of the drawing is at `scale * point + (x, y)` of the view. */
interface Viewport {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

/** A rectangle. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Zooms by `factor` around a point of the view. */
export function zoomViewport(view: Viewport, factor: number, x: number, y: number): Viewport {
  const scale = Math.max(ZOOM_MIN, Math.min(ZOOM_MAX, view.scale * factor));
  const by = scale / view.scale;
  return { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
}

/**
 * Shows a whole drawing in the middle of the view, at most at its own size. If that needs a scale
 * below `least`, the upper part of the drawing is shown at that scale instead.
 */
export function fitViewport(
  drawing: Box,
  window: { width: number; height: number },
  least = ZOOM_MIN,
): Viewport {
  const margin = 24;
  const room = { width: window.width - 2 * margin, height: window.height - 2 * margin };
  const fit = Math.min(1, room.width / drawing.width, room.height / drawing.height);
  const scale = Math.max(least, Number.isFinite(fit) && fit > 0 ? fit : 1);
  const isTall = drawing.height * scale > room.height + 1;
  return {
    scale,
    x: window.width / 2 - scale * (drawing.x + drawing.width / 2),
    y: isTall
      ? margin - scale * drawing.y
      : window.height / 2 - scale * (drawing.y + drawing.height / 2),
  };
}

/** The smallest rectangle around all boxes. */
export function boundsOf(boxes: readonly Box[]): Box {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y, width, height } of boxes) { // There may be more than fit into one call.
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x + width);
    bottom = Math.max(bottom, y + height);
  }
  if (boxes.length === 0) return { x: 0, y: 0, width: 1, height: 1 };
  return { x: left, y: top, width: right - left, height: bottom - top };
}
