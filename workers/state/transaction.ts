/**
 * `state::transaction`: several changes of state, all or none.
 *
 * Each operation names an entry of its own, so their order means nothing. What one of them expects
 * (a version, operations that can be applied) is checked when the write is applied, against the
 * same moment for all.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import type { EntryChange, StateEntries } from "./entries.ts";
import type { NewValue, Place, StateEntry } from "./record.ts";
import { Name, type StateFormat, Ttl } from "./payloads.ts";
import { applyOps, UPDATE_OPS_MAX, UpdateOp } from "./update_ops.ts";

/** Operations of one transaction; each makes at most four changes in the store. */
export const OPERATIONS_MAX = 100;

const place = { scope: Name, key: Name };
/** 0: the entry must not exist. */
const expected_version = v.opt(v.int(0));

const Operation = v.variant("type", [
  v.object({
    type: v.literal("set"),
    ...place,
    value: v.unknown(),
    ttl_ms: v.opt(Ttl),
    expected_version,
  }),
  v.object({ type: v.literal("delete"), ...place, expected_version }),
  v.object({
    type: v.literal("update"),
    ...place,
    ops: v.list(UpdateOp, UPDATE_OPS_MAX),
    expected_version,
  }),
  v.object({ type: v.literal("check"), ...place, expected_version: v.int(0) }),
]);

type Operation = v.InferOutput<typeof Operation>;

/** For `state::transaction`. */
export const TransactionRequest = v.pipe(
  v.object({ operations: v.list(Operation, OPERATIONS_MAX) }),
  v.forward(
    v.check(
      ({ operations }) => operations.length > 0,
      "expected at least 1 operation",
    ),
    ["operations"],
  ),
  v.forward(
    v.check(
      ({ operations }) => new Set(operations.map(nameOf)).size === operations.length,
      "expected each scope and key once",
    ),
    ["operations"],
  ),
);

/** Description and schemas of `state::transaction`. */
export const TRANSACTION_FORMAT: StateFormat = {
  description: "Changes several values, all or none",
  request_format: {
    type: "object",
    properties: {
      operations: {
        type: "array",
        items: { type: "object" },
        description: 'Such as {"type":"set","scope":"cart","key":"u1","value":1}, ' +
          "with expected_version or without; set, update, delete, check",
      },
    },
    required: ["operations"],
  },
  response_format: {
    type: "object",
    properties: {
      versions: {
        type: "array",
        items: { type: ["integer", "null"] },
        description: "The version of each value afterwards, in the order of the operations",
      },
    },
  },
};

/**
 * Applies all operations, or none of them.
 *
 * @throws {EngineError} `version_mismatch` or `UPDATE_ERROR`, whose `details.operation` is the
 * index of the operation that could not be applied.
 */
export async function runTransaction(
  entries: StateEntries,
  { operations }: v.InferOutput<typeof TransactionRequest>,
  now: number,
): Promise<JsonObject> {
  const changes = operations.map((operation, index): EntryChange => {
    const { scope, key } = operation;
    const ttlMs = operation.type === "set" ? operation.ttl_ms : undefined;
    const expiresAtMs = ttlMs === undefined ? undefined : now + ttlMs;
    return {
      place: { scope, key },
      change: (old) => changed(operation, index, old, expiresAtMs),
      expiresAtMs,
    };
  });
  const written = await entries.writeAll(changes);
  return { versions: written.map((each) => each.new?.version ?? null) };
}

function changed(
  operation: Operation,
  index: number,
  old: StateEntry | undefined,
  expires_at_ms: number | undefined,
): NewValue | undefined {
  checkVersion(operation, old, operation.expected_version, { operation: index });
  switch (operation.type) {
    case "check":
      return old;
    case "delete":
      return undefined;
    case "set":
      return { value: operation.value as Json, expires_at_ms };
    case "update": {
      const { value, errors } = applyOps(old?.value, operation.ops);
      if (errors.length === 0) return { value, expires_at_ms: old?.expires_at_ms };
      const { op_index, message } = errors[0]!;
      const where = `operations[${index}].ops[${op_index}], of ${placeText(operation)}`;
      throw new EngineError("UPDATE_ERROR", `${where}: ${message}; nothing was changed`, {
        details: { operation: index, errors: errors.map((error) => ({ ...error })) },
      });
    }
  }
}

/** @throws {EngineError} `version_mismatch` when an entry has another version. */
export function checkVersion(
  place: Place,
  old: StateEntry | undefined,
  expected: number | undefined | null,
  details: JsonObject = {},
): void {
  const current = old?.version ?? 0;
  if (expected === undefined || expected === null || current === expected) return;
  const message = `${placeText(place)} has version ${current}, not ${expected}`;
  throw new EngineError("version_mismatch", message, {
    details: { ...details, current_version: current },
  });
}

function placeText({ scope, key }: Place): string {
  return `${scope}/${key}`;
}

function nameOf({ scope, key }: Place): string {
  return JSON.stringify([scope, key]);
}
