/**
 * Bounds the work of a check: counts the parts of a schema, and has the compiled check count steps.
 *
 * ajv's code takes time that grows exponentially with the depth of a value for some schemas (two
 * `items` that refer to their own schema), and with the product of schema and value for others. So
 * {@linkcode meterSchema} rewrites a schema: a keyword in front of all others in each subschema
 * counts what applying it costs, and {@linkcode Steps} ends a check that takes too many. That
 * depends on the schema and the value only, never on how busy the machine is.
 *
 * Unknown keywords are left out, so that no reference reaches a subschema that is not counted.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Subschemas of one schema. */
export const SUBSCHEMAS_MAX = 500;
/** References (`$ref`, `$dynamicRef`) of one schema. */
export const SCHEMA_REFS_MAX = 250;
/** Expressions (`pattern`, `patternProperties`) of one schema. */
export const SCHEMA_PATTERNS_MAX = 100;
/** Steps that checking any value may take; one takes about 10 ns. */
export const CHECK_STEPS = 5_000_000;
/** Further steps for each part of the value, so that large values can be checked. */
const STEPS_PER_PART = 16;
/** Parts of a value that count for that: no check takes over 15,000,000 steps. */
const COUNTED_PARTS_MAX = 625_000;

/** Name of the keyword that counts; a schema cannot have it, since unknown ones are left out. */
export const STEPS_KEYWORD = "engine:steps";

/** What applying a subschema costs: its {@linkcode STEPS_KEYWORD}. */
export type StepCost = readonly [
  /** Steps for any value. */
  own: number,
  /** How often it reads all items of a list without ending at the first that does not fit. */
  itemReads: number,
  /** How often it reads all members of an object. */
  memberReads: number,
  /** Subschemas in it, which may read the name of a member each. */
  nested: number,
];

const READS_MEMBERS = keywords(
  "additionalProperties propertyNames minProperties maxProperties unevaluatedProperties",
);

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const ONE = keywords(
  "not if then else propertyNames additionalProperties items contains",
  "unevaluatedItems unevaluatedProperties",
);
/** Those among them that forget the errors of their schema. */
const RESETS = keywords("not if");
const LISTS = keywords("anyOf oneOf allOf prefixItems");
const NAMED = keywords(
  "properties patternProperties dependentSchemas dependencies $defs definitions",
);
/** Keywords whose value has no schemas. */
const PLAIN = keywords(
  "$id $anchor $dynamicAnchor $ref $dynamicRef $recursiveAnchor $recursiveRef $async type nullable",
  "multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern",
  "maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required",
  "dependentRequired",
);
/** Keywords that only name a subschema, so that it needs no counting. */
const NAMES_ONLY = keywords("$id $anchor $dynamicAnchor $recursiveAnchor $defs definitions");
/** Characters of a list in a schema that cost a step. */
const LIST_CHARS = 2;
/** Longest name of a member that costs nothing more. */
const NAME_CHARS = 64;
/** Steps of an alternative, which makes an error when it does not fit, and of a reference. */
const BRANCH_STEPS = 40;
/** Steps of a subschema whose errors are forgotten. */
const RESET_STEPS = 10;
/** Steps of an item that `contains` reads, which makes an error each time it does not fit. */
const CONTAINED_STEPS = 100;
/** Steps that are counted before they are taken. */
const COUNTED_AHEAD = 100_000;
/** Steps of reading a member without knowing its name. */
export const MEMBER_STEPS = 40;

/** A schema that counts its steps. */
export interface MeteredSchema {
  readonly schema: boolean | JsonObject;
  /** Values of `enum` and `const`; in the schema stand their places in this list. */
  readonly allowed: readonly Json[];
  readonly subschemas: number;
}

/** Rewrites a schema. @throws {Error} It has too many parts. */
export function meterSchema(schema: boolean | JsonObject): MeteredSchema {
  const allowed: Json[] = [];
  const counts = { subschemas: 0, refs: 0, patterns: 0 };
  const readsMembers = JSON.stringify(schema).includes('"unevaluatedProperties"');

  const ofSchema = (raw: Json): Json => {
    if (raw === null || typeof raw !== "object" || Array.isArray(raw)) return raw;
    atMost("subschemas", ++counts.subschemas, SUBSCHEMAS_MAX);
    const before = counts.subschemas;
    const kept: [string, Json][] = [];
    let [own, items, members] = [1, 0, readsMembers ? 1 : 0];
    for (const [name, value] of Object.entries(raw)) {
      const found = ofKeyword(name, value);
      if (found === undefined) continue;
      kept.push([name, found.value]);
      own += found.steps;
      if (name === "contains") items++;
      if (READS_MEMBERS.has(name)) members++;
      if (name === "patternProperties") members += found.steps;
    }
    if (kept.some(([name]) => !NAMES_ONLY.has(name))) {
      const cost: StepCost = [own, items, members, counts.subschemas - before + 1];
      kept.push([STEPS_KEYWORD, cost as unknown as Json]);
    }
    return Object.fromEntries(kept);
  };
  const ofKeyword = (name: string, value: Json): { value: Json; steps: number } | undefined => {
    if (ONE.has(name)) return { value: ofSchema(value), steps: RESETS.has(name) ? RESET_STEPS : 1 };
    if (LISTS.has(name) && Array.isArray(value)) {
      return { value: value.map(ofSchema), steps: BRANCH_STEPS * value.length };
    }
    if (NAMED.has(name) && value !== null && typeof value === "object") {
      const named = Object.entries(value);
      if (name === "patternProperties") counts.patterns += named.length;
      atMost("expressions", counts.patterns, SCHEMA_PATTERNS_MAX);
      const schemas = named.map(([key, each]) => [key, ofSchema(each)] as const);
      return { value: Object.fromEntries(schemas), steps: named.length };
    }
    if (name === "enum" || name === "const") {
      return { value: allowed.push(value) - 1, steps: stepsOf(value) };
    }
    if (!PLAIN.has(name)) return undefined;
    if (name === "pattern") atMost("expressions", ++counts.patterns, SCHEMA_PATTERNS_MAX);
    if (name.endsWith("Ref") || name === "$ref") {
      atMost("references", ++counts.refs, SCHEMA_REFS_MAX);
      return { value, steps: BRANCH_STEPS };
    }
    return { value, steps: stepsOf(value) };
  };
  return { schema: ofSchema(schema) as boolean | JsonObject, allowed, ...counts };
}

function atMost(what: string, count: number, max: number): void {
  if (count > max) throw new Error(`it has more than ${max} ${what}; split it or leave some out`);
}

function stepsOf(value: Json): number {
  return value === null || typeof value !== "object"
    ? 1
    : Math.ceil(JSON.stringify(value).length / LIST_CHARS);
}

function keywords(...lists: readonly string[]): ReadonlySet<string> {
  return new Set(lists.join(" ").split(" "));
}

/** Thrown by a check that takes too many steps. */
export class OutOfSteps extends Error {
  override readonly name = "OutOfSteps";
}

/** Counts the steps of one check at a time. */
export class Steps {
  #left = 0;
  /** The value whose parts still count; `undefined` once they did. */
  #value: { readonly of: Json } | undefined;

  /** Steps that the running check has left. */
  get left(): number {
    return this.#left;
  }

  /** Starts the check of `value`, which gets `steps`, and more for many parts if `countsParts`. */
  start(value: Json, steps: number, countsParts: boolean): void {
    this.#left = steps;
    this.#value = countsParts ? { of: value } : undefined;
  }

  /** Ends the check, so that its value is not kept. */
  end(): void {
    this.#value = undefined;
  }

  /** Takes steps. @throws {OutOfSteps} There are not so many left. */
  take(steps: number): void {
    if ((this.#left -= steps) >= 0) return;
    if (this.#value) {
      this.#left += STEPS_PER_PART * countParts(this.#value.of, COUNTED_PARTS_MAX);
      this.#value = undefined;
    }
    if (this.#left < 0) throw new OutOfSteps("The check takes too many steps");
  }

  /** Gives back steps that were taken in advance. */
  giveBack(steps: number): void {
    this.#left += steps;
  }

  /** Takes the steps of applying a subschema to `data`. @throws {OutOfSteps} */
  readonly apply = ([own, items, members, nested]: StepCost, data: unknown): void => {
    let steps = own;
    if (Array.isArray(data)) steps += items * data.length * CONTAINED_STEPS;
    else if (members > 0 && data !== null && typeof data === "object") {
      for (const name in data) {
        steps += members * MEMBER_STEPS;
        if (name.length > NAME_CHARS) steps += nested * name.length;
        if (steps < COUNTED_AHEAD) continue;
        this.take(steps);
        steps = 0;
      }
    }
    this.take(steps);
  };
}

/** Nesting that is counted; a frame of the wire has less. */
const COUNTED_DEPTH_MAX = 1_000;

/** The number of values in a value, itself included; stops at about `max`. */
export function countParts(value: Json, max: number): number {
  let count = 0;
  const add = (part: Json, depth: number): void => {
    count++;
    if (part === null || typeof part !== "object" || depth > COUNTED_DEPTH_MAX) return;
    if (Array.isArray(part)) {
      for (let at = 0; at < part.length && count < max; at++) add(part[at]!, depth + 1);
      return;
    }
    for (const name in part) {
      add(part[name]!, depth + 1);
      if (count >= max) return;
    }
  };
  add(value, 0);
  return count;
}
