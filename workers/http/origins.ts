/**
 * Which web pages may use the routes of a port, by the header `Origin`.
 *
 * A browser sends it with each request of a page to another origin and with each upgrade to a
 * WebSocket, and lets no page change it. Other clients send none or what they like: this protects
 * the users of browsers from pages that they visit, and the port from nothing else.
 *
 * HTTP requests get headers of CORS by it, by which the browser decides what the page may read. A
 * WebSocket has no such protection: the browser lets any page open one, with the cookies of the
 * user, so an upgrade from another page is refused.
 *
 * @module
 */
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import { nameOf } from "../kit/allowed_hosts.ts";

/**
 * Whether a page of this origin may use the routes: those of the same host and of this machine.
 * `refused` is called with each other origin.
 */
export function mayUse(
  { origins }: { readonly origins: readonly string[] },
  refused: (origin: string) => void = () => {},
): (origin: string, host: string | undefined) => boolean {
  const listed = new Set(origins.map((origin) => origin.toLowerCase()));
  return (origin, host) => {
    if (listed.has("*") || listed.has(origin.toLowerCase())) return true;
    const name = originHost(origin);
    const isOwn = name !== undefined &&
      (isLoopback(name) || (host !== undefined && name === nameOf(host)));
    if (!isOwn) refused(origin);
    return isOwn;
  };
}

/** The host of a page's origin; `undefined` for those without one, such as files. */
function originHost(origin: string): string | undefined {
  if (!/^https?:/i.test(origin) || !URL.canParse(origin)) return undefined;
  return nameOf(new URL(origin).host);
}
