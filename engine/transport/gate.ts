/**
 * Decides which upgrade of the worker port is accepted, and by whom: workers on `/`, telemetry on
 * `/otel`.
 *
 * The gate sees the head of a request only. A page in a browser can open a WebSocket to any port of
 * this machine, so a local address proves nothing: an `Origin` has to be a known one.
 *
 * @module
 */
import { makeTokenCheck, NO_TOKEN } from "../auth/token.ts";
import { readTelemetry, TELEMETRY_BYTES_PER_SECOND, TelemetryBudget } from "../core/guards.ts";
import type { Clock } from "../ports/clock.ts";
import type { Accept, ConnectionEvents, Gate, Refusal, Upgrade } from "../ports/connection.ts";
import type { Log } from "../ports/log.ts";
import type { TelemetryListener } from "../ports/telemetry.ts";

/** Options of {@linkcode makeGate}. */
export interface GateOptions {
  /** Required on `/` and `/otel`; absent or empty: no token is required. */
  readonly authToken?: string;
  /** Origins beside loopback that may connect, such as `https://console.example`. */
  readonly allowedOrigins: readonly string[];
  /** Accepts a worker connection. */
  accept(upgrade: Upgrade): Accept;
  /** Accepts a telemetry connection. */
  acceptTelemetry(upgrade: Upgrade): Accept;
  /** Most connections that may be open at once. */
  readonly maxConnections: number;
}

/** Makes the gate of a worker port. */
export function makeGate(options: GateOptions): Gate {
  const origins = new Set(options.allowedOrigins.map(originOf));
  const hasToken = makeTokenCheck(options.authToken);
  let open = 0;

  const closed = (): void => {
    open--;
  };
  const countOpen = (accept: Accept): Accept => (connection) => {
    const counted = new CountedConnection(accept(connection), closed);
    open++;
    return counted;
  };

  return (upgrade) => {
    const origin = upgrade.headers.get("origin");
    if (origin !== null && !isLoopback(origin) && !origins.has(originOf(origin))) {
      return refuse(403, `Origin ${printable(origin)} is not among engine.allowed_origins`);
    }
    if (upgrade.path.startsWith("/ws/channels/")) return refuse(404, "Channel not found");
    if (upgrade.path !== "/" && upgrade.path !== "/otel") {
      return refuse(404, "There is nothing at this path; workers connect to /");
    }
    if (!hasToken(upgrade)) return NO_TOKEN;
    if (open >= options.maxConnections) {
      return refuse(
        503,
        `The engine serves ${options.maxConnections} connections and accepts no more`,
      );
    }
    const { path } = upgrade;
    return countOpen(path === "/otel" ? options.acceptTelemetry(upgrade) : options.accept(upgrade));
  };
}

/**
 * Forwards events and reports the end. A class: five closures would be 400 bytes per connection.
 */
class CountedConnection implements ConnectionEvents {
  readonly #events: ConnectionEvents;
  readonly #onClosed: () => void;

  constructor(events: ConnectionEvents, onClosed: () => void) {
    this.#events = events;
    this.#onClosed = onClosed;
  }

  text(text: string): void {
    this.#events.text(text);
  }

  textBytes(memory: Uint8Array, start: number, end: number, isPlain: boolean): void {
    this.#events.textBytes(memory, start, end, isPlain);
  }

  binary(bytes: Uint8Array): void {
    this.#events.binary(bytes);
  }

  drained(): void {
    this.#events.drained();
  }

  closed(code: number, reason: string): void {
    this.#onClosed();
    this.#events.closed(code, reason);
  }
}

function refuse(status: number, message: string): Refusal {
  return { status, message };
}

/** An origin as a browser writes it: lower case, no default port, no trailing slash. */
function originOf(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : "null";
  // Other schemes have no origin of their own.
  return origin === "null" ? text.toLowerCase() : origin;
}

/** Whether the origin is a page of this machine; `null`, the origin of a file, is not. */
function isLoopback(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { hostname, protocol } = new URL(origin);
  if (protocol !== "http:" && protocol !== "https:") return false;
  return hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]" ||
    /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

function printable(text: string): string {
  return JSON.stringify(text.slice(0, 200));
}

/** Options of {@linkcode TelemetryConnection}. */
export interface TelemetryConnectionOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Address of the peer. */
  readonly address: string;
  readonly listener: TelemetryListener;
}

/**
 * A connection that carries telemetry only: its frames go to the listener, and nothing is sent
 * back.
 *
 * Frames that are not telemetry are dropped, and so are those beyond the connection's share of
 * bytes per second, because reading telemetry takes the engine's only thread.
 */
export class TelemetryConnection implements ConnectionEvents {
  readonly #options: TelemetryConnectionOptions;
  readonly #budget = new TelemetryBudget();

  constructor(options: TelemetryConnectionOptions) {
    this.#options = options;
  }

  text(): void {}

  textBytes(): void {}

  binary(bytes: Uint8Array): void {
    const frame = readTelemetry(bytes);
    if (!frame) return;
    const { clock, log, address, listener } = this.#options;
    const verdict = this.#budget.admit(bytes.length, clock.now());
    if (verdict === "pass") listener({ ...frame, worker_id: null, address });
    if (verdict !== "warn") return;
    log.warn("telemetry is dropped: a connection sends more than its share", {
      address,
      bytes_per_second: TELEMETRY_BYTES_PER_SECOND,
    });
  }

  drained(): void {}

  closed(): void {}
}
