/**
 * The port of `engine-http`: opened, drained, closed; requests are somebody else's.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { DRAIN_MS } from "../../sdk/typescript/wire/limits.ts";
import { HTTP_FLUSH_MS } from "../limits.ts";

/** What a listener serves. */
export interface Served {
  /** Answers a request; never rejects. */
  fetch(request: Request): Response | Promise<Response>;
  /** New requests are to be refused from now on. */
  drain(): void;
  /** Requests that still run are to end now; may come twice. */
  stop(): void;
}

/** An open port. */
export class HttpListener implements AsyncDisposable {
  /** Such as `http://127.0.0.1:3111`. */
  readonly url: string;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #clock: Clock;
  readonly #served: Served;
  #drained: Promise<void> | undefined;

  /**
   * Opens the port; 0 is any free one.
   *
   * @throws {EngineError} `address_in_use` or `address_not_available`, with what to do.
   */
  constructor(at: { host: string; port: number }, clock: Clock, served: Served) {
    this.#clock = clock;
    this.#served = served;
    try {
      this.#server = Deno.serve({
        hostname: at.host,
        port: at.port,
        onListen() {}, // The engine prints its endpoints itself.
      }, (request) => served.fetch(request));
    } catch (error) {
      throw describeListenError(error, at);
    }
    const { hostname, port } = this.#server.addr;
    this.url = `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
  }

  /** Takes no new request; running ones go on. Resolves when none is left and all lines ended. */
  drain(): Promise<void> {
    this.#served.drain();
    return this.#drained ??= this.#server.shutdown();
  }

  /**
   * Drains for `DRAIN_MS` at most, then ends what still runs. Resolves when all answers have left,
   * or `HTTP_FLUSH_MS` later: a client that stops reading holds its own line only, not the port.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const drained = this.drain();
    const cancelStop = this.#clock.after(DRAIN_MS, () => this.#served.stop());
    let cancelWait = (): void => {};
    const waited = new Promise<void>((resolve) => {
      cancelWait = this.#clock.after(DRAIN_MS + HTTP_FLUSH_MS, resolve);
    });
    await Promise.race([drained, waited]);
    cancelStop();
    cancelWait();
    this.#served.stop();
  }
}

function describeListenError(error: unknown, at: { host: string; port: number }): EngineError {
  const details = { host: at.host, port: at.port };
  if (error instanceof Deno.errors.AddrInUse) {
    const message = `Port ${at.port} is taken; stop the other program or set port of engine-http`;
    return new EngineError("address_in_use", message, { details, cause: error });
  }
  const reason = error instanceof Error ? error.message : String(error);
  const message = `Cannot listen on ${at.host}:${at.port}, change host or port of engine-http ` +
    `(${reason})`;
  return new EngineError("address_not_available", message, { details, cause: error });
}
