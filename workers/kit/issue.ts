/**
 * What a shape found wrong with a value, and the words for it.
 *
 * Nothing here decides what is wrong. An issue that is *grave* leaves nothing that the checks
 * behind it could look at; after any other they go on, so that one look finds as much as possible.
 *
 * @module
 */

/** What kind of mistake it is. */
export type IssueCode =
  | "invalid_type"
  | "invalid_value"
  | "invalid_format"
  | "invalid_union"
  | "too_small"
  | "too_big"
  | "unrecognized_keys"
  | "custom";

/** One mistake in a value. */
export interface Issue {
  readonly code: IssueCode;
  /** The way to it from the whole: keys, and numbers of list items. */
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** Of `invalid_type`: what there should be, such as `string` or `int`. */
  readonly expected?: string;
  /** Of `invalid_format`: which, such as `regex`. */
  readonly format?: string;
  /** Of `invalid_value`: all that may be there. */
  readonly values?: readonly unknown[];
  /** Of `too_small`: the least number, or characters, or items. */
  readonly minimum?: number;
  /** Of `too_big`: the most. */
  readonly maximum?: number;
  /** Of `unrecognized_keys`: those that nobody knows. */
  readonly keys?: readonly string[];
}

/** Words of a shape's own for what is wrong. */
export type Words = string | ((about: { readonly input: unknown }) => string);

/** A value does not fit its shape. */
export class ShapeError extends Error {
  /** For people who read a stack. */
  override readonly name = "ShapeError";
  /** All that is wrong, in the order of the shape. */
  readonly issues: readonly Issue[];

  /** Makes one. */
  constructor(issues: readonly Issue[]) {
    super(issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; "));
    this.issues = issues;
  }
}

/** What one reading has found so far. */
export class Found {
  readonly issues: Issue[] = [];
  /** Where the reading is. */
  readonly path: (string | number)[];
  /** How many issues are grave. */
  grave = 0;
  /** Some step did not run because of the one before it, so none that follows may. */
  isStopped = false;

  /** Nothing found yet, at a place. */
  constructor(path: readonly (string | number)[] = []) {
    this.path = [...path];
  }

  /** Notes something after which other checks go on. */
  add(issue: Omit<Issue, "path">, at: readonly (string | number)[] = []): void {
    this.issues.push({ ...issue, path: [...this.path, ...at] });
  }

  /** Notes something after which they do not. */
  addGrave(issue: Omit<Issue, "path">, at: readonly (string | number)[] = []): void {
    this.grave++;
    this.add(issue, at);
  }

  /** Notes that a value is of another type. */
  addType(expected: string, input: unknown, words?: Words, format?: string): void {
    const message = say(words, input) ??
      `Invalid input: expected ${expected}, received ${typeName(input)}`;
    this.addGrave({ code: "invalid_type", expected, message, ...format && { format } });
  }

  /** Takes over what another reading of the same value has found. */
  take(other: Found): void {
    this.issues.push(...other.issues);
    this.grave += other.grave;
    this.isStopped ||= other.isStopped;
  }
}

/** A shape's own words about a value; `undefined` when it has none. */
export function say(words: Words | undefined, input: unknown): string | undefined {
  return typeof words === "function" ? words({ input }) : words;
}

/** Values as they are listed: texts in quotes. */
export function listed(values: readonly unknown[], separator: string): string {
  return values.map((value) => typeof value === "string" ? `"${value}"` : `${value}`)
    .join(separator);
}

function typeName(input: unknown): string {
  if (input === null) return "null";
  if (Array.isArray(input)) return "array";
  return typeof input === "number" && !Number.isFinite(input) ? String(input) : typeof input;
}
