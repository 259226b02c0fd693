/**
 * The columns of the list of traces, for wide views and for phones.
 *
 * @module
 */
import type { VNode } from "preact";
import { Badge, type Column, Dot, formatCount, formatDuration, Time } from "../../kit/mod.ts";
import type { TraceSummary } from "./trace_summary.ts";

/** A trace that goes on for longer after its first span shows how long. */
const AFTER_MS_MIN = 1;

/** The columns of a wide list; `slowestMs`: what the longest bar stands for. */
export function columnsFor(slowestMs: number): readonly Column<TraceSummary>[] {
  return [
    {
      id: "name",
      title: "Trace",
      width: "minmax(160px, 3fr)",
      cell: (trace) => <TraceName trace={trace} />,
    },
    {
      id: "status",
      title: "HTTP",
      width: "60px",
      hide: "tablet",
      cell: ({ httpStatus }) => httpStatus !== null && <HttpStatus status={httpStatus} />,
    },
    {
      id: "worker",
      title: "Ran on",
      width: "minmax(90px, 1fr)",
      cell: (trace) => <RanOn trace={trace} />,
    },
    {
      id: "services",
      title: "Passes through",
      width: "minmax(100px, 1.4fr)",
      hide: "tablet",
      cell: ({ services }) => <span class="cut quiet">{services.join(", ")}</span>,
    },
    {
      id: "spans",
      title: "Spans",
      width: "64px",
      align: "end",
      hide: "phone",
      cell: ({ spans }) => <span class="num">{formatCount(spans)}</span>,
    },
    {
      id: "duration",
      title: "Duration",
      width: "minmax(150px, 220px)",
      align: "end",
      cell: (trace) => <DurationBar trace={trace} slowestMs={slowestMs} />,
    },
    {
      id: "start",
      title: "Started",
      width: "104px",
      align: "end",
      cell: ({ startMs }) => <Time ms={startMs} fine />,
    },
  ];
}

/** On phones a trace has two lines. */
export const NARROW_COLUMNS: readonly Column<TraceSummary>[] = [
  {
    id: "name",
    title: "Trace",
    width: "minmax(0, 1fr)",
    cell: (trace) => (
      <span class="two-lines">
        <TraceName trace={trace} />
        <span class="two-lines-more quiet">
          {trace.httpStatus !== null && <HttpStatus status={trace.httpStatus} />}
          <RanOn trace={trace} />
          <span class="num">{counted(trace.spans, "span")}</span>
        </span>
      </span>
    ),
  },
  {
    id: "duration",
    title: "Duration",
    width: "84px",
    align: "end",
    cell: (trace) => (
      <span class="two-lines end">
        <span class="num">{durationText(trace)}</span>
        <span class="quiet">
          <Time ms={trace.startMs} />
        </span>
      </span>
    ),
  },
];

function HttpStatus({ status }: { status: number }): VNode {
  const tone = status >= 500 ? "bad" : status >= 400 ? "warn" : "neutral";
  return <Badge tone={tone} title={`The HTTP response had the status ${status}`}>{status}</Badge>;
}

/** The worker that did the work, not the one that received it. */
function RanOn({ trace: { ranBy, worker } }: { trace: TraceSummary }): VNode {
  return <span class="cut" title={`Received by ${worker}`}>{ranBy ?? worker}</span>;
}

function durationText({ isPending, durationMs }: TraceSummary): string {
  return isPending ? "running" : formatDuration(durationMs);
}

function counted(count: number, what: string): string {
  return `${formatCount(count)} ${what}${count === 1 ? "" : "s"}`;
}

function TraceName({ trace }: { trace: TraceSummary }): VNode {
  const { isPending, errors } = trace;
  return (
    <span class="trace-name">
      {isPending
        ? <Dot tone="info" label="Running" pulse />
        : <Dot tone={errors > 0 ? "bad" : "ok"} label={errors > 0 ? "Failed" : "Succeeded"} />}
      <span class="cut">{trace.name}</span>
      {trace.errorCode !== null && <Badge tone="bad">{trace.errorCode}</Badge>}
      {trace.errorCode === null && errors > 0 && <Badge tone="bad">{`${errors} failed`}</Badge>}
    </span>
  );
}

function DurationBar({ trace, slowestMs }: { trace: TraceSummary; slowestMs: number }): VNode {
  const { durationMs, afterMs, errors, isPending } = trace;
  // The square root keeps short bars distinguishable beside a long one.
  const part = slowestMs > 0 ? Math.sqrt(durationMs / slowestMs) : 0;
  return (
    <span class="duration-bar">
      <i class={errors > 0 ? "bad" : ""} style={{ width: `${Math.round(part * 100)}%` }} />
      {!isPending && afterMs >= AFTER_MS_MIN && (
        <span
          class="duration-after num"
          title="It went on for this long in calls that it did not wait for"
        >
          +{formatDuration(afterMs)}
        </span>
      )}
      <span class="num">{durationText(trace)}</span>
    </span>
  );
}
