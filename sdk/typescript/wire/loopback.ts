/**
 * Which addresses lead to this machine only.
 *
 * @module
 */

/** Whether only this machine can reach what listens on a host, such as `127.0.0.1` or `[::1]`. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" ||
    /^127(\.\d{1,3}){3}$/.test(host);
}
