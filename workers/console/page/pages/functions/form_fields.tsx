/**
 * The fields of a form for a payload.
 *
 * The error of a field is shown once something was typed into it, or once sending was tried.
 *
 * @module
 */
import type { VNode } from "preact";
import { Button, Field, JsonEdit, Select } from "../../kit/mod.ts";
import {
  type Draft,
  draftOf,
  errorAt,
  type FormField,
  type ListDraft,
  type ObjectDraft,
} from "./form.ts";
import type { JsonPath, ValidationError } from "./schema_check.ts";

/** Properties that all fields of a form share. */
interface FormProps {
  readonly problems: readonly ValidationError[];
  /** Whether sending was tried. */
  readonly tried: boolean;
  readonly onChange: (path: JsonPath, draft: Draft) => void;
  readonly onSubmit: () => void;
}

interface FieldProps extends FormProps {
  readonly field: FormField;
  readonly draft: Draft;
  readonly path: JsonPath;
  readonly name: string;
  readonly required: boolean;
}

/** A whole form. */
export function FormFields(props: FormProps & { field: FormField; draft: Draft }): VNode {
  const { field, draft } = props;
  if (field.kind !== "object") {
    return <AnyField {...props} path={[]} name="payload" required />;
  }
  if (field.members.length === 0) {
    return <p class="said">This function takes no payload.</p>;
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
    </div>
  );
}

function AnyField(props: FieldProps): VNode {
  const { field, draft, name, path, onChange } = props;
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
  const view = viewOf(props);
  return nothing ? <div class="form-null">{view}{nothing}</div> : view;
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

function Typed(props: FieldProps): VNode {
  const { field, draft, name, path, required, onChange, onSubmit } = props;
  const text = typeof draft === "string" ? draft : "";
  return (
    <Field
      label={name}
      required={required}
      value={text}
      code={field.kind === "number"}
      {...field.kind === "text" && field.isLong && { rows: 3 }}
      placeholder={field.preset === undefined ? "" : `default ${JSON.stringify(field.preset)}`}
      hint={about(field)}
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
        label={required ? `${name} *` : name}
        value={typeof draft === "string" ? draft : ""}
        choices={[{ value: "", label: required ? "Choose …" : `Left out${preset}` }, ...choices]}
        onChange={(value) => onChange(path, value === "" ? undefined : value)}
      />
      {error ? <p class="said bad">{error}</p> : about(field) && <p class="said">{about(field)}</p>}
    </div>
  );
}

function Written(props: FieldProps): VNode {
  const { field, draft, name, path, required, onChange, onSubmit } = props;
  const hint = about(field);
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

function about({ description, hint }: FormField): string {
  return description && hint ? `${description} (${hint})` : description || hint;
}
