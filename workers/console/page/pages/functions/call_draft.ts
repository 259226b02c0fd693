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
import { parseJson } from "../../kit/json.ts";
import {
  type Draft,
  draftOf,
  fitsForm,
  type FormField,
  type ReadDraft,
  readDraft,
  withDraft,
} from "./form.ts";
import { isObject, type JsonPath, misfitsOf, sameJson } from "./schema_check.ts";

/** What was filled in; only what belongs to the `mode` counts. */
export interface CallDraft {
  readonly mode: "form" | "json";
  readonly draft: Draft;
  readonly text: string;
}

/** Before anything was typed. */
export function emptyCall(field: FormField): CallDraft {
  // A form of one JSON field is the JSON view with fewer lines.
  return field.kind === "json" ? asJson({}) : asForm(field, undefined);
}

/** A payload from before, as a form if the form can show all of it. */
export function callOf(field: FormField, payload: Json): CallDraft {
  return fitsForm(field, payload) && field.kind !== "json"
    ? asForm(field, payload)
    : asJson(payload);
}

/** With another value in a field of the form. */
export function withField(
  field: FormField,
  call: CallDraft,
  path: JsonPath,
  value: Draft,
): CallDraft {
  return { ...call, draft: withDraft(field, call.draft, path, value) };
}

/** The same payload in the other view; the same draft when that cannot be. */
export function inMode(
  field: FormField,
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
export function noFormBecause(field: FormField, call: CallDraft): string | null {
  if (call.mode === "form") return null;
  if (field.kind === "json") return "The function does not say what it takes";
  const parsed = parseJson(call.text, {});
  if (!parsed.ok) return "This is not JSON yet";
  return fitsForm(field, parsed.value) ? null : "The form cannot show all of this payload";
}

/** What would be sent, and what is wrong with it. */
export function readCall(schema: Json | undefined, field: FormField, call: CallDraft): ReadDraft {
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

function asForm(field: FormField, payload: Json | undefined): CallDraft {
  return { mode: "form", draft: draftOf(field, payload), text: "" };
}

function asJson(payload: Json): CallDraft {
  return { mode: "json", draft: undefined, text: JSON.stringify(payload, null, 2) };
}

/** Calls kept of one function. */
const PER_FUNCTION_MAX = 20;
/** Calls kept in all. */
const ENTRIES_MAX = 200;
/** Longest payload that is kept, as JSON. */
const PAYLOAD_CHARS_MAX = 16 * 1024;
/** Characters of all that is kept. */
const CHARS_MAX = 512 * 1024;
const PLACE = "invocations";

/** A call that ended. */
export interface PastCall {
  readonly function_id: string;
  readonly namespace: string;
  /** `null` also when there was none. */
  readonly payload: Json;
  /** Milliseconds since 1970. */
  readonly at_ms: number;
  readonly duration_ms: number;
  /** `null`: it ended well. */
  readonly error_code: string | null;
}

/** Where texts are kept by name; neither throws, and what is written may be lost. */
export interface TextStore {
  read(name: string): string | null;
  write(name: string, text: string): void;
}

/** All calls that are kept, the newest first. */
export function readHistory(store: TextStore): PastCall[] {
  try {
    const kept: unknown = JSON.parse(store.read(PLACE) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isPastCall).slice(0, ENTRIES_MAX) : [];
  } catch {
    return []; // Not ours: then there is no history.
  }
}

/** Those of one function. */
export function historyOf(
  calls: readonly PastCall[],
  namespace: string,
  function_id: string,
): PastCall[] {
  return calls.filter((call) => call.function_id === function_id && call.namespace === namespace);
}

/** Keeps one more call and returns all; one with the same payload makes room for it. */
export function addToHistory(store: TextStore, call: PastCall): PastCall[] {
  const isLarge = JSON.stringify(call.payload).length > PAYLOAD_CHARS_MAX;
  const before = readHistory(store);
  if (isLarge) return before;
  const others = before.filter((each) =>
    each.function_id !== call.function_id || each.namespace !== call.namespace ||
    !sameJson(each.payload, call.payload)
  );
  let ofFunction = 0;
  const kept = [call, ...others].filter((each) =>
    each.function_id !== call.function_id || each.namespace !== call.namespace ||
    ++ofFunction <= PER_FUNCTION_MAX
  ).slice(0, ENTRIES_MAX);
  write(store, kept);
  return kept;
}

/** Forgets the calls of one function and returns the rest. */
export function forgetHistory(
  store: TextStore,
  namespace: string,
  function_id: string,
): PastCall[] {
  const kept = readHistory(store).filter((call) =>
    call.function_id !== function_id || call.namespace !== namespace
  );
  write(store, kept);
  return kept;
}

function write(store: TextStore, calls: PastCall[]): void {
  let text = JSON.stringify(calls);
  while (text.length > CHARS_MAX) {
    calls.length = Math.floor(calls.length / 2);
    text = JSON.stringify(calls);
  }
  store.write(PLACE, text);
}

function isPastCall(value: unknown): value is PastCall {
  return isObject(value) && typeof value["function_id"] === "string" &&
    typeof value["namespace"] === "string" && value["payload"] !== undefined &&
    Number.isFinite(value["at_ms"]) && Number.isFinite(value["duration_ms"]) &&
    (value["error_code"] === null || typeof value["error_code"] === "string");
}
