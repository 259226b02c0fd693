/**
 * JSON Schemas of functions as parts of an OpenAPI document.
 *
 * A schema refers to its own parts from its own root (`#/$defs/line`), which in a document would be
 * the root of the document. So each part that is referred to becomes a component, and references
 * lead there. A schema may refer to a part by any pointer or anchor, also to itself. Nothing is
 * ever fetched: what refers to another document becomes a schema that allows anything.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";

/** Steps from a reference to one to another, and into `allOf`. */
const FOLLOW_MAX = 32;
/** Characters of the name of a component without its number. */
const NAME_CHARS_MAX = 120;
/** Components that may turn out not to fit before no others are tried. */
const ATTEMPTS_MAX = 20;
/** The component for all that does not fit into the document. */
const LEFT_OUT = "schema_left_out";

/** Keywords whose value is a schema. */
const ONE = new Set([
  "additionalItems",
  "additionalProperties",
  "contains",
  "contentSchema",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);
/** Keywords whose value is a list of schemas. */
const MANY = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
/** Keywords whose value is an object of schemas by name. */
const NAMED = new Set(["dependentSchemas", "patternProperties", "properties"]);
/** Keywords that have no meaning outside of the schema's own document. */
const DROPPED = new Set([
  "$anchor",
  "$defs",
  "$dynamicAnchor",
  "$id",
  "$recursiveAnchor",
  "$schema",
  "$vocabulary",
  "definitions",
  "dependencies",
  "discriminator",
  "externalDocs",
  "xml",
]);

const TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"];

const isText = (value: Json): boolean => typeof value === "string";
const isNumber = (value: Json): boolean => typeof value === "number";
const isCount = (value: Json): boolean => Number.isInteger(value) && Number(value) >= 0;
const isFlag = (value: Json): boolean => typeof value === "boolean";
const isType = (value: Json): boolean => isText(value) && TYPES.includes(String(value));

/** What values of other keywords have to be, if a meta-schema says so. */
const FITS = new Map<string, (value: Json) => boolean>(Object.entries({
  $comment: isText,
  contentEncoding: isText,
  contentMediaType: isText,
  deprecated: isFlag,
  description: isText,
  enum: Array.isArray,
  examples: Array.isArray,
  exclusiveMaximum: isNumber,
  exclusiveMinimum: isNumber,
  format: isText,
  maxContains: isCount,
  maxItems: isCount,
  maxLength: isCount,
  maxProperties: isCount,
  maximum: isNumber,
  minContains: isCount,
  minItems: isCount,
  minLength: isCount,
  minProperties: isCount,
  minimum: isNumber,
  multipleOf: (value: Json) => isNumber(value) && Number(value) > 0,
  pattern: isText,
  readOnly: isFlag,
  required: (value: Json) => Array.isArray(value) && value.every(isText),
  title: isText,
  type: (value: Json) =>
    Array.isArray(value) ? value.length > 0 && value.every(isType) : isType(value),
  uniqueItems: isFlag,
  writeOnly: isFlag,
}));

/** Where references lead that lead to each other only. */
const LOOP: JsonObject = {};

/** The components `schemas` of one document. */
export class SchemaComponents {
  /** Names that are taken, and how many components wanted each. */
  readonly #names = new Map<string, number>([[LEFT_OUT, 1]]);
  readonly #charsMax: number;
  #chars = 0;
  /** Components that were written and did not fit. */
  #leftOut = 0;
  #hasLeftOut = false;
  /** Parts that are named and not yet written, the oldest first. */
  #waiting: { name: string; write: () => Json }[] = [];

  /** @param charsMax Characters of JSON of all components; what does not fit allows anything. */
  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  /** Whether a schema did not fit. */
  get hasLeftOut(): boolean {
    return this.#hasLeftOut;
  }

  /** Names a component that {@linkcode take} writes later; `undefined` when nothing more fits. */
  add(wanted: string, write: () => Json): string | undefined {
    if (this.#isFull) {
      this.#hasLeftOut = true;
      return undefined;
    }
    const name = this.#unique(componentName(wanted));
    this.#chars += name.length;
    this.#waiting.push({ name, write });
    return name;
  }

  /** The members of `components.schemas` that were named since, as JSON, one by one. */
  *take(): Generator<string> {
    while (this.#waiting.length > 0) {
      const all = this.#waiting;
      this.#waiting = [];
      for (const { name, write } of all) {
        const text = this.#isFull ? undefined : JSON.stringify(write());
        const fits = text !== undefined && this.#chars + text.length <= this.#charsMax;
        if (fits) this.#chars += text.length;
        else this.#leaveOut();
        yield `${JSON.stringify(name)}:${fits ? text : refText(LEFT_OUT)}`;
      }
    }
  }

  /** The component that stands for what did not fit. */
  leftOut(): string {
    const description = "A schema that is left out, since the document would be too large";
    return `${JSON.stringify(LEFT_OUT)}:${JSON.stringify({ description })}`;
  }

  /** Nothing more is written, which would take time even if it does not fit. */
  get #isFull(): boolean {
    return this.#chars >= this.#charsMax || this.#leftOut >= ATTEMPTS_MAX;
  }

  #leaveOut(): void {
    this.#leftOut++;
    this.#hasLeftOut = true;
  }

  #unique(name: string): string {
    let unique = name;
    while (this.#names.has(unique)) {
      const count = this.#names.get(name)! + 1;
      this.#names.set(name, count);
      unique = `${name}_${count}`;
    }
    this.#names.set(unique, 1);
    return unique;
  }
}

/** One schema of a function, and the components that it has become so far. */
export class FunctionSchema {
  readonly #root: Json;
  readonly #prefix: string;
  readonly #components: SchemaComponents;
  /** Names of parts that are components. */
  readonly #names = new Map<JsonObject, string | undefined>();
  #anchors: Map<string, Json> | undefined;

  /** @param prefix Begins the names of its components, such as `orders::create_request`. */
  constructor(root: Json, prefix: string, components: SchemaComponents) {
    this.#root = root;
    this.#prefix = prefix;
    this.#components = components;
  }

  /** The schema itself, behind references. */
  get root(): Json {
    return this.resolve(this.#root);
  }

  /** A part behind its references; an empty object where one leads nowhere. */
  resolve(part: Json): Json {
    let found = part;
    for (let i = 0; i < FOLLOW_MAX && isObject(found); i++) {
      const { $ref } = found;
      if (typeof $ref !== "string") return found;
      found = this.#find($ref) ?? {};
    }
    return isObject(found) && found.$ref !== undefined ? LOOP : found;
  }

  /** The schema of a member of an object, also one that a part of its `allOf` describes. */
  member(part: Json, name: string): Json | undefined {
    return this.#inParts(part, (object) => {
      const { properties } = object;
      return isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
    });
  }

  /** Names and schemas of the members that an object is known to have. */
  members(part: Json): Map<string, Json> {
    const found = new Map<string, Json>();
    this.#inParts(part, ({ properties }) => {
      if (!isObject(properties)) return undefined;
      for (const [name, value] of Object.entries(properties)) {
        if (!found.has(name)) found.set(name, value);
      }
      return undefined;
    });
    return found;
  }

  /** Whether an object has to have a member. */
  requires(part: Json, name: string): boolean {
    return this.#inParts(part, ({ required }) => {
      return Array.isArray(required) && required.includes(name) ? true : undefined;
    }) === true;
  }

  /** A part as a schema of the document, in place. */
  embed(part: Json): Json {
    if (typeof part === "boolean") return part;
    if (!isObject(part)) return {};
    return this.#copy(part);
  }

  /** A part as a component with this name; small parts are embedded in place. */
  component(part: Json, name: string): Json {
    if (!isObject(part) || isPlain(part)) return this.embed(part);
    const target = typeof part.$ref === "string" ? this.resolve(part) : part;
    return isObject(target) ? this.#refTo(target, name) : this.embed(target);
  }

  #refTo(part: JsonObject, name: string): Json {
    let known = this.#names.get(part);
    if (!this.#names.has(part)) {
      known = this.#components.add(
        name === "" ? this.#prefix : `${this.#prefix}_${name}`,
        () => this.#copy(part),
      );
      this.#names.set(part, known);
    }
    return { $ref: `#/components/schemas/${known ?? LEFT_OUT}` };
  }

  /** Copies a schema; schemas are at most 64 levels deep. */
  #copy(part: JsonObject): JsonObject {
    const pairs: [string, Json][] = [];
    for (const [key, value] of Object.entries(part)) {
      if (DROPPED.has(key)) continue;
      if (key === "$ref" || key === "$dynamicRef") pairs.push(...this.#pairsOfRef(value));
      else pairs.push(...this.#pairsOf(key, value));
    }
    return Object.fromEntries(pairs);
  }

  /** Without keywords of a shape that no schema has: result schemas are not checked before. */
  #pairsOf(key: string, value: Json): [string, Json][] {
    // Before 2020-12 a list of items was written so.
    if (key === "items" && Array.isArray(value)) return this.#pairsOf("prefixItems", value);
    if (ONE.has(key)) return isSchema(value) ? [[key, this.embed(value)]] : [];
    if (MANY.has(key)) {
      const isList = Array.isArray(value) && value.length > 0;
      return isList ? [[key, value.map((each) => this.embed(each))]] : [];
    }
    if (NAMED.has(key)) {
      if (!isObject(value)) return [];
      const pairs = Object.entries(value);
      return [[key, Object.fromEntries(pairs.map(([name, each]) => [name, this.embed(each)]))]];
    }
    const isFit = FITS.get(key);
    return !isFit || isFit(value) ? [[key, value]] : [];
  }

  #pairsOfRef(ref: Json): [string, Json][] {
    const found = typeof ref === "string" ? this.#find(ref) : undefined;
    // References that only lead to each other would keep a reader of the document busy for ever.
    const isLoop = isObject(found) && found.$ref !== undefined && this.resolve(found) === LOOP;
    if (isObject(found) && !isLoop) {
      const name = String(ref).split(/[/#]/).at(-1)!;
      return [["$ref", (this.#refTo(found, name) as { $ref: string }).$ref]];
    }
    if (found !== undefined && !isLoop) return found === false ? [["not", {}]] : [];
    return [["$comment", `refers to ${String(ref)}, which this document does not have`]];
  }

  /** What a reference leads to; `undefined` when that is not in this schema. */
  #find(ref: string): Json | undefined {
    const { $id } = isObject(this.#root) ? this.#root : {};
    const own = typeof $id === "string" ? $id.split("#")[0]! : "";
    const [base = "", fragment = ""] = ref.split("#", 2);
    if (base !== "" && base !== own) return undefined;
    if (fragment === "") return this.#root;
    return fragment.startsWith("/") ? this.#at(fragment) : this.#anchored(fragment);
  }

  #at(pointer: string): Json | undefined {
    let found: Json | undefined = this.#root;
    for (const raw of pointer.split("/").slice(1)) {
      const key = decode(raw).replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(found)) found = found[Number(key)];
      else if (isObject(found) && Object.hasOwn(found, key)) found = found[key];
      else return undefined;
    }
    return found;
  }

  #anchored(name: string): Json | undefined {
    if (!this.#anchors) {
      this.#anchors = new Map();
      const waiting: Json[] = [this.#root];
      for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) {
        if (part === null || typeof part !== "object") continue;
        if (isObject(part)) {
          const { $anchor, $dynamicAnchor } = part;
          for (const anchor of [$anchor, $dynamicAnchor]) {
            if (typeof anchor === "string") this.#anchors.set(anchor, part);
          }
        }
        waiting.push(...Object.values(part));
      }
    }
    return this.#anchors.get(name);
  }

  /** The first answer of an object schema and the parts of its `allOf`. */
  #inParts<T>(part: Json, ask: (object: JsonObject) => T | undefined): T | undefined {
    const waiting: Json[] = [part];
    for (let i = 0; i < FOLLOW_MAX && waiting.length > 0; i++) {
      const object = this.resolve(waiting.shift()!);
      if (!isObject(object)) continue;
      const answer = ask(object);
      if (answer !== undefined) return answer;
      if (Array.isArray(object.allOf)) waiting.push(...object.allOf);
    }
    return undefined;
  }
}

/** Whether a value is an object and no list. */
export function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function isSchema(value: Json): boolean {
  return isObject(value) || typeof value === "boolean";
}

/** A schema that is as short in place as a reference to it. */
function isPlain(part: JsonObject): boolean {
  return Object.entries(part).every(([key, value]) =>
    key === "$comment" || key === "description" || value === null || typeof value !== "object"
  ) && part.$ref === undefined;
}

/** OpenAPI allows letters, digits, dots, dashes and underscores. */
function componentName(wanted: string): string {
  return wanted.replaceAll("::", "_").replace(/[^A-Za-z0-9._-]+/g, "_").slice(0, NAME_CHARS_MAX) ||
    "schema";
}

function refText(name: string): string {
  return JSON.stringify({ $ref: `#/components/schemas/${name}` });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Not an escape after all.
  }
}
