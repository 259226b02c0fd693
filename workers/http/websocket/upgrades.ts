/**
 * What the handler of requests knows of WebSockets: which requests ask for one, and that a route
 * takes them, by {@linkcode Upgrades}, instead of calling its function.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { PlainHeaders } from "../../kit/http/head.ts";
import type { ServedRequest } from "../../kit/http/response.ts";
import { errorReply, type Reply } from "../response.ts";

/** What happens to the requests of a route for WebSockets. */
export interface Upgrades {
  /** Why a request is refused before anything is called; `undefined`: it is not. */
  refusalOf(request: ServedRequest): Reply | undefined;
  /** Makes the payload of the condition and of the connect function from that of a request. */
  prepare(payload: JsonObject, request: ServedRequest): void;
  /**
   * Decides after condition and middleware: a refusal, or a reply that is an upgrade. `parent` is
   * the trace of the request.
   */
  open(
    request: ServedRequest,
    payload: JsonObject,
    call: UpgradeCall,
    parent: string | undefined,
  ): Promise<Reply>;
}

/** Calls a function for an upgrade, within the time that the request has left. */
export type UpgradeCall = (
  function_id: string,
  payload: Json,
  traceparent: string | undefined,
) => Promise<Json | undefined>;

/** Whether a request asks for a WebSocket, properly or not. */
export function wantsUpgrade(method: string, { upgrade }: PlainHeaders): boolean {
  return method === "GET" && upgrade !== undefined && /websocket/i.test(upgrade);
}

/** The reply to a request without an upgrade for a path that has only WebSockets. */
export function upgradeRequired(): Reply {
  const message = "This address is a WebSocket; connect to it with ws:// or wss://";
  const reply = errorReply(426, "bad_message", message, crypto.randomUUID());
  return { ...reply, headers: [...reply.headers, ["upgrade", "websocket"]] };
}

/** The token in a query, for clients that cannot set headers; `undefined`: there is none. */
export function tokenIn(query: string): string | undefined {
  return new URLSearchParams(query).get("token") ?? undefined;
}
