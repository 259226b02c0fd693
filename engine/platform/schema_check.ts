/**
 * {@linkcode Schemas} on ajv: JSON Schema 2020-12, compiled to code when first needed.
 *
 * The import is deferred: ajv is evaluated with the first schema, which takes 90 ms and 23 MB that
 * most engines never need. An `import()` would not do, since the core compiles a schema while it
 * routes a call and cannot wait. Any further schema takes about 1 ms.
 *
 * A schema comes from a worker and a value from a caller, so both are bounded: no document is ever
 * fetched, a large invalid value is not searched for its second error, and a check whose
 * expressions (`pattern`) take too long is aborted; the same schema is then not used for a while.
 * `format` is an annotation, as 2020-12 has it, and is not checked.
 *
 * @module
 */
import * as nodeVm from "node:vm";
import defer * as ajv from "ajv/dist/2020.js";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Schemas, ValidationError } from "../ports/schemas.ts";

/** Longest schema that a worker may register, as JSON text. */
export const SCHEMA_CHARS_MAX = 64 * 1024;
/** Deepest nesting of a schema. */
export const SCHEMA_DEPTH_MAX = 64;
/** Validation errors listed for one value. */
export const VALIDATION_ERRORS_MAX = 20;
/** Time limit of one check against a schema with regular expressions. */
const SCHEMA_CHECK_MS = 250;

type Ajv = InstanceType<typeof ajv.Ajv2020>;
type Validate = ReturnType<Ajv["compile"]>;
type Failure = NonNullable<Validate["errors"]>[number];
type Schema = boolean | Record<string, Json>;

/** Values with more parts than this are searched for their first error only. */
const ALL_ERRORS_PARTS_MAX = 1_000;
const TOO_SLOW: ValidationError = {
  path: "",
  message: "takes too long to be checked by its schema",
};
/** A schema whose check took too long is not used for the time of this many checks. */
const PAUSE_CHECKS = 100;
/** Characters of allowed values that a message lists. */
const ALLOWED_CHARS_MAX = 200;

/** Makes the engine's {@linkcode Schemas}. */
export function createSchemas(): Schemas {
  let drafts: Ajv | undefined;
  return {
    compile(raw) {
      const schema = usableSchema(raw);
      drafts ??= new ajv.Ajv2020(COMMON);
      if (!drafts.validateSchema(schema)) throw invalid(drafts.errorsText(drafts.errors));
      const bounds = /"pattern(?:Properties)?"/.test(JSON.stringify(schema)) && new TimeBound();
      const run = (validate: Validate, value: Json): readonly ValidationError[] =>
        bounds ? bounds.run(() => errorsOf(validate, value)) : errorsOf(validate, value);
      const findFirst = compileAlone(schema, false);
      let findAll: Validate | undefined;
      return (value) => {
        const found = run(findFirst, value);
        if (found.length === 0 || hasManyParts(value)) return found;
        // Compiled now, since most schemas never get an invalid value.
        findAll ??= compileAlone(schema, true);
        return run(findAll, value);
      };
    },
  };
}

const COMMON = {
  strict: false, // Unknown keywords are annotations.
  validateFormats: false,
  logger: false,
  code: { optimize: false }, // Optimizing takes longer than a check ever saves.
} as const;

/** Names that every object inherits; only schemas with one of them check for own properties. */
const INHERITED_NAME = new RegExp(
  `"(${Object.getOwnPropertyNames(Object.prototype).join("|")})"`,
);

/** Instead of ajv's own, which compares all pairs of items: minutes for a long list. */
const UNIQUE_ITEMS = {
  keyword: "uniqueItems",
  type: "array",
  schemaType: "boolean",
  compile: (isWanted: boolean) => (items: Json[]) => !isWanted || areUnique(items),
  error: { message: "must NOT have duplicate items" },
} as const;

function areUnique(items: readonly Json[]): boolean {
  const seen = new Set<string>();
  return items.every((item) => seen.size < seen.add(JSON.stringify(item, sortMembers)).size);
}

/** Objects with the same members are equal, whatever their order. */
function sortMembers(_name: string, value: Json): Json {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1));
}

/** The schema, if it is within its bounds, as 2020-12 whatever draft it names. */
function usableSchema(schema: Json): Schema {
  if (typeof schema === "boolean") return schema;
  if (schema === null || typeof schema !== "object" || Array.isArray(schema)) {
    throw invalid("it has to be an object or a boolean");
  }
  if (sizeOf(schema) > SCHEMA_CHARS_MAX) {
    throw invalid(`it has more than ${SCHEMA_CHARS_MAX} characters`);
  }
  if (isDeeperThan(schema, SCHEMA_DEPTH_MAX)) {
    throw invalid(`it is nested deeper than ${SCHEMA_DEPTH_MAX} levels`);
  }
  const { $schema: _draft, ...rest } = schema;
  return rest;
}

/** Compiles in an instance of its own, so that no schema is kept longer and no `$id` collides. */
function compileAlone(schema: Schema, allErrors: boolean): Validate {
  try {
    const ownProperties = INHERITED_NAME.test(JSON.stringify(schema));
    const options = { ...COMMON, allErrors, ownProperties, meta: false, validateSchema: false };
    const alone = new ajv.Ajv2020(options);
    alone.removeKeyword("uniqueItems").addKeyword(UNIQUE_ITEMS);
    const validate = alone.compile(schema);
    if ("$async" in validate) throw new Error("it is asynchronous");
    return validate;
  } catch (cause) {
    throw invalid(cause instanceof Error ? cause.message : String(cause), cause);
  }
}

function invalid(why: string, cause?: unknown): EngineError {
  const message = `The schema cannot be used: ${why.slice(0, 500)}`;
  return new EngineError("invalid_schema", message, { cause });
}

/** Aborts checks by one schema that take too long: its worker may be hostile. */
class TimeBound {
  readonly #context = nodeVm.createContext({ check: () => {} });
  readonly #script = new nodeVm.Script("check()");
  #pausedUntil = 0;

  run(check: () => readonly ValidationError[]): readonly ValidationError[] {
    if (performance.now() < this.#pausedUntil) return [TOO_SLOW];
    this.#context.check = check;
    try {
      return this.#script.runInContext(this.#context, { timeout: SCHEMA_CHECK_MS });
    } catch (thrown) {
      if ((thrown as { code?: string }).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw thrown;
      this.#pausedUntil = performance.now() + PAUSE_CHECKS * SCHEMA_CHECK_MS;
      return [TOO_SLOW];
    } finally {
      this.#context.check = undefined; // It references the value.
    }
  }
}

function errorsOf(validate: Validate, value: Json): readonly ValidationError[] {
  try {
    if (validate(value)) return [];
    return (validate.errors ?? []).slice(0, VALIDATION_ERRORS_MAX).map(errorOf);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [{ path: "", message: "is nested too deep to be checked" }];
  } finally {
    validate.errors = null; // They reference the value.
  }
}

function errorOf(failure: Failure): ValidationError {
  const { instancePath: path, keyword, params, message = `does not fit ${keyword}` } = failure;
  switch (keyword) {
    case "additionalProperties":
      return { path, message: `${message}: ${params.additionalProperty}` };
    case "unevaluatedProperties":
      return { path, message: `${message}: ${params.unevaluatedProperty}` };
    case "enum":
      return { path, message: `${message}: ${shortened(JSON.stringify(params.allowedValues))}` };
    case "const":
      return { path, message: `${message}: ${shortened(JSON.stringify(params.allowedValue))}` };
    default:
      return { path, message };
  }
}

function shortened(text: string): string {
  return text.length > ALLOWED_CHARS_MAX ? text.slice(0, ALLOWED_CHARS_MAX) + "…" : text;
}

/** Characters of the schema as JSON; infinite when it is nested deeper than the stack. */
function sizeOf(schema: Json): number {
  try {
    return JSON.stringify(schema).length;
  } catch {
    return Infinity;
  }
}

function isDeeperThan(value: Json, levels: number): boolean {
  let level = partsOf(value);
  for (let depth = 1; depth <= levels; depth++) level = level.flatMap(partsOf);
  return level.length > 0;
}

function hasManyParts(value: Json): boolean {
  const waiting = [value];
  for (let seen = 0; waiting.length > 0; seen++) {
    const parts = partsOf(waiting.pop()!);
    if (seen + parts.length > ALL_ERRORS_PARTS_MAX) return true;
    waiting.push(...parts);
  }
  return false;
}

function partsOf(value: Json): Json[] {
  return value !== null && typeof value === "object" ? Object.values(value) : [];
}
