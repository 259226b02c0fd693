/**
 * The Configuration page: the entries of `engine-configuration`, and the detail view of one.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../../wire.ts";
import {
  Ago,
  Badge,
  type Column,
  type ConsolePage,
  Empty,
  Failed,
  Icon,
  isObject,
  Link,
  link,
  NONE,
  Page,
  type PageProps,
  type Query,
  Search,
  Skeleton,
  Split,
  Table,
  useOfferedQuery,
  useShell,
  useTypedMember,
} from "../../kit/mod.ts";
import { AbsentWorker } from "../absent_worker.tsx";
import { figure } from "../references.tsx";
import { ConfigurationEntry } from "./configuration_entry.tsx";
import { type ConfigurationRow, matchesSearch } from "./configuration_rows.ts";

/** All configurations. */
export const CONFIGURATIONS: WatchedQuery = {
  function_id: "configuration::list",
  items: "configurations",
  key: ["id"],
};
/** What changes them. */
export const CONFIGURATION_CHANGES: readonly WatchedTrigger[] = [{ type: "configuration" }];

/** `/configuration`, `/configuration/<id>`. */
export const configurationPage: ConsolePage = {
  path: "/configuration",
  title: "Configuration",
  icon: "configuration",
  group: "data",
  key: "c",
  view: Configuration,
  finders: [{
    kind: "Configuration",
    query: CONFIGURATIONS,
    on: CONFIGURATION_CHANGES,
    find: (entry: Json) => {
      if (!isObject(entry) || typeof entry["id"] !== "string") return null;
      const hint = typeof entry["name"] === "string" ? { hint: entry["name"] } : {};
      return { text: entry["id"], ...hint, to: link("/configuration", entry["id"]) };
    },
  }],
};

function Configuration({ rest: [named] }: PageProps): VNode {
  const { router } = useShell();
  const entries = useOfferedQuery<ConfigurationRow>(CONFIGURATIONS, CONFIGURATION_CHANGES);
  const [typed, type, search] = useTypedMember("text");
  const { items, status, isAbsent } = entries;
  const shown = useMemo(() => items.filter((row) => matchesSearch(row, search)), [items, search]);
  const go = (...place: string[]) => {
    router.go(link("/configuration", ...place, search === "" ? {} : { text: search }));
  };
  const open = items.find(({ id }) => id === named);
  const detail = !isAbsent && open && (
    <ConfigurationEntry
      key={open.id}
      row={open}
      onClose={() => go()}
    />
  );
  const count = shown.length === items.length
    ? `${items.length}`
    : `${shown.length} of ${items.length}`;
  return (
    <Page
      fill
      title="Configuration"
      count={status === "ready" ? count : undefined}
      filters={<Search label="Search configurations" value={typed} onChange={type} />}
    >
      <Split detail={detail}>
        {isAbsent ? <NoProvider /> : status === "loading" ? <Skeleton rows={6} /> : (
          <List
            entries={entries}
            shown={shown}
            open={named ?? null}
            onOpen={(id) => go(id)}
          />
        )}
      </Split>
    </Page>
  );
}

function List(
  { entries, shown, open, onOpen }: {
    entries: Query<ConfigurationRow>;
    shown: readonly ConfigurationRow[];
    open: string | null;
    onOpen: (id: string) => void;
  },
): VNode {
  const { items, status, error, retry } = entries;
  if (status === "failed" && items.length === 0) {
    return <Failed what="The configurations cannot be listed" error={error} retry={retry} />;
  }
  return (
    <Table
      label="Configurations"
      columns={COLUMNS}
      items={shown}
      keyOf={({ id }) => id}
      open={open}
      onOpen={({ id }) => onOpen(id)}
      empty={items.length === 0
        ? <NoEntries />
        : (
          <Empty icon="filter" title="No configuration fits">
            Ids, names and descriptions were searched.
          </Empty>
        )}
    />
  );
}

function NoProvider(): VNode {
  return (
    <AbsentWorker
      name="engine-configuration"
      icon="configuration"
      does="It keeps values with a schema, which running workers follow"
      shows="What workers register shows up here by itself"
    >
      <p>
        What the engine itself was started with is on <Link to="/settings">Settings</Link>.
      </p>
    </AbsentWorker>
  );
}

function NoEntries(): VNode {
  return (
    <Empty icon="configuration" title="No configuration yet">
      <p>
        Workers register what they need with{" "}
        <Link to={link("/functions", "configuration::register")}>configuration::register</Link>.
      </p>
    </Empty>
  );
}

const COLUMNS: readonly Column<ConfigurationRow>[] = [
  {
    id: "id",
    title: "Id",
    width: "minmax(110px, 1fr)",
    sort: ({ id }) => id,
    cell: ({ id, name }) => (
      <span class="row-flex">
        <code class="cut" title={id}>{id}</code>
        {name !== id && <span class="cut quiet" title={name}>{name}</span>}
      </span>
    ),
  },
  {
    id: "description",
    title: "Description",
    width: "minmax(110px, 2fr)",
    hide: "phone",
    cell: ({ description }) => (
      <span class="cut" title={description ?? undefined}>{description ?? NONE}</span>
    ),
  },
  {
    id: "marks",
    title: "State",
    width: "104px",
    sort: (row) => row.problem !== null ? 0 : row.has_value ? 2 : 1,
    cell: (row) => <State row={row} />,
  },
  {
    id: "schema",
    title: "Schema",
    width: "72px",
    hide: "tablet",
    sort: ({ schema }) => Number(schema !== true),
    cell: ({ schema, has_secrets }) => (
      <span class="quiet">{schema === true ? "no" : has_secrets ? "secrets" : "yes"}</span>
    ),
  },
  {
    id: "version",
    title: "Version",
    width: "72px",
    align: "end",
    hide: "tablet",
    sort: ({ version }) => version,
    cell: ({ version }) => figure(`${version}`),
  },
  {
    id: "changed",
    title: "Changed",
    width: "92px",
    align: "end",
    sort: ({ updated_at_ms }) => updated_at_ms,
    cell: ({ updated_at_ms }) => <Ago ms={updated_at_ms} />,
  },
];

/** Whether readers get a value. */
function State({ row: { has_value, problem } }: { row: ConfigurationRow }): VNode {
  if (problem !== null) {
    return (
      <Badge tone="bad" title={problem}>
        <Icon name="warning" size={12} /> problem
      </Badge>
    );
  }
  return has_value ? <span class="quiet">set</span> : <Badge tone="warn">no value</Badge>;
}
