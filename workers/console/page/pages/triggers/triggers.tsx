/**
 * The Triggers page: all triggers by type, and the detail view of one.
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
  CopyButton,
  Detail,
  Empty,
  Failed,
  formatCount,
  type Found,
  Icon,
  JsonView,
  Link,
  link,
  Page,
  type PageProps,
  Pairs,
  Search,
  Select,
  Skeleton,
  Split,
  Table,
  Tabs,
  useQuery,
  useQueryMember,
  useShell,
  useTypedMember,
} from "../../kit/mod.ts";
import { routeOf } from "../functions/http_request.ts";
import {
  EngineOwnToggle,
  functionAddress,
  InactiveBadge,
  triggerLabel,
  useEngineOwn,
} from "../references.tsx";
import { HttpTester } from "./http_tester.tsx";
import { Schedule } from "./schedule.tsx";
import {
  socketPathOf,
  type SocketRouteItem,
  type TriggerItem,
  type TriggerRow,
  triggerRows,
  type TriggerTypeItem,
  withConnections,
} from "./trigger_rows.ts";

const TABS = [{ id: "try", title: "Try it" }, { id: "about", title: "About" }];

const ON: readonly WatchedTrigger[] = [
  { type: "engine::triggers-available" },
  { type: "engine::functions-available" },
  { type: "engine::workers-available" },
];

function query(include_internal: boolean): WatchedQuery {
  return {
    function_id: "engine::registered-triggers::list",
    payload: { include_internal },
    items: "registered_triggers",
    key: ["id"],
  };
}

const TYPES: WatchedQuery = {
  function_id: "engine::triggers::list",
  payload: { include_internal: true },
  items: "triggers",
  key: ["namespace", "id"],
};

const SOCKETS: WatchedQuery = {
  function_id: "websocket::routes",
  items: "routes",
  key: ["api_path"],
};

/** Connections come and go without an event. */
const SOCKETS_ON: readonly WatchedTrigger[] = [
  { type: "engine::triggers-available" },
  { type: "engine::metrics-sampled", config: { interval_ms: 2_000 } },
];

/** `/triggers`, `/triggers/<id>`. */
export const triggersPage: ConsolePage = {
  path: "/triggers",
  title: "Triggers",
  icon: "triggers",
  group: "build",
  key: "t",
  view: Triggers,
  finders: [{ kind: "Trigger", query: query(false), on: ON, find: findTrigger }],
};

function Triggers({ rest: [id] }: PageProps): VNode {
  const { router } = useShell();
  const [typed, type, search] = useTypedMember("text");
  const [all] = useEngineOwn();
  const found = useQuery<TriggerItem>(query(all), ON);
  const types = useQuery<TriggerTypeItem>(TYPES, ON);
  const items = useConnections(found.items);
  const listed = useRows(items, types.items, search);
  // With types of the engine alone, the empty state is more useful.
  const isFresh = found.items.length === 0 && search === "" &&
    types.items.every(({ worker_name }) => worker_name.startsWith("engine"));
  const open = items.find((item) => item.id === id);
  const go = (...place: string[]) => {
    router.go(link("/triggers", ...place, Object.fromEntries(router.route.value.query)));
  };
  return (
    <Page
      title="Triggers"
      fill
      count={found.status === "ready" ? formatCount(listed.count) : undefined}
      filters={<Filters items={found.items} types={types.items} typed={typed} type={type} />}
    >
      <Split
        detail={id !== undefined && found.status === "ready" && (
          <TriggerDetail
            key={id}
            id={id}
            item={open}
            onClose={() => go()}
          />
        )}
      >
        {found.status === "failed"
          ? <Failed what="The triggers cannot be listed" error={found.error} retry={found.retry} />
          : found.status === "loading"
          ? <Skeleton rows={10} />
          : (
            <Table<TriggerRow>
              label="Triggers"
              columns={COLUMNS}
              items={isFresh ? [] : listed.rows}
              keyOf={({ key }) => key}
              open={id === undefined ? null : `trigger/${id}`}
              onOpen={(row) => row.kind === "type" ? listed.toggle(row.id) : go(row.item.id)}
              rowClass={(row) => row.kind === "type" ? "group" : ""}
              empty={<NoTriggers searched={found.items.length > 0} />}
            />
          )}
      </Split>
    </Page>
  );
}

function Filters(
  { items, types, typed, type }: {
    items: readonly TriggerItem[];
    types: readonly TriggerTypeItem[];
    typed: string;
    type: (text: string) => void;
  },
): VNode {
  const [kind, setKind] = useQueryMember("type");
  const [all] = useEngineOwn();
  const kinds = useMemo(() => kindsOf(types, items, all), [types, items, all]);
  return (
    <>
      <Search label="Search triggers" value={typed} onChange={type} />
      <Select quiet label="Type" value={kind} choices={kinds} onChange={setKind} />
      <EngineOwnToggle />
    </>
  );
}

/** Asks for connections where there may be some. */
function useConnections(items: readonly TriggerItem[]): readonly TriggerItem[] {
  const hasSockets = items.some((item) => socketPathOf(item) !== undefined);
  const routes = useQuery<SocketRouteItem>(hasSockets ? SOCKETS : null, SOCKETS_ON);
  return useMemo(() => withConnections(items, routes.items), [items, routes.items]);
}

function useRows(
  items: readonly TriggerItem[],
  types: readonly TriggerTypeItem[],
  search: string,
): { rows: readonly TriggerRow[]; count: number; toggle: (type: string) => void } {
  const [kind] = useQueryMember("type");
  const [all] = useEngineOwn();
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const shown = useMemo(
    () => triggerRows(items, types, { search, type: kind, closed, own: all }),
    [items, types, search, kind, closed, all],
  );
  const toggle = (type: string) => {
    const next = new Set(closed);
    if (!next.delete(type)) next.add(type);
    setClosed(next);
  };
  return { ...shown, toggle };
}

const COLUMNS: readonly Column<TriggerRow>[] = [
  {
    id: "trigger",
    title: "Trigger",
    width: "minmax(200px, 2fr)",
    cell: (row) =>
      row.kind === "type" ? <TypeHead row={row} /> : (
        <span class="row-flex">
          <InactiveBadge status={row.item.status} reason={row.item.reason} />
          <What item={row.item} />
        </span>
      ),
  },
  {
    id: "function",
    title: "Runs",
    width: "minmax(140px, 1.5fr)",
    cell: (row) => row.kind === "type" ? null : <code>{row.item.function_id}</code>,
  },
  {
    id: "worker",
    title: "Asked for by",
    width: "minmax(90px, 1fr)",
    hide: "phone",
    cell: (row) => row.kind === "type" ? null : askedBy(row.item),
  },
];

function TypeHead({ row }: { row: Extract<TriggerRow, { kind: "type" }> }): VNode {
  return (
    <span class="fn-group">
      <Icon name={row.isClosed && row.count > 0 ? "right" : "down"} size={12} />
      <b>{row.id}</b>
      <span class="count">{row.count}</span>
      {row.type === null
        ? <Badge tone="warn" title="These triggers wait for it">no worker provides this type</Badge>
        : <span class="fn-about">{row.type.description}</span>}
    </span>
  );
}

function What({ item }: { item: TriggerItem }): VNode {
  const route = item.trigger_type === "http" ? routeOf(item.config) : undefined;
  if (route !== undefined) {
    return (
      <span class="fn-name">
        <b class={`method ${route.method.toLowerCase()}`}>{route.method}</b>
        <code>{route.path}</code>
      </span>
    );
  }
  const { trigger_type, config, config_summary, connections } = item;
  const path = socketPathOf(item);
  if (path !== undefined) {
    return (
      <span class="fn-name">
        <b class="method">WS</b>
        <code>{path}</code>
        {connections !== undefined && (
          <span class="fn-about">{formatCount(connections)} connected</span>
        )}
      </span>
    );
  }
  return <code>{triggerLabel(trigger_type, config, config_summary)}</code>;
}

function NoTriggers({ searched }: { searched: boolean }): VNode {
  if (searched) {
    return <Empty icon="search" title="No trigger fits">Change the search or the type.</Empty>;
  }
  return (
    <Empty icon="triggers" title="No triggers yet">
      <p>A worker asks for one, such as a route over HTTP:</p>
      <p>
        <code class="code">
          {'worker.registerTrigger({ type: "http", function_id, config: { api_path: "/hi" } })'}
        </code>
      </p>
      <p>
        What functions there are is on <Link to="/functions">Functions</Link>.
      </p>
    </Empty>
  );
}

/** Provided types, and types that triggers wait for. */
function kindsOf(
  types: readonly TriggerTypeItem[],
  items: readonly TriggerItem[],
  own: boolean,
): { value: string; label: string }[] {
  const provided = types.map(({ id }) => id).filter((id) => own || !id.startsWith("engine::"));
  const ids = [...new Set([...provided, ...items.map(({ trigger_type }) => trigger_type)])].sort();
  return [{ value: "", label: "Every type" }, ...ids.map((id) => ({ value: id, label: id }))];
}

function findTrigger(item: Json): Found {
  const trigger = item as unknown as TriggerItem;
  const { trigger_type, config, config_summary, function_id, id } = trigger;
  const text = triggerLabel(trigger_type, config, config_summary);
  return { text, hint: `${trigger_type} · ${function_id}`, to: link("/triggers", id) };
}

/** The result of `engine::registered-triggers::info`, as far as it is used. */
interface TriggerInfo {
  readonly metadata?: Json;
  readonly trigger: {
    readonly description: string;
    readonly worker_name: string;
    readonly configuration_schema: Json;
    readonly request_schema: Json;
  } | null;
  readonly function: { readonly namespace: string; readonly description?: string } | null;
}

/** The detail view of a trigger; `item` is `undefined` when it does not exist. */
function TriggerDetail(
  { id, item, onClose }: { id: string; item: TriggerItem | undefined; onClose: () => void },
): VNode {
  const [tab, setTab] = useQueryMember("tab", "try");
  if (item === undefined) {
    return (
      <Detail label="Trigger" title="Trigger" onClose={onClose}>
        <Empty icon="triggers" title="There is no such trigger now">
          <p>
            Its worker may have left. It has the id <code class="code">{id}</code>.
          </p>
        </Empty>
      </Detail>
    );
  }
  const { trigger_type, config, config_summary } = item;
  const name = triggerLabel(trigger_type, config, config_summary);
  const route = trigger_type === "http" ? routeOf(config) : undefined;
  return (
    <Detail
      wide
      label={`Trigger ${name}`}
      title={<code>{name}</code>}
      actions={<CopyButton text={() => id} label="Copy the id" />}
      onClose={onClose}
    >
      {route === undefined
        ? <About item={item} />
        : (
          <Tabs label="About the trigger" tabs={TABS} value={tab} onChange={setTab}>
            {tab === "about" ? <About item={item} /> : <HttpTester key={id} route={route} />}
          </Tabs>
        )}
    </Detail>
  );
}

/** The worker that registered it, or the engine where one did. */
function askedBy({ worker_name, engine }: TriggerItem): string {
  return engine === undefined ? worker_name : `engine ${engine}`;
}

function About({ item }: { item: TriggerItem }): VNode {
  const { id, trigger_type, function_id, worker_name, config } = item;
  const { value } = useQuery<TriggerInfo & Json>(
    { function_id: "engine::registered-triggers::info", payload: { id } },
    [{ type: "engine::triggers-available" }, { type: "engine::functions-available" }],
  );
  const namespace = value?.function?.namespace ?? DEFAULT_NAMESPACE;
  return (
    <div class="stack-4">
      {item.reason !== undefined && (
        <p class="notice warn">
          It does not fire: {item.reason}
          {item.status === "parked" && ". It starts by itself when a worker provides its type."}
        </p>
      )}
      {value !== null && value.function === null && (
        <p class="notice warn">
          No worker offers the function <code class="code">{function_id}</code>{" "}
          now, so firings fail until a worker does.
        </p>
      )}
      <Pairs
        pairs={[
          ["Type", <Badge key="">{trigger_type}</Badge>],
          ["Status", item.status],
          ["Runs", <Link key="" to={functionAddress(function_id, namespace)}>{function_id}</Link>],
          [
            "Asked for by",
            item.engine === undefined
              ? <Link key="" to={link("/workers", worker_name)}>{worker_name}</Link>
              : <Link key="" to={link("/cluster")}>{askedBy(item)}</Link>,
          ],
          ["Provided by", value?.trigger?.worker_name],
          ["Connections", item.connections === undefined ? null : formatCount(item.connections)],
          ["Id", <code key="">{id}</code>],
        ]}
      />
      <Schedule item={item} />
      <h3>Configuration</h3>
      <JsonView value={config} label="Configuration" depth={3} />
      {value?.metadata !== undefined && (
        <>
          <h3>Metadata, handed to the function</h3>
          <JsonView value={value.metadata} label="Metadata" />
        </>
      )}
      {value?.trigger && value.trigger.request_schema !== null && (
        <>
          <h3>What the function gets</h3>
          <JsonView value={value.trigger.request_schema} label="Schema of the payload" depth={2} />
        </>
      )}
      {value?.trigger && value.trigger.configuration_schema !== null && (
        <>
          <h3>What the type can be configured with</h3>
          <JsonView
            value={value.trigger.configuration_schema}
            label="Schema of the configuration"
            depth={2}
          />
        </>
      )}
    </div>
  );
}
