/**
 * {@linkcode Schemas} on ajv: JSON Schema 2020-12, compiled to code when first needed.
 *
 * The import is deferred: ajv is found when the engine starts and evaluated by the first schema,
 * so an engine without schemas does not pay for it (60 ms of start), and `compile` still need not
 * wait. The first schema of an engine's life costs about 110 ms, any other about 1 ms.
 *
 * A schema comes from a worker and a value from a caller, so both are bounded: no document is ever
 * fetched, a large value that does not fit is not searched for its second misfit, and a check whose
 * expressions (`pattern`) take too long is ended; others by the same schema have to wait then.
 * `format` is an annotation, as 2020-12 has it, and is not checked.
 *
 * @module
 */
import * as nodeVm from "node:vm";
import defer * as ajv from "ajv/dist/2020.js";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  SCHEMA_CHARS_MAX,
  SCHEMA_CHECK_MS,
  SCHEMA_DEPTH_MAX,
  VALIDATION_ERRORS_MAX,
} from "../../sdk/typescript/wire/limits.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Schemas, ValidationError } from "../ports/schemas.ts";

type Ajv = InstanceType<typeof ajv.Ajv2020>;
type Validate = ReturnType<Ajv["compile"]>;
type Failure = NonNullable<Validate["errors"]>[number];
type Schema = boolean | Record<string, Json>;

/** Values with more parts than this are searched for their first misfit only. */
const ALL_MISFITS_PARTS_MAX = 1_000;
const TOO_SLOW: ValidationError = {
  path: "",
  message: "takes too long to be checked by its schema",
};
/** A schema that took all the time of one check is not used for that of so many. */
const REST = 100;
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
        bounds ? bounds.run(() => misfits(validate, value)) : misfits(validate, value);
      const findFirst = compileAlone(schema, false);
      let findAll: Validate | undefined;
      return (value) => {
        const found = run(findFirst, value);
        if (found.length === 0 || hasManyParts(value)) return found;
        // Only now: most schemas never meet a value that does not fit.
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
  code: { optimize: false }, // Passes over the code that take longer than a check ever saves.
} as const;

/** Names that every object answers to; only for them are checks made that ask who owns what. */
const INHERITED_NAME = new RegExp(
  `"(${Object.getOwnPropertyNames(Object.prototype).join("|")})"`,
);

/** In place of ajv's own, which compares every item with every other: minutes for a long list. */
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

/** The schema within its bounds, and read as 2020-12 whatever draft it names. */
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

/** In an ajv of its own, which keeps no schema longer than its check and lets no `$id` collide. */
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

/** Ends checks by one schema that take too long: its worker may mean to keep the engine busy. */
class TimeBound {
  readonly #context = nodeVm.createContext({ check: () => {} });
  readonly #script = new nodeVm.Script("check()");
  #restUntil = 0;

  run(check: () => readonly ValidationError[]): readonly ValidationError[] {
    if (performance.now() < this.#restUntil) return [TOO_SLOW];
    this.#context.check = check;
    try {
      return this.#script.runInContext(this.#context, { timeout: SCHEMA_CHECK_MS });
    } catch (thrown) {
      if ((thrown as { code?: string }).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw thrown;
      this.#restUntil = performance.now() + REST * SCHEMA_CHECK_MS;
      return [TOO_SLOW];
    } finally {
      this.#context.check = undefined; // It holds on to the value.
    }
  }
}

function misfits(validate: Validate, value: Json): readonly ValidationError[] {
  try {
    if (validate(value)) return [];
    return (validate.errors ?? []).slice(0, VALIDATION_ERRORS_MAX).map(misfitOf);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [{ path: "", message: "is nested too deep to be checked" }];
  } finally {
    validate.errors = null; // They hold on to the value.
  }
}

function misfitOf(failure: Failure): ValidationError {
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

/** Infinite when it is nested deeper than the stack. */
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
    if (seen + parts.length > ALL_MISFITS_PARTS_MAX) return true;
    waiting.push(...parts);
  }
  return false;
}

function partsOf(value: Json): Json[] {
  return value !== null && typeof value === "object" ? Object.values(value) : [];
}
