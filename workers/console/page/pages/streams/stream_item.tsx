/**
 * The detail view of an item of a stream, and the list of what happened in its group.
 *
 * @module
 */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Badge,
  Button,
  CopyButton,
  DeleteButton,
  Detail,
  Empty,
  Failed,
  Icon,
  JsonView,
  Skeleton,
  Tabs,
  Time,
  useLive,
  useQuery,
  useQueryMember,
  useShell,
} from "../../kit/mod.ts";
import { HeldList } from "../state/changes.tsx";
import type { Seen } from "../state/entries.ts";
import { ItemEditor } from "./item_editor.tsx";
import { eventView, type Group, type StreamEvent } from "./stream_rows.ts";

/** The view of one item, or its editor. */
export function StreamItem(
  { place, id, events, onClose }: {
    place: Group;
    id: string;
    events: readonly Seen<StreamEvent>[];
    onClose: () => void;
  },
): VNode {
  const item = { ...place, item_id: id };
  const { operator } = useLive().status.value;
  const [tab, setTab] = useQueryMember("tab", "data");
  const [isEditing, setEditing] = useState(false);
  const found = useQuery<Json>({ function_id: "stream::get", payload: item }, [
    { type: "stream", config: item },
  ]);
  if (isEditing) {
    const stop = () => setEditing(false);
    return <ItemEditor place={place} id={id} current={found.value} onSaved={stop} onClose={stop} />;
  }
  const own = events.filter(({ change }) => change.id === id);
  const tabs = [{ id: "data", title: "Data" }, {
    id: "events",
    title: "Events",
    count: own.length,
  }];
  const isThere = found.status === "ready" && found.value !== null;
  return (
    <Detail
      label={`Item ${id} of ${place.group_id}`}
      title={<code>{id}</code>}
      actions={
        <>
          <CopyButton text={() => id} label="Copy the id" />
          {operator && isThere && (
            <Button small icon="edit" onPress={() => setEditing(true)}>Edit</Button>
          )}
          {operator && isThere && <Remove item={item} />}
        </>
      }
      onClose={onClose}
    >
      <Tabs label="About the item" tabs={tabs} value={tab} onChange={setTab}>
        {tab === "events"
          ? <StreamEvents events={own} />
          : found.status === "loading"
          ? <Skeleton rows={4} />
          : found.status === "failed"
          ? <Failed what="The item cannot be read" error={found.error} retry={found.retry} />
          : found.value === null
          ? (
            <Empty icon="streams" title="There is no such item now">
              It shows up here by itself when it is set.
            </Empty>
          )
          : <JsonView value={found.value} label="Data" depth={4} />}
      </Tabs>
    </Detail>
  );
}

/** Deletes the item, after a second click. */
function Remove({ item }: { item: Group & { readonly item_id: string } }): VNode {
  const live = useLive();
  const { toasts } = useShell();
  const remove = () =>
    live.call("stream::delete", { ...item }).then(
      () => toasts.show("ok", `${item.item_id} is deleted`),
      (thrown: unknown) => toasts.fail(`${item.item_id} cannot be deleted`, thrown),
    );
  return <DeleteButton remove={remove} />;
}

/** What happened, the newest first; `onItem` opens an item. */
export function StreamEvents(
  { events, onItem }: { events: readonly Seen<StreamEvent>[]; onItem?: (id: string) => void },
): VNode {
  return (
    <HeldList
      seen={events}
      label="Events, the newest first"
      empty={
        <Empty icon="streams" title="No events since this page was opened">
          They show up here as they happen, also those that are only sent.
        </Empty>
      }
      row={(seen, onOpen) => <Event seen={seen} onOpen={onOpen} {...onItem && { onItem }} />}
    />
  );
}

function Event(
  { seen: { change, at_ms }, onItem, onOpen }: {
    seen: Seen<StreamEvent>;
    onItem?: (id: string) => void;
    onOpen: () => void;
  },
): VNode {
  const [open, setOpen] = useState(false);
  const { word, tone, data, brief } = eventView(change);
  const { id } = change;
  return (
    <>
      <div class="change-line">
        <button type="button" aria-expanded={open} onClick={() => (setOpen(!open), onOpen())}>
          <Icon name={open ? "down" : "right"} size={12} />
          <Time ms={at_ms} fine />
          <Badge tone={tone}>{word}</Badge>
          {!onItem && <code class="cut">{brief}</code>}
        </button>
        {onItem && id !== null && (
          <button
            type="button"
            class="change-key"
            onClick={() => onItem(id)}
          >
            <code>{id}</code>
          </button>
        )}
        {onItem && <code class="cut quiet">{brief}</code>}
      </div>
      {open && <JsonView value={data} label={`Data of ${word}`} depth={3} />}
    </>
  );
}
