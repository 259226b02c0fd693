/**
 * A table of entries, which flash when they change.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { briefJson, type Column, Failed, Skeleton, Table } from "../../kit/mod.ts";
import type { EntriesState, ShownEntry } from "./entries.ts";

/** The columns of a table of entries. */
export function entryColumns(key: string, value: string): readonly Column<ShownEntry>[] {
  return [
    {
      id: "key",
      title: key,
      width: "minmax(120px, 1fr)",
      cell: ({ key }) => <code class="cut" title={key}>{key}</code>,
    },
    {
      id: "value",
      title: value,
      width: "minmax(140px, 3fr)",
      cell: (entry) => <Brief entry={entry} />,
    },
  ];
}

/** A value that flashes when it changes. */
function Brief({ entry: { value, changed_ms } }: { entry: ShownEntry }): VNode {
  return (
    <code key={changed_ms} class={changed_ms === null ? "cut" : "cut changed"}>
      {briefJson(value)}
    </code>
  );
}

/** The entries of a source, or why they are not there. */
export function EntriesTable<Happening>(
  { label, columns, state, shown, open, onOpen, empty }: {
    label: string;
    columns: readonly Column<ShownEntry>[];
    state: EntriesState<Happening>;
    shown: readonly ShownEntry[];
    /** Key of the entry that is open. */
    open: string | null;
    onOpen: (key: string) => void;
    empty: ComponentChildren;
  },
): VNode {
  if (state.status === "failed") {
    const what = `The ${label.toLowerCase()} cannot be read`;
    return <Failed what={what} error={state.error} retry={state.retry} />;
  }
  if (state.status === "loading") return <Skeleton rows={8} />;
  return (
    <Table<ShownEntry>
      label={label}
      columns={columns}
      items={shown}
      keyOf={({ key }) => key}
      open={open}
      onOpen={({ key }) => onOpen(key)}
      onNearEnd={state.more}
      empty={empty}
    />
  );
}
