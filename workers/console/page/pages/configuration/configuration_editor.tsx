/**
 * The editor of a configuration: a form from its schema, with the errors of the engine at their
 * fields, and what to do about a change that another made meanwhile.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Button,
  CallFailure,
  Detail,
  draftOfValue,
  emptyDraft,
  fieldOf,
  type FilledIn,
  isObject,
  noFormReason,
  placeErrors,
  readValueDraft,
  switchMode,
  textOf,
  useLive,
  useShell,
  type ValidationError,
  type ValueDraft,
  ValueForm,
  withFieldDraft,
  withoutSecrets,
} from "../../kit/mod.ts";
import { DiffView } from "../state/changes.tsx";
import {
  type ConfigurationChange,
  type ConfigurationRow,
  type FoundReference,
  noteOn,
} from "./configuration_rows.ts";

const RULES = { isStored: true } as const;

/** What an edit begins with: the value as it is, or an older one. */
export type EditStart =
  | { readonly kind: "now" }
  | { readonly kind: "restored"; readonly change: ConfigurationChange };

/** Properties of a {@linkcode ConfigurationEditor}. */
interface EditorProps {
  /** As it is now; it may change during the edit. */
  readonly row: ConfigurationRow;
  readonly start: EditStart;
  readonly references: readonly FoundReference[];
  readonly onClose: () => void;
}

/** Edits the value of an entry. */
export function ConfigurationEditor(props: EditorProps): VNode {
  const { row, start, references, onClose } = props;
  const edit = useEdit(props);
  const { filled, base, tried, busy, message, isOver } = edit;
  const note = useMemo(() => noteOn(references), [references]);
  const { payload, problems } = filled.read;
  const isReadable = payload !== undefined && (problems.length === 0 || edit.isRefused);
  return (
    <Detail
      wide
      label={`Edit ${row.id}`}
      title={<code>{row.id}</code>}
      onClose={onClose}
    >
      <form
        noValidate
        class="stack-4"
        onSubmit={(event) => {
          event.preventDefault();
          edit.save();
        }}
      >
        {start.kind === "restored" && <RestoreNotice row={row} change={start.change} />}
        {isOver && <ConflictNotice row={row} base={base} onTake={edit.take} onKeep={edit.keep} />}
        <ValueForm
          filled={filled}
          label="Value"
          rows={14}
          tried={tried}
          onSubmit={edit.save}
          note={note}
        />
        {row.has_secrets && (
          <p class="said">
            Secrets are never shown. In JSON, <code>[redacted]</code> in their place keeps them.
          </p>
        )}
        {isReadable && base.has_value && (
          <Difference
            before={base.value}
            after={withoutSecrets(filled.field, payload)}
          />
        )}
        <div class="invoke-send">
          <Button kind="primary" icon="check" type="submit" busy={busy} disabled={isOver}>
            Save
          </Button>
          <Button onPress={onClose}>Cancel</Button>
          {base.has_value && <span class="said num">on top of version {base.version}</span>}
          {message !== null && <span class="said bad" role="alert">{message}</span>}
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

function RestoreNotice(
  { row, change: { version } }: { row: ConfigurationRow; change: ConfigurationChange },
): VNode {
  return (
    <section class="notice info">
      <p>
        <b>Version {version} is filled in.</b> Saving it makes a new version.
        {row.has_secrets &&
          " Secrets cannot be restored, since the history does not have them: they stay as they " +
            "are now."}
      </p>
    </section>
  );
}

function ConflictNotice(
  { row, base, onTake, onKeep }: {
    row: ConfigurationRow;
    base: ConfigurationRow;
    onTake: () => void;
    onKeep: () => void;
  },
): VNode {
  return (
    <section class="notice warn" role="alert">
      <p>
        <b>It was changed meanwhile</b>, to version {row.version}.
      </p>
      <DiffView
        before={base.has_value ? base.value : undefined}
        after={row.value}
        label="What was changed meanwhile"
      />
      <div class="form-add">
        <Button small onPress={onTake}>Take theirs</Button>
        <Button small onPress={onKeep}>Keep mine, on top of theirs</Button>
      </div>
    </section>
  );
}

/** The state of an edit. */
interface Edit {
  readonly filled: FilledIn;
  /** The entry that the edit is based on. */
  readonly base: ConfigurationRow;
  /** The entry was changed during the edit. */
  readonly isOver: boolean;
  /** The engine refused what is filled in. */
  readonly isRefused: boolean;
  readonly tried: boolean;
  readonly busy: boolean;
  /** Why it was not saved; `null`: nothing is to be said. */
  readonly message: string | null;
  save(): void;
  /** Begins anew with the entry as it is. */
  take(): void;
  /** Goes on with what is filled in. */
  keep(): void;
}

/** What the engine said about a value that it refused. */
interface Refusal {
  readonly problems: readonly ValidationError[];
  readonly message: string;
}

function useEdit({ row, start, onClose }: EditorProps): Edit {
  const live = useLive();
  const { toasts } = useShell();
  const [base, setBase] = useState(row);
  const schemaText = JSON.stringify(row.schema);
  const field = useMemo(() => fieldOf(row.schema, RULES), [schemaText]);
  const [draft, setDraft] = useState<ValueDraft>(() => draftFor(field, row, start));
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [isSaved, setSaved] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const local = useMemo(
    () => readValueDraft(row.schema, field, draft, RULES),
    [draft, field, schemaText],
  );
  const change = (next: (draft: ValueDraft) => ValueDraft) => {
    setDraft(next);
    setRefusal(null);
  };
  const save = () => {
    setTried(true);
    const { payload: value, problems } = local;
    if (problems.length > 0 || value === undefined || busy) return;
    setBusy(true);
    setRefusal(null);
    const payload = { id: row.id, value, expected_version: base.version };
    live.call("configuration::set", payload).then(() => {
      toasts.show("ok", `${row.id} is saved`);
      setSaved(true);
    }, (thrown: unknown) => {
      setBusy(false);
      if (!(thrown instanceof CallFailure)) return toasts.fail(`${row.id} cannot be saved`, thrown);
      setRefusal({
        problems: placeErrors(field, value, errorsOf(thrown)),
        message: thrown.code === "SCHEMA_INVALID" ? "The engine refused it" : thrown.message,
      });
    });
  };
  useEffect(() => {
    // Once the new version is here: an edit of the old one would be in conflict with it.
    if (isSaved && row.version > base.version) onClose();
  }, [isSaved, row.version]);
  const problems = [...local.problems, ...refusal?.problems ?? []];
  return {
    filled: {
      ...draft,
      field,
      noFormReason: noFormReason(field, draft),
      read: { payload: local.payload, problems },
      setMode: (mode) => change((draft) => switchMode(field, draft, mode, local)),
      change: (path, part) => change((draft) => withFieldDraft(field, draft, path, part)),
      write: (text) => change((draft) => ({ ...draft, text })),
    },
    base,
    isOver: row.version !== base.version && !busy,
    isRefused: refusal !== null,
    tried,
    busy,
    message: messageOf(local.payload, tried, problems, refusal),
    save,
    take: () => {
      setBase(row);
      setTried(false);
      change(() => draftFor(field, row, { kind: "now" }));
    },
    keep: () => setBase(row),
  };
}

function draftFor(
  field: ReturnType<typeof fieldOf>,
  row: ConfigurationRow,
  start: EditStart,
): ValueDraft {
  if (start.kind === "restored") return draftOfValue(field, start.change.new_value);
  return row.has_value ? draftOfValue(field, row.value) : emptyDraft(field);
}

function messageOf(
  payload: Json | undefined,
  tried: boolean,
  problems: readonly ValidationError[],
  refusal: Refusal | null,
): string | null {
  if (!tried) return null;
  if (problems.length === 0 && payload === undefined) return "Fill in a value";
  const count = problems.length;
  const wrong = count === 0
    ? null
    : count === 1
    ? "One thing has to be corrected"
    : `${count} things have to be corrected`;
  if (refusal === null) return wrong;
  return wrong === null ? refusal.message : `${refusal.message}: ${wrong.toLowerCase()}`;
}

/** The violations in the details of a failure. */
function errorsOf({ body: { details } }: CallFailure): { path: string; message: string }[] {
  const errors = isObject(details) ? details["errors"] : undefined;
  return (Array.isArray(errors) ? errors : []).flatMap((error) =>
    isObject(error) ? [{ path: textOf(error["path"]), message: textOf(error["message"]) }] : []
  );
}
