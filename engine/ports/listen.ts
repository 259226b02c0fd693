/**
 * What all ports of the engine share: the bounds of their sockets, when they pause between clients,
 * and the error of a port that cannot be opened.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Time between attempts to accept when the system has no descriptors left. */
export const ACCEPT_RETRY_MS = 50;
/**
 * Sockets that are closed for others before the next turn: with a read under way, a closed socket
 * keeps its descriptor until then, and a burst of clients would take those of state and workers.
 */
export const GIVEN_UP_PER_TURN = 8;

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

/** How many sockets each port may have open at once, so that some descriptors stay free. */
export interface SocketBounds {
  readonly workers: number;
  readonly http: number;
  readonly streams: number;
  readonly console: number;
}

/** When a port that is full pauses between two clients. */
export class FullPortPauses {
  #clients = 0;

  /** Called with each client that found the port full; resolves when the next may be accepted. */
  async accepted(): Promise<void> {
    if (++this.#clients % GIVEN_UP_PER_TURN > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 0));
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
