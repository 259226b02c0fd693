/**
 * What the state functions take. Fields that may be left out may also be null.
 *
 * @module
 */
import { z } from "zod";
import {
  STATE_ENTRIES_LIMIT,
  STATE_ENTRIES_LIMIT_MAX,
  STATE_NAME_BYTES_MAX,
  STATE_TTL_MS_MAX,
} from "../limits.ts";
import type { Json } from "../../sdk/typescript/protocol.ts";
import { UpdateOp } from "../update_ops.ts";

const encoder = new TextEncoder();

/** What the store can hold as a part of a key; a zero takes two bytes there. */
const Part = z.string()
  .refine((text) => text.isWellFormed(), { error: "expected well-formed Unicode" })
  .refine(
    (text) => encoder.encode(text).length + text.split("\0").length - 1 <= STATE_NAME_BYTES_MAX,
    {
      error: `expected at most ${STATE_NAME_BYTES_MAX} bytes`,
    },
  );
const Name = Part.refine((text) => text !== "", { error: "expected at least 1 character" });

/** A scope, for `state::list`. */
export const ScopeRequest = z.object({ scope: Name });

/** A scope and a key, for `state::get`, `state::entry` and `state::delete`. */
export const PlaceRequest = z.object({ scope: Name, key: Name });

/** For `state::set`. */
export const SetRequest = z.looseObject({
  scope: Name,
  key: Name,
  /** 0: there must be none. */
  expected_version: z.number().int().min(0).nullish(),
  ttl_ms: z.number().int().min(0).max(STATE_TTL_MS_MAX).nullish(),
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
export const UpdateRequest = z.object({ scope: Name, key: Name, ops: z.array(UpdateOp) });

/** For `state::list_entries`. */
export const EntriesRequest = z.object({
  scope: Name,
  prefix: Part.nullish().transform((prefix) => prefix ?? ""),
  /** More than the largest means the largest. */
  limit: z.number().int().min(1).nullish()
    .transform((limit) => Math.min(limit ?? STATE_ENTRIES_LIMIT, STATE_ENTRIES_LIMIT_MAX)),
  cursor: Name.nullish().transform((cursor) => cursor ?? undefined),
}).refine(({ prefix, cursor }) => cursor === undefined || cursor.startsWith(prefix), {
  path: ["cursor"],
  error: "expected the cursor of an answer for the same prefix",
});
