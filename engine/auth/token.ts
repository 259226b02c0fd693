/**
 * Checks the token of requests to a worker port: the one of config.yaml, or a created one.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import type { Refusal, Upgrade } from "../ports/connection.ts";
import type { TokenRecord } from "./token_file.ts";
import type { TokenFound } from "./tokens.ts";

/** The reply to a request with a missing or wrong token. */
export const NO_TOKEN: Refusal = {
  status: 401,
  message: "The token is missing or wrong; send it as Authorization: Bearer <token>",
};

/** Which tokens a port takes. */
export interface TokenOptions {
  /** The one of config.yaml; absent or empty: there is none. */
  readonly authToken?: string | undefined;
  /** Finds created ones. Default: there are none. */
  readonly created?: { find(presented: string): TokenFound } | undefined;
  /** Asks for a token also without `authToken`. Default: `false`. */
  readonly required?: boolean | undefined;
}

/** A request that passes, and the created token that it came with. */
export interface Admitted {
  readonly token: TokenRecord | undefined;
}

/**
 * A check of tokens. A created one counts on every port; where none is asked for, a request without
 * one passes as well, but not one whose created token has ended.
 */
export function makeTokenCheck(
  { authToken, created, required = false }: TokenOptions,
): (request: Upgrade) => Admitted | Refusal {
  const wanted = authToken ? digest(authToken) : undefined;
  const admitted: Admitted = { token: undefined };
  return (request) => {
    const presented = tokenOf(request);
    const found = presented === "" ? undefined : created?.find(presented);
    if (found?.state === "valid") return { token: found.token };
    // Also for the token of config.yaml, which might look like a created one.
    if (wanted && nodeCrypto.timingSafeEqual(digest(presented), wanted)) return admitted;
    if (found?.state === "refused") {
      return { status: 401, message: `${found.message}; create one with engine token create` };
    }
    return wanted || required ? NO_TOKEN : admitted;
  };
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
