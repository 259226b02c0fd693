/**
 * A shape: what a value has to look like, in one definition for the check, the type and the JSON
 * Schema.
 *
 * A shape is a *kind*, which knows one sort of value, and *checks*, which run behind it in order.
 * Every method returns another shape and leaves this one as it is. Why not a library: the one that
 * was here took 80 ms of each start and 18 MB, for what stands in this folder.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { Found, say, ShapeError, type Words } from "./issue.ts";
import {
  anyOf,
  type Check,
  hasLength,
  isInTheWay,
  type Kind,
  narrow,
  outside,
  type Side,
} from "./kind.ts";

/** What came of a reading that throws nothing. */
export type Reading<Out> =
  | { readonly success: true; readonly data: Out; readonly error?: never }
  | { readonly success: false; readonly error: ShapeError; readonly data?: never };

/** How a refinement that failed is told. */
export type Refusal = string | {
  readonly error?: Words;
  /** Where, from the value that was looked at. */
  readonly path?: readonly (string | number)[];
  /** Look also where other things are wrong, so that all are told at once: expect anything then. */
  readonly always?: boolean;
};

/** The type of what a shape gives. */
export type Output<Of> = Of extends { readonly out: infer Out } ? Out : never;

/** Any shape. */
export type Any = Shape<unknown, boolean, unknown>;

/** What a value has to look like. `Optional`: a member of this shape may be missing. */
export class Shape<out Out, out Optional extends boolean = false, out Members = unknown> {
  /** For the compiler only. */
  declare readonly out: Out;
  /** For the compiler only. */
  declare readonly mayMiss: Optional;
  /** Of an object: the shapes of its members. */
  readonly members: Members;
  /** What is read first. */
  readonly kind: Kind<unknown>;
  readonly #checks: readonly Check[];

  /** Use the words in `mod.ts`. */
  constructor(kind: Kind<unknown>, members: Members, checks: readonly Check[] = []) {
    this.kind = kind;
    this.members = members;
    this.#checks = checks;
  }

  /**
   * The value as it is used on.
   *
   * @throws {ShapeError} With everything that does not fit.
   */
  parse(value: unknown): Out {
    const read = this.safeParse(value);
    if (read.success) return read.data;
    throw read.error;
  }

  /** As {@linkcode parse}, with the error in the result. */
  safeParse(value: unknown): Reading<Out> {
    const found = new Found();
    const data = this.read(value, found) as Out;
    return found.issues.length === 0
      ? { success: true, data }
      : { success: false, error: new ShapeError(found.issues) };
  }

  /** As a part of another shape: notes what is wrong in `found`. */
  read(value: unknown, found: Found): unknown {
    const checks = this.#checks;
    if (checks.length === 0) return this.kind.read(value, found);
    const before = found.grave;
    const isTooLong = Array.isArray(value) && value.length > (this.kind.itemsMax ?? Infinity);
    let read = isTooLong ? value : this.kind.read(value, found);
    for (const check of checks) {
      if (found.isStopped) break;
      const isRight = check.isFor ? check.isFor(read) : found.grave === before && !isTooLong;
      if (isRight) read = check.run(read, found);
    }
    return read;
  }

  /** As a JSON Schema, without `$schema`. */
  schema(side: Side): JsonObject {
    const schema = this.kind.schema(side);
    for (const check of this.#checks) check.schema?.(schema);
    return schema;
  }

  /** At least so much: a number itself, characters of a text, items of a list. */
  min(minimum: number): this {
    return this.#bounded("too_small", minimum, (amount) => amount >= minimum);
  }

  /** At most so much. */
  max(maximum: number): this {
    const bounded = this.#bounded("too_big", maximum, (amount) => amount <= maximum);
    if (this.kind.measured !== "array") return bounded;
    const itemsMax = Math.min(maximum, this.kind.itemsMax ?? Infinity);
    return new Shape({ ...this.kind, itemsMax }, this.members, bounded.#checks) as this;
  }

  /** A whole number that is exact. */
  int(words?: Words): this {
    return this.with({
      run(value, found) {
        const bound = Number.MAX_SAFE_INTEGER;
        if (!Number.isInteger(value)) found.addType("int", value, words, "safeint");
        else if (value as number > bound) found.add(outside("too_big", "int", bound, words));
        else if (value as number < -bound) found.add(outside("too_small", "int", -bound, words));
        return value;
      },
      schema(schema) {
        schema.type = "integer";
        narrow(schema, "minimum", Number.MIN_SAFE_INTEGER);
        narrow(schema, "maximum", Number.MAX_SAFE_INTEGER);
      },
    });
  }

  /** A text that an expression finds something in. */
  regex(pattern: RegExp, words?: Words): this {
    const message = `Invalid string: must match pattern ${pattern}`;
    return this.#formatted("regex", (text) => pattern.test(text), message, pattern.source, words);
  }

  /** A text that begins so. */
  startsWith(prefix: string): this {
    const message = `Invalid string: must start with "${prefix}"`;
    const source = `^${RegExp.escape(prefix)}.*`;
    return this.#formatted("starts_with", (text) => text.startsWith(prefix), message, source);
  }

  /** A text without white space around it, from here on. */
  trim(): this {
    return this.with({ run: (text) => (text as string).trim() });
  }

  /** A text in small letters, from here on. */
  toLowerCase(): this {
    return this.with({ run: (text) => (text as string).toLowerCase() });
  }

  /** A text in capitals, from here on. */
  toUpperCase(): this {
    return this.with({ run: (text) => (text as string).toUpperCase() });
  }

  /** A value of which something else holds too. */
  refine(holds: (value: Out) => unknown, refusal: Refusal = {}): this {
    const { error, path = [], always = false }: Exclude<Refusal, string> =
      typeof refusal === "string" ? { error: refusal } : refusal;
    return this.with({
      run(value, found) {
        if (!holds(value as Out)) {
          found.add({ code: "custom", message: say(error, value) ?? "Invalid input" }, path);
        }
        return value;
      },
      ...always && { isFor: () => true },
    });
  }

  /** Says more in the JSON Schema. */
  meta(more: JsonObject): this {
    return this.with({ run: (value) => value, schema: (schema) => Object.assign(schema, more) });
  }

  /** May be left out. */
  optional(): Shape<Out | undefined, true> {
    const { kind } = this;
    const absence = kind.absence === "filled" ? "filled" : "allowed";
    return wrap(this, {
      absence,
      mayBeNothing: true,
      read: (value, found) =>
        value === undefined && absence === "allowed" ? undefined : this.read(value, found),
    });
  }

  /** May be `null`. */
  nullable(): Shape<Out | null, Optional> {
    return wrap(this, {
      read: (value, found) => value === null ? null : this.read(value, found),
      schema: (side) => anyOf([this.schema(side), { type: "null" }]),
    });
  }

  /** May be left out or `null`. */
  nullish(): Shape<Out | null | undefined, true> {
    return this.nullable().optional();
  }

  /** Left out means this value, which is not looked at. */
  default(given: Exclude<Out, undefined>): Shape<Exclude<Out, undefined>> {
    return wrap(this, {
      absence: "filled",
      mayBeNothing: false,
      read: (value, found) => value === undefined ? given : this.read(value, found) ?? given,
      schema: (side) => ({ ...this.schema(side), default: given as Json }),
    });
  }

  /** Left out means this value, which is read like any other. */
  prefault(given: Json): Shape<Exclude<Out, undefined>> {
    return wrap(this, {
      absence: "filled",
      read: (value, found) => this.read(value === undefined ? given : value, found),
      schema: (side) => ({ ...this.schema(side), ...side === "input" && { default: given } }),
    });
  }

  /** Another value is made of it, if nothing is wrong. */
  transform<To>(make: (value: Out) => To): Shape<To> {
    return wrap(this, {
      mayBeNothing: false,
      read: (value, found) => {
        const read = this.#whole(value, found);
        return found.isStopped ? read : make(read as Out);
      },
      schema: (side) => side === "input" ? this.schema(side) : {},
    });
  }

  /** Has to have another shape besides, if nothing is wrong. */
  pipe<To, May extends boolean>(next: Shape<To, May>): Shape<To, May> {
    return wrap(this, {
      mayBeNothing: next.kind.mayBeNothing,
      read: (value, found) => {
        const read = this.#whole(value, found);
        return found.isStopped ? read : next.read(read, found);
      },
      schema: (side) => side === "input" ? this.schema(side) : next.schema(side),
    });
  }

  /** The same with one more check behind the others. */
  with(check: Check): this {
    return new Shape(this.kind, this.members, [...this.#checks, check]) as this;
  }

  /** Reads for a step that must not run if anything is wrong. */
  #whole(value: unknown, found: Found): unknown {
    const before = found.issues.length;
    const read = this.read(value, found);
    found.isStopped ||= found.issues.slice(before).some(isInTheWay);
    return read;
  }

  #bounded(code: "too_small" | "too_big", bound: number, holds: (n: number) => boolean): this {
    const { measured } = this.kind;
    const amountOf = (value: unknown): number =>
      typeof value === "number" ? value : (value as { length: number }).length;
    const edge = code === "too_small" ? "min" : "max";
    const key = measured === "number"
      ? `${edge}imum` as const
      : `${edge}${measured === "array" ? "Items" : "Length"}` as const;
    return this.with({
      run(value, found) {
        const sort = typeof value === "number"
          ? "number"
          : Array.isArray(value)
          ? "array"
          : "string";
        if (holds(amountOf(value))) return value;
        // The items of too long a list were not looked at.
        if (sort === "array" && code === "too_big") found.addGrave(outside(code, sort, bound));
        else found.add(outside(code, sort, bound));
        return value;
      },
      ...measured !== "number" && { isFor: hasLength },
      schema: (schema) => narrow(schema, key, bound),
    });
  }

  #formatted(
    format: string,
    holds: (text: string) => boolean,
    message: string,
    pattern: string,
    words?: Words,
  ): this {
    return this.with({
      run(text, found) {
        if (holds(text as string)) return text;
        found.add({ code: "invalid_format", format, message: say(words, text) ?? message });
        return text;
      },
      schema: (schema) => void (schema.pattern = pattern),
    });
  }
}

/** A kind around the one of another shape; what is not given is as there. */
function wrap<To, May extends boolean>(
  inner: Any,
  { read, ...own }: Partial<Kind<unknown>> & Pick<Kind<unknown>, "read">,
): Shape<To, May> {
  const { absence, mayBeNothing } = inner.kind;
  const schema = (side: Side): JsonObject => inner.schema(side);
  return new Shape({ absence, mayBeNothing, schema, ...own, read }, undefined);
}
