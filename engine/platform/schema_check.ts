/**
 * {@linkcode Schemas} on ajv: JSON Schema 2020-12, compiled to code when first needed.
 *
 * ajv is loaded when a worker registers its first function (`schema_loading.ts`). A schema takes
 * about 1 ms to compile, the largest some 50 ms with its first check.
 *
 * A schema comes from a worker and a value from a caller, so both are bounded: no document is ever
 * fetched, the parts of a schema are counted and so is the work of a check (`schema_steps.ts`), and
 * expressions (`pattern`) run on RE2, whose time grows with the text alone. A check keeps nothing
 * of the checks before it: a hostile value costs no other caller. `format` is an annotation, as
 * 2020-12 has it, and is not checked.
 *
 * @module
 */
import defer * as ajv from "ajv/dist/2020.js";
import defer * as re2 from "re2js";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Clock } from "../ports/clock.ts";
import type { Schemas, ValidationError } from "../ports/schemas.ts";
import type { Turns } from "../ports/turns.ts";
import { replaceKeywords } from "./schema_keywords.ts";
import { type Ajv, AJV_OPTIONS, SchemaLoading } from "./schema_loading.ts";
import {
  CHECK_STEPS,
  countParts,
  type MeteredSchema,
  meterSchema,
  OutOfSteps,
  Steps,
} from "./schema_steps.ts";
import { SchemaTurns, type Stages } from "./schema_turns.ts";

/** Longest schema that a worker may register, as JSON text. */
export const SCHEMA_CHARS_MAX = 64 * 1024;
/** Deepest nesting of a schema. */
export const SCHEMA_DEPTH_MAX = 64;
/** Longest expression. */
export const PATTERN_CHARS_MAX = 1_000;
/** Instructions of all expressions of one schema, as RE2 compiles them. */
export const PATTERN_INSTRUCTIONS_MAX = 5_000;
/** Validation errors listed for one value. */
export const VALIDATION_ERRORS_MAX = 20;
/** Longest path, and longest message, of a validation error. */
export const VALIDATION_TEXT_CHARS_MAX = 500;
/** Subschemas of the compiled checks that are kept; the least recently used are compiled again. */
export const COMPILED_SUBSCHEMAS_MAX = 20_000;

/** Longest schema that compileSoon() leaves to compile(), which takes some 15 ms for it. */
export const AT_ONCE_CHARS_MAX = 4 * 1024;
/** Values with more parts than this are searched for their first error only. */
const ALL_ERRORS_PARTS_MAX = 1_000;
/**
 * So are the values of schemas with more subschemas: finding all errors takes a second compilation,
 * 50 ms for 500 of them, and a message that pays for both would delay others by 0.1 s.
 */
export const ALL_ERRORS_SUBSCHEMAS_MAX = 250;
/** Steps for finding the errors after the first. */
const ALL_ERRORS_STEPS = 200_000;
/** Characters of allowed values that a message lists. */
const ALLOWED_CHARS_MAX = 200;
/** Steps of any test of an expression, and characters of a text that RE2 reads in one at best. */
const PATTERN_STEPS = { atLeast: 20, atMost: 200 } as const;
const PATTERN_CHARS_PER_STEP = 2;
const STEPS_PER_MS = 100_000;

const TOO_MUCH_WORK: ValidationError = {
  path: "",
  message: "takes more work to be checked by its schema than one payload may; send less at a time",
};

type Validate = ReturnType<Ajv["compile"]>;
type Failure = NonNullable<Validate["errors"]>[number];
type Schema = boolean | JsonObject;

/** Turns of a thread whose current one can be ended. */
export interface SchemaThread extends Turns {
  /** Ends the turn behind the current message. */
  look(): void;
}

/**
 * Makes the engine's {@linkcode Schemas}. Without a clock, prepare() loads the compiler at once;
 * without a thread, every schema is compiled at once.
 */
export function createSchemas(
  clock?: Pick<Clock, "now" | "after">,
  thread?: SchemaThread,
): Schemas & Disposable {
  const compiled = new CompiledSchemas();
  const steps = new Steps();
  const loading = new SchemaLoading(clock);
  const prepare = (): Promise<void> => loading.prepare();
  const inTurns = thread && new SchemaTurns(thread, prepare);
  const stagesOf = (raw: Json): Stages => compileInStages(raw, loading, compiled, steps);
  return {
    prepare,
    compile(raw) {
      const check = resultOf(stagesOf(raw));
      thread?.look(); // It took longer than most messages.
      return check;
    },
    ...inTurns && {
      compileSoon(raw, owner, onCompiled) {
        const chars = sizeOf(raw);
        const isLong = !loading.isLoaded || chars > AT_ONCE_CHARS_MAX;
        if (!isLong || chars > SCHEMA_CHARS_MAX || !inTurns.hasRoom) return false;
        inTurns.add(owner, stagesOf(raw), onCompiled);
        return true;
      },
    },
    [Symbol.dispose]: () => loading[Symbol.dispose](),
  };
}

function* compileInStages(
  raw: Json,
  loading: SchemaLoading,
  compiled: CompiledSchemas,
  steps: Steps,
): Stages {
  const usable = usableSchema(raw);
  const { drafts } = loading;
  if (!drafts.validateSchema(usable)) throw invalid(drafts.errorsText(drafts.errors));
  yield;
  const metered = meteredOf(usable);
  yield;
  const first = yield* compileMetered(metered, steps, false);
  const holder: Holder = { compiled: new CompiledSchema(metered, steps, first), id: 0 };
  compiled.add(holder, metered.subschemas);
  return (value) => {
    if (holder.compiled) compiled.touch(holder);
    else {
      const again = resultOf(compileMetered(metered, steps, false));
      holder.compiled = new CompiledSchema(metered, steps, again);
      compiled.add(holder, metered.subschemas);
    }
    return holder.compiled.check(value);
  };
}

/** Runs all stages at once. */
function resultOf<Result>(stages: Generator<void, Result, void>): Result {
  for (;;) {
    const { done, value } = stages.next();
    if (done) return value;
  }
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

function partsOf(value: Json): Json[] {
  return value !== null && typeof value === "object" ? Object.values(value) : [];
}

function meteredOf(schema: Schema): MeteredSchema {
  try {
    return meterSchema(schema);
  } catch (cause) {
    throw invalid((cause as Error).message, cause);
  }
}

function invalid(why: string, cause?: unknown): EngineError {
  const message = `The schema cannot be used: ${why.slice(0, VALIDATION_TEXT_CHARS_MAX)}`;
  return new EngineError("invalid_schema", message, { cause });
}

/** A schema's compiled form, while it is kept. */
interface Holder {
  compiled: CompiledSchema | undefined;
  /** Its place in {@linkcode CompiledSchemas}. */
  id: number;
}

/** Bounds the compiled schemas that are kept; does not keep those of functions that are gone. */
class CompiledSchemas {
  /** The least recently used first. */
  readonly #kept = new Map<number, { readonly of: WeakRef<Holder>; readonly subschemas: number }>();
  #subschemas = 0;
  #ids = 0;

  add(holder: Holder, subschemas: number): void {
    holder.id = ++this.#ids;
    this.#kept.set(holder.id, { of: new WeakRef(holder), subschemas });
    this.#subschemas += subschemas;
    for (const [id, { of, subschemas }] of this.#kept) {
      if (this.#subschemas <= COMPILED_SUBSCHEMAS_MAX || id === holder.id) return;
      this.#kept.delete(id);
      this.#subschemas -= subschemas;
      const oldest = of.deref();
      if (oldest) oldest.compiled = undefined;
    }
  }

  touch({ id }: Holder): void {
    const entry = this.#kept.get(id)!;
    this.#kept.delete(id);
    this.#kept.set(id, entry);
  }
}

/** The code that ajv made of a schema. */
class CompiledSchema {
  readonly #metered: MeteredSchema;
  readonly #steps: Steps;
  readonly #findFirst: Validate;
  #findAll: Validate | undefined;

  constructor(metered: MeteredSchema, steps: Steps, findFirst: Validate) {
    this.#metered = metered;
    this.#steps = steps;
    this.#findFirst = findFirst;
  }

  check(value: Json): readonly ValidationError[] {
    const found = this.#run(this.#findFirst, value, CHECK_STEPS, true);
    if (found.length === 0 || found[0] === TOO_MUCH_WORK) return found;
    if (countParts(value, ALL_ERRORS_PARTS_MAX + 1) > ALL_ERRORS_PARTS_MAX) return found;
    if (this.#metered.subschemas > ALL_ERRORS_SUBSCHEMAS_MAX) return found;
    // Compiled now, since most schemas never get an invalid value.
    this.#findAll ??= resultOf(compileMetered(this.#metered, this.#steps, true));
    const all = this.#run(this.#findAll, value, ALL_ERRORS_STEPS, false);
    return all[0] === TOO_MUCH_WORK ? found : all;
  }

  #run(
    validate: Validate,
    value: Json,
    steps: number,
    countsParts: boolean,
  ): readonly ValidationError[] {
    this.#steps.start(value, steps, countsParts);
    try {
      if (validate(value)) return [];
      return (validate.errors ?? []).slice(0, VALIDATION_ERRORS_MAX)
        .map((failure) => errorOf(failure, this.#metered.allowed));
    } catch (error) {
      if (error instanceof OutOfSteps) return [TOO_MUCH_WORK];
      if (!(error instanceof RangeError)) throw error;
      return [{ path: "", message: "is nested too deep to be checked" }];
    } finally {
      this.#steps.end();
      validate.errors = null; // They reference the value.
    }
  }
}

/** Names that every object inherits; only schemas with one of them check for own properties. */
const INHERITED_NAME = new RegExp(
  `"(${Object.getOwnPropertyNames(Object.prototype).join("|")})"`,
);

/**
 * Compiles in an instance of its own, so that no schema is kept longer and no `$id` collides. The
 * platform's part, which parses the code, is a stage of its own: until then ajv has a stub.
 */
function* compileMetered(
  metered: MeteredSchema,
  steps: Steps,
  allErrors: boolean,
): Generator<void, Validate, void> {
  const { schema } = metered;
  let source = "";
  const process = (code: string, env?: { readonly schema: unknown }): string => {
    if (env?.schema !== schema) return parsedOnce(code);
    source = parsedOnce(code);
    return "return () => false";
  };
  try {
    const alone = new ajv.Ajv2020({
      ...AJV_OPTIONS,
      allErrors,
      ownProperties: INHERITED_NAME.test(JSON.stringify(schema)),
      meta: false,
      validateSchema: false,
      inlineRefs: false, // A small schema with many references would become a large one.
      code: { ...AJV_OPTIONS.code, regExp: linearExpressions(steps), process },
    });
    const parts = replaceKeywords(alone, metered.allowed, steps);
    yield;
    const stub = alone.compile(schema);
    if ("$async" in stub) throw new Error("it is asynchronous");
    yield;
    const make = new Function("self", "scope", source);
    source = "";
    yield* parts.compile();
    return stub.schemaEnv.validate = Object.assign(make(alone, alone.scope.get()), stub);
  } catch (cause) {
    throw invalid(cause instanceof Error ? cause.message : String(cause), cause);
  }
}

/**
 * In parentheses, a function is compiled as it is parsed; otherwise V8 parses it once to find its
 * end and again with its first call, which takes a third of the time of a large schema.
 */
function parsedOnce(source: string): string {
  return source.replace(/return (?=(?:async )?function validate)/, "return (") + ")";
}

/**
 * Expressions without backtracking, for one schema.
 *
 * RE2 reads a text in time that grows with its length, and in the worst case with the instructions
 * of the expression too. So many steps have to be left; what a test did not need is given back.
 */
function linearExpressions(steps: Steps): { (pattern: string): LinearExpression; code: string } {
  let instructions = 0;
  const compile = (pattern: string): LinearExpression => {
    const expression = compileExpression(pattern);
    const size = expression.programSize();
    if ((instructions += size) > PATTERN_INSTRUCTIONS_MAX) {
      throw new Error(`its expressions have more than ${PATTERN_INSTRUCTIONS_MAX} instructions`);
    }
    const test = (text: string): boolean => {
      const atMost = PATTERN_STEPS.atMost + text.length * size;
      steps.take(atMost);
      const began = performance.now();
      const isMatch = expression.test(text);
      const took = Math.ceil((performance.now() - began) * STEPS_PER_MS);
      const atLeast = PATTERN_STEPS.atLeast + text.length / PATTERN_CHARS_PER_STEP;
      steps.giveBack(atMost - Math.min(atMost, Math.max(atLeast, took)));
      return isMatch;
    };
    return { test, toString: () => pattern };
  };
  return Object.assign(compile, { code: "linearExpression" });
}

interface LinearExpression {
  test(text: string): boolean;
  /** ajv takes expressions with equal texts for the same. */
  toString(): string;
}

function compileExpression(pattern: string): re2.RE2JS {
  const shown = JSON.stringify(cut(pattern, ALLOWED_CHARS_MAX));
  if (pattern.length > PATTERN_CHARS_MAX) {
    throw new Error(`the pattern ${shown} has more than ${PATTERN_CHARS_MAX} characters`);
  }
  try {
    const named = pattern.replace(/\\([pP])\{(?:Script|sc|General_Category|gc)=/g, "\\$1{");
    return re2.RE2JS.compile(re2.RE2JS.translateRegExp(named));
  } catch (thrown) {
    const reason = (thrown as Error).message.replace(/^error parsing regexp: /, "");
    throw new Error(
      `the pattern ${shown} cannot be checked: ${reason}; patterns are RE2 expressions, ` +
        "which have no look-around and no back-references, and repeat up to 1,000 times",
    );
  }
}

function errorOf(failure: Failure, allowed: readonly Json[]): ValidationError {
  const { instancePath, keyword, params, message = `does not fit ${keyword}` } = failure;
  const path = cut(instancePath, VALIDATION_TEXT_CHARS_MAX);
  const detail = detailOf(keyword, params, allowed);
  const text = detail === undefined ? message : `${message}: ${detail}`;
  return { path, message: cut(text, VALIDATION_TEXT_CHARS_MAX) };
}

function detailOf(
  keyword: string,
  params: Failure["params"],
  allowed: readonly Json[],
): string | undefined {
  switch (keyword) {
    case "additionalProperties":
      return params.additionalProperty;
    case "unevaluatedProperties":
      return params.unevaluatedProperty;
    case "enum":
    case "const":
      return cut(JSON.stringify(allowed[params.at]), ALLOWED_CHARS_MAX);
    default:
      return undefined;
  }
}

function cut(text: string, chars: number): string {
  return text.length > chars ? text.slice(0, chars) + "…" : text;
}
