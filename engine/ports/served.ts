/**
 * Functions whose implementation is a URL: what the core asks of the part that makes the requests.
 *
 * The worker that registers such a function owns it, as it owns any other; only its calls go to a
 * connection of this part instead of the worker's, so that the core need not know what HTTP is.
 *
 * @module
 */
import type { JsonObject, RegisterFunction } from "../../sdk/typescript/wire/protocol.ts";
import type { Accept } from "./connection.ts";

/** Finds the `invocation` of a function by the name that the frames of its calls have. */
export type FindInvocation = (function_id: string, namespace: string) => JsonObject | undefined;

/** Who registers a function. */
export interface ServedOwner {
  /** Whether access rules apply to it. */
  readonly isLimited: boolean;
}

/** Serves functions by requests to their URLs. No method throws. */
export interface ServedFunctions {
  /** Why a function cannot be served so, and what to do; `undefined`: it can. */
  problem(registration: RegisterFunction, owner: ServedOwner): string | undefined;
  /**
   * Opens the connection on which the calls of the functions of one worker arrive, until it is
   * closed; `accept` is called before this returns, and gets the results later, never while a
   * message is handed over. It ends only when the core closes it.
   */
  open(find: FindInvocation, accept: Accept): void;
}

/** Serves nothing, for tests and for cores without requests. */
export const NO_SERVED_FUNCTIONS: ServedFunctions = {
  problem: () => "this engine does not run functions served by HTTP",
  open() {},
};
