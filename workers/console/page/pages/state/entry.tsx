/**
 * The detail view of an entry: its value, its changes, and buttons that edit and delete it.
 *
 * @module
 */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Ago,
  Button,
  CopyButton,
  DeleteButton,
  Detail,
  Empty,
  Failed,
  formatSpan,
  JsonView,
  Pairs,
  Skeleton,
  Tabs,
  useLive,
  useNow,
  useQuery,
  useQueryMember,
  useShell,
} from "../../kit/mod.ts";
import type { StoredEntry } from "./entry_edit.ts";
import { EntryEditor } from "./editor.tsx";
import { StateChanges } from "./changes.tsx";
import type { SeenChange } from "./entries.ts";

/** The detail view of an entry; `name` is its key. */
export function StateEntry(
  { scope, name, changes, onClose }: {
    scope: string;
    name: string;
    changes: readonly SeenChange[];
    onClose: () => void;
  },
): VNode {
  const place = { scope, key: name };
  const found = useQuery<StoredEntry & Json>(
    { function_id: "state::entry", payload: place },
    [{ type: "state", config: place }],
  );
  const [isEditing, setEditing] = useState(false);
  // Without a result the entry does not exist.
  const current = found.value as StoredEntry | null;
  if (isEditing) {
    return (
      <EntryEditor
        place={place}
        current={current}
        onSaved={() => setEditing(false)}
        onClose={() => setEditing(false)}
      />
    );
  }
  return (
    <Detail
      label={`Entry ${name} of ${scope}`}
      title={<code>{name}</code>}
      actions={
        <>
          <CopyButton text={() => name} label="Copy the key" />
          {current && <Button small icon="edit" onPress={() => setEditing(true)}>Edit</Button>}
          {current && <Remove place={place} />}
        </>
      }
      onClose={onClose}
    >
      {found.status === "loading"
        ? <Skeleton rows={4} />
        : found.status === "failed"
        ? <Failed what="The entry cannot be read" error={found.error} retry={found.retry} />
        : current === null
        ? <MissingEntry changes={changesOf(changes, name)} onMake={() => setEditing(true)} />
        : <Known entry={current} changes={changesOf(changes, name)} />}
    </Detail>
  );
}

function Known(
  { entry, changes }: { entry: StoredEntry; changes: readonly SeenChange[] },
): VNode {
  const [tab, setTab] = useQueryMember("tab", "value");
  const tabs = [
    { id: "value", title: "Value" },
    { id: "changes", title: "Changes", count: changes.length },
  ];
  const { expires_at_ms } = entry;
  return (
    <Tabs label="About the entry" tabs={tabs} value={tab} onChange={setTab}>
      {tab === "changes" ? <StateChanges changes={changes} /> : (
        <>
          <Pairs
            pairs={[
              ["Version", <span key="" class="num">{entry.version}</span>],
              ["Changed", <Ago key="" ms={entry.updated_at_ms} />],
              [
                "Expires",
                expires_at_ms === undefined ? "never" : <Until key="" ms={expires_at_ms} />,
              ],
            ]}
          />
          <JsonView value={entry.value} label="Value" depth={4} />
        </>
      )}
    </Tabs>
  );
}

function Until({ ms }: { ms: number }): VNode {
  const left = ms - useNow();
  const at = new Date(ms).toISOString();
  return <time dateTime={at} title={at}>{left > 0 ? `in ${formatSpan(left)}` : "now"}</time>;
}

function MissingEntry(
  { changes, onMake }: { changes: readonly SeenChange[]; onMake: () => void },
): VNode {
  return (
    <>
      <Empty
        icon="state"
        title="There is no such entry now"
        action={<Button icon="plus" onPress={onMake}>Make it</Button>}
      >
        It shows up here by itself when a worker creates it.
      </Empty>
      {changes.length > 0 && <StateChanges changes={changes} />}
    </>
  );
}

/** Deletes the entry, after a second click. */
function Remove({ place }: { place: { scope: string; key: string } }): VNode {
  const live = useLive();
  const { toasts } = useShell();
  const remove = () =>
    live.call("state::delete", place).then(
      () => toasts.show("ok", `${place.key} is deleted`),
      (thrown: unknown) => toasts.fail(`${place.key} cannot be deleted`, thrown),
    );
  return <DeleteButton remove={remove} />;
}

function changesOf(changes: readonly SeenChange[], key: string): readonly SeenChange[] {
  return changes.filter(({ change }) => change.key === key);
}
