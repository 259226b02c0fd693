/**
 * What a browser says, checked. A browser is a stranger like any other.
 *
 * @module
 */
import { z } from "zod";
import { ID_CHARS_MAX, TIMEOUT_MS_MAX } from "../../sdk/typescript/limits.ts";
import { CONSOLE_QUERY_TRIGGERS_MAX } from "./limits.ts";
import { thrownText } from "../../sdk/typescript/errors.ts";
import { problemsOf } from "../shapes.ts";
import type { BrowserMessage } from "./wire.ts";

const Id = z.int().min(0);
const Name = z.string().min(1).max(ID_CHARS_MAX);
// What was JSON text is JSON: to look at all of it again would only take time, and a stack as deep.
const Members = z.record(z.string(), z.unknown());
const Trigger = z.object({ type: Name, config: Members.optional() });

const Message = z.discriminatedUnion("type", [
  z.object({ type: z.literal("hello"), token: z.string() }),
  z.object({
    type: z.literal("call"),
    id: Id,
    function_id: Name,
    namespace: Name.optional(),
    payload: z.unknown().optional(),
    timeout_ms: z.int().min(1).max(TIMEOUT_MS_MAX).optional(),
    metadata: Members.optional(),
  }),
  z.object({ type: z.literal("watch_trigger"), id: Id, trigger: Trigger }),
  z.object({
    type: z.literal("watch_query"),
    id: Id,
    query: z.object({
      function_id: Name,
      payload: Members.optional(),
      items: Name.optional(),
      key: z.array(Name).min(1).optional(),
    }),
    on: z.array(Trigger).max(CONSOLE_QUERY_TRIGGERS_MAX),
  }),
  z.object({
    type: z.literal("http"),
    id: Id,
    method: z.string().regex(/^[A-Z]{1,20}$/, "expected a method such as GET"),
    path: z.string().startsWith("/"),
    headers: z.record(z.string(), z.string()),
    body: z.string().optional(),
  }),
  z.object({ type: z.literal("end"), id: Id }),
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
