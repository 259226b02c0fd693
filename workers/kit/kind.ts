/**
 * What a shape is made of: kinds of values and checks behind them, and what both say of bounds.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { type Found, type Issue, say, type Words } from "./issue.ts";

/** Whether a JSON Schema is to describe what a shape takes, or what it gives. */
export type Side = "input" | "output";

/** What a member of an object that is left out means to its shape. */
export type Absence = "refused" | "allowed" | "filled";

/** One sort of value. */
export interface Kind<Out> {
  /** What {@linkcode Shape.min} and `max` measure. */
  readonly measured?: "string" | "number" | "array";
  /** Of a list: one with more items is not looked into. */
  readonly itemsMax?: number;
  readonly absence: Absence;
  /** Whether what it gives may be nothing. */
  readonly mayBeNothing: boolean;
  /** All values there are, if those can be listed. */
  readonly values?: readonly unknown[];
  /** Gives the value as it is used on; after an issue whatever it likes. */
  read(value: unknown, found: Found): Out;
  /** The JSON Schema of it. */
  schema(side: Side): JsonObject;
}

/** Something that is looked at when the kind is right. */
export interface Check {
  /** Looks at the value and gives it on, or another one. */
  run(value: unknown, found: Found): unknown;
  /** Whether it can be looked at although the kind is not right. */
  readonly isFor?: (value: unknown) => boolean;
  /** What it says in a JSON Schema. */
  readonly schema?: (schema: JsonObject) => void;
}

/** The JSON Schema of a value that fits any of these; types that say nothing else are listed. */
export function anyOf(schemas: readonly JsonObject[]): JsonObject {
  const isBare = schemas.every((schema) => "type" in schema && Object.keys(schema).length === 1);
  if (!isBare) return { anyOf: [...schemas] };
  return { type: [...new Set(schemas.flatMap(({ type }) => type as string | string[]))] };
}

/** Keys nobody knows say nothing of those that are known. */
export function isInTheWay({ code }: Issue): boolean {
  return code !== "unrecognized_keys";
}

/** Whether a value has a length that can be looked at whatever it is otherwise. */
export function hasLength(value: unknown): boolean {
  return (value as { length?: unknown } | null | undefined)?.length !== undefined;
}

/** A number, or a length, that is too small or too big. */
export function outside(
  code: "too_small" | "too_big",
  sort: "string" | "number" | "array" | "int",
  bound: number,
  words?: Words,
): Omit<Issue, "path"> {
  const [word, sign] = code === "too_small" ? ["small", ">="] : ["big", "<="];
  const unit = sort === "string" ? " characters" : sort === "array" ? " items" : "";
  const message = say(words, bound) ??
    `Too ${word}: expected ${sort} to ${unit ? "have" : "be"} ${sign}${bound}${unit}`;
  return { code, message, [code === "too_small" ? "minimum" : "maximum"]: bound };
}

/** Keeps the narrower of two bounds. */
export function narrow(schema: JsonObject, key: string, bound: number): void {
  const before = schema[key] as number | undefined;
  if (before === undefined) schema[key] = bound;
  else schema[key] = key.startsWith("min") ? Math.max(before, bound) : Math.min(before, bound);
}
