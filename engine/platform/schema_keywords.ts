/**
 * Keywords that the compiled checks have in place of ajv's: they count steps, need time in
 * proportion to schema and value, and make less code.
 *
 * @module
 */
import defer * as ajv from "ajv/dist/2020.js";
import defer * as compile from "ajv/dist/compile/index.js";
import defer * as names from "ajv/dist/compile/names.js";
import defer * as util from "ajv/dist/compile/util.js";
import defer * as vocabulary from "ajv/dist/vocabularies/code.js";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Ajv } from "./schema_loading.ts";
import { MEMBER_STEPS, type StepCost, type Steps, STEPS_KEYWORD } from "./schema_steps.ts";

/** Steps of comparing one part of an item with all others, and characters that cost a step. */
const UNIQUE_PART_STEPS = 40;
const UNIQUE_CHARS_PER_STEP = 8;
/** Subschemas of members that are compiled together; those of more members come in parts. */
export const PART_SUBSCHEMAS_MAX = 60;

type CodeGen = ajv.KeywordCxt["gen"];
type SchemaEnv = ajv.SchemaCxt["schemaEnv"];
type Failure = NonNullable<ReturnType<Ajv["compile"]>["errors"]>[number];
/** A schema's `properties`. */
type Members = Record<string, Json>;

/** Their errors name a value or a member ({@linkcode detailOf}). */
const KEYWORDS_WITH_DETAIL = new Set(
  ["additionalProperties", "unevaluatedProperties", "enum", "const"],
);

/**
 * ajv's time grows with the square of what the code of a schema refers to, so the subschemas share
 * that: what each of them needs for itself stands in a list.
 */
export function replaceKeywords(alone: Ajv, allowed: readonly Json[], steps: Steps): MemberParts {
  const costs: StepCost[] = [];
  const shorten = shortErrors();
  alone.addKeyword({
    keyword: STEPS_KEYWORD,
    schemaType: "array",
    code({ gen, schema, data }) {
      shorten(gen);
      const apply = gen.scopeValue("func", { ref: steps.apply });
      const own = gen.scopeValue("obj", { ref: costs });
      const at = costs.push(schema as StepCost) - 1;
      gen.code(ajv._`${apply}(${own}[${at}], ${data})`);
    },
  });
  // In front of all others, those of numbers and texts included.
  const { rules } = alone.RULES;
  const group = rules.find(({ rules }) => rules.some(({ keyword }) => keyword === STEPS_KEYWORD))!;
  const [counting] = group.rules.splice(-1);
  rules.unshift({ rules: [counting!] });

  // ajv's own compares all pairs of items: minutes for a long list.
  const isSet = (items: readonly Json[]) => areUnique(items, steps);
  alone.removeKeyword("uniqueItems").addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    code(cxt) {
      if (!cxt.schema) return;
      cxt.pass(ajv._`${cxt.gen.scopeValue("func", { ref: isSet })}(${cxt.data})`);
    },
    error: { message: "must NOT have duplicate items" },
  });
  // ajv's own count all characters of a text.
  for (const [keyword, how] of [["minLength", "fewer"], ["maxLength", "more"]] as const) {
    const isWithin = keyword === "minLength"
      ? (text: string, min: number) => text.length >= min && !isShorter(text, min, steps)
      : (text: string, max: number) => text.length <= max || isShorter(text, max + 1, steps);
    alone.removeKeyword(keyword).addKeyword({
      keyword,
      type: "string",
      schemaType: "number",
      code(cxt) {
        const run = cxt.gen.scopeValue("func", { ref: isWithin });
        cxt.pass(ajv._`${run}(${cxt.data}, ${cxt.schema})`);
      },
      error: {
        message: ({ schema }) => ajv.str`must NOT have ${how} than ${schema} characters`,
      },
    });
  }
  replaceComparisons(alone, allowed, steps);
  return new MemberParts(alone);
}

/**
 * Has the code of errors with a fixed text name them by their place in a list: written out, as ajv
 * does it, they are half of the code of a schema.
 */
function shortErrors(): (gen: CodeGen) => void {
  const known: Omit<Failure, "instancePath">[] = [];
  const errorAt = (at: number, instancePath: string, params: object): Failure => {
    return { ...known[at]!, instancePath, params };
  };
  const seen = new WeakSet<CodeGen>();
  return (gen) => {
    if (seen.has(gen)) return;
    seen.add(gen);
    const writeOut = gen.object.bind(gen);
    gen.object = (...members) => {
      const [path, , keyword, params, message] = members;
      const text = `${members[1]?.[0]}` === "schemaPath" ? fixedText(message?.[1]) : undefined;
      if (text === undefined) return writeOut(...members);
      const name = `${keyword![1]}`;
      const isShown = KEYWORDS_WITH_DETAIL.has(name);
      const at = known.push({ keyword: name, message: text, schemaPath: "", params: {} });
      const run = gen.scopeValue("func", { ref: errorAt });
      return isShown
        ? ajv._`${run}(${at - 1}, ${path![1]}, ${params![1]})`
        : ajv._`${run}(${at - 1}, ${path![1]})`;
    };
  };
}

/** The text that a message always has; `undefined` when it depends on the value. */
function fixedText(message: unknown): string | undefined {
  if (typeof message === "string") return message;
  const code = `${message}`;
  return /^"(?:[^"\\]|\\.)*"$/.test(code) ? JSON.parse(code) : undefined;
}

/** ajv's own compare with each allowed value in turn. */
function replaceComparisons(alone: Ajv, allowed: readonly Json[], steps: Steps): void {
  alone.removeKeyword("enum").removeKeyword("const");
  const tests: ((value: Json) => boolean)[] = [];
  for (const keyword of ["enum", "const"] as const) {
    alone.addKeyword({
      keyword,
      schemaType: "number",
      code(cxt) {
        const at = cxt.schema as number;
        const listed = keyword === "enum" ? allowed[at] as Json[] : [allowed[at]!];
        const own = cxt.gen.scopeValue("func", { ref: tests });
        const place = tests.push(oneOf(listed, steps)) - 1;
        cxt.pass(ajv._`${own}[${place}](${cxt.data})`);
      },
      error: {
        message: keyword === "enum"
          ? "must be equal to one of the allowed values"
          : "must be equal to constant",
        params: ({ schema }) => ajv._`{at: ${schema}}`,
      },
    });
  }
}

/** Whether a text has fewer than `count` characters; those beyond the first 65,536 count as two. */
function isShorter(text: string, count: number, steps: Steps): boolean {
  if (text.length >= 2 * count) return false;
  steps.take(text.length);
  let pairs = 0;
  for (let at = 0; at + 1 < text.length; at++) {
    if (text.charCodeAt(at) >>> 10 === 0x36 && text.charCodeAt(at + 1) >>> 10 === 0x37) pairs++;
  }
  return text.length - pairs < count;
}

/** Whether a value is in a list. */
function oneOf(listed: readonly Json[], steps: Steps): (value: Json) => boolean {
  const isPlain = (value: Json) => value === null || typeof value !== "object";
  const plain = new Set<Json>(listed.filter(isPlain));
  const others = listed.filter((value) => !isPlain(value));
  return (value) => plain.has(value) || others.some((other) => areEqual(other, value, steps));
}

/** Equality of JSON values; reads little more of `value` than `wanted` has. */
function areEqual(wanted: Json, value: Json, steps: Steps): boolean {
  if (wanted === null || typeof wanted !== "object") return wanted === value;
  if (value === null || typeof value !== "object") return false;
  if (Array.isArray(wanted) || Array.isArray(value)) {
    return Array.isArray(wanted) && Array.isArray(value) && wanted.length === value.length &&
      wanted.every((item, at) => areEqual(item, value[at]!, steps));
  }
  const names = Object.keys(wanted);
  const isPart = names.every((name) =>
    Object.hasOwn(value, name) && areEqual(wanted[name]!, value[name]!, steps)
  );
  if (!isPart) return false;
  let count = 0;
  for (const _name in value) count++; // The platform reads all of them before the first.
  steps.take(count * MEMBER_STEPS);
  return count === names.length;
}

function areUnique(items: readonly Json[], steps: Steps): boolean {
  const seen = new Set<Json>();
  const seenTexts = new Set<string>();
  return items.every((item) => {
    if (item !== null && typeof item === "object") {
      return seenTexts.size < seenTexts.add(canonical(item, steps)).size;
    }
    takePart(item, steps);
    return seen.size < seen.add(item).size;
  });
}

/** A value as JSON with sorted members: objects with the same members are equal. */
function canonical(value: Json, steps: Steps): string {
  takePart(value, steps);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, steps)).join()}]`;
  const names = Object.keys(value).sort();
  const members = names.map((name) => {
    takePart(name, steps);
    return `${JSON.stringify(name)}:${canonical(value[name]!, steps)}`;
  });
  return `{${members.join()}}`;
}

function takePart(part: Json, steps: Steps): void {
  const chars = typeof part === "string" ? part.length : 0;
  steps.take(UNIQUE_PART_STEPS + Math.floor(chars / UNIQUE_CHARS_PER_STEP));
}

/**
 * Compiles the members of a large object in parts, each of which is a function of its own: code for
 * all of them at once takes 80 to 110 ms for 480 members.
 */
class MemberParts {
  readonly #alone: Ajv;
  /** Called by code that exists, and not compiled yet. */
  readonly #due: SchemaEnv[] = [];

  /** Changes how the instance compiles `properties`. */
  constructor(alone: Ajv) {
    this.#alone = alone;
    const rule = alone.RULES.all.properties as { definition: ajv.CodeKeywordDefinition };
    const { definition } = rule;
    const code = (cxt: ajv.KeywordCxt): void => {
      const parts = partsOf(cxt.schema);
      if (parts.length < 2) definition.code(cxt);
      else this.#call(cxt, parts);
    };
    rule.definition = { ...definition, code };
  }

  /** Compiles the parts that are due; to be called once the schema itself is compiled. */
  *compile(): Generator<void, void, void> {
    for (let env = this.#due.shift(); env; env = this.#due.shift()) {
      yield;
      compile.compileSchema.call(this.#alone, env);
    }
  }

  /** Code that checks an object by one function for each part. */
  #call(cxt: ajv.KeywordCxt, parts: readonly Members[]): void {
    const { gen, it } = cxt;
    const { baseId, schemaEnv: { root } } = it;
    const envs = parts.map((properties) => {
      return new compile.SchemaEnv({ schema: { properties }, schemaId: "$id", root, baseId });
    });
    this.#due.push(...envs);
    if (it.opts.unevaluated && it.props !== true) {
      it.props = util.mergeEvaluated.props(gen, util.toHash(Object.keys(cxt.schema)), it.props);
    }
    const run = gen.scopeValue("func", { ref: checkerOf(envs, it.allErrors ?? false) });
    const call = vocabulary.callValidateCode(cxt, run, ajv.nil);
    const errors = gen.const("errs", call);
    const { vErrors, errors: count } = names.default.default;
    gen.if(errors, () => {
      gen.assign(vErrors, ajv._`${vErrors} === null ? ${errors} : ${vErrors}.concat(${errors})`);
      gen.assign(count, ajv._`${vErrors}.length`);
    });
    cxt.ok(ajv._`!${errors}`);
  }
}

type Context = Parameters<NonNullable<SchemaEnv["validate"]>>[1];

/** Runs the functions of parts; returns their errors, `undefined` when there are none. */
function checkerOf(
  envs: readonly SchemaEnv[],
  allErrors: boolean,
): (data: Json, context: Context) => Failure[] | undefined {
  return (data, context) => {
    let found: Failure[] | undefined;
    for (const { validate } of envs) {
      if (validate!(data, context)) continue;
      const errors = validate!.errors!;
      validate!.errors = null; // They reference the value.
      if (!allErrors) return errors;
      found = found ? found.concat(errors) : errors;
    }
    return found;
  };
}

/** Members in parts of about equally many subschemas. */
function partsOf(members: Members): Members[] {
  const parts: [string, Json][][] = [[]];
  let subschemas = 0;
  for (const member of Object.entries(members)) {
    const count = subschemasOf(member[1]);
    if (subschemas > 0 && subschemas + count > PART_SUBSCHEMAS_MAX) {
      parts.push([]);
      subschemas = 0;
    }
    parts.at(-1)!.push(member);
    subschemas += count;
  }
  return parts.map((part) => Object.fromEntries(part));
}

/** The number of subschemas in a metered schema, itself included. */
function subschemasOf(schema: Json): number {
  const cost = (schema as Record<string, StepCost | undefined> | null)?.[STEPS_KEYWORD];
  return cost?.[3] ?? 1;
}
