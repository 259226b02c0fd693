/**
 * The address of a port as text.
 *
 * @module
 */

/** Host and port as they stand in a URL: an IPv6 address is in brackets. */
export function authorityOf({ hostname, port }: Pick<Deno.NetAddr, "hostname" | "port">): string {
  return `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}
