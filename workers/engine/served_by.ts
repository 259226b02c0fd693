/**
 * What lists show of a function whose implementation is a URL: PROTOCOL 2.2 and 5.6.
 *
 * Path, query and headers of a URL may be secrets, as with webhooks, so a list has the origin only,
 * and what access rules limit sees not even that. The command line of the engine's own user sees
 * the rest, with values that may be secrets left out.
 *
 * @module
 */
import type { Directory, FunctionView } from "../../engine/ports/directory.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Stands for what is not shown. */
const HIDDEN = "…";

/** Whether a caller is a command line of the engine's own user; a page of the console is none. */
export function isOperator(directory: Directory, caller: string | undefined): boolean {
  const view = caller === undefined ? undefined : directory.worker(caller);
  return view !== undefined && view.operator && !view.builtin;
}

/**
 * The origin of a function's URL as `served_by`; nothing for other functions. `directory` is what
 * the caller sees.
 */
export function servedBy({ invocation }: FunctionView, directory: Directory): JsonObject {
  if (invocation === undefined || directory.visibleTo(undefined) !== undefined) return {};
  const url = urlOf(invocation);
  return { served_by: url?.origin ?? HIDDEN };
}

/** How a function is requested as `invocation`, for operators; nothing for other functions. */
export function invocationShown({ invocation }: FunctionView): JsonObject {
  if (invocation === undefined) return {};
  const { method = "POST", timeout_ms, headers, auth } = invocation;
  const url = urlOf(invocation);
  return {
    invocation: {
      url: url ? `${url.origin}${url.pathname}${url.search === "" ? "" : `?${HIDDEN}`}` : HIDDEN,
      method,
      ...timeout_ms !== undefined && { timeout_ms },
      ...isObject(headers) && { headers: hidden(headers) },
      // Names of environment variables, not their values.
      ...isObject(auth) && { auth },
    },
  };
}

function hidden(headers: JsonObject): JsonObject {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, HIDDEN]));
}

function urlOf({ url }: JsonObject): URL | undefined {
  return typeof url === "string" && URL.canParse(url) ? new URL(url) : undefined;
}

function isObject(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
