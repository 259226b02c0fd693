/**
 * A service map drawn as a graph, with the detail view of one node.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import {
  Detail,
  Dot,
  formatCount,
  formatDuration,
  GraphCanvas,
  type GraphEdge,
  type GraphNode,
  Icon,
  type IconName,
  Link,
  link,
  Pairs,
  Split,
  useIsNarrow,
} from "../../kit/mod.ts";
import { type Layout, layoutColumn, layoutGraphWithin } from "../../kit/graph_layout.ts";
import { type BusyNode, type MapEdge, type ServiceMap, shownMap } from "./service_map.ts";
import { workerLink } from "../references.tsx";

/** Nodes drawn. */
const NODES_MAX = 120;

const ICONS: Readonly<Record<string, IconName | undefined>> = {
  worker: "workers",
  function: "functions",
  http: "link",
  state: "state",
};
/** With more edges than this, they have no labels. */
const TEXTS_MAX = 40;
/** Space for the label of an edge, whatever its digits. */
const LABEL = { width: 92, height: 16 };
const BOX = {
  height: 48,
  widthMin: 136,
  widthMax: 280,
  charWidth: 8.4,
  smallWidth: 6.2,
  frame: 74,
};

/** Between boxes of the one column that fits a phone. */
const NARROW_GAP = 14;

/** What surrounds a drawing in pixels: the side bar; header, filters and tabs. */
const AROUND = { width: 204, height: 170 };

/** Draws the busiest nodes of a map. `text`: only nodes that contain it, and their neighbours. */
export function ServiceMapView({ map, text = "", empty }: {
  map: ServiceMap;
  text?: string;
  /** Shown when there is nothing to draw. */
  empty: ComponentChildren;
}): VNode {
  const [chosen, choose] = useState<string | null>(null);
  const shown = useMemo(() => shownMap(map, NODES_MAX, text), [map, text]);
  const shape = JSON.stringify([
    shown.nodes.map(({ id, errors }) => [id, errors > 0]),
    shown.edges.map(({ from, to }) => [from, to]),
  ]);
  const isNarrow = useIsNarrow();
  const layout = useMemo(() => {
    const boxes = shown.nodes.map((node) => ({
      id: node.id,
      width: widthOf(node),
      height: BOX.height,
    }));
    const lines = shown.edges.map(({ from, to }) => ({ id: `${from} ${to}`, from, to }));
    if (isNarrow) return layoutColumn(boxes, lines, NARROW_GAP);
    return layoutGraphWithin(boxes, lines, roomForDrawing(), {
      columnGap: 64,
      ...lines.length <= TEXTS_MAX && { label: LABEL },
    });
  }, [shape, isNarrow]);
  if (shown.nodes.length === 0) return <>{empty}</>;
  const nodes = shown.nodes.map((node): GraphNode => ({
    ...layout.boxes.get(node.id)!,
    label: `${node.kind} ${node.label}: ${node.calls} calls, ${node.errors} failed`,
    content: <MapBox node={node} />,
  }));
  const edges = graphEdges(shown.edges, layout, !isNarrow && shown.edges.length <= TEXTS_MAX);
  const node = shown.nodes.find(({ id }) => id === chosen);
  return (
    <Split
      detail={node && <NodeDetail node={node} map={map} onClose={() => choose(null)} />}
    >
      <GraphCanvas
        label="Service map"
        nodes={nodes}
        edges={edges}
        chosen={chosen}
        onChoose={choose}
        fitKey={`${isNarrow} ${shape}`}
      />
      {shown.hidden > 0 && (
        <p class="graph-note">
          The {shown.nodes.length} busiest are drawn; {formatCount(shown.hidden)} more are not
        </p>
      )}
    </Split>
  );
}

function graphEdges(
  edges: readonly MapEdge[],
  layout: Layout,
  hasTexts: boolean,
): GraphEdge[] {
  const most = Math.max(1, ...edges.map(({ calls }) => calls));
  return edges.map((edge) => {
    const id = `${edge.from} ${edge.to}`;
    return {
      id,
      from: edge.from,
      to: edge.to,
      points: layout.edges.get(id)!.points,
      textAt: layout.edges.get(id)!.label,
      width: 1 + 3 * Math.sqrt(edge.calls / most),
      text: hasTexts ? edgeText(edge) : undefined,
      ...edge.errors > 0 && { tone: "bad" },
    };
  });
}

function MapBox({ node }: { node: BusyNode }): VNode {
  return (
    <span class="map-box">
      <span class={`map-icon kind-${ICONS[node.kind] ? node.kind : "other"}`}>
        <Icon name={ICONS[node.kind] ?? "external"} />
      </span>
      <span class="map-text">
        <span class="map-name">{node.label}</span>
        <span class="map-calls num">
          {formatCount(node.calls)} {node.calls === 1 ? "call" : "calls"}
          {node.errors > 0 && <b class="bad-text">{formatCount(node.errors)} failed</b>}
        </span>
      </span>
    </span>
  );
}

function NodeDetail(
  { node, map, onClose }: { node: BusyNode; map: ServiceMap; onClose: () => void },
): VNode {
  const label = (id: string) => map.nodes.find((other) => other.id === id)?.label ?? id;
  const into = map.edges.filter(({ to }) => to === node.id);
  const outOf = map.edges.filter(({ from }) => from === node.id);
  return (
    <Detail title={node.label} label={`${node.kind} ${node.label}`} onClose={onClose}>
      <Pairs
        pairs={[
          ["Kind", node.kind],
          ["Calls", formatCount(node.calls)],
          ["Failed", formatCount(node.errors)],
          ["Worker", workerLink(node.worker)],
        ]}
      />
      <EdgeList title="Called by" edges={into} name={({ from }) => label(from)} />
      <EdgeList title="Calls" edges={outOf} name={({ to }) => label(to)} />
      <p>
        <Link
          to={link("/traces", { [node.kind === "function" ? "function" : "text"]: node.label })}
        >
          Traces of it
        </Link>
      </p>
    </Detail>
  );
}

function EdgeList(
  { title, edges, name }: {
    title: string;
    edges: readonly MapEdge[];
    name: (edge: MapEdge) => string;
  },
): VNode | null {
  if (edges.length === 0) return null;
  const sorted = [...edges].sort((a, b) => b.calls - a.calls);
  return (
    <section class="edge-list">
      <h3>{title}</h3>
      <ul>
        {sorted.slice(0, 50).map((edge) => (
          <li key={name(edge)}>
            <Dot
              tone={edge.errors > 0 ? "bad" : "ok"}
              label={edge.errors > 0 ? `${edge.errors} failed` : "None failed"}
            />
            <span class="cut">{name(edge)}</span>
            <span class="num quiet">{edgeText(edge)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function edgeText({ calls, p50Ms }: MapEdge): string {
  return `${formatCount(calls)} · ${formatDuration(p50Ms)}`;
}

function widthOf({ label, errors }: BusyNode): number {
  // The space for counts is fixed, or growing counts would change the layout all the time.
  const below = (errors > 0 ? 26 : 12) * BOX.smallWidth;
  const wanted = BOX.frame + Math.max(label.length * BOX.charWidth, below);
  return Math.round(Math.min(BOX.widthMax, Math.max(BOX.widthMin, wanted)));
}

/** About the space that a drawing has, in pixels. */
function roomForDrawing(): { width: number; height: number } {
  return {
    width: Math.max(200, innerWidth - AROUND.width),
    height: Math.max(200, innerHeight - AROUND.height),
  };
}
