/**
 * The last result of a watched query, and the difference to the next one.
 *
 * Items are compared by their JSON text, which is made once and sent to every page as it is.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { memberOf } from "./engine_client.ts";
import type { WatchedQuery } from "./wire.ts";

/** A difference. Items are JSON texts; `all`: the whole result is to be sent. */
export type QueryChange =
  | { readonly type: "none" }
  | { readonly type: "patch"; readonly set: readonly string[]; readonly gone: readonly string[] }
  | { readonly type: "all" };

/** See the module. */
export class QueryState {
  readonly #query: WatchedQuery;
  /** Texts of the items by key; of a query without keys by index. */
  #items: ReadonlyMap<string, string> = new Map();
  #value = "null";
  #isKnown = false;

  constructor(query: WatchedQuery) {
    this.#query = query;
  }

  /** Characters of the last result. */
  get chars(): number {
    let chars = this.#value.length;
    for (const text of this.#items.values()) chars += text.length;
    return chars;
  }

  /** Whether there was a result. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Drops the result, so that the next one is reported whole. */
  forget(): void {
    this.#isKnown = false;
    this.#items = new Map();
    this.#value = "null";
  }

  /** The message with the whole result, for the watch with this id. */
  wholeMessage(id: number): string {
    return this.#query.items === undefined
      ? `{"type":"value","id":${id},"value":${this.#value}}`
      : `{"type":"snapshot","id":${id},"items":[${[...this.#items.values()].join(",")}]}`;
  }

  /**
   * Replaces the result and returns the difference.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` when it has no list where the query says it is.
   */
  update(result: Json | undefined): QueryChange {
    const wasKnown = this.#isKnown;
    const change = this.#query.items === undefined
      ? this.#updateValue(result)
      : this.#updateItems(listIn(result, this.#query.items), this.#query.key);
    this.#isKnown = true;
    return wasKnown ? change : { type: "all" };
  }

  #updateValue(result: Json | undefined): QueryChange {
    const text = JSON.stringify(result ?? null);
    if (text === this.#value) return { type: "none" };
    this.#value = text;
    return { type: "all" };
  }

  #updateItems(list: readonly Json[], key: readonly string[] | undefined): QueryChange {
    const before = this.#items;
    const items = new Map<string, string>();
    for (const [index, item] of list.entries()) {
      items.set(key ? keyOf(item, key) : String(index), JSON.stringify(item));
    }
    this.#items = items;
    const changed = [...items].filter(([name, text]) => before.get(name) !== text);
    const set = changed.map(([, text]) => text);
    const gone = [...before.keys()].filter((name) => !items.has(name));
    if (set.length === 0 && gone.length === 0) return { type: "none" };
    const isMost = set.length + gone.length >= items.size;
    return key && !isMost ? { type: "patch", set, gone } : { type: "all" };
  }
}

/** The message with a difference, for the watch with this id. */
export function patchMessage(
  id: number,
  { set, gone }: { readonly set: readonly string[]; readonly gone: readonly string[] },
): string {
  return `{"type":"patch","id":${id},"set":[${set.join(",")}],"gone":${JSON.stringify(gone)}}`;
}

/** The key of an item: JSON of the array of its key members' values. */
function keyOf(item: Json, key: readonly string[]): string {
  return JSON.stringify(key.map((name) => memberOf(item, name) ?? null));
}

function listIn(result: Json | undefined, name: string): readonly Json[] {
  const list = memberOf(result, name);
  if (Array.isArray(list)) return list;
  throw new EngineError("INVALID_ARGUMENTS", `The result has no list named ${name}`);
}
