/**
 * The Traces page: the list of traces, the service map, and single traces.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import { objectOf } from "../../kit/json.ts";
import {
  Button,
  type ConsolePage,
  Empty,
  Failed,
  formatSpan,
  link,
  Page,
  type PageProps,
  Search,
  Segments,
  Select,
  Skeleton,
  Table,
  Toggle,
  useIsNarrow,
  useQuery,
  useQueryMember,
  useShell,
  useTypedMember,
} from "../../kit/mod.ts";
import { readServiceMap, workersOnly } from "./service_map.ts";
import { WorkerSelect } from "../references.tsx";
import { TraceHistogram } from "./histogram_view.tsx";
import { columnsFor, NARROW_COLUMNS } from "./trace_columns.tsx";
import { ServiceMapView } from "./service_map_view.tsx";
import { TraceView } from "./trace.tsx";
import {
  joinTraces,
  readTraceSummary,
  summariesPayload,
  TRACE_BATCH_MS,
  type TraceFilter,
  type TraceSummary,
} from "./trace_summary.ts";

/** Height of a row of two lines, in pixels. */
const NARROW_ROW = 52;
/** Traces fetched at once, and kept up to date. */
const PAGE_TRACES = 200;
/** Traces that the list holds after scrolling down. */
const TRACES_MAX = 20_000;

const VIEWS = [
  { value: "", label: "List" },
  { value: "map", label: "Service map" },
];

/** `/traces`, `/traces/<trace id>`. */
export const tracesPage: ConsolePage = {
  path: "/traces",
  title: "Traces",
  icon: "traces",
  group: "observe",
  key: "r",
  onPhones: true,
  view: Traces,
};

function Traces({ rest }: PageProps): VNode {
  const [trace_id] = rest;
  return trace_id === undefined ? <Overview /> : <TraceView key={trace_id} trace_id={trace_id} />;
}

function Overview(): VNode {
  const [view, setView] = useQueryMember("view");
  const views = <Segments label="View" value={view} choices={VIEWS} onChange={setView} />;
  return view === "map" ? <TracesMap views={views} /> : <Listed views={views} />;
}

function Listed({ views }: { views: VNode }): VNode {
  const filter = useTraceFilter();
  return (
    <Page
      title="Traces"
      fill
      actions={views}
      filters={<FindTraces filter={filter} />}
      moreFilters={<TraceFilters filter={filter} />}
    >
      <TraceHistogram filter={filter.filter} />
      <TraceList filter={filter} />
    </Page>
  );
}

const STATUSES = [
  { value: "", label: "Any outcome" },
  { value: "error", label: "Failed" },
  { value: "ok", label: "Succeeded" },
];
const DURATIONS = [
  { value: "", label: "Any duration" },
  { value: "1", label: "1 ms and longer" },
  { value: "10", label: "10 ms and longer" },
  { value: "100", label: "100 ms and longer" },
  { value: "1000", label: "1 s and longer" },
];

/** The filter in the address, and its setters. */
interface TraceFilterState {
  readonly filter: TraceFilter;
  readonly typed: string;
  readonly isPaused: boolean;
  readonly type: (text: string) => void;
  readonly pause: (paused: boolean) => void;
}

/** Reads the filter from the address. */
function useTraceFilter(): TraceFilterState {
  const [typed, type, text] = useTypedMember("text");
  const [isPaused, pause] = useState(false);
  const { router } = useShell();
  const { query } = router.route.value;
  const member = (name: string): string => query.get(name) ?? "";
  const filter = {
    text,
    function_id: member("function"),
    worker: member("worker"),
    status: member("status"),
    min: member("min"),
    internal: member("internal"),
    from: member("from"),
    to: member("to"),
  };
  return { filter, typed, type, isPaused, pause };
}

function FindTraces({ filter: state }: { filter: TraceFilterState }): VNode {
  return (
    <Search
      label="Find traces"
      placeholder="Function, worker or trace id"
      value={state.typed}
      onChange={state.type}
    />
  );
}

/** The other fields of the filter. */
function TraceFilters({ filter: state }: { filter: TraceFilterState }): VNode {
  const [status, setStatus] = useQueryMember("status");
  const [worker, setWorker] = useQueryMember("worker");
  const [min, setMin] = useQueryMember("min");
  const [internal, setInternal] = useQueryMember("internal");
  const [called, setCalled] = useQueryMember("function");
  return (
    <>
      <Select label="Outcome" quiet value={status} choices={STATUSES} onChange={setStatus} />
      <WorkerSelect value={worker} onChange={setWorker} />
      <Select label="Duration" quiet value={min} choices={DURATIONS} onChange={setMin} />
      {called !== "" && (
        <Button
          small
          icon="close"
          label={`Any function, not only ${called}`}
          onPress={() => setCalled("")}
        >
          {called}
        </Button>
      )}
      <Toggle
        label="Engine's own calls"
        checked={internal === "1"}
        onChange={(on) => setInternal(on ? "1" : "")}
      />
      <Button
        icon={state.isPaused ? "play" : "pause"}
        pressed={state.isPaused}
        onPress={() => state.pause(!state.isPaused)}
      >
        {state.isPaused ? "Resume" : "Pause"}
      </Button>
    </>
  );
}

/** The table of traces. */
function TraceList({ filter: state }: { filter: TraceFilterState }): VNode {
  const { router } = useShell();
  const listed = useTraces(state.filter, state.isPaused);
  const slowest = useMemo(
    () => listed.traces.reduce((most, { durationMs }) => Math.max(most, durationMs), 0),
    [listed.traces],
  );
  const isNarrow = useIsNarrow();
  const columns = useMemo(() => isNarrow ? NARROW_COLUMNS : columnsFor(slowest), [
    slowest,
    isNarrow,
  ]);
  if (listed.status === "loading" && listed.traces.length === 0) return <Skeleton rows={12} />;
  if (listed.status === "failed") {
    return <Failed what="Traces cannot be listed" error={listed.error} retry={listed.retry} />;
  }
  return (
    <Table
      label="Traces, the newest first"
      kind="events"
      rowClass={({ errors }) => errors > 0 ? "bad" : ""}
      columns={columns}
      rowHeight={isNarrow ? NARROW_ROW : undefined}
      items={listed.traces}
      keyOf={({ trace_id }) => trace_id}
      onOpen={({ trace_id }) => router.go(link("/traces", trace_id))}
      onNearEnd={listed.more}
      empty={<NoTraces filter={state.filter} />}
    />
  );
}

function NoTraces({ filter }: { filter: TraceFilter }): VNode {
  const { router } = useShell();
  const isFiltered = Object.values(filter).some((value) => value !== "");
  const { status, ...others } = filter;
  if (status === "error") {
    const isElsewhere = Object.values(others).some((value) => value !== "");
    return (
      <Empty
        icon="check"
        title={isElsewhere ? "None of these failed" : "No call failed"}
        action={<Button onPress={() => router.setQuery({ status: null })}>Show all</Button>}
      >
        Every recorded trace {isElsewhere ? "that fits " : ""}ended without an error.
      </Empty>
    );
  }
  if (isFiltered) {
    return (
      <Empty
        icon="filter"
        title="No trace fits"
        action={<Button onPress={() => router.go("/traces")}>Show all traces</Button>}
      >
        Traces of calls that fit will appear here as they end.
      </Empty>
    );
  }
  return (
    <Empty icon="traces" title="No traces yet">
      <p>Every call becomes a trace. Call a function, and it appears here:</p>
      <code class="code">engine trigger &lt;function&gt; key=value</code>
      <p>Nothing comes? Then tracing is off; see traces.enabled of engine-observability.</p>
    </Empty>
  );
}

/** The newest traces, which are watched, and older ones that were fetched. */
function useTraces(filter: TraceFilter, isPaused: boolean) {
  const { live, toasts } = useShell();
  const asked = JSON.stringify(filter);
  const query = useQuery<JsonObject>(
    {
      function_id: "engine::traces::summaries",
      payload: summariesPayload(filter, PAGE_TRACES),
      items: "traces",
      key: ["trace_id"],
    },
    [{ type: "trace", config: { batch_ms: TRACE_BATCH_MS } }],
  );
  const newest = useMemo(
    () => query.items.map(readTraceSummary).sort((a, b) => b.startMs - a.startMs),
    [query.items],
  );
  const [older, setOlder] = useState<readonly TraceSummary[]>([]);
  const asking = useRef(false);
  useEffect(() => setOlder([]), [asked]);
  const all = useMemo(() => joinTraces(newest, older), [newest, older]);
  const held = useRef(all);
  if (!isPaused || held.current.length === 0) held.current = all;
  const more = () => {
    const last = all.at(-1);
    const isFull = newest.length >= PAGE_TRACES && all.length < TRACES_MAX;
    if (asking.current || last === undefined || !isFull) return;
    asking.current = true;
    const payload = summariesPayload(filter, PAGE_TRACES, last.startMs);
    live.call("engine::traces::summaries", payload).then((result) => {
      const traces = tracesOf(result);
      // After an empty answer nothing more is fetched.
      if (traces.length === 0) return;
      asking.current = false;
      setOlder((known) => joinTraces(known, traces).slice(0, TRACES_MAX));
    }).catch((failure: Error) => toasts.show("bad", `Older traces: ${failure.message}`));
  };
  useEffect(() => {
    asking.current = false;
  }, [asked]);
  return { ...query, traces: held.current, more };
}

function tracesOf(result: Json): TraceSummary[] {
  const { traces } = objectOf(result);
  return (Array.isArray(traces) ? traces : []).map(readTraceSummary);
}

const LEVELS = [
  { value: "", label: "Workers" },
  { value: "functions", label: "Functions" },
];

/** The Traces page while it shows the map. */
function TracesMap({ views }: { views: VNode }): VNode {
  const [level, setLevel] = useQueryMember("level");
  const [typed, type, text] = useTypedMember("text");
  const query = useQuery(
    { function_id: "engine::traces::map" },
    [{ type: "trace", config: { batch_ms: 2 * TRACE_BATCH_MS } }],
  );
  const whole = useMemo(() => readServiceMap(query.value), [query.value]);
  const map = useMemo(() => level === "functions" ? whole : workersOnly(whole), [whole, level]);
  const filters = (
    <>
      <Search label="Find in the map" value={typed} onChange={type} />
      <Segments label="Detail" value={level} choices={LEVELS} onChange={setLevel} />
      {query.status === "ready" && whole.windowMs > 0 && (
        <span class="quiet">
          Of the last {formatSpan(whole.windowMs)}
          {whole.sampled && ", from the newest spans"}
        </span>
      )}
    </>
  );
  return (
    <Page title="Traces" fill actions={views} filters={filters}>
      {query.status === "loading" && <Skeleton rows={8} />}
      {query.status === "failed" && (
        <Failed what="The map cannot be made" error={query.error} retry={query.retry} />
      )}
      {query.status === "ready" && (
        <ServiceMapView
          map={map}
          text={text}
          empty={text === ""
            ? (
              <Empty icon="flow" title="No calls yet">
                The map grows with the first calls between workers.
              </Empty>
            )
            : <Empty icon="filter" title={`Nothing in the map is called “${text}”`} />}
        />
      )}
    </Page>
  );
}
