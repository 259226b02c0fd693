/**
 * Sets an item of a stream, or sends an event to the subscribers of its group.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import type { Json, JsonObject } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Button,
  Detail,
  Field,
  JsonEdit,
  parseJson,
  sameJson,
  useLive,
  useShell,
  visibleJson,
} from "../../kit/mod.ts";
import { DiffView } from "../state/changes.tsx";
import { ttlProblem } from "../state/entry_edit.ts";
import type { Group } from "./stream_rows.ts";

/** Sets an item; `id`: `null` for a new one. */
export function ItemEditor(
  { place, id, current = null, onSaved, onClose }: {
    place: Group;
    id: string | null;
    /** The item as it is now; it may change during the edit. */
    current?: Json;
    onSaved: (group_id: string, item_id: string) => void;
    onClose: () => void;
  },
): VNode {
  const [group, setGroup] = useState(place.group_id);
  const [name, setName] = useState(id ?? "");
  const [base, setBase] = useState(current);
  const [text, setText] = useState(() => visibleJson(current ?? {}, 2));
  const [ttl, setTtl] = useState("");
  const parsed = parseJson(text);
  const wrongTtl = ttl.trim() === "" ? null : ttlProblem(Number(ttl));
  const isReady = parsed.ok && group !== "" && name !== "" && wrongTtl === null;
  const { busy, tried, send } = useSend("stream::set", `${name} is saved`, () => {
    onSaved(group, name);
  });
  const save = () =>
    send(
      isReady
        ? {
          stream_name: place.stream_name,
          group_id: group,
          item_id: name,
          data: parsed.value,
          ...ttl.trim() !== "" && { ttl_ms: Number(ttl) },
        }
        : null,
    );
  return (
    <Editor
      label={id === null ? "New item" : `Edit ${id}`}
      title={id === null ? "New item" : <code>{id}</code>}
      busy={busy}
      action="Save"
      onSubmit={save}
      onClose={onClose}
    >
      {id === null && (
        <div class="form-members">
          <Required label="Group" value={group} tried={tried} onChange={setGroup} />
          <Required label="Id" value={name} tried={tried} onChange={setName} />
        </div>
      )}
      {id !== null && !sameJson(base, current) && (
        <section class="notice warn" role="alert">
          <p>
            <b>It was changed meanwhile.</b> Saving replaces that.
          </p>
          <DiffView
            before={base ?? undefined}
            after={current ?? undefined}
            label="What was changed meanwhile"
          />
          <div class="form-add">
            <Button
              small
              onPress={() => (setBase(current), setText(visibleJson(current, 2)))}
            >
              Take it as it is
            </Button>
            <Button small onPress={() => setBase(current)}>Keep mine</Button>
          </div>
        </section>
      )}
      <JsonEdit label="Data" text={text} rows={12} onChange={setText} onSubmit={save} />
      <div class="form-life">
        <Field
          label="Expires after, in ms"
          code
          value={ttl}
          placeholder="never"
          error={tried ? wrongTtl : null}
          onChange={setTtl}
        />
      </div>
      {id !== null && parsed.ok && !sameJson(parsed.value, current) && (
        <>
          <h3>What will be different</h3>
          <DiffView
            before={current ?? undefined}
            after={parsed.value}
            label="What will be different"
          />
        </>
      )}
    </Editor>
  );
}

/** Sends an event, which is not stored. */
export function SendEvent({ place, onClose }: { place: Group; onClose: () => void }): VNode {
  const [group, setGroup] = useState(place.group_id);
  const [type, setType] = useState("");
  const [item, setItem] = useState("");
  const [text, setText] = useState("");
  const parsed = parseJson(text, null);
  const isReady = parsed.ok && group !== "" && type !== "";
  // The form stays, since events often come in numbers.
  const { busy, tried, send } = useSend("stream::send", `${type} is sent`, () => {});
  const submit = () =>
    send(
      isReady
        ? {
          stream_name: place.stream_name,
          group_id: group,
          type,
          data: parsed.value,
          ...item !== "" && { id: item },
        }
        : null,
    );
  return (
    <Editor
      label="Send an event"
      title="Send an event"
      busy={busy}
      action="Send"
      onSubmit={submit}
      onClose={onClose}
    >
      <p class="said">The current subscribers of the group get it; nothing is stored.</p>
      <div class="form-members">
        <Required label="Group" value={group} tried={tried} onChange={setGroup} />
        <Required label="Name" value={type} tried={tried} onChange={setType} />
        <Field label="Item that it is about" code value={item} onChange={setItem} />
      </div>
      <JsonEdit
        label="Data"
        text={text}
        rows={6}
        empty={null}
        onChange={setText}
        onSubmit={submit}
      />
    </Editor>
  );
}

function Editor(
  { label, title, busy, action, onSubmit, onClose, children }: {
    label: string;
    title: ComponentChildren;
    busy: boolean;
    /** What the button does. */
    action: string;
    onSubmit: () => void;
    onClose: () => void;
    children: ComponentChildren;
  },
): VNode {
  return (
    <Detail label={label} title={title} onClose={onClose}>
      <form
        noValidate
        class="stack-4"
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        {children}
        <div class="invoke-send">
          <Button kind="primary" icon="check" type="submit" busy={busy}>{action}</Button>
          <Button onPress={onClose}>Cancel</Button>
        </div>
      </form>
    </Detail>
  );
}

function Required(
  { label, value, tried, onChange }: {
    label: string;
    value: string;
    tried: boolean;
    onChange: (value: string) => void;
  },
): VNode {
  return (
    <Field
      label={label}
      required
      code
      value={value}
      error={tried && value === "" ? "is required" : null}
      onChange={onChange}
    />
  );
}

/** Calls a function with what is filled in, and says what came of it; `null`: it cannot be sent. */
function useSend(function_id: string, said: string, done: () => void): {
  busy: boolean;
  /** Whether sending was tried. */
  tried: boolean;
  send: (payload: JsonObject | null) => void;
} {
  const live = useLive();
  const { toasts } = useShell();
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState(false);
  const send = (payload: JsonObject | null) => {
    setTried(true);
    if (payload === null || busy) return;
    setBusy(true);
    live.call(function_id, payload).then(() => {
      toasts.show("ok", said);
      setTried(false);
      done();
    }, (thrown: unknown) => toasts.fail(`${function_id} failed`, thrown))
      .finally(() => setBusy(false));
  };
  return { busy, tried, send };
}
