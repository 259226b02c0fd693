/**
 * Whether a request brings the token that a worker port asks for.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import type { Refusal, Upgrade } from "../ports/connection.ts";

/** What is said to who brings none, or another. */
export const NO_TOKEN: Refusal = {
  status: 401,
  message: "The token is missing or wrong; send it as Authorization: Bearer <token>",
};

/** Says whether a request may go on; without a token (left out or empty) all may. */
export function makeTokenCheck(token: string | undefined): (asked: Upgrade) => boolean {
  if (!token) return () => true;
  const wanted = digest(token);
  return (asked) => nodeCrypto.timingSafeEqual(digest(tokenOf(asked)), wanted);
}

/** Digests are equally long, so that comparing them says nothing about the length either. */
function digest(token: string): Uint8Array {
  return nodeCrypto.createHash("sha256").update(token).digest();
}

/** The header wins over the query; empty when there is neither. */
function tokenOf({ headers, query }: Upgrade): string {
  const bearer = /^bearer +(.+?) *$/i.exec(headers.get("authorization") ?? "");
  return bearer?.[1] ?? query.get("token") ?? "";
}
