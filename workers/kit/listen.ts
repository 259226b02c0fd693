/**
 * Opening a TCP port, with errors that say which setting to change.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** An address to listen on. */
export interface ListenAddress {
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
}

/** How error messages name the settings of an address. */
export interface ListenSettings {
  /** Such as `port of engine-http`. */
  readonly port: string;
  /** Such as `host or port of engine-http`. */
  readonly address: string;
}

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

/** The error of a port that could not be opened: `address_in_use` or `address_not_available`. */
export function listenError(
  cause: unknown,
  { host, port }: ListenAddress,
  settings: ListenSettings,
): EngineError {
  const details = { host, port };
  if (cause instanceof Deno.errors.AddrInUse) {
    const message = `Port ${port} is taken; stop the other program or set ${settings.port}`;
    return new EngineError("address_in_use", message, { details, cause });
  }
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `Cannot listen on ${host}:${port} (${reason}); change ${settings.address}`;
  return new EngineError("address_not_available", message, { details, cause });
}

/** Host and port as they stand in a URL: an IPv6 address is in brackets. */
export function authorityOf({ hostname, port }: Pick<Deno.NetAddr, "hostname" | "port">): string {
  return `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}
