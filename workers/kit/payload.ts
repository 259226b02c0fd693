/**
 * The border of a built-in worker: payloads come in as anything and go on checked.
 *
 * @module
 */
import type * as shape from "./mod.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** A longer payload is not sent back with the error. */
const RECEIVED_CHARS_MAX = 2_000;
/** Problems named in one message. */
const PROBLEMS_MAX = 10;

/** A member that may be left out; `null` means left out, as everywhere on the wire. */
export function opt<Of>(
  of: shape.Shape<Of>,
): shape.Shape<Of | undefined> {
  return of.nullish().transform((given) => given ?? undefined);
}

/**
 * The payload as its shape says it is.
 *
 * @throws {EngineError} `deserialization_error`, `Failed to deserialize input for <id>: …`, which
 * names the path of everything that does not fit. `details.received` is the payload, or the
 * beginning of its JSON if that is long.
 */
export function fit<Of>(
  functionId: string,
  of: shape.Shape<Of, boolean>,
  payload: unknown,
): Of {
  const checked = of.safeParse(payload);
  if (checked.success) return checked.data;
  const problems = problemsOf(checked.error, payload);
  const message = `Failed to deserialize input for ${functionId}: ${problems.join("; ")}`;
  throw new EngineError("deserialization_error", message, {
    details: { received: shorten(payload) },
  });
}

/** What is wrong with a value, one text per problem: `config.port: expected number, …`. */
export function problemsOf({ issues }: shape.ShapeError, value: unknown): string[] {
  const texts = issues.slice(0, PROBLEMS_MAX).map((issue) => {
    const found = issue.path.reduce(memberOf, value);
    const expected = "expected" in issue
      ? `expected ${issue.expected}, received ${nameOf(found)}`
      : issue.message.replace(/^Invalid input: /, "");
    const path = pathOf(issue.path);
    return path === "" ? expected : `${path}: ${expected}`;
  });
  const more = issues.length - texts.length;
  return more > 0 ? [...texts, `and ${more} more`] : texts;
}

function pathOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

function memberOf(value: unknown, key: PropertyKey): unknown {
  return value !== null && typeof value === "object" && Object.hasOwn(value, key)
    ? (value as Record<PropertyKey, unknown>)[key]
    : undefined;
}

function nameOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" ? String(value) : typeof value;
}

function shorten(payload: unknown): Json {
  const text = JSON.stringify(payload ?? null);
  return text.length <= RECEIVED_CHARS_MAX
    ? payload as Json ?? null
    : `${text.slice(0, RECEIVED_CHARS_MAX)}…`;
}
