/**
 * Reads members of spans and log records (PROTOCOL 5.8), whatever they hold.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../../sdk/typescript/wire/protocol.ts";

/** Names and values that came with a span or a log record. */
export type Attributes = Readonly<Record<string, Json>>;

/** Text as it is; anything else as JSON; nothing and `null` as empty text. */
export function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The number, also from digits; `fallback` for what is none. */
export function numberOf(value: Json | undefined, fallback = 0): number {
  if (value === undefined || value === null || value === "") return fallback;
  const number = Number(value);
  return Number.isFinite(number) ? number : fallback;
}

/** Milliseconds of nanoseconds, which come as a number or, exact, as digits. */
export function msOf(nano: Json | undefined): number {
  return numberOf(nano) / 1e6;
}

/** Attributes come as pairs or as an object. */
export function attributesOf(raw: Json | undefined): Attributes {
  if (isObject(raw)) return raw;
  const attributes: Record<string, Json> = {};
  for (const pair of Array.isArray(raw) ? raw : []) {
    if (Array.isArray(pair)) attributes[textOf(pair[0])] = pair[1] ?? null;
  }
  return attributes;
}

/** Whether a value is an object, and no list. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The members of an object; none of anything else. */
export function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}
