/**
 * A value that is filled in, as a form or as JSON text, and the fields of forms.
 *
 * The error of a field is shown once something was typed into it, or once sending was tried.
 *
 * @module
 */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { Button, Field, Segments, Select } from "./controls.tsx";
import {
  type Draft,
  draftOf,
  errorAt,
  type FormField,
  isDraftOf,
  type ListDraft,
  type ObjectDraft,
  pathText,
  type ReadDraft,
} from "./form.ts";
import type { ValueDraft } from "./form_or_json.ts";
import { JsonEdit } from "./json_view.tsx";
import type { JsonPath, ValidationError } from "./schema_check.ts";

const MODES = [{ value: "form", label: "Form" }, { value: "json", label: "JSON" }];
/** Written into an empty field that is to become a reference. */
const NEW_REFERENCE = "${NAME:default}";
/** What texts of common formats look like. */
const EXAMPLES: Readonly<Record<string, string>> = {
  "date-time": "2026-01-31T12:00:00Z",
  date: "2026-01-31",
  time: "12:00:00Z",
  duration: "PT1H30M",
  email: "name@example.com",
  hostname: "host.example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/path",
  uuid: "123e4567-e89b-12d3-a456-426614174000",
};

/** A value that is being filled in. */
export interface FilledIn extends ValueDraft {
  readonly field: FormField;
  /** Why the value cannot be shown as a form; `null`: it can. */
  readonly noFormReason: string | null;
  /** The value and its errors. */
  readonly read: ReadDraft;
  setMode(mode: ValueDraft["mode"]): void;
  change(path: JsonPath, draft: Draft): void;
  write(text: string): void;
}

/** Fills in a value as a form or as JSON; `label` names it, such as `Payload`. */
export function ValueForm(
  { filled, label, rows = 6, tried, onSubmit, note }: {
    filled: FilledIn;
    label: string;
    rows?: number;
    /** Whether sending was tried. */
    tried: boolean;
    onSubmit: () => void;
    note?: FormProps["note"];
  },
): VNode {
  const { mode, field, read, noFormReason } = filled;
  const name = label.toLowerCase();
  const elsewhere = read.problems.filter(({ path }) => mode === "json" || path.length === 0);
  const isParsed = mode === "form" || read.payload !== undefined;
  const text = ({ path, message }: ValidationError) => `${pathText(path, name)} ${message}`;
  const listed = elsewhere.slice(mode === "json" ? 1 : 0);
  return (
    <>
      {field.kind !== "json" && (
        <div class="invoke-mode">
          <Segments
            label={`How to fill in the ${name}`}
            value={mode}
            choices={MODES}
            onChange={(mode) => noFormReason === null && filled.setMode(mode as "form" | "json")}
          />
          {noFormReason !== null && <span class="said">{noFormReason}</span>}
        </div>
      )}
      {mode === "form"
        ? (
          <FormFields
            field={field}
            draft={filled.draft}
            name={name}
            problems={read.problems}
            tried={tried}
            onChange={filled.change}
            onSubmit={onSubmit}
            note={note}
          />
        )
        : (
          <JsonEdit
            label={label}
            text={filled.text}
            rows={rows}
            empty={null}
            error={isParsed && elsewhere[0] ? text(elsewhere[0]) : null}
            onChange={filled.write}
            onSubmit={onSubmit}
          />
        )}
      {tried && listed.length > 0 && (mode === "json" || field.kind === "object") && (
        <ul class="problems">
          {listed.map((problem) => <li key={text(problem)}>{text(problem)}</li>)}
        </ul>
      )}
    </>
  );
}

/** Properties that all fields of a form share. */
interface FormProps {
  readonly problems: readonly ValidationError[];
  /** Whether sending was tried. */
  readonly tried: boolean;
  readonly onChange: (path: JsonPath, draft: Draft) => void;
  readonly onSubmit: () => void;
  /** What is to be said about a place, such as what its reference stands for. */
  readonly note?: ((path: JsonPath) => string | undefined) | undefined;
}

interface FieldProps extends FormProps {
  readonly field: FormField;
  readonly draft: Draft;
  readonly path: JsonPath;
  readonly name: string;
  readonly required: boolean;
}

/** A whole form; `name` is that of the value. */
function FormFields(
  props: FormProps & { field: FormField; draft: Draft; name: string },
): VNode {
  const { field, draft, name } = props;
  if (field.kind !== "object" || isReplaced(draft)) {
    return <AnyField {...props} path={[]} required />;
  }
  if (field.members.length === 0 && !field.takesMore) {
    return <p class="said">There is nothing to fill in: the {name} has no members.</p>;
  }
  return <Members {...props} field={field} draft={draft} path={[]} name="" required />;
}

function Members(props: FieldProps & { field: Extract<FormField, { kind: "object" }> }): VNode {
  const { field, path } = props;
  const draft = props.draft as ObjectDraft | undefined;
  return (
    <div class="form-members">
      {field.members.map(({ name, required, field }) => (
        <AnyField
          {...props}
          key={name}
          field={field}
          draft={draft?.members.get(name)}
          path={[...path, name]}
          name={name}
          required={required}
        />
      ))}
      <FurtherMembers {...props} />
    </div>
  );
}

/** Members that the form has no fields for. */
function FurtherMembers(
  props: FieldProps & { field: Extract<FormField, { kind: "object" }> },
): VNode | null {
  const { field, path, onChange, onSubmit } = props;
  const draft = (props.draft ?? draftOf(field, undefined)) as ObjectDraft;
  if (!field.takesMore) return null;
  const { rest, restText = Object.keys(rest).length > 0 ? JSON.stringify(rest, null, 2) : "" } =
    draft;
  return (
    <JsonEdit
      label="Further members (JSON)"
      text={restText}
      rows={4}
      empty={{}}
      onChange={(text) => onChange(path, { ...draft, restText: text })}
      onSubmit={onSubmit}
    />
  );
}

function AnyField(props: FieldProps): VNode {
  const { field, draft, name, path, onChange } = props;
  if (field.isSecret) return <Secret {...props} />;
  if (isDraftOf(draft, "reference")) return <Referring {...props} text={draft.text} />;
  if (draft === null) {
    return (
      <div class="form-null">
        <Field label={name} value="null" onChange={() => {}} disabled code />
        <Button small onPress={() => onChange(path, undefined)}>Fill in</Button>
      </div>
    );
  }
  const nothing = field.nullable && props.required && draft === undefined && (
    <Button
      small
      kind="bare"
      onPress={() => onChange(path, null)}
    >
      null
    </Button>
  );
  const refer = field.mayRefer && draft === undefined && (
    <Button
      small
      kind="bare"
      icon="link"
      label={`Let ${name} be a reference`}
      onPress={() => onChange(path, { kind: "reference", text: NEW_REFERENCE })}
    />
  );
  const view = viewOf(props);
  return nothing || refer ? <div class="form-null">{view}{nothing || refer}</div> : view;
}

/** Whether something else stands in the place of a value. */
function isReplaced(draft: Draft): boolean {
  return draft === null || isDraftOf(draft, "kept") || isDraftOf(draft, "reference");
}

/** A secret, which stays as it is or is replaced, and is never shown. */
function Secret(props: FieldProps): VNode {
  const { field, draft, name, path, required, onChange } = props;
  const [kept] = useState(draft);
  const plain = { ...field, isSecret: false };
  if (isDraftOf(draft, "kept")) {
    return (
      <div class="form-null">
        <Field
          label={name}
          value="••••••••"
          disabled
          required={required}
          error={wrong(props)}
          hint={note(props, "a secret; it stays as it is")}
          onChange={() => {}}
        />
        <Button label={`Replace ${name}`} onPress={() => onChange(path, undefined)}>
          Replace
        </Button>
      </div>
    );
  }
  const hint = note(props, required ? "a secret" : "a secret; left empty, there is none");
  const keep = isDraftOf(kept, "kept") && (
    <Button
      small
      label={`Keep ${name}`}
      onPress={() => onChange(path, kept)}
    >
      Keep
    </Button>
  );
  const input = field.kind === "text" && draft !== null
    ? <Typed {...props} field={{ ...plain, description: hint, hint: "" }} isHidden />
    : <AnyField {...props} field={{ ...plain, description: hint }} />;
  return keep ? <div class="form-null">{input}{keep}</div> : input;
}

/** A reference in the place of a number, a choice or the like. */
function Referring(props: FieldProps & { text: string }): VNode {
  const { name, path, required, text, onChange, onSubmit } = props;
  return (
    <div class="form-null">
      <Field
        label={name}
        code
        value={text}
        required={required}
        hint={note(props)}
        error={wrong(props)}
        onChange={(text) => onChange(path, { kind: "reference", text })}
        onEnter={onSubmit}
      />
      <Button
        small
        kind="bare"
        icon="close"
        label={`Let ${name} be a value`}
        onPress={() => onChange(path, undefined)}
      />
    </div>
  );
}

function viewOf(props: FieldProps): VNode {
  const { field } = props;
  switch (field.kind) {
    case "text":
    case "number":
      return <Typed {...props} />;
    case "flag":
      return <Chosen {...props} options={[true, false]} />;
    case "choice":
      return <Chosen {...props} options={field.options} />;
    case "json":
      return <Written {...props} />;
    case "list":
      return <Listed {...props} field={field} />;
    case "object":
      return <Grouped {...props} field={field} />;
  }
}

function Typed(props: FieldProps & { isHidden?: boolean }): VNode {
  const { field, draft, name, path, required, isHidden, onChange, onSubmit } = props;
  const text = typeof draft === "string" ? draft : "";
  const preset = field.preset === undefined ? undefined : `default ${JSON.stringify(field.preset)}`;
  return (
    <Field
      label={name}
      required={required}
      value={text}
      code={field.kind === "number"}
      {...isHidden && { type: "password" as const }}
      {...field.kind === "text" && field.isLong && !isHidden && { rows: 3 }}
      placeholder={preset ?? EXAMPLES[field.format] ?? ""}
      hint={note(props)}
      error={wrong(props)}
      onChange={(text) => onChange(path, text === "" ? undefined : text)}
      onEnter={onSubmit}
    />
  );
}

function Chosen(props: FieldProps & { options: readonly unknown[] }): VNode {
  const { field, draft, name, path, required, options, onChange } = props;
  const preset = field.preset === undefined ? "" : ` (default ${JSON.stringify(field.preset)})`;
  const choices = options.map((option) => ({
    value: JSON.stringify(option),
    label: typeof option === "string" ? option : JSON.stringify(option),
  }));
  const error = wrong(props);
  return (
    <div>
      <Select
        label={name}
        required={required}
        value={typeof draft === "string" ? draft : ""}
        choices={[{ value: "", label: required ? "Choose …" : `Left out${preset}` }, ...choices]}
        onChange={(value) => onChange(path, value === "" ? undefined : value)}
      />
      {error ? <p class="said bad">{error}</p> : note(props) && <p class="said">{note(props)}</p>}
    </div>
  );
}

function Written(props: FieldProps): VNode {
  const { draft, name, path, required, onChange, onSubmit } = props;
  const hint = note(props);
  return (
    <div>
      <JsonEdit
        label={`${name}${required ? " *" : ""} (JSON)`}
        text={typeof draft === "string" ? draft : ""}
        rows={4}
        empty={null}
        error={wrong(props)}
        onChange={(text) => onChange(path, text === "" ? undefined : text)}
        onSubmit={onSubmit}
      />
      {hint && <p class="said">{hint}</p>}
    </div>
  );
}

function Listed(props: FieldProps & { field: Extract<FormField, { kind: "list" }> }): VNode {
  const { field, name, path, required, onChange } = props;
  const items = (props.draft as ListDraft | undefined)?.items ?? [];
  const put = (items: readonly Draft[] | undefined) =>
    onChange(path, items && { kind: "list", items });
  const error = wrong(props);
  return (
    <fieldset class="form-group">
      <legend>{name}{required && <span class="required">*</span>}</legend>
      {field.description && <p class="said">{field.description}</p>}
      {items.map((item, at) => (
        <div class="form-item" key={at}>
          <AnyField
            {...props}
            field={field.item}
            draft={item}
            path={[...path, at]}
            name={`${name} ${at + 1}`}
            required
          />
          <Button
            kind="bare"
            icon="close"
            label={`Remove ${name} ${at + 1}`}
            onPress={() =>
              put(items.length === 1 && !required ? undefined : items.toSpliced(at, 1))}
          />
        </div>
      ))}
      {error && <p class="said bad">{error}</p>}
      <div class="form-add">
        <Button small icon="plus" onPress={() => put([...items, draftOf(field.item, undefined)])}>
          Add
        </Button>
        {props.draft === undefined && required && (
          <Button small kind="bare" onPress={() => put([])}>Empty list</Button>
        )}
      </div>
    </fieldset>
  );
}

function Grouped(props: FieldProps & { field: Extract<FormField, { kind: "object" }> }): VNode {
  const { field, name, required } = props;
  const error = wrong(props);
  return (
    <fieldset class="form-group">
      <legend>{name}{required && <span class="required">*</span>}</legend>
      {field.description && <p class="said">{field.description}</p>}
      <Members {...props} />
      {error && <p class="said bad">{error}</p>}
    </fieldset>
  );
}

function wrong({ problems, path, tried, draft }: FieldProps): string | null {
  const message = tried || draft !== undefined ? errorAt(problems, path) : undefined;
  return message ?? null;
}

/** What is said below a field. */
function note({ field: { description, hint }, note, path }: FieldProps, more?: string): string {
  const about = description && hint ? `${description} (${hint})` : description || hint;
  return [about, more, note?.(path)].filter((part) => part).join("; ");
}
