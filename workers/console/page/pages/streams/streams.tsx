/**
 * The Streams page: all streams with what they do, and the way to the groups of one.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../../wire.ts";
import {
  Code,
  type Column,
  type ConsolePage,
  Empty,
  Failed,
  formatCount,
  formatRate,
  isObject,
  link,
  NONE,
  Page,
  type PageProps,
  type Query,
  Search,
  Skeleton,
  Sparkline,
  Stat,
  Table,
  textOf,
  useOfferedQuery,
  useShell,
  useTypedMember,
} from "../../kit/mod.ts";
import { AbsentWorker } from "../absent_worker.tsx";
import { figure } from "../references.tsx";
import { StreamPage } from "./stream_page.tsx";
import {
  ALL,
  type ListedStream,
  matchesSearch,
  rowsOf,
  type StreamRow,
  type StreamSamples,
  type StreamsState,
  useStreamStats,
} from "./stream_rows.ts";

const LISTED: WatchedQuery = { function_id: "stream::list_all", items: "stream", key: ["id"] };
/** Nothing fires for all streams, so they are listed again now and then. */
const NOW_AND_THEN: readonly WatchedTrigger[] = [
  { type: "engine::metrics-sampled", config: { interval_ms: 5_000 } },
];

/** `/streams`, `/streams/<stream>`, `/streams/<stream>/<group>`, `…/<item>`. */
export const streamsPage: ConsolePage = {
  path: "/streams",
  title: "Streams",
  icon: "streams",
  group: "data",
  key: "i",
  view: Streams,
  finders: [{
    kind: "Stream",
    query: LISTED,
    on: NOW_AND_THEN,
    find: (stream: Json) => {
      const id = isObject(stream) ? textOf(stream["id"]) : "";
      return id === "" ? null : { text: id, to: link("/streams", id) };
    },
  }],
};

function Streams({ rest: [stream, group, item] }: PageProps): VNode {
  return stream === undefined
    ? <AllStreams />
    : <StreamPage key={stream} stream={stream} group={group} item={item} />;
}

function AllStreams(): VNode {
  const { router } = useShell();
  const state = useStreamStats();
  const listed = useOfferedQuery<ListedStream>(LISTED, NOW_AND_THEN);
  const [typed, type, search] = useTypedMember("text");
  const { status, answer } = state;
  const rows = useMemo(
    () => rowsOf(listed.status === "failed" ? null : listed.items, answer),
    [listed.items, listed.status, answer],
  );
  const shown = useMemo(() => rows.filter((row) => matchesSearch(row, search)), [rows, search]);
  const count = shown.length === rows.length
    ? `${rows.length}`
    : `${shown.length} of ${rows.length}`;
  return (
    <Page
      fill
      title="Streams"
      count={status === "ready" ? count : undefined}
      filters={<Search label="Search streams" value={typed} onChange={type} />}
    >
      <div class="split-main streams">
        {status === "absent" ? <NoStreams /> : status === "loading" ? <Skeleton rows={6} /> : (
          <>
            <Numbers state={state} />
            <ListingFailed listed={listed} />
            <List
              state={state}
              shown={shown}
              searched={search !== ""}
              onOpen={(name) => router.go(link("/streams", name))}
            />
          </>
        )}
      </div>
    </Page>
  );
}

/** Streams without subscribers are missing then. */
function ListingFailed({ listed: { status, error } }: { listed: Query<ListedStream> }) {
  if (status !== "failed" || error === null) return null;
  return (
    <p class="said bad" role="alert">
      Only streams that are followed or had events lately are listed. {error.message}
    </p>
  );
}

function Numbers({ state: { answer, samples } }: { state: StreamsState }): VNode | null {
  if (answer === undefined) return null;
  const { connections, connections_max, subscriptions, closed_slow } = answer;
  const { window } = samples;
  return (
    <div class="stats">
      <Stat
        label="Subscribers"
        value={
          <span title={`${connections} connections, at most ${connections_max}`}>
            {formatCount(connections)}
          </span>
        }
      />
      <Stat label="Subscriptions" value={formatCount(subscriptions)} />
      <Stat label="Events" value={formatRate(window.latest(ALL, "events_per_s"))}>
        <Sparkline values={window.series(ALL, "events_per_s", 120)} label="Events per second" />
      </Stat>
      <Stat label="Sent to subscribers" value={formatRate(window.latest(ALL, "sent_per_s"))}>
        <Sparkline values={window.series(ALL, "sent_per_s", 120)} label="Sent per second" />
      </Stat>
      <Stat
        label="Dropped as too slow"
        value={formatCount(closed_slow)}
        {...closed_slow > 0 && { tone: "warn" as const }}
      />
    </div>
  );
}

function List(
  { state, shown, searched, onOpen }: {
    state: StreamsState;
    shown: readonly StreamRow[];
    searched: boolean;
    onOpen: (name: string) => void;
  },
): VNode {
  const { status, answer, error, refresh, samples, version } = state;
  const columns = useMemo(() => columnsOf(samples), [samples, version]);
  if (status === "failed" && answer === undefined) {
    return <Failed what="The streams cannot be listed" error={error} retry={refresh} />;
  }
  return (
    <Table
      label="Streams"
      columns={columns}
      items={shown}
      keyOf={({ name }) => name}
      onOpen={({ name }) => onOpen(name)}
      empty={searched
        ? <Empty icon="filter" title="No stream fits">Names were searched.</Empty>
        : <NoItems />}
    />
  );
}

function NoStreams(): VNode {
  return (
    <AbsentWorker
      name="engine-stream"
      icon="streams"
      does="It keeps items by stream and group, and sends every change to their subscribers"
      shows="Its streams show up here by themselves"
    />
  );
}

function NoItems(): VNode {
  return (
    <Empty icon="streams" title="No stream yet">
      <p>A stream is there as soon as it has an item, or a subscriber:</p>
      <p>
        <Code>engine stream set chat room-1 m1 '{'{"text":"hi"}'}'</Code>
      </p>
    </Empty>
  );
}

function columnsOf({ window }: StreamSamples): readonly Column<StreamRow>[] {
  return [
    {
      id: "name",
      title: "Stream",
      width: "minmax(110px, 2fr)",
      sort: ({ name }) => name,
      cell: ({ name }) => <code class="cut" title={name}>{name}</code>,
    },
    {
      id: "groups",
      title: "Groups",
      width: "84px",
      align: "end",
      sort: ({ groups }) => groups,
      cell: ({ groups }) => figure(groups === null ? NONE : formatCount(groups)),
    },
    {
      id: "subscriptions",
      title: "Subscriptions",
      width: "108px",
      align: "end",
      sort: ({ subscriptions }) => subscriptions,
      cell: ({ subscriptions }) => figure(formatCount(subscriptions)),
    },
    {
      id: "events",
      title: "Events",
      width: "84px",
      align: "end",
      hide: "phone",
      sort: ({ name }) => window.latest(name, "events_per_s") ?? 0,
      cell: ({ name }) => figure(formatRate(window.latest(name, "events_per_s"))),
    },
    {
      id: "lately",
      title: "Lately",
      width: "112px",
      hide: "tablet",
      cell: ({ name }) => (
        <Sparkline
          values={window.series(name, "events_per_s", 120)}
          label={`Events per second of ${name}`}
        />
      ),
    },
  ];
}
