/**
 * The editor of an entry: the new value, its diff, and what to do about a conflicting change.
 *
 * @module
 */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Button,
  CallFailure,
  Detail,
  Field,
  JsonEdit,
  Toggle,
  useLive,
  useShell,
} from "../../kit/mod.ts";
import {
  beginEdit,
  type EntryEdit,
  type EntryWrite,
  hasConflict,
  isChanged,
  rebaseEdit,
  type StoredEntry,
  writePayload,
} from "./entry_edit.ts";
import { DiffView } from "./changes.tsx";

/** Properties of an {@linkcode EntryEditor}. */
interface EntryEditorProps {
  readonly place: { readonly scope: string; readonly key: string };
  /** Left out if the entry exists. */
  readonly onPlace?: (place: { scope: string; key: string }) => void;
  /** The entry as it is now; it may change during the edit. */
  readonly current: StoredEntry | null;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** Edits an entry, or makes a new one. */
export function EntryEditor(props: EntryEditorProps): VNode {
  const { place, onPlace, onClose } = props;
  const { edit, setEdit, current, isOver, write, tried, busy, message, save } = useEdit(props);
  const wrong = (field: string) => tried && !write.ok && write.field === field;
  const change = (part: Partial<EntryEdit>) => setEdit({ ...edit, ...part });
  return (
    <Detail
      label={edit.base ? `Edit ${place.key}` : "New entry"}
      title={edit.base ? <code>{place.key}</code> : "New entry"}
      onClose={onClose}
    >
      <form
        noValidate
        class="stack-4"
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        {onPlace && <Place place={place} onPlace={onPlace} wrong={wrong} />}
        {isOver && (
          <ConflictNotice
            edit={edit}
            current={current}
            message={message}
            onTake={() => setEdit(beginEdit(current))}
            onKeep={() => setEdit(rebaseEdit(edit, current))}
          />
        )}
        <JsonEdit
          label="Value"
          text={edit.text}
          rows={12}
          onChange={(text) => change({ text })}
          onSubmit={save}
        />
        <TtlField
          edit={edit}
          change={change}
          error={wrong("ttl") && !write.ok ? write.message : null}
        />
        {edit.base && write.ok && isChanged(edit) && (
          <Difference before={edit.base.value} after={write.value} />
        )}
        <div class="invoke-send">
          <Button kind="primary" icon="check" type="submit" busy={busy} disabled={isOver}>
            Save
          </Button>
          <Button onPress={onClose}>Cancel</Button>
          {edit.base && <span class="said num">on top of version {edit.base.version}</span>}
        </div>
      </form>
    </Detail>
  );
}

function Difference({ before, after }: { before: Json; after: Json }): VNode {
  return (
    <>
      <h3>What will be different</h3>
      <DiffView before={before} after={after} label="What will be different" />
    </>
  );
}

/** The state of an edit. */
function useEdit({ place, current: watched, onSaved }: EntryEditorProps): {
  edit: EntryEdit;
  setEdit: (edit: EntryEdit) => void;
  current: StoredEntry | null;
  /** The entry was changed during the edit. */
  isOver: boolean;
  write: EntryWrite;
  tried: boolean;
  busy: boolean;
  message: string | null;
  save: () => void;
} {
  const live = useLive();
  const { toasts } = useShell();
  const [edit, setEdit] = useState(() => beginEdit(watched));
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  // After a refused save, the fetched entry may be newer than the watched one.
  const isHere = conflict?.place.key === place.key && conflict.place.scope === place.scope;
  const current = conflict && isHere ? newer(conflict.theirs, watched) : watched;
  const message = conflict && isHere ? conflict.message : null;
  const write = writePayload(place, edit, Date.now());
  const look = (message: string) =>
    live.call("state::entry", place).then(
      (theirs) => setConflict({ place, message, theirs: theirs as unknown as StoredEntry | null }),
      (thrown: unknown) => toasts.fail(message, thrown),
    );
  const save = () => {
    setTried(true);
    if (!write.ok || busy) return;
    setBusy(true);
    setConflict(null);
    live.call("state::set", write.payload).then(() => {
      toasts.show("ok", `${place.key} is saved`);
      onSaved();
    }, (thrown: unknown) => {
      const isConflict = thrown instanceof CallFailure && thrown.code === "version_mismatch";
      if (isConflict) return look(thrown.message);
      return toasts.fail(`${place.key} cannot be saved`, thrown);
    }).finally(() => setBusy(false));
  };
  const isOver = hasConflict(edit, current);
  return { edit, setEdit, current, isOver, write, tried, busy, message, save };
}

/** A save that was refused because the entry has another version. */
interface Conflict {
  readonly place: EntryEditorProps["place"];
  readonly message: string;
  readonly theirs: StoredEntry | null;
}

function newer(a: StoredEntry | null, b: StoredEntry | null): StoredEntry | null {
  return (a?.version ?? 0) > (b?.version ?? 0) ? a : b;
}

function Place(
  { place, onPlace, wrong }: {
    place: { readonly scope: string; readonly key: string };
    onPlace: (place: { scope: string; key: string }) => void;
    wrong: (field: string) => boolean;
  },
): VNode {
  const { scope, key } = place;
  return (
    <div class="form-members">
      <Field
        label="Scope"
        required
        code
        value={scope}
        error={wrong("scope") ? "is required" : null}
        onChange={(scope) => onPlace({ scope, key })}
      />
      <Field
        label="Key"
        required
        code
        value={key}
        error={wrong("key") ? "is required" : null}
        onChange={(key) => onPlace({ scope, key })}
      />
    </div>
  );
}

function ConflictNotice(
  { edit, current, message, onTake, onKeep }: {
    edit: EntryEdit;
    current: StoredEntry | null;
    message: string | null;
    onTake: () => void;
    onKeep: () => void;
  },
): VNode {
  return (
    <section class="notice warn" role="alert">
      <p>
        <b>Another client changed it meanwhile.</b> {message}
      </p>
      <DiffView
        before={edit.base?.value}
        after={current?.value}
        label="What the other client changed"
      />
      <div class="form-add">
        <Button small onPress={onTake}>{current ? "Take theirs" : "Start over"}</Button>
        <Button small onPress={onKeep}>Keep mine, on top of theirs</Button>
      </div>
    </section>
  );
}

function TtlField(
  { edit, change, error }: {
    edit: EntryEdit;
    change: (part: Partial<EntryEdit>) => void;
    error: string | null;
  },
): VNode {
  const expires = edit.base?.expires_at_ms !== undefined;
  return (
    <div class="form-life">
      <Field
        label="Expires after, in ms"
        code
        value={edit.ttl}
        disabled={edit.neverExpires}
        placeholder={expires ? "as it is" : "never"}
        error={error}
        onChange={(ttl) => change({ ttl })}
      />
      {expires && (
        <Toggle
          label="Never expires"
          checked={edit.neverExpires}
          onChange={(neverExpires) => change({ neverExpires, ttl: "" })}
        />
      )}
    </div>
  );
}
