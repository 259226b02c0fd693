/**
 * Shapes of single values: texts, numbers, and those of which all can be listed.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { type Found, listed, say, type Words } from "./issue.ts";
import type { Absence, Kind } from "./kind.ts";
import { Shape } from "./shape.ts";

/** A shape's own words for a value that does not fit. */
export type Options = string | { readonly error?: Words };

/** A text. */
export function string(options?: Options): Shape<string> {
  const words = wordsOf(options);
  return scalar({ type: "string" }, (value, found) => {
    if (typeof value !== "string") found.addType("string", value, words);
    return value;
  }, { measured: "string" });
}

/** A number that JSON can hold. */
export function number(options?: Options): Shape<number> {
  const words = wordsOf(options);
  return scalar({ type: "number" }, (value, found) => {
    if (typeof value !== "number" || !Number.isFinite(value)) {
      found.addType("number", value, words);
    }
    return value;
  }, { measured: "number" });
}

/** A whole number that is exact. */
export function int(options?: Options): Shape<number> {
  return number(options).int(wordsOf(options));
}

/** `true` or `false`. */
export function boolean(options?: Options): Shape<boolean> {
  const words = wordsOf(options);
  return scalar({ type: "boolean" }, (value, found) => {
    if (typeof value !== "boolean") found.addType("boolean", value, words);
    return value;
  });
}

/** One value and no other. */
export function literal<const Value extends string | number | boolean>(
  only: Value,
): Shape<Value> {
  const message = `Invalid input: expected ${listed([only], "")}`;
  return scalar({ type: typeof only, const: only }, (value, found) => {
    if (value !== only) found.addGrave({ code: "invalid_value", values: [only], message });
    return value;
  }, { values: [only] });
}

/** One of some texts. */
export function oneOf<const Texts extends readonly string[]>(
  texts: Texts,
  options?: Options,
): Shape<Texts[number]> {
  const words = wordsOf(options);
  const all = new Set<unknown>(texts);
  const message = texts.length === 1
    ? `Invalid input: expected ${listed(texts, "")}`
    : `Invalid option: expected one of ${listed(texts, "|")}`;
  return scalar({ type: "string", enum: [...texts] }, (value, found) => {
    if (!all.has(value)) {
      const said = say(words, value) ?? message;
      found.addGrave({ code: "invalid_value", values: texts, message: said });
    }
    return value;
  }, { values: texts });
}

/** `null`. */
export function nothing(): Shape<null> {
  return scalar({ type: "null" }, (value, found) => {
    if (value !== null) found.addType("null", value);
    return value;
  }, { values: [null] });
}

/** Whatever there is. */
export function unknown(): Shape<unknown> {
  return scalar({}, (value) => value);
}

/** Whatever some program says it is. */
export function custom<Out = Json>(
  holds: (value: unknown) => boolean,
  options?: Options,
): Shape<Out> {
  const words = wordsOf(options);
  return scalar({}, (value, found) => {
    const message = holds(value) ? undefined : say(words, value) ?? "Invalid input";
    if (message !== undefined) found.add({ code: "custom", message });
    return value;
  });
}

/** The words in options. */
export function wordsOf(options: Options | undefined): Words | undefined {
  return typeof options === "string" ? options : options?.error;
}

function scalar<Out>(
  schema: JsonObject,
  read: (value: unknown, found: Found) => unknown,
  more: Partial<Kind<unknown>> = {},
): Shape<Out> {
  const absence: Absence = "refused";
  return new Shape(
    { absence, mayBeNothing: false, ...more, read, schema: () => ({ ...schema }) },
    undefined,
  );
}
