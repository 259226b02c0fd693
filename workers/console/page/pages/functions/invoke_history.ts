/**
 * What was called from this browser, kept in the browser: payloads and how it went, never results.
 *
 * Bounded in entries and characters, the newest first. What is in the store may be anybody's text
 * (another version, another tab), so it is checked when it is read.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { isObject, sameJson } from "./schema_fit.ts";

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
