/**
 * The members of a JSON Schema as rows of a table: path, type with bounds, and meaning.
 *
 * @module
 */
import type { Json, JsonObject } from "../../mod.ts";

/** One member. */
export interface SchemaRow {
  /** Such as `queues{}.rate.jobs`; `[]` is any item of a list, `{}` any key of a mapping. */
  readonly path: string;
  readonly type: string;
  readonly required: boolean;
  readonly meaning: string;
}

/** Deeper members are left to the schema itself. */
const LEVELS_MAX = 6;

/** All members of an object's schema, those of inner objects behind theirs. */
export function schemaRows(schema: Json | undefined, path = "", level = 0): SchemaRow[] {
  if (!isObject(schema) || level > LEVELS_MAX) return [];
  const inner = withoutVariable(schema);
  const { properties, items, additionalProperties, required, anyOf } = inner;
  const needed = new Set(Array.isArray(required) ? required : []);
  const own = Object.entries(isObject(properties) ? properties : {}).flatMap(([key, each]) => {
    const at = path === "" ? key : `${path}.${key}`;
    const row: SchemaRow = {
      path: at,
      type: typeText(each),
      required: needed.has(key),
      meaning: meaningOf(each),
    };
    return [row, ...schemaRows(each, at, level + 1)];
  });
  return [
    ...own,
    ...(Array.isArray(anyOf) ? anyOf : []).flatMap((each) => schemaRows(each, path, level)),
    ...schemaRows(items, `${path}[]`, level + 1),
    ...schemaRows(additionalProperties, `${path}{}`, level + 1),
  ];
}

/** Its description, and its default if the description has none. */
function meaningOf(schema: Json | undefined): string {
  if (!isObject(schema)) return "";
  const text = typeof schema.description === "string" ? schema.description : "";
  if (schema.default === undefined || /default/i.test(text)) return text;
  return `${text === "" ? "" : `${text}. `}Default: ${valueText(schema.default)}`;
}

/** The type of a value in words: `integer, 1 to 64`. */
export function typeText(schema: Json | undefined): string {
  if (!isObject(schema)) return "any";
  const inner = withoutVariable(schema);
  const { type, anyOf, oneOf, items, additionalProperties } = inner;
  if (inner.const !== undefined) return valueText(inner.const);
  if (Array.isArray(inner.enum)) return inner.enum.map(valueText).join(", ");
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return [...new Set(choices.map(typeText))].join(" or ");
  const bounds = boundsText(inner);
  if (type === "array") {
    return items === undefined ? `list${bounds}` : `list of ${typeText(items)}${bounds}`;
  }
  if (type === "object" && isObject(additionalProperties)) {
    return `mapping of ${typeText(additionalProperties)}`;
  }
  const names = Array.isArray(type) ? type.join(" or ") : typeof type === "string" ? type : "any";
  return `${names}${bounds}`;
}

function valueText(value: Json): string {
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}

function boundsText({ minimum, maximum, minLength, maxLength, maxItems }: JsonObject): string {
  const number = (value: Json | undefined) => Number(value).toLocaleString("en");
  if (minimum !== undefined && maximum !== undefined) {
    return `, ${number(minimum)} to ${number(maximum)}`;
  }
  if (minimum !== undefined) return `, from ${number(minimum)}`;
  if (maximum !== undefined) return `, up to ${number(maximum)}`;
  if (maxLength !== undefined) {
    return `, ${number(minLength ?? 0)} to ${number(maxLength)} characters`;
  }
  if (maxItems !== undefined) return `, up to ${number(maxItems)}`;
  return "";
}

/** Without the variable that may stand in the place of a value of a file. */
function withoutVariable(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf)) return schema;
  const values = anyOf.filter((each) => !(isObject(each) && each.pattern === "\\$\\{"));
  if (values.length === anyOf.length) return schema;
  const [only] = values;
  return values.length === 1 && isObject(only) ? { ...rest, ...only } : { ...rest, anyOf: values };
}

function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
