/**
 * What is typed for a call besides its payload, and the payloads of earlier calls.
 *
 * @module
 */
import { CALL_TIMEOUT_MS, TIMEOUT_MS_MAX } from "../../../../../sdk/typescript/wire/limits.ts";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { isObject, sameJson } from "../../kit/json.ts";

/** Calls stored per function. */
const PER_FUNCTION_MAX = 20;
/** Calls stored in all. */
const ENTRIES_MAX = 200;
/** Longest payload that is stored, in characters of JSON. */
const PAYLOAD_CHARS_MAX = 16 * 1024;
/** Characters of the whole history. */
const CHARS_MAX = 512 * 1024;
const STORAGE_NAME = "invocations";

/** A typed timeout in milliseconds; `undefined`: it is invalid. */
export function readTimeout(text: string): number | undefined {
  if (text.trim() === "") return CALL_TIMEOUT_MS;
  const ms = Number(text);
  return Number.isInteger(ms) && ms > 0 && ms <= TIMEOUT_MS_MAX ? ms : undefined;
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
