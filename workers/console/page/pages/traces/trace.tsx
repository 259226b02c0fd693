/**
 * One trace: waterfall, flame graph, path, map and logs, kept up to date while the trace grows.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import { numberOf, objectOf } from "../../kit/json.ts";
import {
  Badge,
  type CallFailure,
  CopyButton,
  Empty,
  Failed,
  formatCount,
  formatDateTime,
  formatDuration,
  Link,
  link,
  type Live,
  Page,
  Skeleton,
  Split,
  Tabs,
  useIsNarrow,
  useNow,
  useQuery,
  useQueryMember,
  useShell,
  useTrigger,
} from "../../kit/mod.ts";
import { ALL_LOGS } from "../logs/log_lines.ts";
import { LogTable } from "../logs/log_table.tsx";
import { useLogs } from "../logs/use_logs.ts";
import { FlameView } from "./flame_view.tsx";
import { PathView } from "./path_view.tsx";
import { readServiceMap } from "./service_map.ts";
import { ServiceMapView } from "./service_map_view.tsx";
import { SpanDetail } from "./span_detail.tsx";
import {
  durationOf,
  failedRow,
  readSpan,
  serviceColours,
  type SpanTree,
  spanTree,
  type TraceSpan,
} from "./span_tree.ts";
import { TRACE_BATCH_MS } from "./trace_summary.ts";
import { type TimeWindow, wholeWindow } from "./waterfall.ts";
import { Waterfall } from "./waterfall_view.tsx";

/** Spans fetched at once. */
const PAGE_SPANS = 1_000;
/** Spans of one trace that the page holds. */
const SPANS_MAX = 200_000;
/** A growing trace is read again after this many times the time that reading took. */
const REREAD_FACTOR = 10;

const TABS = [
  { id: "", title: "Waterfall" },
  { id: "flame", title: "Flame graph" },
  { id: "path", title: "Path" },
  { id: "map", title: "Map" },
  { id: "logs", title: "Logs" },
];

/** `/traces/<trace id>`. */
export function TraceView({ trace_id }: { trace_id: string }): VNode {
  const trace = useTraceSpans(trace_id);
  const { tree } = trace;
  const root = tree.rows[0]?.span;
  useFailedSpan(trace);
  return (
    <Page
      fill
      title={
        <span class="trace-title">
          <Link to="/traces">Traces</Link>
          <span class="quiet" aria-hidden="true">/</span>
          <span class="cut">{root?.name ?? "Trace"}</span>
        </span>
      }
      count={root && <TraceFacts trace={trace} />}
      actions={
        <>
          <code class="code trace-id" title="Trace id">{trace_id}</code>
          <CopyButton text={() => trace_id} label="Copy the trace id" />
        </>
      }
    >
      {trace.status === "loading" && <Skeleton rows={12} />}
      {trace.status === "failed" && (
        <Failed what="The trace cannot be read" error={trace.error} retry={trace.retry} />
      )}
      {trace.status === "ready" &&
        (root ? <Views trace={trace} trace_id={trace_id} /> : <NoSuchTrace />)}
    </Page>
  );
}

/** Selects the span where a trace failed, once, unless the address names one. */
function useFailedSpan({ status, tree }: TraceSpans): void {
  const { router } = useShell();
  const isNarrow = useIsNarrow();
  const isDone = useRef(false);
  useEffect(() => {
    if (isDone.current || status !== "ready" || tree.isPending) return;
    isDone.current = true;
    // On phones the detail view would hide the trace.
    if (isNarrow || router.route.value.query.has("span")) return;
    const failed = failedRow(tree);
    if (failed !== undefined) router.setQuery({ span: failed.span.id });
  }, [status, tree, isNarrow]);
}

function NoSuchTrace(): VNode {
  return (
    <Empty
      icon="traces"
      title="The engine does not know this trace"
      action={<Link class="button" to="/traces">Show the newest traces</Link>}
    >
      It was not sampled, or newer ones have taken its place: traces are kept in a ring of bounded
      size (traces.memory_mb of engine-observability).
    </Empty>
  );
}

function TraceFacts({ trace: { tree, spans, total } }: { trace: TraceSpans }): VNode {
  const now = useNow();
  const { startMs, endMs, isPending, rows } = tree;
  const failed = rows.filter(({ span }) => span.failed).length;
  const nowMs = isPending ? Math.max(now, endMs) : endMs;
  const rootMs = rows[0] === undefined ? 0 : durationOf(rows[0].span, nowMs);
  const afterMs = nowMs - startMs - rootMs;
  return (
    <span class="trace-facts">
      <span class="num" title="When it started">{formatDateTime(startMs, true)}</span>
      <b class="num">{formatDuration(rootMs)}</b>
      {afterMs >= 1 && (
        <span class="num" title="It went on for this long in calls that it did not wait for">
          +{formatDuration(afterMs)}
        </span>
      )}
      <span class="num">
        {formatCount(rows.length)} {rows.length === 1 ? "span" : "spans"}
        {total > spans.length && ` of ${formatCount(total)}`}
      </span>
      {isPending && <Badge tone="info" dot>running</Badge>}
      {failed > 0 && <Badge tone="bad" dot>{`${formatCount(failed)} failed`}</Badge>}
    </span>
  );
}

function Views({ trace, trace_id }: { trace: TraceSpans; trace_id: string }): VNode {
  const { tree } = trace;
  const [tab, setTab] = useQueryMember("view");
  const [chosen, choose] = useQueryMember("span");
  const [zoom, setWindow] = useState<TimeWindow | null>(null);
  const now = useNow();
  const nowMs = tree.isPending ? Math.max(now, tree.endMs) : tree.endMs;
  const colours = useMemo(() => serviceColours(tree), [tree]);
  const window = useMemo(() => zoom ?? wholeWindow(tree, nowMs), [zoom, tree, nowMs]);
  const props = { tree, colours, nowMs, window, setWindow, chosen, choose };
  const index = useMemo(
    () => chosen === "" ? -1 : tree.rows.findIndex(({ span }) => span.id === chosen),
    [tree, chosen],
  );
  const row = tree.rows[index];
  return (
    <Split
      detail={row && (
        <SpanDetail
          key={chosen}
          tree={tree}
          row={row}
          nowMs={nowMs}
          onClose={() => choose("")}
        />
      )}
    >
      <Tabs label="Views of the trace" tabs={TABS} value={tab} onChange={setTab}>
        {tab === "flame" && <FlameView {...props} />}
        {tab === "path" && <PathView {...props} />}
        {tab === "map" && <TraceMap trace_id={trace_id} spans={trace.spans.length} />}
        {tab === "logs" && <TraceLogs trace_id={trace_id} />}
        {!TABS.some(({ id }) => id !== "" && id === tab) && <Waterfall {...props} />}
      </Tabs>
    </Split>
  );
}

/** The map of this trace, read again when it grows. */
function TraceMap({ trace_id, spans }: { trace_id: string; spans: number }): VNode {
  const payload = { trace_id };
  const query = useQuery({ function_id: "engine::traces::map", payload });
  const drawn = useRef(spans);
  useEffect(() => {
    if (drawn.current !== spans) query.retry();
    drawn.current = spans;
  }, [spans]);
  const map = useMemo(() => readServiceMap(query.value), [query.value]);
  if (query.status === "loading") return <Skeleton rows={6} />;
  if (query.status === "failed") {
    return <Failed what="The map cannot be made" error={query.error} retry={query.retry} />;
  }
  return <ServiceMapView map={map} empty={<Empty icon="flow" title="Nothing to draw" />} />;
}

function TraceLogs({ trace_id }: { trace_id: string }): VNode {
  const filter = useMemo(() => ({ ...ALL_LOGS, traceId: trace_id }), [trace_id]);
  const logs = useLogs(filter, false);
  return (
    <>
      <LogTable
        logs={logs}
        hideTrace
        empty={
          <Empty icon="logs" title="Nothing was logged">
            What the functions of this trace log or print appears here.
          </Empty>
        }
      />
      <p class="below">
        <Link to={link("/logs", { trace: trace_id })}>Show them on the Logs page</Link>
      </p>
    </>
  );
}

/** The spans of a trace. */
interface TraceSpans {
  readonly status: "loading" | "ready" | "failed";
  readonly tree: SpanTree;
  /** All spans, handlers included. */
  readonly spans: readonly TraceSpan[];
  /** How many spans the engine has, which may be more than the page holds. */
  readonly total: number;
  readonly error: CallFailure | null;
  readonly retry: () => void;
}

interface Read {
  readonly status: TraceSpans["status"];
  readonly spans: readonly TraceSpan[];
  readonly total: number;
  readonly error: CallFailure | null;
}

/** Reads a trace and follows it. */
function useTraceSpans(trace_id: string): TraceSpans {
  const { live } = useShell();
  const [read, setRead] = useState<Read>({ status: "loading", spans: [], total: 0, error: null });
  const reading = useRef<{ again: boolean } | null>(null);
  const gone = useRef(new AbortController());
  const readAll = () => {
    if (reading.current !== null) {
      reading.current.again = true;
      return;
    }
    const mine = reading.current = { again: false };
    const began = performance.now();
    readSpans(live, trace_id, gone.current.signal)
      .then((all) => setRead({ status: "ready", ...all, error: null }))
      .catch((error: CallFailure) => {
        if (!gone.current.signal.aborted) setRead((was) => ({ ...was, status: "failed", error }));
      })
      .finally(() => {
        // A large trace that grows is read with pauses.
        const pauseMs = (performance.now() - began) * REREAD_FACTOR;
        setTimeout(() => {
          reading.current = null;
          if (mine.again && !gone.current.signal.aborted) readAll();
        }, pauseMs);
      });
  };
  useEffect(() => {
    const leaving = gone.current = new AbortController();
    readAll();
    return () => leaving.abort();
  }, [trace_id]);
  const isBack = live.status.value.engine === true;
  const wasBack = useRef(isBack);
  useEffect(() => {
    if (isBack && !wasBack.current) readAll();
    wasBack.current = isBack;
  }, [isBack]);
  useTrigger<JsonObject>(
    { type: "trace", config: { batch_ms: TRACE_BATCH_MS } },
    ({ trace_ids }) => {
      if (Array.isArray(trace_ids) && trace_ids.includes(trace_id)) readAll();
    },
    readAll,
  );
  const tree = useMemo(() => spanTree(read.spans), [read.spans]);
  return { ...read, tree, retry: readAll };
}

async function readSpans(
  live: Live,
  trace_id: string,
  signal: AbortSignal,
): Promise<{ spans: TraceSpan[]; total: number }> {
  const spans: TraceSpan[] = [];
  for (let total = Infinity; spans.length < Math.min(total, SPANS_MAX);) {
    const answer = objectOf(
      await live.call("engine::traces::list", {
        trace_id,
        limit: PAGE_SPANS,
        offset: spans.length,
        include_internal: true,
      }, { signal }),
    );
    const part = Array.isArray(answer.spans) ? answer.spans : [];
    for (const span of part) spans.push(readSpan(span));
    total = numberOf(answer.total, spans.length);
    if (part.length === 0) return { spans, total: spans.length };
    if (spans.length >= total) return { spans, total };
  }
  return { spans, total: SPANS_MAX };
}
