/**
 * Opening a TCP port, with errors that say which setting to change.
 *
 * @module
 */
import { type ListenAddress, listenError, type ListenSettings } from "../../engine/ports/listen.ts";

/** An open HTTP port. */
export interface HttpServer {
  /** Such as `http://127.0.0.1:3111`. */
  readonly url: string;
  readonly server: Deno.HttpServer<Deno.NetAddr>;
}

/**
 * Opens an HTTP port.
 *
 * @throws {EngineError} `address_in_use` or `address_not_available`, with what to do.
 */
export function listenHttp(
  { host, port }: ListenAddress,
  settings: ListenSettings,
  fetch: (request: Request) => Response | Promise<Response>,
): HttpServer {
  try {
    const server = Deno.serve({ hostname: host, port, onListen() {} }, fetch);
    return { server, url: `http://${authorityOf(server.addr)}` };
  } catch (cause) {
    throw listenError(cause, { host, port }, settings);
  }
}

/** Host and port as they stand in a URL: an IPv6 address is in brackets. */
export function authorityOf({ hostname, port }: Pick<Deno.NetAddr, "hostname" | "port">): string {
  return `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}
