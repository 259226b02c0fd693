/**
 * The draft of a value as a form or as JSON text. Switching the mode keeps what was typed, as far
 * as the other mode can show it.
 *
 * @module
 */
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import {
  checkValue,
  type Draft,
  draftOf,
  fitsForm,
  type FormField,
  type FormRules,
  type ReadDraft,
  readDraft,
  withDraft,
} from "./form.ts";
import { parseJson } from "./json.ts";
import type { JsonPath } from "./schema_check.ts";

/** A value that is being filled in; `mode` says whether `draft` or `text` counts. */
export interface ValueDraft {
  readonly mode: "form" | "json";
  readonly draft: Draft;
  readonly text: string;
}

/** The initial draft. */
export function emptyDraft(field: FormField): ValueDraft {
  // A form of one JSON field would be the JSON view with fewer lines.
  return field.kind === "json" ? jsonDraft({}) : formDraft(field, undefined);
}

/** The draft of a value, as a form if the form can show all of it. */
export function draftOfValue(field: FormField, value: Json): ValueDraft {
  return fitsForm(field, value) && field.kind !== "json"
    ? formDraft(field, value)
    : jsonDraft(value);
}

/** The draft with another value in a field of the form. */
export function withFieldDraft(
  field: FormField,
  before: ValueDraft,
  path: JsonPath,
  value: Draft,
): ValueDraft {
  return { ...before, draft: withDraft(field, before.draft, path, value) };
}

/** The value in the other mode, or the same draft if that is impossible. */
export function switchMode(
  field: FormField,
  before: ValueDraft,
  mode: ValueDraft["mode"],
  read: ReadDraft,
): ValueDraft {
  if (mode === before.mode) return before;
  if (mode === "json") return jsonDraft(read.payload ?? {});
  const parsed = parseJson(before.text, {});
  return parsed.ok && fitsForm(field, parsed.value) ? formDraft(field, parsed.value) : before;
}

/** Why the value cannot be shown as a form; `null`: it can. */
export function noFormReason(field: FormField, draft: ValueDraft): string | null {
  if (draft.mode === "form") return null;
  if (field.kind === "json") return "The schema does not say what there is to fill in";
  const parsed = parseJson(draft.text, {});
  if (!parsed.ok) return "This is not JSON yet";
  return fitsForm(field, parsed.value) ? null : "The form cannot show all of this value";
}

/** The value and its errors. */
export function readValueDraft(
  schema: Json | undefined,
  field: FormField,
  { mode, draft, text }: ValueDraft,
  rules: FormRules = {},
): ReadDraft {
  if (mode === "form") return readDraft(schema, field, draft, rules);
  const errors = (value: Json) => schema === undefined ? [] : checkValue(schema, value, rules);
  // The engine takes a missing payload as null.
  if (text.trim() === "") return { payload: undefined, problems: errors(null) };
  const parsed = parseJson(text);
  if (!parsed.ok) return { payload: undefined, problems: [{ path: [], message: parsed.message }] };
  return { payload: parsed.value, problems: errors(parsed.value) };
}

function formDraft(field: FormField, payload: Json | undefined): ValueDraft {
  return { mode: "form", draft: draftOf(field, payload), text: "" };
}

function jsonDraft(payload: Json): ValueDraft {
  return { mode: "json", draft: undefined, text: JSON.stringify(payload, null, 2) };
}
