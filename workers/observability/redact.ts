/**
 * Redacts secrets in payloads and log data, by member name or by place.
 *
 * A name matches members at any depth; a JSON pointer such as `/card/number` matches one place of
 * the value. A matching value becomes `[redacted]`; everything else stays unchanged.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Levels of a payload or of a log's data that are searched for secrets. */
const TELEMETRY_DEPTH_MAX = 64;

/** Replaces a secret. */
export const REDACTED = "[redacted]";
/** Replaces a value that is nested too deeply to be searched. */
const TOO_DEEP = "[too deep]";

/** Names that are always redacted. */
const BUILT_IN = [
  "pass*",
  "*secret*",
  "*token*",
  "*authorization",
  "cookie",
  "set_cookie",
  "*api_key*",
  "credential*",
  "private_key",
];

/** Replaces what is beyond {@linkcode SEARCHED_PARTS_MAX}. */
const TOO_MUCH = "[too much]";
/**
 * Members, objects and arrays of a value that are searched for secrets; what follows is left out.
 * Their JSON is longer than the text that a record may have, so no record would show more.
 */
export const SEARCHED_PARTS_MAX = 32_768;

/** Names whose result is cached. */
const CACHED_NAMES_MAX = 10_000;

/** JSON pointers as a tree; `*` is any member. */
interface Place {
  isHit: boolean;
  readonly below: Map<string, Place>;
}

/** Applies the built-in and the configured rules. */
export class Redactor {
  readonly #name: RegExp;
  readonly #places: Place | undefined;
  readonly #hits = new Map<string, boolean>();
  /** Of the value that is being searched. */
  #partsLeft = 0;

  /**
   * `rules`: names, in which `*` matches anything, and JSON pointers; added to the built-in ones.
   */
  constructor(rules: readonly string[] = []) {
    const names = [...BUILT_IN, ...rules.filter((rule) => !rule.startsWith("/"))];
    this.#name = new RegExp(`^(?:${names.map(patternOf).join("|")})$`, "is");
    const pointers = rules.filter((rule) => rule.startsWith("/"));
    this.#places = pointers.length > 0 ? treeOf(pointers) : undefined;
  }

  /** Whether members with this name are redacted. */
  hits(name: string): boolean {
    const known = this.#hits.get(name);
    if (known !== undefined) return known;
    const isHit = this.#name.test(name);
    if (this.#hits.size < CACHED_NAMES_MAX && name.length < 200) this.#hits.set(name, isHit);
    return isHit;
  }

  /** A redacted copy; the value itself if it contains no secrets. */
  value(value: Json): Json {
    this.#partsLeft = SEARCHED_PARTS_MAX;
    return this.#clean(value, this.#places, 0);
  }

  /** The same for JSON text; `null` if it is not JSON. */
  text(json: string): string | null {
    try {
      const value = JSON.parse(json) as Json;
      const clean = this.value(value);
      return clean === value ? json : JSON.stringify(clean);
    } catch {
      return null; // Cannot be searched for secrets.
    }
  }

  #clean(value: Json, place: Place | undefined, depth: number): Json {
    if (place?.isHit) return REDACTED;
    if (value === null || typeof value !== "object") return value;
    if (depth > TELEMETRY_DEPTH_MAX) return TOO_DEEP;
    if (this.#partsLeft-- <= 0) return TOO_MUCH;
    return Array.isArray(value)
      ? this.#cleanArray(value, place, depth)
      : this.#cleanObject(value, place, depth);
  }

  #cleanArray(items: Json[], place: Place | undefined, depth: number): Json {
    let changed: Json[] | undefined;
    items.forEach((item, i) => {
      const clean = this.#clean(item, memberOf(place, String(i)), depth + 1);
      if (clean !== item) (changed ??= [...items])[i] = clean;
    });
    return changed ?? items;
  }

  #cleanObject(object: JsonObject, place: Place | undefined, depth: number): Json {
    let changed: JsonObject | undefined;
    const names = Object.keys(object);
    if (names.length > this.#partsLeft) {
      return this.#cleanObject(startOf(object, names, this.#partsLeft), place, depth);
    }
    this.#partsLeft -= names.length;
    for (const name of names) {
      const item = object[name]!;
      const clean = this.hits(name)
        ? REDACTED
        : this.#clean(item, memberOf(place, name), depth + 1);
      if (clean === item) continue;
      changed ??= { ...object };
      // Assigning to this name would change the prototype instead.
      if (name === "__proto__") Object.defineProperty(changed, name, { ...PLAIN, value: clean });
      else changed[name] = clean;
    }
    return changed ?? object;
  }
}

/** The first members of an object, in an object of their own. */
function startOf(object: JsonObject, names: readonly string[], count: number): JsonObject {
  const entries = names.slice(0, Math.max(0, count)).map((name) => [name, object[name]!] as const);
  return Object.fromEntries(entries);
}

const PLAIN = { configurable: true, enumerable: true, writable: true };

/** `api_key` also matches `apiKey` and `api-key`. */
function patternOf(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9]/g, (c) => {
    if (c === "*") return ".*";
    if (c === "_" || c === "-") return "[-_]?";
    return `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

function treeOf(pointers: readonly string[]): Place {
  const root: Place = { isHit: false, below: new Map() };
  for (const pointer of pointers) {
    let at = root;
    for (const part of pointer.slice(1).split("/")) {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      let next = at.below.get(name);
      if (!next) at.below.set(name, next = { isHit: false, below: new Map() });
      at = next;
    }
    at.isHit = true;
  }
  return root;
}

function memberOf(place: Place | undefined, name: string): Place | undefined {
  if (!place) return undefined;
  const own = place.below.get(name);
  const any = place.below.get("*");
  if (!own || !any) return own ?? any;
  return { isHit: own.isHit || any.isHit, below: new Map([...any.below, ...own.below]) };
}
