/**
 * Checks a value against a JSON Schema while it is typed.
 *
 * The engine decides in the end: slow or rare keywords (`pattern`, `not`, `uniqueItems`, remote
 * references …) are left to it. So it may refuse a value without errors here, but refuses every
 * value with one.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../../sdk/typescript/wire/protocol.ts";
import { isObject, sameJson } from "./json.ts";

/** Deepest nesting of schema and value, as in the engine. */
const DEPTH_MAX = 64;
/** Errors that are reported. */
const ERRORS_MAX = 20;
/** Steps after which checking stops, since nested alternatives grow exponentially. */
const STEPS_MAX = 20_000;

/** Member names and indices from the root of a value. */
export type JsonPath = readonly (string | number)[];

/** A violation of the schema. */
export interface ValidationError {
  readonly path: JsonPath;
  /** Continues the name of the place, such as `is required`. */
  readonly message: string;
}

/**
 * The first violations of a schema, at most `ERRORS_MAX`; none: the value may be valid. `leave`:
 * whether a part of the value is not looked at.
 */
export function validate(
  root: Json,
  value: Json | undefined,
  leave: (part: Json) => boolean = () => false,
): ValidationError[] {
  const found = new Validation(root, { left: STEPS_MAX }, leave);
  found.look(root, value, [], 0);
  return found.errors;
}

/**
 * Resolves local references (`#`, `#/$defs/…`). `true`, which allows everything, if the target is
 * missing or the references are circular.
 */
export function resolveSchema(root: Json, schema: Json | undefined): JsonObject | boolean {
  let current = schema;
  for (let steps = 0; steps < DEPTH_MAX; steps++) {
    if (typeof current === "boolean") return current;
    if (!isObject(current)) return true;
    const ref = current["$ref"];
    if (typeof ref !== "string") return current;
    const { $ref: _, ...beside } = current;
    const target = lookUp(root, ref);
    if (target === undefined) return true;
    current = isObject(target) ? { ...target, ...beside } : target;
  }
  return true;
}

/** The JSON Schema type of a value; integers are `number` too. */
function typeOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

/** The types that a schema allows; empty: any. */
export function typesOf(schema: JsonObject): string[] {
  const type = schema["type"];
  if (typeof type === "string") return [type];
  return Array.isArray(type) ? type.filter((each) => typeof each === "string") : [];
}

class Validation {
  readonly errors: ValidationError[] = [];
  readonly #root: Json;
  readonly #steps: { left: number };
  readonly #leave: (part: Json) => boolean;

  constructor(root: Json, steps: { left: number }, leave: (part: Json) => boolean) {
    this.#root = root;
    this.#steps = steps;
    this.#leave = leave;
  }

  look(schema: Json | undefined, value: Json | undefined, path: JsonPath, depth: number): void {
    if (depth > DEPTH_MAX || this.errors.length >= ERRORS_MAX) return;
    if (this.#steps.left-- <= 0) return;
    const resolved = resolveSchema(this.#root, schema);
    if (resolved === true) return;
    if (value === undefined) return this.#add(path, "is required");
    if (resolved === false) return this.#add(path, "is not allowed here");
    if (this.#leave(value)) return;
    if (!this.#lookAtType(resolved, value, path)) return;
    this.#lookAtChoice(resolved, value, path);
    if (typeof value === "string") this.#lookAtText(resolved, value, path);
    if (typeof value === "number") this.#lookAtNumber(resolved, value, path);
    if (Array.isArray(value)) this.#lookAtList(resolved, value, path, depth);
    if (isObject(value)) this.#lookAtObject(resolved, value, path, depth);
    this.#lookAtBranches(resolved, value, path, depth);
  }

  #add(path: JsonPath, message: string): void {
    if (this.errors.length < ERRORS_MAX) this.errors.push({ path, message });
  }

  #lookAtType(schema: JsonObject, value: Json, path: JsonPath): boolean {
    const types = typesOf(schema);
    const is = typeOf(value);
    const fits = types.length === 0 || types.includes(is) ||
      (types.includes("integer") && typeof value === "number" && Number.isInteger(value));
    if (!fits) this.#add(path, `must be ${types.map(withArticle).join(" or ")}`);
    return fits;
  }

  #lookAtChoice(schema: JsonObject, value: Json, path: JsonPath): void {
    const { enum: options, const: only } = schema;
    if (Array.isArray(options) && !options.some((option) => sameJson(option, value))) {
      const some = options.slice(0, 8).map((option) => JSON.stringify(option)).join(", ");
      this.#add(path, `must be one of ${some}${options.length > 8 ? " …" : ""}`);
    }
    if (only !== undefined && !sameJson(only, value)) {
      this.#add(path, `must be ${JSON.stringify(only)}`);
    }
  }

  #lookAtText(schema: JsonObject, value: string, path: JsonPath): void {
    const length = [...value].length;
    const { minLength, maxLength } = schema;
    if (typeof minLength === "number" && length < minLength) {
      this.#add(path, `must have at least ${count(minLength, "character")}`);
    }
    if (typeof maxLength === "number" && length > maxLength) {
      this.#add(path, `must have at most ${count(maxLength, "character")}`);
    }
  }

  #lookAtNumber(schema: JsonObject, value: number, path: JsonPath): void {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
    if (typeof minimum === "number" && value < minimum) {
      this.#add(path, `must be at least ${minimum}`);
    }
    if (typeof maximum === "number" && value > maximum) {
      this.#add(path, `must be at most ${maximum}`);
    }
    if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) {
      this.#add(path, `must be more than ${exclusiveMinimum}`);
    }
    if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) {
      this.#add(path, `must be less than ${exclusiveMaximum}`);
    }
  }

  #lookAtList(schema: JsonObject, value: readonly Json[], path: JsonPath, depth: number): void {
    const { minItems, maxItems, prefixItems, items } = schema;
    if (typeof minItems === "number" && value.length < minItems) {
      this.#add(path, `must have at least ${count(minItems, "item")}`);
    }
    if (typeof maxItems === "number" && value.length > maxItems) {
      this.#add(path, `must have at most ${count(maxItems, "item")}`);
    }
    const first = Array.isArray(prefixItems) ? prefixItems : [];
    for (let i = 0; i < value.length && this.errors.length < ERRORS_MAX; i++) {
      this.look(first[i] ?? items, value[i], [...path, i], depth + 1);
    }
  }

  #lookAtObject(schema: JsonObject, value: JsonObject, path: JsonPath, depth: number): void {
    const { required, properties, additionalProperties, patternProperties } = schema;
    const known = isObject(properties) ? properties : {};
    for (const name of Array.isArray(required) ? required : []) {
      if (typeof name === "string" && !Object.hasOwn(value, name)) {
        this.#add([...path, name], "is required");
      }
    }
    for (const [name, member] of Object.entries(value)) {
      if (Object.hasOwn(known, name)) this.look(known[name], member, [...path, name], depth + 1);
      else if (patternProperties === undefined && additionalProperties === false) {
        this.#add([...path, name], "is not known here");
      } else if (patternProperties === undefined) {
        this.look(additionalProperties, member, [...path, name], depth + 1);
      }
    }
  }

  #lookAtBranches(schema: JsonObject, value: Json, path: JsonPath, depth: number): void {
    const { allOf, anyOf, oneOf } = schema;
    for (const branch of Array.isArray(allOf) ? allOf : []) {
      this.look(branch, value, path, depth + 1);
    }
    for (const branches of [anyOf, oneOf]) {
      if (!Array.isArray(branches) || branches.length === 0) continue;
      const tried = branches.map((branch) => this.#try(branch, value, path, depth));
      if (tried.some((errors) => errors.length === 0)) continue;
      // The closest branch has the most useful errors.
      const rightType = tried.filter(([first]) => first && first.path.length > path.length);
      const closest = rightType.length === 1 ? rightType[0]! : undefined;
      if (closest) this.errors.push(...closest);
      else this.#add(path, anyMessage(tried));
    }
  }

  #try(branch: Json, value: Json, path: JsonPath, depth: number): ValidationError[] {
    const found = new Validation(this.#root, this.#steps, this.#leave);
    found.look(branch, value, path, depth + 1);
    return found.errors;
  }
}

function anyMessage(tried: readonly ValidationError[][]): string {
  const messages = [...new Set(tried.flatMap(([first]) => first ? [first.message] : []))];
  const types = messages.flatMap((message) => /^must be (an? \w+|null)$/.exec(message)?.[1] ?? []);
  return types.length === messages.length && types.length > 0
    ? `must be ${types.join(" or ")}`
    : "fits none of the shapes that are allowed";
}

function lookUp(root: Json, ref: string): Json | undefined {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let value: Json | undefined = root;
  for (const part of ref.slice(2).split("/")) {
    const name = decodeName(part);
    if (Array.isArray(value)) value = value[Number(name)];
    else value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

function decodeName(part: string): string {
  const plain = part.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain; // A % that starts no escape is meant literally.
  }
}

function withArticle(type: string): string {
  if (type === "null") return "null";
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
