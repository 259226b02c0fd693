/**
 * Editing an entry: the new value, what will be different, and what to do when somebody else was
 * quicker.
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
  isChanged,
  isOvertaken,
  rebased,
  type StoredEntry,
  writeOf,
} from "./entry_edit.ts";
import { DiffView } from "./changes.tsx";

/** What it edits. */
export interface EntryEditorProps {
  readonly place: { readonly scope: string; readonly key: string };
  /** Left out: the place is given. */
  readonly onPlace?: (place: { scope: string; key: string }) => void;
  /** What is there now; changes while one edits. */
  readonly current: StoredEntry | null;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** See the module. */
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
          <Overtaken
            edit={edit}
            current={current}
            message={message}
            onTake={() => setEdit(beginEdit(current))}
            onKeep={() => setEdit(rebased(edit, current))}
          />
        )}
        <JsonEdit
          label="Value"
          text={edit.text}
          rows={12}
          onChange={(text) => change({ text })}
          onSubmit={save}
        />
        <Life
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

/** An edit, what meanwhile happened to its entry, and saving it. */
function useEdit({ place, current: heard, onSaved }: EntryEditorProps): {
  edit: EntryEdit;
  setEdit: (edit: EntryEdit) => void;
  current: StoredEntry | null;
  /** Somebody else was quicker. */
  isOver: boolean;
  write: EntryWrite;
  tried: boolean;
  busy: boolean;
  message: string | null;
  save: () => void;
} {
  const live = useLive();
  const { toasts } = useShell();
  const [edit, setEdit] = useState(() => beginEdit(heard));
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [clash, setClash] = useState<Clash | null>(null);
  // A save that was refused may know more than what was heard so far.
  const isHere = clash?.place.key === place.key && clash.place.scope === place.scope;
  const current = clash && isHere ? newer(clash.theirs, heard) : heard;
  const message = clash && isHere ? clash.message : null;
  const write = writeOf(place, edit, Date.now());
  const look = (message: string) =>
    live.call("state::entry", place).then(
      (theirs) => setClash({ place, message, theirs: theirs as unknown as StoredEntry | null }),
      (thrown: unknown) => toasts.fail(message, thrown),
    );
  const save = () => {
    setTried(true);
    if (!write.ok || busy) return;
    setBusy(true);
    setClash(null);
    live.call("state::set", write.payload).then(() => {
      toasts.show("ok", `${place.key} is saved`);
      onSaved();
    }, (thrown: unknown) => {
      const isClash = thrown instanceof CallFailure && thrown.code === "version_mismatch";
      if (isClash) return look(thrown.message);
      return toasts.fail(`${place.key} cannot be saved`, thrown);
    }).finally(() => setBusy(false));
  };
  const isOver = isOvertaken(edit, current);
  return { edit, setEdit, current, isOver, write, tried, busy, message, save };
}

/** A save that was refused because of another version. */
interface Clash {
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

function Overtaken(
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
        <b>Somebody changed it meanwhile.</b> {message}
      </p>
      <DiffView
        before={edit.base?.value}
        after={current?.value}
        label="What somebody else changed"
      />
      <div class="form-add">
        <Button small onPress={onTake}>{current ? "Take theirs" : "Begin anew"}</Button>
        <Button small onPress={onKeep}>Keep mine, on top of theirs</Button>
      </div>
    </section>
  );
}

function Life(
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
        disabled={edit.isLasting}
        placeholder={expires ? "as it is" : "never"}
        error={error}
        onChange={(ttl) => change({ ttl })}
      />
      {expires && (
        <Toggle
          label="Never expires"
          checked={edit.isLasting}
          onChange={(isLasting) => change({ isLasting, ttl: "" })}
        />
      )}
    </div>
  );
}
