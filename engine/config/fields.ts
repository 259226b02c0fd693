/**
 * Reads checked fields of a YAML mapping, and reports everything that does not fit.
 *
 * {@linkcode Fields} never throws: it returns `undefined` for a value that is absent or wrong, and
 * adds a problem for a wrong one, so that all problems of a file are reported at once.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { similarNames } from "../../sdk/typescript/wire/similar.ts";
import type { ConfigIssue } from "../ports/config.ts";
import { pathOf, problemText, type YamlText } from "./yaml.ts";

/** For fields that no file has. */
const NO_FILE: YamlText = {
  file: "",
  value: null,
  problems: [],
  lineOf: () => undefined,
  textOf: () => undefined,
  isFilledIn: () => false,
  variableOf: () => undefined,
};

/** The rule for names of workers, for messages. */
export const NAME_RULE = "1 to 64 letters, digits, -, _ or ., beginning with a letter or digit";

/** Whether a text can be the name of a worker: it becomes part of file names. */
export function isWorkerName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text);
}

/** The schema of an environment variable's value: YAML may read it as another type. */
const VARIABLE_VALUE: JsonObject = { type: ["string", "number", "boolean"] };

/** One mapping of a file. An absent one has no keys and no problems. */
export class Fields {
  readonly #source: YamlText;
  readonly #path: string;
  readonly #value: JsonObject;
  readonly #problems: string[];
  /** What each key may be; only in fields that {@linkcode Fields.recording} made. */
  #shape: Record<string, JsonObject> | undefined;

  /**
   * Fields of no file: they have every key, without a value, and note how each is read. So the code
   * that checks a file also says what the file may contain, as {@linkcode Fields.schema}.
   */
  static recording(known: readonly string[]): Fields {
    const fields = new Fields(NO_FILE, [], known);
    fields.#shape = Object.fromEntries(known.map((key) => [key, {}]));
    return fields;
  }

  /** JSON Schema of the mapping, as far as it was read. */
  get schema(): JsonObject {
    return { type: "object", properties: this.#shape ?? {}, additionalProperties: false };
  }

  /**
   * Reads the mapping at `path` (empty for the file itself). Keys that are not in `known` are
   * problems.
   */
  constructor(
    source: YamlText,
    problems: string[],
    known: readonly string[],
    path = "",
    value: Json | undefined = source.value,
  ) {
    this.#source = source;
    this.#problems = problems;
    this.#path = path;
    this.#value = isMapping(value) ? value : {};
    if (value !== undefined && value !== null && !isMapping(value)) {
      this.#problem(path, "a mapping", received(value));
    }
    for (const key of Object.keys(this.#value)) if (!known.includes(key)) this.#unknown(key, known);
  }

  /** Whether the key is there with a value. */
  has(key: string): boolean {
    return this.#shape !== undefined || this.#get(key) !== undefined;
  }

  /** The value as it is. */
  value(key: string): Json | undefined {
    return this.#get(key);
  }

  /** A text that is not empty. A variable may have filled in what looks like a number. */
  text(key: string, expected = "a string"): string | undefined {
    this.#note(key, { type: "string" });
    const value = this.#get(key);
    const path = pathOf(this.#path, key);
    const text = this.#source.isFilledIn(path) ? this.#source.textOf(path) : value;
    if (value === undefined && !text) return undefined;
    if (typeof text === "string" && text.trim() !== "") return text;
    return this.problem(key, expected);
  }

  /** A text that no message shows. */
  secret(key: string): string | undefined {
    this.#note(key, { type: "string" });
    const value = this.#get(key);
    if (typeof value === "string" || this.#source.isFilledIn(pathOf(this.#path, key))) {
      return this.text(key);
    }
    return value === undefined ? undefined : this.problem(key, "a string", "something else");
  }

  /** A whole number within bounds. */
  integer(key: string, min: number, max: number): number | undefined {
    this.#note(key, { type: "integer", minimum: min, maximum: max });
    const value = this.#get(key);
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && value as number >= min && value as number <= max) {
      return value as number;
    }
    return this.problem(key, `${min} to ${max}`);
  }

  /** `true` or `false`. */
  flag(key: string): boolean | undefined {
    this.#note(key, { type: "boolean" });
    const value = this.#get(key);
    return value === undefined || typeof value === "boolean"
      ? value
      : this.problem(key, "true or false");
  }

  /** One of a few words. */
  choice<T extends string>(key: string, options: readonly T[]): T | undefined {
    this.#note(key, { enum: [...options] });
    const value = this.#get(key);
    if (value === undefined) return undefined;
    return options.find((option) => option === value) ??
      this.problem(key, options.length === 1 ? options[0]! : `one of ${options.join(", ")}`);
  }

  /** A list of texts; `check` says what is expected of one that does not fit. */
  texts(key: string, check?: (text: string) => string | undefined): string[] | undefined {
    this.#note(key, { type: "array", items: { type: "string" } });
    const value = this.#get(key);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) return this.problem(key, "a list of strings");
    return value.flatMap((item, i) => {
      const isText = typeof item === "string" && item !== "";
      const expected = isText ? check?.(item) : "a string";
      if (isText && expected === undefined) return [item];
      this.#problem(pathOf(pathOf(this.#path, key), i), expected!, received(item));
      return [];
    });
  }

  /** A list of any values; `check` says what is expected of one that does not fit. */
  list(key: string, check: (item: Json, at: number) => string | undefined): Json[] | undefined {
    this.#note(key, { type: "array" });
    const value = this.#get(key);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) return this.problem(key, "a list");
    return value.filter((item, at) => {
      const expected = check(item, at);
      const path = pathOf(pathOf(this.#path, key), at);
      if (expected !== undefined) this.#problem(path, expected, received(item));
      return expected === undefined;
    });
  }

  /** Environment variables; numbers and flags count as the text they were written with. */
  environment(key: string): Record<string, string> {
    this.#note(key, { type: "object", additionalProperties: VARIABLE_VALUE });
    const value = this.#get(key);
    const path = pathOf(this.#path, key);
    if (value === undefined) return {};
    if (!isMapping(value)) return this.problem(key, "a mapping of names to strings") ?? {};
    const env: Record<string, string> = {};
    for (const [name, item] of Object.entries(value)) {
      const at = pathOf(path, name);
      if (!/^[A-Za-z_]\w*$/.test(name)) {
        this.#problem(at, "a name of letters, digits and _", received(name));
      } else if (item !== null && typeof item === "object") {
        this.#problem(at, "a string", received(item));
      } else env[name] = typeof item === "string" ? item : this.#source.textOf(at) ?? "";
    }
    return env;
  }

  /** An inner mapping. */
  fields(key: string, known: readonly string[]): Fields {
    if (this.#shape) return this.#noteMapping(key, known, (schema) => schema);
    const path = pathOf(this.#path, key);
    return new Fields(this.#source, this.#problems, known, path, this.#value[key] ?? null);
  }

  /** The mappings of a list. */
  items(key: string, known: readonly string[]): Fields[] {
    if (this.#shape) {
      return [this.#noteMapping(key, known, (items) => ({ type: "array", items }))];
    }
    const value = this.#get(key);
    if (value === undefined) return [];
    if (!Array.isArray(value)) return this.problem(key, "a list") ?? [];
    return value.flatMap((item, i) => {
      const path = pathOf(pathOf(this.#path, key), i);
      if (isMapping(item)) return [new Fields(this.#source, this.#problems, known, path, item)];
      this.#problem(path, "a mapping", received(item));
      return [];
    });
  }

  /** Reports that a key does not fit; `what` instead of its value. Returns `undefined`. */
  problem(key: string, expected: string, what?: string): undefined {
    const path = pathOf(this.#path, key);
    this.#problem(path, expected, what ?? received(this.#value[key]));
  }

  /** Line of a key, or of the mapping when the key is absent. */
  lineOf(key: string): number | undefined {
    return this.#source.lineOf(pathOf(this.#path, key));
  }

  /** Path of a key, such as `workers[0].name`. */
  pathOf(key: string): string {
    return pathOf(this.#path, key);
  }

  #note(key: string, schema: JsonObject): void {
    if (this.#shape) this.#shape[key] = schema;
  }

  /** Notes an inner mapping, whose schema grows while it is read. */
  #noteMapping(
    key: string,
    known: readonly string[],
    within: (schema: JsonObject) => JsonObject,
  ): Fields {
    const fields = Fields.recording(known);
    this.#note(key, within(fields.schema));
    return fields;
  }

  #get(key: string): Json | undefined {
    return Object.hasOwn(this.#value, key) ? this.#value[key] ?? undefined : undefined;
  }

  #unknown(key: string, known: readonly string[]): void {
    const meant = closest(key, known);
    const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
    this.#problem(
      pathOf(this.#path, key),
      `one of the keys ${known.join(", ")}`,
      `an unknown key${hint}`,
    );
  }

  #problem(path: string, expected: string, what: string): void {
    const at = path === "" ? this.#source.file : path;
    this.#problems.push(problemText(at, expected, what, this.#source.lineOf(path)));
  }
}

/** Whether the value at a path may be a secret, which neither messages nor listings show. */
export function isSecretPath(path: string): boolean {
  return /token|secret|passw|credential|api_?key|private_?key/i.test(path);
}

/** A value as a message shows it: short, and only the kind of a list or a mapping. */
export function received(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a mapping";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…"` : text;
}

/** The option that a mistyped word, or one without its unit, probably means. */
export function closest(word: string, options: readonly string[]): string | undefined {
  return options.find((option) => option.startsWith(`${word}_`)) ?? similarNames(word, options)[0];
}

/** The problems that `parse` of a built-in worker threw about the value `raw` at `path`. */
export function issueTexts(
  thrown: unknown,
  path: string,
  raw: Json,
  source: YamlText,
): string[] {
  const issues = (thrown as { issues?: unknown }).issues;
  if (!Array.isArray(issues)) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return [problemText(path, "a valid configuration", `another: ${message}`, source.lineOf(path))];
  }
  return (issues as ConfigIssue[]).map((issue) => {
    const at = issue.path.reduce<string>((at, key) => pathOf(at, key), path);
    const value = issue.path.reduce<unknown>(memberOf, raw);
    const what = typeof value === "string" && isSecretPath(at) ? "another string" : received(value);
    return problemText(at, issue.expected, issue.received ?? what, source.lineOf(at));
  });
}

function memberOf(value: unknown, key: PropertyKey): unknown {
  return value !== null && typeof value === "object"
    ? (value as Record<PropertyKey, unknown>)[key]
    : undefined;
}

function isMapping(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
