/**
 * A payload being filled in, as a form or as JSON text: two views of one thing.
 *
 * Changing the view takes over what was typed, as far as the other can show it; what the form would
 * lose stays in the JSON view.
 *
 * @module
 */
import { CALL_TIMEOUT_MS, TIMEOUT_MS_MAX } from "../../../../../sdk/typescript/wire/limits.ts";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { parseJson } from "../../kit/parse_json.ts";
import {
  type Draft,
  draftOf,
  fitsForm,
  type ReadDraft,
  readDraft,
  withDraft,
} from "./form_draft.ts";
import { type JsonPath, misfitsOf } from "./schema_fit.ts";
import type { Field } from "./schema_form.ts";

/** What was filled in; only what belongs to the `mode` counts. */
export interface CallDraft {
  readonly mode: "form" | "json";
  readonly draft: Draft;
  readonly text: string;
}

/** Before anything was typed. */
export function emptyCall(field: Field): CallDraft {
  // A form of one JSON field is the JSON view with fewer lines.
  return field.kind === "json" ? asJson({}) : asForm(field, undefined);
}

/** A payload from before, as a form if the form can show all of it. */
export function callOf(field: Field, payload: Json): CallDraft {
  return fitsForm(field, payload) && field.kind !== "json"
    ? asForm(field, payload)
    : asJson(payload);
}

/** With another value in a field of the form. */
export function withField(field: Field, call: CallDraft, path: JsonPath, value: Draft): CallDraft {
  return { ...call, draft: withDraft(field, call.draft, path, value) };
}

/** The same payload in the other view; the same draft when that cannot be. */
export function inMode(
  field: Field,
  call: CallDraft,
  mode: CallDraft["mode"],
  read: ReadDraft,
): CallDraft {
  if (mode === call.mode) return call;
  if (mode === "json") return asJson(read.payload ?? {});
  const parsed = parseJson(call.text, {});
  return parsed.ok && fitsForm(field, parsed.value) ? asForm(field, parsed.value) : call;
}

/** Why the form cannot show what is in the JSON view; `null`: it can. */
export function noFormBecause(field: Field, call: CallDraft): string | null {
  if (call.mode === "form") return null;
  if (field.kind === "json") return "The function does not say what it takes";
  const parsed = parseJson(call.text, {});
  if (!parsed.ok) return "This is not JSON yet";
  return fitsForm(field, parsed.value) ? null : "The form cannot show all of this payload";
}

/** What would be sent, and what is wrong with it. */
export function readCall(schema: Json | undefined, field: Field, call: CallDraft): ReadDraft {
  if (call.mode === "form") return readDraft(schema, field, call.draft);
  const misfits = (value: Json) => schema === undefined ? [] : misfitsOf(schema, value);
  // A payload that is left out is taken as null.
  if (call.text.trim() === "") return { payload: undefined, problems: misfits(null) };
  const parsed = parseJson(call.text);
  if (!parsed.ok) return { payload: undefined, problems: [{ path: [], message: parsed.message }] };
  return { payload: parsed.value, problems: misfits(parsed.value) };
}

/** A time-out as typed, in milliseconds; `undefined`: it is none. */
export function readTimeout(text: string): number | undefined {
  if (text.trim() === "") return CALL_TIMEOUT_MS;
  const ms = Number(text);
  return Number.isInteger(ms) && ms > 0 && ms <= TIMEOUT_MS_MAX ? ms : undefined;
}

function asForm(field: Field, payload: Json | undefined): CallDraft {
  return { mode: "form", draft: draftOf(field, payload), text: "" };
}

function asJson(payload: Json): CallDraft {
  return { mode: "json", draft: undefined, text: JSON.stringify(payload, null, 2) };
}
