/**
 * What the list of functions shows of each.
 *
 * @module
 */
import type { VNode } from "preact";
import {
  type Column,
  formatDuration,
  formatRate,
  Icon,
  NONE,
  type SortValue,
  Sparkline,
} from "../../kit/mod.ts";
import type { EngineSamples } from "../metrics/engine_samples.ts";
import type { FunctionItem, FunctionRow } from "./function_rows.ts";

/** Samples in the small line of a row: a minute. */
const SPARK_SAMPLES = 60;

/** The columns; numbers are those of the samples now. */
export function functionColumns(
  samples: EngineSamples,
  placeOf: (row: FunctionRow) => SortValue,
): readonly Column<FunctionRow>[] {
  const column = (
    id: string,
    title: string,
    width: string,
    cell: (item: FunctionItem, key: string) => VNode | string | null,
    more: Partial<Column<FunctionRow>> = {},
  ): Column<FunctionRow> => ({
    id,
    title,
    width,
    sort: placeOf,
    cell: (row) => row.kind === "group" ? null : cell(row.item, row.key),
    ...more,
  });
  const traffic = (key: string) => samples.traffic(key);
  const end = { align: "end" } as const;
  return [
    { ...column("name", "Function", "minmax(120px, 3fr)", () => null), cell: Name },
    column("worker", "Worker", "minmax(90px, 1fr)", ({ worker_name }) => <>{worker_name}</>, {
      hide: "phone",
    }),
    column("replicas", "Replicas", "76px", ({ replicas }) => String(replicas ?? NONE), {
      ...end,
      hide: "tablet",
    }),
    column("calls", "Calls", "76px", (_item, key) => {
      return <Rate value={traffic(key)?.calls_per_s ?? 0} />;
    }, end),
    {
      id: "spark",
      title: "Last minute",
      width: "104px",
      hide: "phone",
      cell: (row) => row.kind === "group" ? null : <Lines samples={samples} row={row} />,
    },
    column("errors", "Errors", "76px", (_item, key) => {
      return <Rate value={traffic(key)?.errors_per_s ?? 0} bad />;
    }, { ...end, hide: "phone" }),
    column("p50", "p50", "84px", (_item, key) => formatDuration(traffic(key)?.p50_ms), {
      ...end,
      hide: "tablet",
    }),
    column("p99", "p99", "84px", (_item, key) => formatDuration(traffic(key)?.p99_ms), end),
  ];
}

function Name(row: FunctionRow): VNode {
  if (row.kind === "group") {
    return (
      <span class="fn-group">
        <Icon name={row.isClosed ? "right" : "down"} size={12} />
        <b>{row.title}</b>
        <span class="count">{row.count}</span>
      </span>
    );
  }
  const { function_id, description } = row.item;
  return (
    <span class="fn-name" title={description}>
      <code>{function_id}</code>
      {description && <span class="fn-about">{description}</span>}
    </span>
  );
}

function Rate({ value, bad }: { value: number; bad?: boolean }): VNode {
  const tone = value === 0 ? "faint" : bad ? "bad-text" : "";
  return <span class={`num ${tone}`}>{formatRate(value)}</span>;
}

/** Calls, and errors over them on the same scale. */
function Lines(
  { samples, row }: {
    samples: EngineSamples;
    row: Extract<FunctionRow, { kind: "function" }>;
  },
): VNode | null {
  const { key, item } = row;
  if (!samples.functions.has(key)) return null;
  const calls = samples.functions.series(key, "calls_per_s", SPARK_SAMPLES);
  const errors = samples.functions.series(key, "errors_per_s", SPARK_SAMPLES);
  const max = calls.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  const failed = errors.some((value) => (value ?? 0) > 0);
  return (
    <span class="fn-lines">
      <Sparkline values={calls} max={max} label={`Calls of ${item.function_id}`} />
      {failed && (
        <Sparkline
          values={errors}
          max={max}
          tone="bad"
          fill={false}
          label={`Errors of ${item.function_id}`}
        />
      )}
    </span>
  );
}
