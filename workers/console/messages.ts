/**
 * What a browser says, checked. A browser is a stranger like any other.
 *
 * @module
 */
import * as shape from "../kit/mod.ts";
import { ID_CHARS_MAX, TIMEOUT_MS_MAX } from "../../sdk/typescript/wire/limits.ts";
import { CONSOLE_QUERY_TRIGGERS_MAX } from "./limits.ts";
import { thrownText } from "../../sdk/typescript/wire/errors.ts";
import { problemsOf } from "../kit/payload.ts";
import type { BrowserMessage } from "./wire.ts";

const Id = shape.int().min(0);
const Name = shape.string().min(1).max(ID_CHARS_MAX);
// What was JSON text is JSON: to look at all of it again would only take time, and a stack as deep.
const Members = shape.record(shape.unknown());
const Trigger = shape.object({ type: Name, config: Members.optional() });

const Message = shape.taggedUnion("type", [
  shape.object({ type: shape.literal("hello"), token: shape.string() }),
  shape.object({
    type: shape.literal("call"),
    id: Id,
    function_id: Name,
    namespace: Name.optional(),
    payload: shape.unknown().optional(),
    timeout_ms: shape.int().min(1).max(TIMEOUT_MS_MAX).optional(),
    metadata: Members.optional(),
  }),
  shape.object({ type: shape.literal("watch_trigger"), id: Id, trigger: Trigger }),
  shape.object({
    type: shape.literal("watch_query"),
    id: Id,
    query: shape.object({
      function_id: Name,
      payload: Members.optional(),
      items: Name.optional(),
      key: shape.array(Name).min(1).optional(),
    }),
    on: shape.array(Trigger).max(CONSOLE_QUERY_TRIGGERS_MAX),
  }),
  shape.object({
    type: shape.literal("http"),
    id: Id,
    method: shape.string().regex(/^[A-Z]{1,20}$/, "expected a method such as GET"),
    path: shape.string().startsWith("/"),
    headers: shape.record(shape.string()),
    body: shape.string().optional(),
  }),
  shape.object({ type: shape.literal("end"), id: Id }),
]);

/** A message, or what is wrong with one; `id` says which request is wrong, if that can be read. */
export type ReadMessage =
  | { readonly message: BrowserMessage }
  | { readonly problem: string; readonly id: number | undefined };

/** Reads a message of a browser. Never throws. */
export function readMessage(text: string): ReadMessage {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { problem: "The message is not JSON", id: undefined };
  }
  try {
    return check(value);
  } catch (thrown) {
    return { problem: `The message cannot be read: ${thrownText(thrown)}`, id: undefined };
  }
}

function check(value: unknown): ReadMessage {
  const read = Message.safeParse(value);
  // The shapes are those of the type; only `undefined` in optional members they cannot rule out.
  if (read.success) return { message: read.data as BrowserMessage };
  const id = Id.safeParse((value as { id?: unknown } | null)?.id);
  return {
    problem: `The message cannot be understood: ${problemsOf(read.error, value).join("; ")}`,
    id: id.success ? id.data : undefined,
  };
}
