/**
 * The State page: scopes, the entries of one scope, and the detail view of one entry.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import type { WatchedQuery, WatchedTrigger } from "../../../wire.ts";
import {
  Button,
  type ConsolePage,
  Empty,
  Failed,
  formatCount,
  Link,
  link,
  Page,
  type PageProps,
  Search,
  Segments,
  Select,
  Skeleton,
  Split,
  useOfferedQuery,
  useQueryMember,
  useShell,
  useTypedMember,
} from "../../kit/mod.ts";
import { AbsentWorker } from "../absent_worker.tsx";
import { NameList } from "../references.tsx";
import { StateChanges } from "./changes.tsx";
import { EntryEditor } from "./editor.tsx";
import {
  type EntriesState,
  searchEntries,
  type ShownEntry,
  stateSource,
  useEntries,
} from "./entries.ts";
import { EntriesTable, entryColumns } from "./entries_table.tsx";
import { StateEntry } from "./entry.tsx";

const SCOPES: WatchedQuery = { function_id: "state::list_groups", items: "groups" };
const ON: readonly WatchedTrigger[] = [{ type: "state" }];

/** `/state`, `/state/<scope>`, `/state/<scope>/<key>`. */
export const statePage: ConsolePage = {
  path: "/state",
  title: "State",
  icon: "state",
  group: "data",
  key: "s",
  view: State,
  finders: [{
    kind: "Scope",
    query: SCOPES,
    on: ON,
    find: (scope: Json) =>
      typeof scope === "string" ? { text: scope, to: link("/state", scope) } : null,
  }],
};

function State({ rest: [named, key] }: PageProps): VNode {
  const { router } = useShell();
  const scopes = useOfferedQuery<string>(SCOPES, ON);
  const [make, setMake] = useQueryMember("new");
  const [typed, type, search] = useTypedMember("text");
  const scope = named ?? scopes.items[0] ?? "";
  const entries = useEntries(scope === "" ? null : stateSource(scope), search !== "");
  const shown = useMemo(
    () => searchEntries(entries.list.entries, search),
    [entries.list.entries, search],
  );
  // The address names the shown scope, so that it can be shared.
  useEffect(() => {
    if (named !== undefined || scope === "" || make !== "") return;
    const kept = Object.fromEntries(router.route.value.query);
    router.go(link("/state", scope, kept), { replace: true });
  }, [named, scope, make]);
  const isKnown = scope === "" || scopes.items.includes(scope);
  const all = isKnown ? scopes.items : [...scopes.items, scope];
  return (
    <Page
      title="State"
      fill
      count={scope === "" ? undefined : countOf(entries, shown.length)}
      actions={<Button icon="plus" onPress={() => setMake("entry")}>New entry</Button>}
      filters={
        <Filters
          scope={scope}
          scopes={all}
          typed={typed}
          type={type}
          changes={entries.changes.length}
        />
      }
    >
      {scopes.isAbsent
        ? (
          <AbsentWorker
            name="engine-state"
            icon="state"
            does="It keeps values by scope and key, which all workers share"
            shows="What they keep shows up here by itself"
          />
        )
        : scopes.status === "failed"
        ? <Failed what="The state cannot be read" error={scopes.error} retry={scopes.retry} />
        : scopes.status === "loading"
        ? <Skeleton rows={10} />
        : (
          <div class="state-page">
            <StateScopes scopes={all} open={scope} />
            <Scope scope={scope} name={key} entries={entries} shown={shown} search={search} />
          </div>
        )}
    </Page>
  );
}

/** Goes to a scope or an entry, keeping the filters. */
function useGo(): (...place: string[]) => void {
  const { router } = useShell();
  return (...place) => {
    const { new: _, ...kept } = Object.fromEntries(router.route.value.query);
    router.go(link("/state", ...place, kept));
  };
}

function Filters(
  { scope, scopes, typed, type, changes }: {
    scope: string;
    scopes: readonly string[];
    typed: string;
    type: (text: string) => void;
    changes: number;
  },
): VNode {
  const go = useGo();
  const [view, setView] = useQueryMember("view");
  const views = [
    { value: "", label: "Entries" },
    { value: "changes", label: `Changes ${changes || ""}`.trim() },
  ];
  return (
    <>
      <div class="state-scope-select">
        <Select
          quiet
          label="Scope"
          value={scope}
          choices={scopes.map((name) => ({ value: name, label: name }))}
          onChange={(name) => go(name)}
        />
      </div>
      <Search label="Search keys and values" value={typed} onChange={type} />
      <Segments label="What is shown" value={view} choices={views} onChange={setView} />
    </>
  );
}

/** The content of a scope and the detail view of an entry; `name` is its key. */
function Scope(
  { scope, name, entries, shown, search }: {
    scope: string;
    name: string | undefined;
    entries: EntriesState;
    shown: readonly ShownEntry[];
    search: string;
  },
): VNode {
  const go = useGo();
  const [view] = useQueryMember("view");
  const [make, setMake] = useQueryMember("new");
  const detail = make !== ""
    ? <NewEntry scope={scope} onDone={go} onClose={() => setMake("")} />
    : name !== undefined && (
      <StateEntry
        key={JSON.stringify([scope, name])}
        scope={scope}
        name={name}
        changes={entries.changes}
        onClose={() => go(scope)}
      />
    );
  return (
    <Split detail={detail}>
      {scope === ""
        ? <NoState onNew={() => setMake("entry")} />
        : view === "changes"
        ? <StateChanges changes={entries.changes} onKey={(key) => go(scope, key)} />
        : (
          <Entries
            state={entries}
            shown={shown}
            searched={search !== ""}
            open={name ?? null}
            onOpen={(key) => go(scope, key)}
          />
        )}
    </Split>
  );
}

function Entries(
  { state, shown, searched, open, onOpen }: {
    state: EntriesState;
    shown: readonly ShownEntry[];
    searched: boolean;
    open: string | null;
    onOpen: (key: string) => void;
  },
): VNode {
  return (
    <EntriesTable
      label="Entries"
      columns={COLUMNS}
      state={state}
      shown={shown}
      open={open}
      onOpen={onOpen}
      empty={searched
        ? <Empty icon="search" title="No entry fits">Keys and values were searched.</Empty>
        : <Empty icon="state" title="This scope is empty">Its entries show up as they come.</Empty>}
    />
  );
}

const COLUMNS = entryColumns("Key", "Value");

function NewEntry(
  { scope, onDone, onClose }: {
    scope: string;
    onDone: (scope: string, key: string) => void;
    onClose: () => void;
  },
): VNode {
  const [place, setPlace] = useState({ scope, key: "" });
  return (
    <EntryEditor
      place={place}
      onPlace={setPlace}
      current={null}
      onSaved={() => onDone(place.scope, place.key)}
      onClose={onClose}
    />
  );
}

function NoState({ onNew }: { onNew: () => void }): VNode {
  return (
    <Empty
      icon="state"
      title="No state yet"
      action={<Button icon="plus" onPress={onNew}>New entry</Button>}
    >
      <p>Any function keeps values here, for all others to read:</p>
      <p>
        <code class="code">engine trigger state::set scope=cart key=u1 value=1</code>
      </p>
      <p>
        What it takes is on <Link to={link("/functions", "state::set")}>state::set</Link>.
      </p>
    </Empty>
  );
}

function countOf({ list, isCut }: EntriesState, shown: number): string {
  const more = isCut || !list.isComplete ? "+" : "";
  const all = `${formatCount(list.entries.length)}${more}`;
  return shown === list.entries.length ? all : `${formatCount(shown)} of ${all}`;
}

/** The list of scopes; phones have a select instead. */
function StateScopes(
  { scopes, open }: { scopes: readonly string[]; open: string },
): VNode {
  const { router } = useShell();
  const { view } = Object.fromEntries(router.route.value.query);
  return (
    <NameList
      label="Scopes"
      names={scopes}
      open={open}
      to={(scope) => link("/state", scope, { view })}
    />
  );
}
