/**
 * The Functions page: all functions with their traffic, and the detail view of one.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { DEFAULT_NAMESPACE, type Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../../wire.ts";
import {
  Badge,
  type Column,
  type ConsolePage,
  Empty,
  Failed,
  formatCount,
  formatDuration,
  formatRate,
  Icon,
  link,
  NONE,
  Page,
  type PageProps,
  readOrder,
  Search,
  Select,
  Skeleton,
  type SortValue,
  Sparkline,
  Split,
  Table,
  useQuery,
  useQueryMember,
  useShell,
  useTypedMember,
} from "../../kit/mod.ts";
import { type EngineSamples, type SamplesState, useSamples } from "../metrics/samples.ts";
import { EngineOwnToggle, functionAddress, functionKey, useEngineOwn } from "../references.tsx";
import { FunctionDetail } from "./function_detail.tsx";
import {
  type FunctionItem,
  type FunctionOrder,
  type FunctionRow,
  functionRows,
  isInternal,
} from "./function_rows.ts";

/** Samples between two sorts of the list by traffic. */
const RERANK_SAMPLES = 3;
/** Samples in the sparkline of a row: one minute. */
const SPARK_SAMPLES = 60;

const ON: readonly WatchedTrigger[] = [
  { type: "engine::functions-available" },
  { type: "engine::workers-available" },
];
const EXAMPLE = `engine create --template typescript-worker --directory workers/hello
engine worker add ./workers/hello`;
const BY_NAME = { column: "name", descending: false } as const;

function query(include_internal: boolean): WatchedQuery {
  return {
    function_id: "engine::functions::list",
    payload: { include_internal, include_replicas: true },
    items: "functions",
    key: ["namespace", "function_id"],
  };
}

/** `/functions`, `/functions/<id>`, `/functions/<namespace>/<id>`. */
export const functionsPage: ConsolePage = {
  path: "/functions",
  title: "Functions",
  icon: "functions",
  group: "build",
  key: "f",
  view: Functions,
  finders: [{ kind: "Function", query: query(true), on: ON, find: findFunction }],
};

function Functions({ rest }: PageProps): VNode {
  const { router } = useShell();
  const function_id = rest.at(-1);
  const namespace = rest.length > 1 ? rest[0]! : DEFAULT_NAMESPACE;
  const [all] = useEngineOwn();
  const [typed, type, search] = useTypedMember("text");
  const found = useQuery<FunctionItem>(query(all), ON);
  const samples = useSamples();
  const listed = useRows(found.items, search, samples);
  const open = function_id === undefined ? null : functionKey(namespace, function_id);
  const close = () => router.go(link("/functions", Object.fromEntries(router.route.value.query)));
  return (
    <Page
      title="Functions"
      fill
      count={found.status === "ready" ? countText(listed.count, found.items.length) : undefined}
      filters={<Filters items={found.items} typed={typed} type={type} />}
    >
      <Split
        detail={function_id !== undefined && (
          <FunctionDetail
            key={open}
            function_id={function_id}
            namespace={namespace}
            samples={samples}
            onClose={close}
          />
        )}
      >
        {found.status === "failed"
          ? <Failed what="The functions cannot be listed" error={found.error} retry={found.retry} />
          : found.status === "loading"
          ? <Skeleton rows={12} />
          : <List items={found.items} listed={listed} samples={samples.samples} open={open} />}
      </Split>
    </Page>
  );
}

function Filters(
  { items, typed, type }: {
    items: readonly FunctionItem[];
    typed: string;
    type: (text: string) => void;
  },
): VNode {
  const [worker, setWorker] = useQueryMember("worker");
  const workers = useMemo(() => workersOf(items), [items]);
  return (
    <>
      <Search label="Search functions" value={typed} onChange={type} />
      <Select quiet label="Worker" value={worker} choices={workers} onChange={setWorker} />
      <EngineOwnToggle />
    </>
  );
}

function List(
  { items, listed, samples, open }: {
    items: readonly FunctionItem[];
    listed: Listed;
    samples: EngineSamples;
    open: string | null;
  },
): VNode {
  const { router } = useShell();
  const columns = functionColumns(samples, listed.placeOf);
  const press = (row: FunctionRow) => {
    if (row.kind === "group") return listed.toggle(row.key);
    const { function_id, namespace } = row.item;
    router.go(
      functionAddress(function_id, namespace, Object.fromEntries(router.route.value.query)),
    );
  };
  return (
    <Table<FunctionRow>
      label="Functions"
      kind="figures"
      columns={columns}
      items={listed.rows}
      keyOf={keyOf}
      order={BY_NAME}
      open={open}
      onOpen={press}
      rowClass={(row) => row.kind === "group" ? "group" : ""}
      empty={<NoFunctions total={items.length} />}
    />
  );
}

/** The rows of the list. */
interface Listed {
  readonly rows: readonly FunctionRow[];
  /** Functions that match. */
  readonly count: number;
  /** Expands or collapses a group. */
  readonly toggle: (group: string) => void;
  readonly placeOf: (row: FunctionRow) => number;
}

function useRows(
  items: readonly FunctionItem[],
  search: string,
  { samples, version }: SamplesState,
): Listed {
  const [worker] = useQueryMember("worker");
  const [sort] = useQueryMember("sort");
  const { column, descending } = readOrder(sort, BY_NAME);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const isLive = ["calls", "errors", "p50", "p99"].includes(column);
  // Rows that change places every second are hard to click.
  const turn = isLive ? Math.floor(version / RERANK_SAMPLES) : 0;
  const shown = useMemo(() =>
    functionRows(items, {
      search,
      worker,
      order: column as FunctionOrder,
      descending,
      closed,
    }, (key) => samples.traffic(key)), [items, search, worker, column, descending, closed, turn]);
  // The rows are sorted and grouped already; the table sorts them by this order.
  const places = useMemo(() => new Map(shown.rows.map((row, i) => [row, i])), [shown.rows]);
  const placeOf = (row: FunctionRow) => (places.get(row) ?? 0) * (descending ? -1 : 1);
  const toggle = (group: string) => {
    const next = new Set(closed);
    if (!next.delete(group)) next.add(group);
    setClosed(next);
  };
  return { ...shown, toggle, placeOf };
}

function NoFunctions({ total }: { total: number }): VNode {
  if (total > 0) {
    return <Empty icon="search" title="No function fits">Change the search or the worker.</Empty>;
  }
  return (
    <Empty icon="functions" title="No functions yet">
      <p>
        A worker that registers a function shows up here at once. Make one:
      </p>
      <pre>{EXAMPLE}</pre>
    </Empty>
  );
}

function keyOf({ key, kind }: FunctionRow): string {
  return kind === "group" ? `group ${key}` : key;
}

function countText(count: number, total: number): string {
  return count === total ? formatCount(total) : `${formatCount(count)} of ${formatCount(total)}`;
}

function workersOf(items: readonly FunctionItem[]): { value: string; label: string }[] {
  const names = [...new Set(items.map(({ worker_name }) => worker_name))].sort();
  return [
    { value: "", label: "Every worker" },
    ...names.map((name) => ({ value: name, label: name })),
  ];
}

function findFunction(item: Json): { text: string; hint: string; to: string } | null {
  const found = item as unknown as FunctionItem;
  // Internal functions are found on the page only.
  if (isInternal(found)) return null;
  const { function_id, namespace, worker_name } = found;
  return { text: function_id, hint: worker_name, to: functionAddress(function_id, namespace) };
}

/** The columns, with the newest samples. */
function functionColumns(
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
    { ...column("name", "Function", "minmax(120px, 3fr)", () => null), cell: NameCell },
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
      cell: (row) => row.kind === "group" ? null : <TrafficLines samples={samples} row={row} />,
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

function NameCell(row: FunctionRow): VNode {
  if (row.kind === "group") {
    return (
      <span class="fn-group">
        <Icon name={row.isClosed ? "right" : "down"} size={12} />
        <b>{row.title}</b>
        <span class="count">{row.count}</span>
      </span>
    );
  }
  const { function_id, description, contenders, served_by, engine } = row.item;
  return (
    <span class="fn-name" title={description}>
      <code>{function_id}</code>
      {contenders !== undefined && (
        <Badge tone="warn" title={`Workers of different names offer it: ${contenders.join(", ")}`}>
          contended
        </Badge>
      )}
      {served_by !== undefined && (
        <Badge tone="info" title={`The engine makes a request to ${served_by}`}>URL</Badge>
      )}
      {engine !== undefined && (
        <Badge tone="neutral" title={`Workers of engine ${engine} offer it`}>at {engine}</Badge>
      )}
      {description && <span class="fn-about">{description}</span>}
    </span>
  );
}

function Rate({ value, bad }: { value: number; bad?: boolean }): VNode {
  const tone = value === 0 ? "faint" : bad ? "bad-text" : "";
  return <span class={`num ${tone}`}>{formatRate(value)}</span>;
}

/** Calls, and errors on the same scale. */
function TrafficLines(
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
