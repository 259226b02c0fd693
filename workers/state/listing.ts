/**
 * Reading many entries of a scope without holding more of them in memory than needed.
 *
 * A page starts small and grows while its entries are small, so that a scope of large values is
 * read one by one and a scope of small ones in few steps.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { STATE_ANSWER_BYTES_MAX } from "../limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { StateEntries, StateEntry } from "./entries.ts";

const PAGE_FIRST = 16;
const PAGE_MAX = 1_000;
/** A page that has more is followed by a smaller one. */
const PAGE_BYTES = 1024 * 1024;

/** Which entries of a scope. */
export interface EntriesQuery {
  readonly scope: string;
  readonly prefix: string;
  readonly limit: number;
  readonly cursor: string | undefined;
}

/**
 * All values of a scope, the oldest entry first.
 *
 * @throws {EngineError} `LIST_ERROR` when they are too large for one answer.
 */
export async function listValues(entries: StateEntries, scope: string): Promise<Json[]> {
  const found: StateEntry[] = [];
  let bytes = 0;
  for await (const entry of readScope(entries, scope, undefined)) {
    bytes += entry.bytes;
    if (bytes > STATE_ANSWER_BYTES_MAX) {
      const message = `Scope ${scope} is too large for one answer; use state::list_entries`;
      throw new EngineError("LIST_ERROR", message, { details: { scope } });
    }
    found.push(entry);
  }
  return found.sort((a, b) => a.created - b.created).map(({ value }) => value);
}

/** One page of entries in key order, and a cursor if there are more. */
export async function listEntries(entries: StateEntries, query: EntriesQuery): Promise<JsonObject> {
  const { scope, prefix, limit, cursor } = query;
  const page: JsonObject[] = [];
  let bytes = 0;
  let last = cursor;
  for await (const entry of readPrefix(entries, scope, prefix, cursor)) {
    bytes += entry.bytes;
    const isFull = page.length === limit || bytes > STATE_ANSWER_BYTES_MAX;
    if (isFull && page.length > 0) return { entries: page, cursor: last! };
    const { key, value, version } = entry;
    page.push({ key, value, version });
    last = key;
  }
  return { entries: page };
}

/** Names of all scopes that have keys, sorted. */
export async function listScopes(entries: StateEntries): Promise<string[]> {
  const names: string[] = [];
  let page: string[];
  do {
    page = await entries.scopes(PAGE_MAX, names.at(-1));
    names.push(...page);
  } while (page.length === PAGE_MAX);
  return names;
}

/** Entries whose key starts with a prefix; a key that is the prefix itself sorts before them. */
async function* readPrefix(
  entries: StateEntries,
  scope: string,
  prefix: string,
  cursor: string | undefined,
): AsyncGenerator<StateEntry> {
  if (cursor === undefined && prefix !== "") {
    const exact = await entries.get({ scope, key: prefix });
    if (exact) yield exact;
  }
  for await (const entry of readScope(entries, scope, cursor ?? (prefix || undefined))) {
    if (!entry.key.startsWith(prefix)) return;
    yield entry;
  }
}

async function* readScope(
  entries: StateEntries,
  scope: string,
  after: string | undefined,
): AsyncGenerator<StateEntry> {
  let limit = PAGE_FIRST;
  let last = after;
  do {
    const page = await entries.list(scope, limit, last);
    yield* page.entries;
    last = page.last;
    const bytes = page.entries.reduce((sum, entry) => sum + entry.bytes, 0);
    limit = bytes > PAGE_BYTES ? Math.ceil(limit / 4) : Math.min(PAGE_MAX, limit * 4);
  } while (last !== undefined);
}
