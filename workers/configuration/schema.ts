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

/** Makes another value of one, part by part; `undefined`: the part stays. */
type Replace = (part: Json, schemas: readonly JsonObject[], old: Json | undefined) =>
  | Json
  | undefined;

/** @throws {RangeError} When there is too much to look at. What `replace` throws. */
function replaced(schema: Json, value: Json, old: Json | undefined, replace: Replace): Json {
  const walk = new Walk(schema);
  const visit = (
    part: Json,
    schemas: readonly JsonObject[],
    before: Json | undefined,
    depth: number,
  ): Json => {
    walk.count();
    if (depth > DEPTH_MAX) throw new RangeError("nested too deeply");
    const other = replace(part, schemas, before);
    if (other !== undefined) return other;
    if (Array.isArray(part)) {
      const olds = Array.isArray(before) ? before : [];
      return part.map((item, i) => visit(item, walk.itemSchemas(schemas, i), olds[i], depth + 1));
    }
    if (!isObject(part)) return part;
    const olds = isObject(before) ? before : {};
    const made: JsonObject = Object.create(null);
    for (const [name, item] of Object.entries(part)) {
      const was = Object.hasOwn(olds, name) ? olds[name] : undefined;
      made[name] = visit(item, walk.memberSchemas(schemas, name), was, depth + 1);
    }
    return { ...made };
  };
  return visit(value, walk.schemasOf(schema), old, 0);
}

/** The value with all secrets replaced by `[redacted]`. */
export function masked(schema: Json, value: Json): Json {
  try {
    return replaced(schema, value, undefined, (_, schemas) => {
      return schemas.some(isSecret) ? REDACTED : undefined;
    });
  } catch (thrown) {
    if (thrown instanceof RangeError || thrown instanceof URIError) return REDACTED;
    throw thrown;
  }
}

/** The value with the old secrets where it has `[redacted]` in their place. */
export function unmasked(schema: Json, value: Json, old: Json | undefined): Json {
  if (old === undefined) return value;
  return replaced(schema, value, old, (part, schemas, before) => {
    return part === REDACTED && schemas.some(isSecret) ? before : undefined;
  });
}

/**
 * The value with every text replaced that `expand` has something for. A text that is a number or a
 * boolean afterwards becomes one where the schema has no text.
 *
 * @throws What `expand` throws.
 */
export function expanded(schema: Json, value: Json, expand: (text: string) => string): Json {
  return replaced(schema, value, undefined, (part, schemas) => {
    if (typeof part !== "string") return undefined;
    const text = expand(part);
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

function isSecret(schema: JsonObject): boolean {
  return schema["x-secret"] === true;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
