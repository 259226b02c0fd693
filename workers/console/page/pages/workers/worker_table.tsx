/**
 * The list of workers.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import {
  Badge,
  type Column,
  Dot,
  formatBytes,
  formatCount,
  formatPercent,
  Link,
  link,
  NONE,
  Since,
  Sparkline,
  Table,
} from "../../kit/mod.ts";
import type { Gauge, WorkerGauges } from "./worker_gauges.ts";
import { gaugeIds, isolationWords, toneOf, type WorkerRow } from "./worker_rows.ts";

const SPARK_SAMPLES = 60;

/** See the module. */
export function WorkerTable(
  { rows, gauges, open, onOpen, empty }: {
    rows: readonly WorkerRow[];
    gauges: WorkerGauges;
    /** Key of the row that is open. */
    open: string | null;
    onOpen: (row: WorkerRow) => void;
    empty: ComponentChildren;
  },
): VNode {
  const columns = useMemo(() => columnsFor(gauges), [gauges]);
  return (
    <Table
      label="Workers"
      columns={columns}
      items={rows}
      keyOf={({ key }) => key}
      order={{ column: "name", descending: false }}
      open={open}
      onOpen={onOpen}
      rowHeight={40}
      empty={empty}
    />
  );
}

function columnsFor(gauges: WorkerGauges): readonly Column<WorkerRow>[] {
  return [
    {
      id: "name",
      title: "Name",
      width: "minmax(150px, 1fr)",
      sort: ({ name }) => name,
      cell: (row) => <Name row={row} />,
    },
    {
      id: "state",
      title: "State",
      width: "92px",
      sort: ({ state }) => state,
      cell: (row) => <State row={row} />,
    },
    {
      id: "isolation",
      title: "Isolation",
      width: "72px",
      hide: "tablet",
      sort: isolationWords,
      cell: (row) => <span class="quiet">{isolationWords(row)}</span>,
    },
    {
      id: "runtime",
      title: "Runtime",
      width: "64px",
      hide: "tablet",
      sort: ({ runtime }) => runtime,
      cell: ({ runtime }) => <span class="cut quiet">{runtime ?? NONE}</span>,
    },
    {
      id: "version",
      title: "SDK",
      width: "56px",
      hide: "tablet",
      sort: ({ version }) => version,
      cell: ({ version }) => (
        <span class="cut quiet" title="Version of the SDK that it uses">{version ?? NONE}</span>
      ),
    },
    {
      id: "pid",
      title: "Pid",
      width: "60px",
      align: "end",
      hide: "tablet",
      sort: ({ pid }) => pid,
      cell: ({ pid }) => <span class="quiet">{pid ?? NONE}</span>,
    },
    {
      id: "up",
      title: "Up",
      width: "64px",
      align: "end",
      hide: "phone",
      sort: ({ started_at_ms }) => started_at_ms === null ? null : -started_at_ms,
      cell: ({ started_at_ms }) => started_at_ms === null ? NONE : <Since ms={started_at_ms} />,
    },
    {
      id: "functions",
      title: "Functions",
      width: "76px",
      align: "end",
      hide: "tablet",
      sort: ({ functions }) => functions,
      cell: ({ functions }) => formatCount(functions),
    },
    {
      id: "flight",
      title: "In flight",
      width: "68px",
      align: "end",
      sort: (row) => inFlight(row, gauges),
      cell: (row) => formatCount(inFlight(row, gauges)),
    },
    usage(gauges, "memory_bytes", "Memory", formatBytes, "info"),
    usage(gauges, "cpu_percent", "CPU", formatPercent, "accent"),
  ];
}

function usage(
  gauges: WorkerGauges,
  gauge: Gauge & ("memory_bytes" | "cpu_percent"),
  title: string,
  format: (value: number | null) => string,
  tone: "info" | "accent",
): Column<WorkerRow> {
  const now = (row: WorkerRow) => gauges.now(gaugeIds(row), gauge) ?? row.status?.[gauge] ?? null;
  return {
    id: gauge,
    title,
    width: "132px",
    align: "end",
    hide: "phone",
    sort: now,
    cell: (row) => {
      const value = now(row);
      if (value === null) return <span class="quiet">{NONE}</span>;
      return (
        <>
          <Sparkline
            values={gauges.history(gaugeIds(row), gauge).slice(-SPARK_SAMPLES)}
            label={`${title} of ${row.name} in the last minute`}
            tone={tone}
            width={56}
            height={20}
            {...gauge === "cpu_percent" && { max: Math.max(20, value) }}
          />
          <span class="gauge-value">{format(value)}</span>
        </>
      );
    },
  };
}

function Name({ row }: { row: WorkerRow }): VNode {
  return (
    <>
      <Dot tone={toneOf(row.state)} label={row.state} pulse={toneOf(row.state) === "accent"} />
      <Link to={link("/workers", row.key)} class="cut row-name">{row.name}</Link>
      {row.replicas > 1 && <span class="quiet">×{row.replicas}</span>}
    </>
  );
}

function State({ row }: { row: WorkerRow }): VNode {
  return (
    <Badge tone={toneOf(row.state)} {...row.reason !== null && { title: row.reason }}>
      {row.state}
    </Badge>
  );
}

function inFlight({ ids, in_flight }: WorkerRow, gauges: WorkerGauges): number {
  return gauges.now(ids, "in_flight") ?? in_flight;
}
