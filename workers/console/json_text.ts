/**
 * JSON as text: equal values have equal texts, and an error keeps only what may leave the process.
 *
 * @module
 */
import { describeThrown } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";

/** Text of a value that is the same whatever order its keys have. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part) => {
    if (part === null || typeof part !== "object" || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1));
  });
}

/** A failure as a page gets it. The stack is the callee's own, if there is one, never ours. */
export function failureOf(thrown: unknown): ErrorBody {
  const { code, message, details, retryable } = describeThrown(thrown);
  const remote = (thrown as { stacktrace?: unknown } | null)?.stacktrace;
  return {
    code,
    message,
    ...typeof remote === "string" && { stacktrace: remote },
    ...details && { details },
    ...retryable && { retryable },
  };
}

/** The member of a value; `undefined` when it is no object or has none of that name. */
export function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
