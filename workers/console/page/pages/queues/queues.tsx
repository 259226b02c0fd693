/**
 * The Queues page: what the queues hold and do, and the detail view of one queue.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import {
  Badge,
  type Column,
  type ConsolePage,
  Empty,
  Failed,
  formatCount,
  formatRate,
  formatSpan,
  link,
  NONE,
  Page,
  type PageProps,
  Search,
  Skeleton,
  Sparkline,
  Split,
  Table,
  useShell,
  useTypedMember,
} from "../../kit/mod.ts";
import { AbsentWorker } from "../absent_worker.tsx";
import { figure } from "../references.tsx";
import { QueueDetail } from "./queue_detail.tsx";
import {
  matchesSearch,
  type QueueRow,
  type QueueSamples,
  type QueuesState,
  titleOf,
  useQueues,
} from "./queue_rows.ts";

/** `/queues`, `/queues/<queue>`. */
export const queuesPage: ConsolePage = {
  path: "/queues",
  title: "Queues",
  icon: "queues",
  group: "data",
  key: "q",
  view: Queues,
};

function Queues({ rest: [named] }: PageProps): VNode {
  const { router } = useShell();
  const state = useQueues();
  const [typed, type, search] = useTypedMember("text");
  const { rows, status } = state;
  const shown = useMemo(() => rows.filter((row) => matchesSearch(row, search)), [rows, search]);
  const go = (...place: string[]) => {
    router.go(link("/queues", ...place, search === "" ? {} : { text: search }));
  };
  const open = rows.find(({ name }) => name === named);
  const detail = open && (
    <QueueDetail
      key={open.name}
      row={open}
      state={state}
      onClose={() => go()}
    />
  );
  return (
    <Page
      fill
      title="Queues"
      count={status === "ready" ? countOf(rows, shown) : undefined}
      filters={<Search label="Search queues" value={typed} onChange={type} />}
    >
      <Split detail={status !== "absent" && detail}>
        {status === "loading"
          ? <Skeleton rows={6} />
          : <List state={state} shown={shown} open={named ?? null} onOpen={(name) => go(name)} />}
      </Split>
    </Page>
  );
}

function countOf(rows: readonly QueueRow[], shown: readonly QueueRow[]): string {
  return shown.length === rows.length ? `${rows.length}` : `${shown.length} of ${rows.length}`;
}

function List(
  { state, shown, open, onOpen }: {
    state: QueuesState;
    shown: readonly QueueRow[];
    open: string | null;
    onOpen: (name: string) => void;
  },
): VNode {
  const { status, rows, error, refresh, samples, version } = state;
  const columns = useMemo(() => columnsOf(samples), [samples, version]);
  if (status === "absent") return <NoQueues />;
  if (status === "failed" && rows.length === 0) {
    return <Failed what="The queues cannot be listed" error={error} retry={refresh} />;
  }
  return (
    <Table
      label="Queues"
      kind="figures"
      columns={columns}
      items={shown}
      keyOf={({ name }) => name}
      open={open}
      onOpen={({ name }) => onOpen(name)}
      empty={<Empty icon="filter" title="No queue fits">Names and topics were searched.</Empty>}
    />
  );
}

function NoQueues(): VNode {
  return (
    <AbsentWorker
      name="engine-queue"
      icon="queues"
      does="It keeps calls on disk and makes them later"
      shows="Its queues show up here by themselves"
    />
  );
}

function columnsOf({ window }: QueueSamples): readonly Column<QueueRow>[] {
  const count = (id: "waiting" | "running" | "delayed" | "dead", title: string) => ({
    id,
    title,
    width: "76px",
    align: "end" as const,
    sort: (row: QueueRow) => row[id],
    cell: (row: QueueRow) =>
      id === "dead" && row.dead > 0
        ? <Badge tone="bad">{formatCount(row.dead)}</Badge>
        : figure(formatCount(row[id])),
    ...id === "delayed" && { hide: "tablet" as const },
    ...id === "running" && { hide: "phone" as const },
  });
  const rate = (field: "in_per_s" | "done_per_s" | "failed_per_s", title: string) => ({
    id: field,
    title,
    width: "80px",
    align: "end" as const,
    hide: "tablet" as const,
    sort: ({ name }: QueueRow) => window.latest(name, field) ?? 0,
    cell: ({ name }: QueueRow) => figure(formatRate(window.latest(name, field))),
  });
  return [
    {
      id: "name",
      title: "Queue",
      width: "minmax(110px, 2fr)",
      sort: titleOf,
      cell: (row) => <Name row={row} />,
    },
    count("waiting", "Waiting"),
    count("running", "Running"),
    count("delayed", "Delayed"),
    count("dead", "Dead"),
    rate("in_per_s", "In"),
    rate("done_per_s", "Out"),
    rate("failed_per_s", "Failed"),
    {
      id: "depth",
      title: "Depth",
      width: "112px",
      hide: "tablet",
      cell: ({ name }) => (
        <Sparkline
          values={window.series(name, "waiting", 120)}
          label={`Jobs that waited in ${name}`}
        />
      ),
    },
    {
      id: "oldest",
      title: "Oldest",
      width: "72px",
      align: "end",
      hide: "phone",
      sort: ({ oldest_age_ms }) => oldest_age_ms ?? -1,
      cell: ({ oldest_age_ms: age }) => figure(age === null ? NONE : formatSpan(age)),
    },
  ];
}

function Name({ row }: { row: QueueRow }): VNode {
  return (
    <span class="row-flex">
      <span class="cut mono" title={row.name}>{titleOf(row)}</span>
      {row.paused && <Badge tone="warn">paused</Badge>}
      {row.is_counting && <Badge title="Its jobs are still being counted">counting</Badge>}
    </span>
  );
}
