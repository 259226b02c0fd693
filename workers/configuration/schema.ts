/**
 * What a schema says about the parts of a value: which are secret, and which are not texts.
 *
 * A part is secret when a schema that applies to it has `"x-secret": true`. All branches of
 * `allOf`, `anyOf`, `oneOf`, `if`, `then` and `else` count, whichever holds, so that what one of
 * them calls a secret never shows.
 *
 * @module
 */
import { REDACTED } from "../observability/redact.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Schemas and values that are looked at for one value; beyond, all of it counts as secret. */
const STEPS_MAX = 100_000;
const DEPTH_MAX = 128;
const BRANCHES = ["allOf", "anyOf", "oneOf"] as const;
const CONDITIONS = ["if", "then", "else", "not"] as const;

/** Visits the parts of a value with all schemas that apply to each. */
class Walk {
  readonly #root: Json;
  #steps = 0;

  constructor(root: Json) {
    this.#root = root;
  }

  /** The schema itself, and all that it takes in. */
  schemasOf(schema: Json | undefined): JsonObject[] {
    const found: JsonObject[] = [];
    const seen = new Set<Json>();
    const add = (each: Json | undefined): void => {
      this.count();
      if (!isObject(each) || seen.has(each)) return;
      seen.add(each);
      found.push(each);
      if (typeof each.$ref === "string") add(this.#resolve(each.$ref));
      for (const name of BRANCHES) if (Array.isArray(each[name])) each[name].forEach(add);
      for (const name of CONDITIONS) add(each[name]);
    };
    add(schema);
    return found;
  }

  /** The schemas of a member of an object. */
  memberSchemas(schemas: readonly JsonObject[], name: string): JsonObject[] {
    const found: JsonObject[] = [];
    for (const { properties, patternProperties, additionalProperties } of schemas) {
      const own = isObject(properties) && Object.hasOwn(properties, name);
      if (own) found.push(...this.schemasOf((properties as JsonObject)[name]));
      // Whether a name fits is not asked: a secret that does not show is no harm.
      for (const each of isObject(patternProperties) ? Object.values(patternProperties) : []) {
        found.push(...this.schemasOf(each));
      }
      if (!own) found.push(...this.schemasOf(additionalProperties));
    }
    return found;
  }

  /** The schemas of an item of an array. */
  itemSchemas(schemas: readonly JsonObject[], index: number): JsonObject[] {
    return schemas.flatMap(({ items, prefixItems, contains }) => {
      const first = Array.isArray(prefixItems) ? prefixItems[index] : undefined;
      return [first, items, contains].flatMap((each) => this.schemasOf(each));
    });
  }

  /** @throws {RangeError} When there is too much to look at. */
  count(): void {
    if (++this.#steps > STEPS_MAX) throw new RangeError("too many steps");
  }

  #resolve(ref: string): Json | undefined {
    if (!ref.startsWith("#")) return undefined;
    let at: Json | undefined = this.#root;
    for (const part of ref.slice(1).split("/").slice(1)) {
      const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof at !== "object" || at === null) return undefined;
      at = Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined;
    }
    return at;
  }
}

/** A part of a value, and where it stands. */
interface Part {
  readonly value: Json;
  readonly schemas: readonly JsonObject[];
  /** A secret, or a part of one. */
  readonly isSecret: boolean;
  /** JSON Pointer. */
  readonly path: string;
  /** What it was before, and that with its secrets masked. */
  readonly old: Old | undefined;
}

interface Old {
  readonly value: Json;
  readonly shown: Json;
}

/** Makes another value of a part; `undefined`: its own parts are looked at. */
type Replace = (part: Part) => Json | undefined;

/** @throws {RangeError} When there is too much to look at. What `replace` throws. */
function replaced(schema: Json, value: Json, replace: Replace, old?: Old): Json {
  const walk = new Walk(schema);
  const visit = (seen: Omit<Part, "isSecret">, depth: number, isInSecret: boolean): Json => {
    walk.count();
    if (depth > DEPTH_MAX) throw new RangeError("nested too deeply");
    const { value, schemas, path } = seen;
    const part = { ...seen, isSecret: isInSecret || schemas.some(hasSecretMark) };
    const other = replace(part);
    if (other !== undefined) return other;
    if (Array.isArray(value)) {
      const olds = oldItems(value, part.old);
      return value.map((item, i) => {
        const its = walk.itemSchemas(schemas, i);
        const inside = { value: item, schemas: its, path: `${path}/${i}`, old: olds[i] };
        return visit(inside, depth + 1, part.isSecret);
      });
    }
    if (!isObject(value)) return value;
    const made: JsonObject = Object.create(null);
    for (const [name, item] of Object.entries(value)) {
      const its = walk.memberSchemas(schemas, name);
      const at = `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      const inside = { value: item, schemas: its, path: at, old: oldMember(part.old, name) };
      made[name] = visit(inside, depth + 1, part.isSecret);
    }
    return { ...made };
  };
  return visit({ value, schemas: walk.schemasOf(schema), path: "", old }, 0, false);
}

function oldMember(old: Old | undefined, name: string): Old | undefined {
  if (!isObject(old?.value) || !Object.hasOwn(old.value, name)) return undefined;
  return { value: old.value[name]!, shown: isObject(old.shown) ? old.shown[name]! : REDACTED };
}

/**
 * What the items of a list were before: those that look the same, wherever they stood, and in a
 * list of the same length those in the same place. A secret never goes to another item because
 * one before it was removed.
 */
function oldItems(items: readonly Json[], old: Old | undefined): (Old | undefined)[] {
  if (!Array.isArray(old?.value) || !Array.isArray(old.shown)) return [];
  const { value, shown } = old;
  const texts = items.map((item) => JSON.stringify(item));
  const before = shown.map((item) => JSON.stringify(item));
  const at = (i: number) => ({ value: value[i]!, shown: shown[i]! });
  const isLonger = before.every((text, i) => text === texts[i]);
  if (isLonger) return before.map((_, i) => at(i));
  const [places, counts] = [placesOf(before), placesOf(texts)];
  const found = texts.map((text, i) => {
    const [place, ...others] = places.get(text) ?? [];
    if (place === undefined) return undefined;
    if (others.length === 0 && counts.get(text)!.length === 1) return place;
    return texts.length === before.length && before[i] === text ? i : undefined;
  });
  const taken = new Set(found);
  return found.map((place, i) => {
    const inPlace = texts.length === before.length && !taken.has(i) ? i : undefined;
    const from = place ?? inPlace;
    return from === undefined ? undefined : at(from);
  });
}

/** Where each text stands in a list. */
function placesOf(texts: readonly string[]): Map<string, number[]> {
  const places = new Map<string, number[]>();
  texts.forEach((text, i) => {
    const own = places.get(text);
    if (own) own.push(i);
    else places.set(text, [i]);
  });
  return places;
}

/** The value with all secrets replaced by `[redacted]`. */
export function masked(schema: Json, value: Json): Json {
  try {
    return replaced(schema, value, ({ isSecret }) => isSecret ? REDACTED : undefined);
  } catch (thrown) {
    if (thrown instanceof RangeError || thrown instanceof URIError) return REDACTED;
    throw thrown;
  }
}

/** A value whose masked secrets were put back. */
export interface Unmasked {
  readonly value: Json;
  /** JSON Pointers of masked secrets that have none to keep. */
  readonly lost: readonly string[];
}

/** The value with the old secrets where it has `[redacted]` in their place. */
export function unmasked(schema: Json, value: Json, old: Json | undefined): Unmasked {
  const lost: string[] = [];
  const before = old === undefined ? undefined : { value: old, shown: masked(schema, old) };
  const whole = replaced(schema, value, ({ value, schemas, path, old }) => {
    if (value !== REDACTED || !schemas.some(hasSecretMark)) return undefined;
    if (old === undefined) lost.push(path);
    return old?.value;
  }, before);
  return { value: whole, lost };
}

/**
 * The value with every text replaced that `expand` has something for. A text that is a number or a
 * boolean afterwards becomes one where the schema has no text. `expand` hears which texts are
 * secret.
 *
 * @throws What `expand` throws.
 */
export function expanded(
  schema: Json,
  value: Json,
  expand: (text: string, isSecret: boolean) => string,
): Json {
  return replaced(schema, value, ({ value: part, schemas, isSecret }) => {
    if (typeof part !== "string") return undefined;
    const text = expand(part, isSecret);
    return text === part ? part : typed(text, schemas);
  });
}

/** Whether any part of the schema makes a part of a value secret. */
export function hasSecrets(schema: Json): boolean {
  return JSON.stringify(schema).includes('"x-secret":true');
}

function typed(text: string, schemas: readonly JsonObject[]): Json {
  const types = schemas.flatMap(({ type }) => type ?? []);
  if (types.includes("string")) return text;
  const isNumber = types.includes("number") || types.includes("integer");
  if (isNumber && text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
  if (types.includes("boolean") && (text === "true" || text === "false")) return text === "true";
  return text;
}

function hasSecretMark(schema: JsonObject): boolean {
  return schema["x-secret"] === true;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
