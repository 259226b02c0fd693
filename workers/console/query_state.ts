/**
 * The last result of a watched query, and what another one changes of it.
 *
 * Items are compared by their JSON text, which is made once and sent to every page as it is.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { memberOf } from "./engine_client.ts";
import type { WatchedQuery } from "./wire.ts";

/** What changed. Items are JSON texts. */
export type QueryChange =
  | { readonly type: "none" }
  | { readonly type: "patch"; readonly set: readonly string[]; readonly gone: readonly string[] }
  | { readonly type: "all" };

/** See the top of this file. */
export class QueryState {
  readonly #query: WatchedQuery;
  /** Texts of the items by key, or by place for a query without keys. */
  #items: ReadonlyMap<string, string> = new Map();
  #value = "null";
  #isKnown = false;

  /** Knows nothing yet. */
  constructor(query: WatchedQuery) {
    this.#query = query;
  }

  /** Whether there was a result. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Forgets the result, so that the next one counts as all new. */
  forget(): void {
    this.#isKnown = false;
    this.#items = new Map();
    this.#value = "null";
  }

  /** The message that says all of it, for a watch. */
  whole(id: number): string {
    return this.#query.items === undefined
      ? `{"type":"value","id":${id},"value":${this.#value}}`
      : `{"type":"snapshot","id":${id},"items":[${[...this.#items.values()].join(",")}]}`;
  }

  /**
   * Takes another result and says what it changes.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` when it has no list where the query says it is.
   */
  take(result: Json | undefined): QueryChange {
    const wasKnown = this.#isKnown;
    const change = this.#query.items === undefined
      ? this.#takeValue(result)
      : this.#takeItems(listIn(result, this.#query.items), this.#query.key);
    this.#isKnown = true;
    return wasKnown ? change : { type: "all" };
  }

  #takeValue(result: Json | undefined): QueryChange {
    const text = JSON.stringify(result ?? null);
    if (text === this.#value) return { type: "none" };
    this.#value = text;
    return { type: "all" };
  }

  #takeItems(list: readonly Json[], key: readonly string[] | undefined): QueryChange {
    const before = this.#items;
    const items = new Map<string, string>();
    for (const [place, item] of list.entries()) {
      items.set(key ? keyOf(item, key) : String(place), JSON.stringify(item));
    }
    const set = [...items].filter(([name, text]) => before.get(name) !== text).map(([, text]) =>
      text
    );
    this.#items = items;
    const gone = [...before.keys()].filter((name) => !items.has(name));
    if (set.length === 0 && gone.length === 0) return { type: "none" };
    const isMost = set.length + gone.length >= items.size;
    return key && !isMost ? { type: "patch", set, gone } : { type: "all" };
  }
}

/** The message with what changed, for a watch. */
export function patchMessage(
  id: number,
  { set, gone }: { readonly set: readonly string[]; readonly gone: readonly string[] },
): string {
  return `{"type":"patch","id":${id},"set":[${set.join(",")}],"gone":${JSON.stringify(gone)}}`;
}

/** Names an item: JSON of the array of its key's values. */
function keyOf(item: Json, key: readonly string[]): string {
  return JSON.stringify(key.map((name) => memberOf(item, name) ?? null));
}

function listIn(result: Json | undefined, name: string): readonly Json[] {
  const list = memberOf(result, name);
  if (Array.isArray(list)) return list;
  throw new EngineError("INVALID_ARGUMENTS", `The result has no list named ${name}`);
}
