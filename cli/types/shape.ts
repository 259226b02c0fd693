/**
 * JSON Schemas as shapes: what the types of TypeScript and Python can say of them.
 *
 * One reading for both languages, so they agree. Bounds, patterns and formats are left out, and
 * what no type expresses (`not`, `if`, dependencies) widens to the rest of its schema: a type never
 * rejects what the engine accepts, except further members of an object and of a tuple whose schema
 * does not mention any.
 *
 * @module
 */
import type { Json, JsonObject } from "../../mod.ts";

/** A type. */
export type Shape =
  | { readonly kind: "unknown" | "never" }
  | { readonly kind: "null" | "boolean" | "integer" | "number" | "string" }
  | { readonly kind: "literal"; readonly value: null | boolean | number | string }
  | { readonly kind: "array"; readonly items: Shape }
  | TupleShape
  | ObjectShape
  | { readonly kind: "union" | "all"; readonly of: readonly Shape[] }
  | { readonly kind: "named"; readonly name: string };

/** An array with a type for each place. */
export interface TupleShape {
  readonly kind: "tuple";
  readonly items: readonly Shape[];
  /** So many items at least. */
  readonly least: number;
  /** Of further items; `undefined`: there are none. */
  readonly rest: Shape | undefined;
}

/** An object. */
export interface ObjectShape {
  readonly kind: "object";
  readonly members: readonly Member[];
  /** Of members with other names; `undefined`: none are known. */
  readonly rest: Shape | undefined;
}

/** A member of an object. */
export interface Member {
  readonly name: string;
  readonly shape: Shape;
  readonly isRequired: boolean;
  readonly doc: string;
}

/** A type with a name. */
export interface Definition {
  readonly name: string;
  readonly shape: Shape;
  readonly doc: string;
}

export const UNKNOWN: Shape = { kind: "unknown" };
const NEVER: Shape = { kind: "never" };
const NULL: Shape = { kind: "null" };
/** Deeper schemas are unknown; an engine accepts 64 levels. */
const DEPTH_MAX = 200;
/** Values of an `enum` that a type lists. */
const ENUM_MAX = 1_000;

/** Names that are unique in one file. */
export class Names {
  readonly #taken: Set<string>;

  constructor(reserved: Iterable<string>) {
    this.#taken = new Set(reserved);
  }

  /** The name, with a number if it is taken. */
  add(wanted: string): string {
    let name = wanted;
    for (let i = 2; this.#taken.has(name); i++) name = `${wanted}${i}`;
    this.#taken.add(name);
    return name;
  }
}

/** `math::add-two` as `MathAddTwo`; never empty. */
export function typeName(text: string): string {
  const words = text.split(/[^\p{ID_Continue}]+/u).filter((word) => word !== "");
  const name = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
  return /^[\p{ID_Start}]/u.test(name) ? name : `F${name}`;
}

/** The type of a schema, and the types with names that it uses. */
export interface ReadSchema {
  readonly shape: Shape;
  readonly definitions: readonly Definition[];
}

/**
 * Reads one schema.
 *
 * @param name Of the type, if it gets one; names of its parts begin with it.
 */
export function readSchema(schema: Json | undefined, name: string, names: Names): ReadSchema {
  if (schema === undefined || schema === null) return { shape: UNKNOWN, definitions: [] };
  const reader = new SchemaReader(schema, name, names);
  return { shape: reader.root(), definitions: reader.definitions };
}

class SchemaReader {
  readonly #schema: Json;
  readonly #name: string;
  readonly #names: Names;
  /** Reference to the name of what it refers to. */
  readonly #references = new Map<string, string>();
  readonly #definitions = new Map<string, Definition>();
  /** Whether a part refers to the whole. */
  #isRecursive = false;

  constructor(schema: Json, name: string, names: Names) {
    this.#schema = schema;
    this.#names = names;
    this.#name = names.add(name);
  }

  get definitions(): readonly Definition[] {
    return [...this.#definitions.values()];
  }

  root(): Shape {
    const shape = this.#whole(this.#schema, this.#name, 0);
    if (!needsName(shape) && !this.#isRecursive) return shape;
    return this.#define(this.#name, shape, docOf(this.#schema));
  }

  #define(name: string, shape: Shape, doc: string): Shape {
    this.#definitions.set(name, { name, shape, doc });
    return { kind: "named", name };
  }

  /** A part of another type; an object gets a name, because Python has no types without one. */
  #read(schema: Json, name: string, depth: number): Shape {
    const shape = this.#whole(schema, name, depth);
    if (shape.kind !== "object" || shape.members.length === 0) return shape;
    return this.#define(this.#names.add(name), shape, "");
  }

  #whole(schema: Json, name: string, depth: number): Shape {
    if (schema === false) return NEVER;
    if (!isObject(schema) || depth > DEPTH_MAX) return UNKNOWN;
    const shape = this.#merge([
      this.#own(schema, name, depth),
      ...this.#combined(schema, name, depth),
    ]);
    if (schema.nullable !== true) return shape;
    return union([shape.kind === "object" ? this.#define(name, shape, "") : shape, NULL]);
  }

  /** What the schema says itself. */
  #own(schema: JsonObject, name: string, depth: number): Shape {
    if (schema.const !== undefined) return valueShape(schema.const);
    if (Array.isArray(schema.enum) && schema.enum.length <= ENUM_MAX) {
      return union(schema.enum.map(valueShape));
    }
    const { type } = schema;
    if (!Array.isArray(type)) return this.#typed(type ?? impliedType(schema), schema, name, depth);
    return union(type.map((each) => {
      const shape = this.#typed(each, schema, name, depth);
      const hasName = shape.kind === "object" && shape.members.length > 0;
      return hasName ? this.#define(this.#names.add(`${name}Object`), shape, "") : shape;
    }));
  }

  #typed(type: Json | undefined, schema: JsonObject, name: string, depth: number): Shape {
    switch (type) {
      case "null":
      case "boolean":
      case "integer":
      case "number":
      case "string":
        return { kind: type };
      case "array":
        return this.#array(schema, name, depth);
      case "object":
        return this.#object(schema, name, depth);
      default:
        return UNKNOWN;
    }
  }

  #array(schema: JsonObject, name: string, depth: number): Shape {
    const { items, prefixItems, additionalItems, minItems } = schema;
    const isOld = Array.isArray(items); // Of drafts before 2020-12.
    const prefix = isOld ? items : prefixItems;
    const more = isOld ? additionalItems : items;
    if (!Array.isArray(prefix)) {
      const items = more === undefined ? UNKNOWN : this.#read(more, `${name}Item`, depth + 1);
      return { kind: "array", items };
    }
    return {
      kind: "tuple",
      items: prefix.map((each, i) => this.#read(each, `${name}Item${i + 1}`, depth + 1)),
      least: typeof minItems === "number" ? Math.min(minItems, prefix.length) : prefix.length,
      rest: more === undefined || more === false
        ? undefined
        : this.#read(more, `${name}Item`, depth + 1),
    };
  }

  #object(schema: JsonObject, name: string, depth: number): ObjectShape {
    const { properties, required, additionalProperties, patternProperties } = schema;
    const described = isObject(properties) ? properties : {};
    const demanded = Array.isArray(required) ? required.map(String) : [];
    const names = [...new Set([...Object.keys(described), ...demanded])];
    const members = names.map((key) => {
      const member = Object.hasOwn(described, key) ? described[key]! : true;
      return {
        name: key,
        shape: this.#read(member, `${name}${typeName(key)}`, depth + 1),
        isRequired: demanded.includes(key),
        doc: docOf(member),
      };
    });
    const rests = isObject(patternProperties) ? Object.values(patternProperties) : [];
    const isOpen = additionalProperties !== undefined && additionalProperties !== false;
    if (isOpen) rests.push(additionalProperties);
    if (names.length === 0 && additionalProperties === undefined) rests.push(true);
    const rest = union(rests.map((each) => this.#read(each, `${name}Value`, depth + 1)));
    return { kind: "object", members, rest: rests.length === 0 ? undefined : rest };
  }

  /** What the schema takes from others. */
  #combined(schema: JsonObject, name: string, depth: number): Shape[] {
    const shapes: Shape[] = [];
    if (typeof schema.$ref === "string") shapes.push(this.#reference(schema.$ref, depth));
    if (Array.isArray(schema.allOf)) {
      shapes.push(...schema.allOf.map((each) => this.#whole(each, name, depth + 1)));
    }
    for (const choices of [schema.anyOf, schema.oneOf]) {
      if (!Array.isArray(choices)) continue;
      const parts = choices.map((each, i) => this.#read(each, `${name}Option${i + 1}`, depth + 1));
      shapes.push(union(parts));
    }
    return shapes;
  }

  #reference(reference: string, depth: number): Shape {
    const known = this.#references.get(reference);
    if (known !== undefined) return { kind: "named", name: known };
    const target = resolve(this.#schema, reference);
    if (target === undefined) return UNKNOWN;
    const last = reference.split("/").at(-1)!;
    const wanted = `${this.#name}${typeName(unescape(last))}`;
    const name = reference === "#" ? this.#name : this.#names.add(wanted);
    this.#references.set(reference, name);
    const whole: Shape = { kind: "named", name };
    if (reference === "#") {
      this.#isRecursive = true;
      return whole; // root() defines it.
    }
    // Its place in the file is that of its first use; parts of it may refer to it.
    this.#definitions.set(name, { name, shape: UNKNOWN, doc: "" });
    this.#define(name, this.#whole(target, name, depth + 1), docOf(target));
    return whole;
  }

  /** The shape that fits all; objects become one. */
  #merge(shapes: readonly Shape[]): Shape {
    const known = shapes.filter(({ kind }) => kind !== "unknown");
    if (known.length < 2) return known[0] ?? UNKNOWN;
    const objects = known.map((shape) => this.#resolved(shape));
    if (!objects.every((shape) => shape.kind === "object")) return { kind: "all", of: known };
    return objects.reduce((all, each) => this.#mergeObjects(all, each));
  }

  #resolved(shape: Shape): Shape {
    return shape.kind === "named" ? this.#definitions.get(shape.name)?.shape ?? shape : shape;
  }

  #mergeObjects(a: ObjectShape, b: ObjectShape): ObjectShape {
    const members = new Map(a.members.map((member) => [member.name, member]));
    for (const member of b.members) {
      const other = members.get(member.name);
      members.set(member.name, {
        ...member,
        shape: other ? this.#merge([other.shape, member.shape]) : member.shape,
        isRequired: member.isRequired || other?.isRequired === true,
        doc: member.doc || (other?.doc ?? ""),
      });
    }
    return { kind: "object", members: [...members.values()], rest: a.rest ?? b.rest };
  }
}

/** One of several shapes, without those that others contain. */
export function union(shapes: readonly Shape[]): Shape {
  const flat = shapes.flatMap((shape) => shape.kind === "union" ? shape.of : [shape]);
  if (flat.some(({ kind }) => kind === "unknown")) return UNKNOWN;
  const kinds = new Set(flat.map(({ kind }) => kind));
  const distinct = new Map<string, Shape>();
  for (const shape of flat) {
    if (shape.kind === "never" || (shape.kind === "integer" && kinds.has("number"))) continue;
    distinct.set(JSON.stringify(shape), shape);
  }
  const both = [true, false].map((value) => JSON.stringify(valueShape(value)));
  if (both.every((key) => distinct.has(key))) {
    for (const key of both) distinct.delete(key);
    distinct.set("boolean", { kind: "boolean" });
  }
  const left = [...distinct.values()];
  return left.length === 0 ? NEVER : left.length === 1 ? left[0]! : { kind: "union", of: left };
}

/** Whether a shape accepts null. */
export function acceptsNull(shape: Shape, definitions: ReadonlyMap<string, Definition>): boolean {
  switch (shape.kind) {
    case "unknown":
    case "null":
      return true;
    case "literal":
      return shape.value === null;
    case "union":
      return shape.of.some((each) => acceptsNull(each, definitions));
    case "named": {
      const target = definitions.get(shape.name)?.shape;
      // A definition that is only another name cannot be a circle that ends nowhere.
      return target !== undefined && target.kind !== "named" && acceptsNull(target, definitions);
    }
    default:
      return false;
  }
}

/** Whether a type is long enough to get a name. */
function needsName(shape: Shape): boolean {
  switch (shape.kind) {
    case "object":
      return shape.members.length > 0;
    case "array":
      return needsName(shape.items);
    case "tuple":
    case "all":
      return true;
    case "union":
      return shape.of.length > 3 || shape.of.some(needsName);
    default:
      return false;
  }
}

/** The type of exactly one value. */
function valueShape(value: Json): Shape {
  if (Array.isArray(value)) {
    const items = value.map(valueShape);
    return { kind: "tuple", items, least: items.length, rest: undefined };
  }
  if (!isObject(value)) return value === null ? NULL : { kind: "literal", value };
  const members = Object.entries(value).map(([name, each]) => {
    return { name, shape: valueShape(each), isRequired: true, doc: "" };
  });
  return { kind: "object", members, rest: undefined };
}

/** The type that keywords imply; most schemas name it. */
function impliedType(schema: JsonObject): string | undefined {
  if (isObject(schema.properties) || isObject(schema.additionalProperties)) return "object";
  if (isObject(schema.items) || Array.isArray(schema.prefixItems)) return "array";
  return undefined;
}

/** The part that a reference names, within the same schema. */
function resolve(schema: Json, reference: string): Json | undefined {
  if (reference === "#") return schema;
  if (!reference.startsWith("#/")) return anchored(schema, reference);
  let place: Json | undefined = schema;
  for (const part of reference.slice(2).split("/")) {
    const key = unescape(part);
    const isPart: boolean = place !== null && typeof place === "object" &&
      Object.hasOwn(place, key);
    place = isPart ? (place as JsonObject)[key] : undefined;
  }
  return place;
}

/** The definition with an `$anchor` or `$id`. */
function anchored(schema: Json, reference: string): Json | undefined {
  if (!isObject(schema)) return undefined;
  const all = [schema.$defs, schema.definitions].flatMap((each) => {
    return isObject(each) ? Object.values(each) : [];
  });
  return all.find((each) =>
    isObject(each) && (each.$id === reference || `#${each.$anchor}` === reference)
  );
}

/** A part of a JSON Pointer in a URL, as the name it stands for. */
function unescape(part: string): string {
  const text = part.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A percent sign that escapes nothing.
  }
}

/** What a schema says for readers. */
function docOf(schema: Json): string {
  if (!isObject(schema)) return "";
  const { description, default: preset, deprecated } = schema;
  const lines = typeof description === "string" ? [description.trim()] : [];
  if (preset !== undefined) lines.push(`Default: ${JSON.stringify(preset)}`);
  if (deprecated === true) lines.push("Deprecated.");
  return lines.join("\n");
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
