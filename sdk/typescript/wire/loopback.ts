/**
 * Recognises addresses that only this machine can reach.
 *
 * @module
 */

/** Whether a host, such as `127.0.0.1`, `[::1]` or `localhost`, is a loopback address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" ||
    /^127(\.\d{1,3}){3}$/.test(host);
}
