/**
 * What the state functions take. Fields that may be left out may also be null.
 *
 * @module
 */
import * as shape from "../kit/mod.ts";
import {
  STATE_ENTRIES_LIMIT,
  STATE_ENTRIES_LIMIT_MAX,
  STATE_NAME_BYTES_MAX,
  STATE_TTL_MS_MAX,
} from "../limits.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { UpdateOp } from "../update_ops.ts";

const encoder = new TextEncoder();

/** Bytes of UTF-8 that one unit of a text takes at most. */
const UNIT_BYTES_MAX = 3;

/** What the store can hold as a part of a key. */
const Part = shape.string()
  .refine((text) => text.isWellFormed(), { error: "expected well-formed Unicode" })
  .refine(fitsIntoKey, { error: `expected at most ${STATE_NAME_BYTES_MAX} bytes` });
const Name = Part.refine((text) => text !== "", { error: "expected at least 1 character" });

/** A scope, for `state::list`. */
export const ScopeRequest = shape.object({ scope: Name });

/** A scope and a key, for `state::get`, `state::entry` and `state::delete`. */
export const PlaceRequest = shape.object({ scope: Name, key: Name });

/** For `state::set`. */
export const SetRequest = shape.looseObject({
  scope: Name,
  key: Name,
  /** 0: there must be none. */
  expected_version: shape.number().int().min(0).nullish(),
  ttl_ms: shape.number().int().min(0).max(STATE_TTL_MS_MAX).nullish(),
})
  .refine((request) => Object.hasOwn(request, "value") || Object.hasOwn(request, "data"), {
    path: ["value"],
    error: "expected a value, received nothing",
  })
  .transform(({ scope, key, expected_version, ttl_ms, value, data }) => {
    const isAlias = value === undefined;
    return { scope, key, expected_version, ttl_ms, value: (isAlias ? data : value) as Json };
  });

/** For `state::update`. */
export const UpdateRequest = shape.object({ scope: Name, key: Name, ops: shape.array(UpdateOp) });

/** For `state::list_entries`. */
export const EntriesRequest = shape.object({
  scope: Name,
  prefix: Part.nullish().transform((prefix) => prefix ?? ""),
  /** More than the largest means the largest. */
  limit: shape.number().int().min(1).nullish()
    .transform((limit) => Math.min(limit ?? STATE_ENTRIES_LIMIT, STATE_ENTRIES_LIMIT_MAX)),
  cursor: Name.nullish().transform((cursor) => cursor ?? undefined),
}).refine(({ prefix, cursor }) => cursor === undefined || cursor.startsWith(prefix), {
  path: ["cursor"],
  error: "expected the cursor of an answer for the same prefix",
});

/** Counting takes longer than all else of a short name; a zero takes two bytes in a key. */
function fitsIntoKey(text: string): boolean {
  if (text.length * UNIT_BYTES_MAX <= STATE_NAME_BYTES_MAX) return true;
  return encoder.encode(text).length + text.split("\0").length - 1 <= STATE_NAME_BYTES_MAX;
}
