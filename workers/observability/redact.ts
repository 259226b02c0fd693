/**
 * Takes out of payloads and log data what nobody should read there: by name, or by place.
 *
 * A name hits a member wherever it stands; a JSON pointer such as `/card/number` hits one place of
 * the whole value. What is hit becomes `[redacted]`; everything else stays as it is.
 *
 * @module
 */
import { TELEMETRY_DEPTH_MAX } from "../limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** What stands in place of what was taken out. */
export const REDACTED = "[redacted]";
/** What stands in place of what is nested too deep to be looked through. */
const TOO_DEEP = "[too deep]";

/** Names that are taken out whatever is configured. */
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

/** Names whose verdict is remembered. */
const VERDICTS_MAX = 10_000;

/** The places that pointers name, as a tree; `*` is any member. */
interface Place {
  isHit: boolean;
  readonly below: Map<string, Place>;
}

/** Takes secrets out. */
export class Redactor {
  readonly #name: RegExp;
  readonly #places: Place | undefined;
  readonly #verdicts = new Map<string, boolean>();

  /** `rules`: names, in which `*` stands for anything, and JSON pointers, besides the built-in. */
  constructor(rules: readonly string[] = []) {
    const names = [...BUILT_IN, ...rules.filter((rule) => !rule.startsWith("/"))];
    this.#name = new RegExp(`^(?:${names.map(patternOf).join("|")})$`, "is");
    const pointers = rules.filter((rule) => rule.startsWith("/"));
    this.#places = pointers.length > 0 ? treeOf(pointers) : undefined;
  }

  /** Whether what a member of this name holds is taken out. */
  hits(name: string): boolean {
    const known = this.#verdicts.get(name);
    if (known !== undefined) return known;
    const verdict = this.#name.test(name);
    if (this.#verdicts.size < VERDICTS_MAX && name.length < 200) this.#verdicts.set(name, verdict);
    return verdict;
  }

  /** A value without secrets; the value itself when it has none. */
  value(value: Json): Json {
    return this.#clean(value, this.#places, 0);
  }

  /** The same for JSON text; `null` when it is none. */
  text(json: string): string | null {
    try {
      const value = JSON.parse(json) as Json;
      const clean = this.value(value);
      return clean === value ? json : JSON.stringify(clean);
    } catch {
      return null; // Not JSON, so there is no telling what is in it.
    }
  }

  #clean(value: Json, place: Place | undefined, depth: number): Json {
    if (place?.isHit) return REDACTED;
    if (value === null || typeof value !== "object") return value;
    if (depth > TELEMETRY_DEPTH_MAX) return TOO_DEEP;
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
    for (const [name, item] of Object.entries(object)) {
      const clean = this.hits(name)
        ? REDACTED
        : this.#clean(item, memberOf(place, name), depth + 1);
      if (clean === item) continue;
      changed ??= { ...object };
      // A member of this name set by assignment would change the prototype instead.
      if (name === "__proto__") Object.defineProperty(changed, name, { ...PLAIN, value: clean });
      else changed[name] = clean;
    }
    return changed ?? object;
  }
}

const PLAIN = { configurable: true, enumerable: true, writable: true };

/** `api_key` also hits `apiKey` and `api-key`. */
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
