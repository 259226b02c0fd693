/**
 * Schemas: one definition gives the check, the type and the JSON Schema of a value.
 *
 * This is valibot, imported as `import * as v from "../kit/schema.ts"`, with three differences for
 * values that come from other programs and from people: an object is never a list, each unknown key
 * of a strict object is an issue of its own, and for a missing member the issue says what it should
 * have been.
 *
 * @module
 */
import { toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";

export * from "valibot";

/** A schema of any value. */
export type Schema<Output = unknown> = v.GenericSchema<unknown, Output>;

/** An object; unknown keys are left out of the output. */
export function object<const Entries extends v.ObjectEntries>(
  entries: Entries,
): v.ObjectSchema<Entries, undefined> {
  return withoutLists(v.object(entries));
}

/** An object in which every unknown key is an issue. */
export function strictObject<const Entries extends v.ObjectEntries>(
  entries: Entries,
): v.StrictObjectSchema<Entries, undefined> {
  // valibot's own reports the first unknown key only.
  return withoutLists(v.strictObject(entries), v.objectWithRest(entries, v.never()));
}

/** An object that keeps unknown keys. */
export function looseObject<const Entries extends v.ObjectEntries>(
  entries: Entries,
): v.LooseObjectSchema<Entries, undefined> {
  return withoutLists(v.looseObject(entries));
}

/** An object with any keys, all of whose values fit one schema. */
export function record<const Value extends v.GenericSchema>(
  value: Value,
): v.RecordSchema<v.StringSchema<undefined>, Value, undefined> {
  return withoutLists(v.record(v.string(), value));
}

/** A list with a maximum length; the items of a longer one are not checked. */
export function list<const Item extends v.GenericSchema>(
  item: Item,
  lengthMax: number,
): v.GenericSchema<unknown[], v.InferOutput<Item>[]> {
  const any = { ...anyList(), [LIST]: { item, lengthMax } };
  return v.pipe(any, v.maxLength(lengthMax), v.array(item));
}

/** Marks the first schema of {@linkcode list} with what its JSON Schema says. */
const LIST = Symbol("list");

interface MarkedList {
  readonly [LIST]?: { readonly item: Schema; readonly lengthMax: number };
}

/** A list whose items are not looked at, however many there are. */
function anyList(): v.ArraySchema<v.UnknownSchema, undefined> {
  const schema = v.array(v.unknown());
  return {
    ...schema,
    "~run"(dataset, config) {
      if (!Array.isArray(dataset.value)) return schema["~run"](dataset, config);
      return Object.assign(dataset, { typed: true as const }) as v.OutputDataset<
        unknown[],
        v.ArrayIssue
      >;
    },
  };
}

/** A text with a minimum and a maximum length in UTF-16 code units. */
export function text(
  lengthMin: number,
  lengthMax: number = Infinity,
): v.GenericSchema<string> {
  const atLeast = v.pipe(v.string(), v.minLength(lengthMin));
  return lengthMax === Infinity ? atLeast : v.pipe(atLeast, v.maxLength(lengthMax));
}

/** A whole number that a double holds exactly, with bounds. */
export function int(min: number = -Infinity, max: number = Infinity): v.GenericSchema<number> {
  const whole = v.pipe(v.number(), v.safeInteger());
  const atLeast = min === -Infinity ? whole : v.pipe(whole, v.minValue(min));
  return max === Infinity ? atLeast : v.pipe(atLeast, v.maxValue(max));
}

/** A member that may be left out; `null` means left out, as everywhere on the wire. */
export function opt<const Value extends v.GenericSchema>(
  value: Value,
): v.SchemaWithPipe<
  readonly [
    v.NullishSchema<Value, undefined>,
    v.TransformAction<v.InferOutput<Value> | null | undefined, v.InferOutput<Value> | undefined>,
  ]
> {
  return v.pipe(v.nullish(value), v.transform((given) => given ?? undefined));
}

/**
 * A member with a text for people: unit, default, bounds that the type does not say.
 *
 * valibot's own `description` is lost behind a transformation, such as that of {@linkcode opt}.
 */
export function described<const Of extends Schema>(text: string, schema: Of): Of {
  return { ...schema, [TEXT]: text };
}

/** Marks a schema with its text. */
const TEXT = Symbol("text");

/** Parts of valibot's schemas that lead to the members of an object. */
interface Nested {
  readonly [TEXT]?: string;
  readonly entries?: Readonly<Record<string, Nested>>;
  readonly wrapped?: Nested;
  readonly pipe?: readonly Nested[];
}

/** Adds the texts of members to a JSON Schema that was made from their schema. */
function addTexts(schema: Nested, made: JsonObject): void {
  const { entries, wrapped, pipe } = schema;
  if (wrapped) return addTexts(wrapped, made);
  if (!entries) return pipe?.[0] && pipe[0] !== schema ? addTexts(pipe[0], made) : undefined;
  const choices = [made, ...(made.anyOf as JsonObject[] | undefined) ?? []];
  const members = choices.find(({ properties }) => properties)?.properties as
    | Record<string, JsonObject>
    | undefined;
  for (const [key, entry] of Object.entries(entries)) {
    const member = members?.[key];
    if (!member) continue;
    if (entry[TEXT] !== undefined) member.description = entry[TEXT];
    addTexts(entry, member);
  }
}

/** The JSON Schema of what a schema takes. */
export function jsonSchema(schema: Schema): JsonObject {
  const made = toJsonSchema(schema, {
    target: "draft-2020-12",
    typeMode: "input",
    errorMode: "ignore", // A check in code has no JSON Schema.
    overrideSchema: ({ valibotSchema }) => {
      const marked = (valibotSchema as MarkedList)[LIST];
      if (!marked) return undefined;
      const { $schema: _, ...items } = jsonSchema(marked.item);
      return { type: "array", maxItems: marked.lengthMax, items: items as never };
    },
  }) as JsonObject;
  addTexts(schema as Nested, made);
  return made;
}

/**
 * The schema of an object with a check that takes no list for one, and that checks missing members
 * as `undefined`.
 */
function withoutLists<Of extends v.GenericSchema & { readonly entries?: v.ObjectEntries }>(
  schema: Of,
  checked: v.GenericSchema = schema,
): Of {
  const required = Object.entries(schema.entries ?? {})
    .filter(([, { type }]) => type !== "nullish" && type !== "optional").map(([key]) => key);
  const missing = Object.fromEntries(required.map((key) => [key, undefined]));
  return {
    ...schema,
    "~run"(dataset, config) {
      const { value } = dataset;
      if (Array.isArray(value)) dataset.value = undefined;
      else if (typeof value === "object" && value !== null) {
        if (required.some((key) => !(key in value))) dataset.value = { ...missing, ...value };
      }
      return checked["~run"](dataset, config);
    },
  };
}
