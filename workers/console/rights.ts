/**
 * What a page may do: one that its person opened as the engine's own user, and any other.
 *
 * The console's line to the engine may manage workers. A page may be opened by whoever reaches the
 * port, another user of the machine or a worker in a microVM included, so by itself it may only do
 * what any worker may. The command line hands out addresses that hold a secret; a page opened by
 * such a one is the operator's.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** `operator`: everything. `guest`: what any worker may. */
export type Rights = "operator" | "guest";

/** Functions of supervision that anybody may call. */
const OPEN_TO_ALL = /^engine::supervisor::(list|status|logs|info)$/;
/** Functions that change the connection of whoever calls, which here is the console's own. */
const OF_THE_LINE = /^engine::(workers::register|register_trigger|unregister_trigger)$/;
/** Attributes of spans that only operators see. */
const PAYLOADS = ["engine.request", "engine.response"];

/** @throws {EngineError} `FORBIDDEN` when a page with these rights may not call the function. */
export function checkCall(rights: Rights, functionId: string): void {
  if (rights === "operator" || OPEN_TO_ALL.test(functionId)) return;
  if (!functionId.startsWith("engine::supervisor::") && !OF_THE_LINE.test(functionId)) return;
  throw new EngineError(
    "FORBIDDEN",
    "This page was opened without the key of the engine's own user, and may not call " +
      `${functionId}; open it with: engine console --open`,
  );
}

/** Whether results of a function hold what only operators see. */
export function holdsPayloads(functionId: string): boolean {
  return functionId.startsWith("engine::traces::");
}

/** The same result without payloads of calls. */
export function withoutPayloads(result: Json | undefined): Json | undefined {
  if (Array.isArray(result)) {
    return result.filter((part) => !isPayload(part)).map((part) => withoutPayloads(part)!);
  }
  if (result === null || typeof result !== "object") return result;
  return Object.fromEntries(
    Object.entries(result).filter(([name]) => !PAYLOADS.includes(name))
      .map(([name, part]) => [name, withoutPayloads(part)!]),
  );
}

/** An attribute of a span is a pair of name and value. */
function isPayload(part: Json): boolean {
  return Array.isArray(part) && typeof part[0] === "string" && PAYLOADS.includes(part[0]);
}
