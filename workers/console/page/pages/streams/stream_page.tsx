/**
 * One stream: its groups, the items of a group as they change, and what is sent to it.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedTrigger } from "../../../wire.ts";
import {
  Button,
  Empty,
  Failed,
  formatCount,
  JsonView,
  Link,
  link,
  Page,
  type Query,
  Search,
  Segments,
  Select,
  Skeleton,
  Split,
  useIsNarrow,
  useLive,
  useQuery,
  useQueryMember,
  useShell,
  useTypedMember,
} from "../../kit/mod.ts";
import { NameList, ReadOnlyNotice } from "../references.tsx";
import { type EntriesState, searchEntries, type ShownEntry, useEntries } from "../state/entries.ts";
import { EntriesTable, entryColumns } from "../state/entries_table.tsx";
import { ItemEditor, SendEvent } from "./item_editor.tsx";
import { StreamEvents, StreamItem } from "./stream_item.tsx";
import { type Group, itemSource, type StreamEvent } from "./stream_rows.ts";

type Items = EntriesState<StreamEvent>;

const COLUMNS = entryColumns("Item", "Data");

/** The page of a stream; `group` and `item` are those in the address. */
export function StreamPage(
  { stream, group: named, item }: {
    stream: string;
    group: string | undefined;
    item: string | undefined;
  },
): VNode {
  const { router } = useShell();
  const on = streamOn(stream);
  const groups = useQuery<readonly string[]>(
    { function_id: "stream::list_groups", payload: { stream_name: stream } },
    on,
  );
  const listed = groups.value ?? [];
  const group = named ?? listed[0] ?? "";
  const [typed, type, search] = useTypedMember("text");
  const items = useEntries(
    group === "" ? null : itemSource({ stream_name: stream, group_id: group }),
    search !== "",
  );
  const shown = useMemo(
    () => searchEntries(items.list.entries, search),
    [items.list.entries, search],
  );
  // The address names the shown group, so that it can be shared.
  useEffect(() => {
    if (named !== undefined || group === "") return;
    const kept = Object.fromEntries(router.route.value.query);
    router.go(link("/streams", stream, group, kept), { replace: true });
  }, [named, group]);
  const all = group === "" || listed.includes(group) ? listed : [...listed, group];
  return (
    <Page
      fill
      title={
        <>
          <Link to="/streams">Streams</Link> / {stream}
        </>
      }
      count={group === "" ? undefined : countOf(items, shown.length)}
      actions={<Actions />}
      filters={
        <Filters
          stream={stream}
          group={group}
          groups={all}
          typed={typed}
          type={type}
          items={items}
        />
      }
    >
      <Groups groups={groups} all={all} stream={stream} open={group}>
        <OneGroup
          key={group}
          place={{ stream_name: stream, group_id: group }}
          item={item}
          items={items}
          shown={shown}
          searched={search !== ""}
        />
      </Groups>
    </Page>
  );
}

function streamOn(stream_name: string): readonly WatchedTrigger[] {
  return [{ type: "stream", config: { stream_name } }];
}

/** What operators may do. */
function Actions(): VNode | null {
  const [, setMake] = useQueryMember("new");
  const isNarrow = useIsNarrow();
  if (!useLive().status.value.operator) return null;
  const named = (name: string) => isNarrow ? { label: name } : { children: name };
  return (
    <>
      <Button icon="send" onPress={() => setMake("event")} {...named("Send an event")} />
      <Button icon="plus" onPress={() => setMake("item")} {...named("New item")} />
    </>
  );
}

function Filters(
  { stream, group, groups, typed, type, items }: {
    stream: string;
    group: string;
    groups: readonly string[];
    typed: string;
    type: (text: string) => void;
    items: Items;
  },
): VNode {
  const go = useGo(stream);
  const [view, setView] = useQueryMember("view");
  const views = [
    { value: "", label: "Items" },
    { value: "events", label: `Events ${items.changes.length || ""}`.trim() },
  ];
  return (
    <>
      <div class="state-scope-select">
        <Select
          quiet
          label="Group"
          value={group}
          choices={groups.map((name) => ({ value: name, label: name }))}
          onChange={(name) => go(name)}
        />
      </div>
      <Search label="Search ids and data" value={typed} onChange={type} />
      <Segments label="What is shown" value={view} choices={views} onChange={setView} />
      <ReadOnlyNotice wanted="change items and send events" />
    </>
  );
}

/** Goes to a group or an item, keeping the filters. */
function useGo(stream: string): (...place: string[]) => void {
  const { router } = useShell();
  return (...place) => {
    const { new: _, ...kept } = Object.fromEntries(router.route.value.query);
    router.go(link("/streams", stream, ...place, kept));
  };
}

function Groups(
  { groups, all, stream, open, children }: {
    groups: Query<readonly string[]>;
    all: readonly string[];
    stream: string;
    open: string;
    children: VNode;
  },
): VNode {
  const { router } = useShell();
  const { view } = Object.fromEntries(router.route.value.query);
  if (groups.status === "failed" && groups.value === null && open === "") {
    return <Failed what="The groups cannot be read" error={groups.error} retry={groups.retry} />;
  }
  if (groups.status === "loading" && open === "") return <Skeleton rows={10} />;
  return (
    <div class="state-page">
      <NameList
        label="Groups"
        names={all}
        open={open}
        to={(group) => link("/streams", stream, group, { view })}
      />
      {children}
    </div>
  );
}

/** The items or events of a group, and the detail view of one. */
function OneGroup(
  { place, item, items, shown, searched }: {
    place: Group;
    item: string | undefined;
    items: Items;
    shown: readonly ShownEntry[];
    searched: boolean;
  },
): VNode {
  const { stream_name, group_id } = place;
  const go = useGo(stream_name);
  const [view] = useQueryMember("view");
  const [make, setMake] = useQueryMember("new");
  const { operator } = useLive().status.value;
  const close = () => setMake("");
  const detail = operator && make === "item"
    ? <ItemEditor place={place} id={null} onSaved={go} onClose={close} />
    : operator && make === "event"
    ? <SendEvent place={place} onClose={close} />
    : item !== undefined && (
      <StreamItem
        key={item}
        place={place}
        id={item}
        events={items.changes}
        onClose={() => go(group_id)}
      />
    );
  return (
    <Split detail={detail}>
      {group_id === ""
        ? <NoGroup />
        : view === "events"
        ? <StreamEvents events={items.changes} onItem={(id) => go(group_id, id)} />
        : items.status === "failed" && items.error?.code === "STREAM_LIST_ERROR"
        ? <KeptByWorker place={place} />
        : (
          <EntriesTable
            label="Items"
            columns={COLUMNS}
            state={items}
            shown={shown}
            open={item ?? null}
            onOpen={(id) => go(group_id, id)}
            empty={searched
              ? <Empty icon="search" title="No item fits">Ids and data were searched.</Empty>
              : (
                <Empty icon="streams" title="This group is empty">
                  Items show up as they come.
                </Empty>
              )}
          />
        )}
    </Split>
  );
}

function NoGroup(): VNode {
  return (
    <Empty icon="streams" title="This stream has no items">
      Its groups show up here as soon as one has an item.
    </Empty>
  );
}

/** A worker that keeps the items of a stream lists them without their ids. */
function KeptByWorker({ place }: { place: Group }): VNode {
  const list = useQuery<Json>({ function_id: "stream::list", payload: { ...place } }, [
    { type: "stream", config: { ...place } },
  ]);
  if (list.status === "failed") {
    return <Failed what="The items cannot be read" error={list.error} retry={list.retry} />;
  }
  if (list.status === "loading") return <Skeleton rows={8} />;
  return (
    <div class="stream-kept">
      <p class="said">
        A worker keeps these items, by the function{" "}
        <Link to={link("/functions", `stream::list(${place.stream_name})`)}>
          stream::list({place.stream_name})
        </Link>, which lists them without their ids.
      </p>
      <JsonView value={list.value} label="Items" depth={3} />
    </div>
  );
}

function countOf({ list, isCut }: Items, shown: number): string {
  const more = isCut || !list.isComplete ? "+" : "";
  const all = `${formatCount(list.entries.length)}${more}`;
  return shown === list.entries.length ? all : `${formatCount(shown)} of ${all}`;
}
