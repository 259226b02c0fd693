/**
 * A real router behind a real port: an engine without built-in workers, processes and files.
 *
 * @module
 */
import { Router } from "../../engine/core/router.ts";
import { makeGate } from "../../engine/transport/gate.ts";
import { listenRaw } from "../../engine/transport/raw_listener.ts";
import { type Listener, MESSAGE_BYTES_MAX } from "../../engine/ports/connection.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import { LAUNCH_ID_HEADER } from "../../sdk/typescript/wire/protocol.ts";

/** What a test may set. */
export interface SocketEngineOptions {
  /** Default: any free port. */
  readonly port?: number;
  /** Default: nobody is asked for one. */
  readonly authToken?: string;
  /** Default: loopback ones only. */
  readonly allowedOrigins?: string[];
}

/** An engine for one test; workers reach it over sockets. */
export class SocketEngine implements AsyncDisposable {
  readonly router: Router;
  readonly #listener: Listener;

  /** Listens at once. */
  constructor({ port = 0, authToken = "", allowedOrigins = [] }: SocketEngineOptions = {}) {
    this.router = new Router({
      clock: systemClock,
      schemas: { compile: () => () => [] },
      newId: () => crypto.randomUUID(),
      report() {},
      settings: {
        invocation_timeout_ms: 600_000,
        validate_payloads: false,
        max_inflight_calls_per_worker: 10_000,
        max_inflight_bytes_per_worker: 256 * 1024 * 1024,
      },
    });
    const gate = makeGate({
      authToken,
      allowedOrigins,
      maxConnections: 100,
      accept: ({ address, headers }) => {
        const launch_id = headers.get(LAUNCH_ID_HEADER);
        return (connection) => this.router.open(connection, { address, launch_id, builtin: null });
      },
      acceptTelemetry: () => () => ({
        text() {},
        textBytes() {},
        binary() {},
        drained() {},
        closed() {},
      }),
    });
    const bounds = { maxMessageBytes: MESSAGE_BYTES_MAX, maxQueuedBytes: MESSAGE_BYTES_MAX };
    this.#listener = listenRaw({ hostname: "127.0.0.1", port, ...bounds }, gate);
  }

  /** The port it listens on. */
  get port(): number {
    return this.#listener.port;
  }

  /** Such as `ws://127.0.0.1:40000`. */
  get url(): string {
    return `ws://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener.close();
    this.router.close();
  }
}
