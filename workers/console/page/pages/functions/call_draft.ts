/**
 * The draft of a call: a payload as a form or as JSON text, and the payloads of earlier calls.
 *
 * Switching the mode keeps what was typed, as far as the other mode can show it.
 *
 * @module
 */
import { CALL_TIMEOUT_MS, TIMEOUT_MS_MAX } from "../../../../../sdk/typescript/wire/limits.ts";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { isObject, parseJson, sameJson } from "../../kit/json.ts";
import {
  type Draft,
  draftOf,
  fitsForm,
  type FormField,
  type ReadDraft,
  readDraft,
  withDraft,
} from "./form.ts";
import { type JsonPath, validate } from "./schema_check.ts";

/** Calls stored per function. */
const PER_FUNCTION_MAX = 20;
/** Calls stored in all. */
const ENTRIES_MAX = 200;
/** Longest payload that is stored, in characters of JSON. */
const PAYLOAD_CHARS_MAX = 16 * 1024;
/** Characters of the whole history. */
const CHARS_MAX = 512 * 1024;
const STORAGE_NAME = "invocations";

/** A payload that is being filled in; `mode` says whether `draft` or `text` counts. */
export interface CallDraft {
  readonly mode: "form" | "json";
  readonly draft: Draft;
  readonly text: string;
}

/** The initial draft. */
export function emptyDraft(field: FormField): CallDraft {
  // A form of one JSON field would be the JSON view with fewer lines.
  return field.kind === "json" ? jsonDraft({}) : formDraft(field, undefined);
}

/** An earlier payload, as a form if the form can show all of it. */
export function draftOfPayload(field: FormField, payload: Json): CallDraft {
  return fitsForm(field, payload) && field.kind !== "json"
    ? formDraft(field, payload)
    : jsonDraft(payload);
}

/** The draft with another value in a field of the form. */
export function withFieldDraft(
  field: FormField,
  call: CallDraft,
  path: JsonPath,
  value: Draft,
): CallDraft {
  return { ...call, draft: withDraft(field, call.draft, path, value) };
}

/** The payload in the other mode, or the same draft if that is impossible. */
export function switchMode(
  field: FormField,
  call: CallDraft,
  mode: CallDraft["mode"],
  read: ReadDraft,
): CallDraft {
  if (mode === call.mode) return call;
  if (mode === "json") return jsonDraft(read.payload ?? {});
  const parsed = parseJson(call.text, {});
  return parsed.ok && fitsForm(field, parsed.value) ? formDraft(field, parsed.value) : call;
}

/** Why the payload cannot be shown as a form; `null`: it can. */
export function noFormReason(field: FormField, call: CallDraft): string | null {
  if (call.mode === "form") return null;
  if (field.kind === "json") return "The function does not say what it takes";
  const parsed = parseJson(call.text, {});
  if (!parsed.ok) return "This is not JSON yet";
  return fitsForm(field, parsed.value) ? null : "The form cannot show all of this payload";
}

/** The payload to send and its errors. */
export function readDraftedCall(
  schema: Json | undefined,
  field: FormField,
  call: CallDraft,
): ReadDraft {
  if (call.mode === "form") return readDraft(schema, field, call.draft);
  const errors = (value: Json) => schema === undefined ? [] : validate(schema, value);
  // The engine takes a missing payload as null.
  if (call.text.trim() === "") return { payload: undefined, problems: errors(null) };
  const parsed = parseJson(call.text);
  if (!parsed.ok) return { payload: undefined, problems: [{ path: [], message: parsed.message }] };
  return { payload: parsed.value, problems: errors(parsed.value) };
}

/** A typed timeout in milliseconds; `undefined`: it is invalid. */
export function readTimeout(text: string): number | undefined {
  if (text.trim() === "") return CALL_TIMEOUT_MS;
  const ms = Number(text);
  return Number.isInteger(ms) && ms > 0 && ms <= TIMEOUT_MS_MAX ? ms : undefined;
}

function formDraft(field: FormField, payload: Json | undefined): CallDraft {
  return { mode: "form", draft: draftOf(field, payload), text: "" };
}

function jsonDraft(payload: Json): CallDraft {
  return { mode: "json", draft: undefined, text: JSON.stringify(payload, null, 2) };
}

/** An earlier call. */
export interface PastCall {
  readonly function_id: string;
  readonly namespace: string;
  /** `null` also when it was left out. */
  readonly payload: Json;
  /** Milliseconds since 1970. */
  readonly at_ms: number;
  readonly duration_ms: number;
  /** `null`: it succeeded. */
  readonly error_code: string | null;
}

/** Stores texts by name. Neither method throws; what was written may be lost. */
export interface TextStore {
  read(name: string): string | null;
  write(name: string, text: string): void;
}

/** All stored calls, the newest first. */
export function readHistory(store: TextStore): PastCall[] {
  try {
    const kept: unknown = JSON.parse(store.read(STORAGE_NAME) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isPastCall).slice(0, ENTRIES_MAX) : [];
  } catch {
    return []; // Not written by this page.
  }
}

/** The calls of one function. */
export function historyOf(
  calls: readonly PastCall[],
  namespace: string,
  function_id: string,
): PastCall[] {
  return calls.filter((call) => call.function_id === function_id && call.namespace === namespace);
}

/** Stores a call, in place of one with the same payload, and returns all. */
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

/** Removes the calls of one function and returns the rest. */
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
  store.write(STORAGE_NAME, text);
}

function isPastCall(value: unknown): value is PastCall {
  return isObject(value) && typeof value["function_id"] === "string" &&
    typeof value["namespace"] === "string" && value["payload"] !== undefined &&
    Number.isFinite(value["at_ms"]) && Number.isFinite(value["duration_ms"]) &&
    (value["error_code"] === null || typeof value["error_code"] === "string");
}
