/**
 * Checks the token of requests to a worker port.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import type { Refusal, Upgrade } from "../ports/connection.ts";

/** The reply to a request with a missing or wrong token. */
export const NO_TOKEN: Refusal = {
  status: 401,
  message: "The token is missing or wrong; send it as Authorization: Bearer <token>",
};

/** A check for one token; without a token (left out or empty) every request passes. */
export function makeTokenCheck(token: string | undefined): (request: Upgrade) => boolean {
  if (!token) return () => true;
  const wanted = digest(token);
  return (request) => nodeCrypto.timingSafeEqual(digest(tokenOf(request)), wanted);
}

/** Digests have one length, so comparing them does not reveal the length of the token. */
function digest(token: string): Uint8Array {
  return nodeCrypto.createHash("sha256").update(token).digest();
}

/** The header wins over the query; empty when there is neither. */
function tokenOf({ headers, query }: Upgrade): string {
  const bearer = /^bearer +(.+?) *$/i.exec(headers.get("authorization") ?? "");
  return bearer?.[1] ?? query.get("token") ?? "";
}
