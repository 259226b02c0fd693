/**
 * What a port answers to requests that do not become lines, and errors of opening one.
 *
 * The same for every listener, so that nobody can tell by an answer which one it is.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { PageAnswer, Refusal } from "../ports/connection.ts";

/** An HTTP answer: its message is sent as text, or its body as the headers say. */
export interface Answer extends Refusal {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Somebody opened the port in a browser. */
export const NO_PAGE: Answer = {
  status: 426,
  message: "This port speaks WebSocket with workers; there is no page here",
  headers: { upgrade: "websocket" },
};
/** Versions before RFC 6455, or after it. */
export const OTHER_VERSION: Answer = {
  status: 426,
  message: "Only WebSocket version 13 is spoken here",
  headers: { "sec-websocket-version": "13" },
};
/** A request in plain HTTP on a port with TLS; RFC 2817 has the status for it. */
export const TLS_HERE: Answer = {
  status: 426,
  message: "This port speaks TLS; connect to it with wss:// or https://",
  headers: { upgrade: "TLS/1.2, HTTP/1.1" },
};
/** The port is closing. */
export const GOING_DOWN: Answer = { status: 503, message: "The engine is going down" };
/** The bound of the whole port is reached. */
export const TOO_MANY: Answer = { status: 503, message: "Too many connections" };

/** A gate's refusal. */
export function refusalAnswer(refusal: Refusal): Answer {
  if (refusal.status !== 401) return refusal;
  return { ...refusal, headers: { "www-authenticate": "Bearer" } };
}

/** The answer that is a page, or why there is none. */
export function pageAnswer(page: PageAnswer | Refusal): Answer {
  if (!("body" in page)) return refusalAnswer(page);
  const { status, contentType, body } = page;
  return { status, message: "", body, headers: { "content-type": contentType } };
}

/** What is sent of an answer behind its head. */
export function bodyOf({ body, message }: Answer): string {
  return body ?? `${message}\n`;
}

/** Whether a method asks for a page. */
export function asksForPage(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** Whether a request asks for a WebSocket at all. */
export function wantsUpgrade(headers: Headers): boolean {
  return headers.get("upgrade")?.toLowerCase().includes("websocket") ?? false;
}

/** The error of a port that cannot be opened: `address_in_use` or `address_not_available`. */
export function listenError(hostname: string, port: number, cause: unknown): EngineError {
  const details = { hostname, port };
  if (cause instanceof Deno.errors.AddrInUse) {
    const message =
      `Port ${port} is taken; stop the other program or set engine.port in config.yaml`;
    return new EngineError("address_in_use", message, { details, cause });
  }
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `Cannot listen on ${hostname}:${port} (${why}); ` +
    "set engine.host and engine.port in config.yaml";
  return new EngineError("address_not_available", message, { details, cause });
}
