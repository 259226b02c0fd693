/**
 * Reads what an auth function returned: PROTOCOL 8.
 *
 * Everything is checked, since a mistake here opens or closes more than was meant: a pattern
 * without `match()`, a list that is a text, a flag that is a word.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { ID_CHARS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { AccessGrant } from "../core/access/access.ts";
import { type Pattern, readPattern, RULES_MAX } from "../core/access/patterns.ts";

/** Characters of a `context`, as JSON. */
export const CONTEXT_CHARS_MAX = 64 * 1024;

/**
 * What a function granted.
 *
 * @throws {EngineError} `invalid_grant`, with the member that does not fit.
 */
export function readGrant(value: Json, function_id: string): AccessGrant {
  const problem = (what: string): EngineError => {
    return new EngineError("invalid_grant", `${function_id} returned no grant: ${what}`);
  };
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw problem("expected an object");
  }
  const fields = new GrantFields(value, problem);
  const types = fields.texts("allowed_trigger_types");
  return {
    allowed: fields.patterns("allowed_functions"),
    forbidden: fields.patterns("forbidden_functions"),
    namespaces: new Set(fields.texts("namespaces") ?? []),
    triggerTypes: types && new Set(types),
    mayRegisterTriggerTypes: fields.flag("allow_trigger_type_registration", false),
    mayRegisterFunctions: fields.flag("allow_function_registration", true),
    context: fields.context(),
    prefix: fields.prefix(),
  };
}

/** Members of a grant; `null` means absent. */
class GrantFields {
  readonly #value: JsonObject;
  readonly #problem: (what: string) => EngineError;

  constructor(value: JsonObject, problem: (what: string) => EngineError) {
    this.#value = value;
    this.#problem = problem;
  }

  texts(key: string): string[] | undefined {
    const list = this.#get(key);
    if (list === undefined) return undefined;
    if (!Array.isArray(list)) throw this.#problem(`${key}: expected a list of strings`);
    if (list.length > RULES_MAX) throw this.#problem(`${key}: expected at most ${RULES_MAX}`);
    return list.map((item, at) => {
      if (typeof item === "string" && item !== "") return item;
      throw this.#problem(`${key}[${at}]: expected a string`);
    });
  }

  patterns(key: string): Pattern[] {
    return (this.texts(key) ?? []).map((text, at) => {
      const pattern = readPattern(text);
      if (typeof pattern !== "string") return pattern;
      throw this.#problem(`${key}[${at}]: expected ${pattern}`);
    });
  }

  flag(key: string, otherwise: boolean): boolean {
    const value = this.#get(key) ?? otherwise;
    if (typeof value === "boolean") return value;
    throw this.#problem(`${key}: expected true or false`);
  }

  context(): JsonObject {
    const context = this.#get("context") ?? {};
    if (typeof context !== "object" || context === null || Array.isArray(context)) {
      throw this.#problem("context: expected an object");
    }
    if (JSON.stringify(context).length > CONTEXT_CHARS_MAX) {
      throw this.#problem(`context: expected at most ${CONTEXT_CHARS_MAX} characters`);
    }
    return context;
  }

  prefix(): string | undefined {
    const prefix = this.#get("function_registration_prefix");
    if (prefix === undefined) return undefined;
    if (typeof prefix === "string" && prefix !== "" && prefix.length <= ID_CHARS_MAX) return prefix;
    throw this.#problem("function_registration_prefix: expected a short string");
  }

  #get(key: string): Json | undefined {
    return Object.hasOwn(this.#value, key) ? this.#value[key] ?? undefined : undefined;
  }
}
