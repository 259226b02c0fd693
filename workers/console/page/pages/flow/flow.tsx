/**
 * The Flow page: workers, functions and triggers as a graph with live traffic on its edges.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { TRACE_BATCH_MS } from "../traces/trace_summary.ts";
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Button,
  type ConsolePage,
  Empty,
  Failed,
  formatRate,
  GraphCanvas,
  type GraphEdge,
  type GraphNode,
  Page,
  Search,
  Skeleton,
  Split,
  useIsNarrow,
  useQuery,
  useQueryMember,
  useShell,
  useTrigger,
  useTypedMember,
} from "../../kit/mod.ts";
import {
  type FlowFunction,
  type FlowGraph,
  flowGraph,
  type FlowInput,
  type FlowTrigger,
  layoutFlow,
} from "./flow_graph.ts";
import {
  type EdgeTraffic,
  edgeTraffic,
  type FunctionRate,
  readFunctionRates,
  rememberEdges,
} from "./flow_traffic.ts";
import { readServiceMap, type ServiceMap } from "../traces/service_map.ts";
import { CardDetail, FlowCardView } from "./flow_card.tsx";

/** Cards drawn. */
const CARDS_MAX = 60;
/** Rows of one card. */
const ROWS_MAX = 10;
/** Edges that stay visible once they were seen. */
const EDGES_MAX = 2_000;

/** Rows of one card when only one worker is shown. */
const FOCUS_ROWS = 60;
const NO_MAP: ServiceMap = { nodes: [], edges: [], windowMs: 0, sampled: false };

/** `/flow`. */
export const flowPage: ConsolePage = {
  path: "/flow",
  title: "Flow",
  icon: "flow",
  group: "build",
  key: "o",
  view: Flow,
};

function Flow(): VNode {
  const { router } = useShell();
  const [typed, type, text] = useTypedMember("text");
  const [focus, setFocus] = useQueryMember("at");
  const [chosen, choose] = useQueryMember("card");
  const data = useFlowInput();
  const rates = useRates();
  const graph = useMemo(
    () =>
      flowGraph(data.input, {
        text,
        focus,
        cardsMax: CARDS_MAX,
        rowsMax: focus === "" ? ROWS_MAX : FOCUS_ROWS,
      }),
    [data.input, text, focus],
  );
  const filters = (
    <>
      <Search label="Find in the flow" value={typed} onChange={type} />
      <Shown graph={graph} focus={focus} onAll={() => setFocus("")} />
    </>
  );
  const card = graph.cards.find(({ id }) => id === chosen);
  return (
    <Page title="Flow" fill filters={filters}>
      {data.status === "loading" && <Skeleton rows={8} />}
      {data.status === "failed" && (
        <Failed what="The flow cannot be drawn" error={data.error} retry={data.retry} />
      )}
      {data.status === "ready" && graph.cards.length === 0 && (
        <NoFlow isFiltered={text + focus !== ""} />
      )}
      {data.status === "ready" && graph.cards.length > 0 && (
        <Split
          detail={card && (
            <CardDetail
              card={card}
              graph={graph}
              rates={rates}
              onFocus={(worker) => router.setQuery({ at: worker, text: null })}
              onClose={() => choose("")}
            />
          )}
        >
          <Picture
            graph={graph}
            map={data.input.map}
            rates={rates}
            chosen={card ? chosen : null}
            onChoose={(id) => choose(id ?? "")}
          />
        </Split>
      )}
    </Page>
  );
}

/** Which part of the graph is shown. */
function Shown(
  { graph, focus, onAll }: { graph: FlowGraph; focus: string; onAll: () => void },
): VNode {
  const drawn = graph.cards.length;
  return (
    <>
      {focus !== "" && (
        <Button icon="close" label={`All workers, not only ${focus}`} onPress={onAll}>
          {`worker ${focus}`}
        </Button>
      )}
      {graph.hidden > 0 && (
        <span class="quiet">
          {`${drawn} of ${drawn + graph.hidden} are drawn; search for the others`}
        </span>
      )}
    </>
  );
}

function Picture({ graph, map, rates, chosen, onChoose }: {
  graph: FlowGraph;
  map: ServiceMap;
  rates: ReadonlyMap<string, FunctionRate>;
  chosen: string | null;
  onChoose: (id: string | null) => void;
}): VNode {
  // Rates change every second; only a graph of another shape needs another layout.
  const shape = JSON.stringify([
    graph.cards.map(({ id, rows, hidden }) => [id, rows.map(({ id }) => id), hidden > 0]),
    graph.edges.map(({ id }) => id),
  ]);
  const isNarrow = useIsNarrow();
  const layout = useMemo(() => layoutFlow(graph, isNarrow), [shape, isNarrow]);
  const traffic = useMemo(() => edgeTraffic(graph.edges, map, rates), [graph, map, rates]);
  const nodes = graph.cards.map((card): GraphNode => ({
    ...layout.boxes.get(card.id)!,
    label: `${card.kind} ${card.title}, ${card.rows.length + card.hidden} rows`,
    content: <FlowCardView card={card} edges={graph.edges} traffic={traffic} rates={rates} />,
  }));
  const edges = graph.edges.map((edge): GraphEdge => ({
    id: edge.id,
    from: edge.from.card,
    to: edge.to.card,
    points: layout.edges.get(edge.id)!.points,
    textAt: layout.edges.get(edge.id)!.label,
    ...edgeLook(traffic.get(edge.id)),
    // A loop and a phone have no space for a label; the rate is in the row that it ends at.
    ...(isNarrow || edge.from.card === edge.to.card) && { text: undefined },
  }));
  return (
    <GraphCanvas
      label="Flow"
      nodes={nodes}
      edges={edges}
      chosen={chosen}
      onChoose={onChoose}
      fitKey={`${isNarrow} ${shape}`}
    />
  );
}

function edgeLook(traffic: EdgeTraffic | undefined): Partial<GraphEdge> {
  const rate = traffic?.callsPerS ?? 0;
  if (rate === 0) return { width: 1.25 };
  return {
    width: 1.25 + Math.min(3.5, Math.log10(1 + rate)),
    tone: traffic!.hasErrors ? "bad" : undefined,
    moving: true,
    text: formatRate(rate),
  };
}

/** Functions, triggers, workers and seen calls, kept up to date. */
function useFlowInput() {
  const functions = useQuery<JsonObject>(
    {
      function_id: "engine::functions::list",
      items: "functions",
      key: ["namespace", "function_id"],
    },
    [{ type: "engine::functions-available" }],
  );
  const triggers = useQuery<JsonObject>(
    {
      function_id: "engine::registered-triggers::list",
      items: "registered_triggers",
      key: ["id"],
    },
    [{ type: "engine::triggers-available" }],
  );
  const types = useQuery<JsonObject>(
    { function_id: "engine::triggers::list", items: "triggers", key: ["namespace", "id"] },
    [{ type: "engine::triggers-available" }],
  );
  const workers = useQuery<JsonObject>(
    { function_id: "engine::workers::list", items: "workers", key: ["id"] },
    [{ type: "engine::workers-available" }],
  );
  const seen = useQuery({ function_id: "engine::traces::map" }, [
    { type: "trace", config: { batch_ms: 4 * TRACE_BATCH_MS } },
  ]);
  const known = useRef(NO_MAP);
  const map = useMemo(() => {
    if (seen.status !== "ready") return known.current;
    const now = readServiceMap(seen.value);
    return known.current = rememberEdges(known.current, now, EDGES_MAX);
  }, [seen.value, seen.status]);
  const input = useMemo((): FlowInput => ({
    functions: functions.items as unknown as FlowFunction[],
    triggers: triggers.items as unknown as FlowTrigger[],
    workers: workers.items.map(({ name }) => String(name)).filter(isOwn),
    providers: new Map(types.items.map(({ id, worker_name }) => [String(id), String(worker_name)])),
    map,
  }), [functions.items, triggers.items, types.items, workers.items, map]);
  const needed = [functions, triggers, workers];
  const failed = needed.find(({ status }) => status === "failed");
  const status = failed
    ? "failed" as const
    : needed.some(({ status }) => status === "loading")
    ? "loading" as const
    : "ready" as const;
  const retry = () => needed.forEach((query) => query.status === "failed" && query.retry());
  return { input, status, error: failed?.error ?? null, retry };
}

/** Built-in workers are in the graph only if an edge leads to them. */
function isOwn(name: string): boolean {
  return !name.startsWith("engine-");
}

function useRates(): ReadonlyMap<string, FunctionRate> {
  const [rates, setRates] = useState<ReadonlyMap<string, FunctionRate>>(new Map());
  useTrigger<Json>(
    { type: "engine::metrics-sampled", config: { interval_ms: 1_000 } },
    (fired) => setRates(readFunctionRates(fired)),
  );
  return rates;
}

function NoFlow({ isFiltered }: { isFiltered: boolean }): VNode {
  const { router } = useShell();
  if (isFiltered) {
    return (
      <Empty
        icon="filter"
        title="Nothing is called so"
        action={<Button onPress={() => router.go("/flow")}>Show all</Button>}
      />
    );
  }
  return (
    <Empty icon="flow" title="Nothing flows yet">
      Workers appear here when they connect, with their functions and what triggers them.
      <pre>engine worker add ./my-worker</pre>
    </Empty>
  );
}
