/**
 * Which upgrade leads where, and which is refused.
 *
 * It sees the head of a request and nothing else. A page in a browser can open a WebSocket to any
 * port of this machine, so "local" is no proof of anything: an `Origin` has to be known.
 *
 * @module
 */
import type { Accept, ConnectionEvents, Gate, Refusal, Upgrade } from "../ports/connection.ts";
import { makeTokenCheck, NO_TOKEN } from "../auth/token.ts";

/** What a gate lets in. */
export interface GateOptions {
  /** Asked for on `/` and `/otel`; left out or empty: nobody is asked. */
  readonly authToken?: string;
  /** Origins beside loopback that may connect, such as `https://console.example`. */
  readonly allowedOrigins: readonly string[];
  /** Takes a worker line. */
  accept(upgrade: Upgrade): Accept;
  /** Takes a line of telemetry. */
  acceptTelemetry(upgrade: Upgrade): Accept;
  /** Lines that may be open at once. */
  readonly maxConnections: number;
}

/** A gate for a worker port: `/` leads to workers, `/otel` to who reads telemetry. */
export function makeGate(options: GateOptions): Gate {
  const origins = new Set(options.allowedOrigins.map(originOf));
  const hasToken = makeTokenCheck(options.authToken);
  let open = 0;

  const gone = (): void => {
    open--;
  };
  const counted = (accept: Accept): Accept => (connection) => {
    const line = new CountedLine(accept(connection), gone);
    open++;
    return line;
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
      return refuse(503, `The engine serves ${options.maxConnections} lines and takes no more`);
    }
    const { path } = upgrade;
    return counted(path === "/otel" ? options.acceptTelemetry(upgrade) : options.accept(upgrade));
  };
}

/** Who takes a line, and who counts it. A class, since five closures are 400 bytes of each line. */
class CountedLine implements ConnectionEvents {
  readonly #events: ConnectionEvents;
  readonly #gone: () => void;

  constructor(events: ConnectionEvents, gone: () => void) {
    this.#events = events;
    this.#gone = gone;
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
    this.#gone();
    this.#events.closed(code, reason);
  }
}

function refuse(status: number, message: string): Refusal {
  return { status, message };
}

/** As a browser writes it: lower case, no default port, no slash behind. */
function originOf(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : "null";
  return origin === "null" ? text.toLowerCase() : origin; // Schemes of other kinds stay apart.
}

/** Pages that this machine serves to itself. `null`, as of a file, is none of them. */
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
