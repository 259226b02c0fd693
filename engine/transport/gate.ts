/**
 * Decides which upgrade of the worker port is accepted, and by whom: workers on `/`, telemetry on
 * `/otel`, ends of channels on `/ws/channels/<id>`.
 *
 * The gate sees the head of a request only. A page in a browser can open a WebSocket to any port of
 * this machine, so a local address proves nothing: an `Origin` has to be a known one.
 *
 * @module
 */
import { CHANNEL_PATH } from "../../sdk/typescript/wire/channels.ts";
import { makeTokenCheck, type TokenOptions } from "../auth/token.ts";
import type { TokenRecord } from "../auth/token_file.ts";
import { readTelemetry, TELEMETRY_BYTES_PER_SECOND, TelemetryBudget } from "../core/guards.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  Accept,
  ConnectionEvents,
  Gate,
  Outline,
  Refusal,
  Upgrade,
} from "../ports/connection.ts";
import type { Log } from "../ports/log.ts";
import type { TelemetryListener } from "../ports/telemetry.ts";

/** Options of {@linkcode makeGate}. */
export interface GateOptions extends TokenOptions {
  /** How its settings are named in messages. Default: `engine`. */
  readonly name?: string;
  /** Origins beside loopback that may connect, such as `https://console.example`. */
  readonly allowedOrigins: readonly string[];
  /** Called with each origin that is refused. */
  originRefused?(origin: string): void;
  /** Accepts a worker connection, and the created token that it came with. */
  accept(upgrade: Upgrade, token: TokenRecord | undefined): Accept;
  /** Accepts a telemetry connection. */
  acceptTelemetry(upgrade: Upgrade, token: TokenRecord | undefined): Accept;
  /** Accepts an end of a channel, whose key is its credential. Default: there are no channels. */
  claimChannel?(upgrade: Upgrade): Refusal | Accept;
  /** Paths that built-in workers serve. Default: none. */
  readonly sockets?: SocketPaths;
  /** Most connections that may be open at once. */
  readonly maxConnections: number;
  /** Whether the peer is an operator on this machine, for whom places are kept. Default: none. */
  isOperator?(upgrade: Upgrade): boolean;
  /** Why no worker may connect now; `undefined`: it may. Default: always. */
  closedReason?(): string | undefined;
}

/** Places of a port that only operators get. */
export const OPERATOR_CONNECTIONS = 16;
/** They are at most one place of so many. */
const OPERATOR_SHARE = 8;
/** An address may have this share of the connections that have sent nothing yet. */
const QUIET_SHARE = 3 / 4;
/** It may have so many of them in any case. */
const QUIET_MIN = 64;

/** Connections of such paths may have this share of the places, so that workers find some. */
const SERVED_SHARE = 3 / 4;

/** A path of the worker port whose upgrades a built-in worker serves. */
interface SocketPath {
  readonly accept: (upgrade: Upgrade) => Refusal | Accept;
  /** No token is needed. */
  readonly open: boolean;
}

/** The paths of the worker port that built-in workers serve. */
export class SocketPaths {
  readonly #paths = new Map<string, SocketPath>();

  /**
   * Serves a path from now on; call the result to stop.
   *
   * @throws {Error} When the path is taken.
   */
  serve(
    path: string,
    accept: SocketPath["accept"],
    { open = false }: { readonly open?: boolean } = {},
  ): () => void {
    if (this.#paths.has(path)) throw new Error(`The path ${path} is served already`);
    this.#paths.set(path, { accept, open });
    return () => void this.#paths.delete(path);
  }

  /** What serves a path now. */
  find(path: string): SocketPath | undefined {
    return this.#paths.get(path);
  }
}

/** Makes the gate of a worker port. */
export function makeGate(options: GateOptions): Gate {
  const checkOrigin = makeOriginCheck(options);
  const checkToken = makeTokenCheck(options);
  const { maxConnections } = options;
  const forAll = maxConnections -
    Math.min(OPERATOR_CONNECTIONS, Math.floor(maxConnections / OPERATOR_SHARE));
  const quietMax = Math.max(QUIET_MIN, Math.floor(forAll * QUIET_SHARE));
  const counts = new ConnectionCounts();
  const countOpen = (accept: Accept, address: string): Accept => (connection) => {
    const counted = new CountedConnection(accept(connection), counts, address);
    counts.opened(address);
    return counted;
  };
  // A stopping engine accepts them, too: the calls that it lets finish may need them.
  const claimChannel = (upgrade: Upgrade): Refusal | Accept => {
    const claimed = options.claimChannel?.(upgrade) ?? refuse(404, "Channel not found");
    if (typeof claimed !== "function") return claimed;
    if (counts.open >= forAll) return refuse(503, fullText(forAll));
    return (connection) => {
      const counted = new CountedConnection(claimed(connection), counts, undefined);
      counts.open++;
      return counted;
    };
  };
  const claimServed = makeClaimServed(checkToken, counts, forAll);

  return (upgrade) => {
    const refused = checkOrigin(upgrade);
    if (refused) return refused;
    if (upgrade.path.startsWith(CHANNEL_PATH)) return claimChannel(upgrade);
    const served = options.sockets?.find(upgrade.path);
    if (served) return claimServed(served, upgrade);
    if (upgrade.path === "/stream") return refuse(404, NO_STREAMS);
    if (upgrade.path !== "/" && upgrade.path !== "/otel") {
      return refuse(404, "There is nothing at this path; workers connect to /");
    }
    const admitted = checkToken(upgrade);
    if ("status" in admitted) return admitted;
    const { token } = admitted;
    const { path, address } = upgrade;
    if (!options.isOperator?.(upgrade)) {
      const closed = options.closedReason?.();
      if (closed !== undefined) return refuse(503, closed);
      if (counts.open >= forAll) return refuse(503, fullText(forAll));
      if (counts.quiet(address) >= quietMax) {
        return refuse(503, `${quietMax} connections of ${address} have not sent anything yet`);
      }
    } else if (counts.open >= maxConnections) {
      return refuse(503, fullText(maxConnections));
    }
    const accept = path === "/otel"
      ? options.acceptTelemetry(upgrade, token)
      : options.accept(upgrade, token);
    return countOpen(accept, address);
  };
}

/** Decides about the `Origin` of an upgrade, which browsers send. */
function makeOriginCheck(
  { name = "engine", allowedOrigins, originRefused }: GateOptions,
): (upgrade: Upgrade) => Refusal | undefined {
  const origins = new Set(allowedOrigins.map(originOf));
  return ({ headers }) => {
    const origin = headers.get("origin");
    if (origin === null || isLoopback(origin) || origins.has(originOf(origin))) return undefined;
    originRefused?.(origin);
    return refuse(403, `Origin ${printable(origin)} is not among ${name}.allowed_origins`);
  };
}

/** Decides about upgrades of the paths that built-in workers serve. */
function makeClaimServed(
  checkToken: ReturnType<typeof makeTokenCheck>,
  counts: ConnectionCounts,
  forAll: number,
): (served: SocketPath, upgrade: Upgrade) => Refusal | Accept {
  const max = Math.floor(forAll * SERVED_SHARE);
  let opened = 0;
  return (served, upgrade) => {
    const admitted = served.open ? undefined : checkToken(upgrade);
    if (admitted && "status" in admitted) return admitted;
    if (admitted?.token && admitted.token.allow !== null) return refuse(403, LIMITED_TOKEN);
    if (counts.open >= forAll || opened >= max) return refuse(503, fullText(max));
    const accept = served.accept(upgrade);
    if (typeof accept !== "function") return accept;
    return (connection) => {
      opened++;
      counts.open++;
      return new CountedConnection(accept(connection), counts, undefined, () => opened--);
    };
  };
}

const NO_STREAMS = "Nothing serves /stream; add the worker with: engine worker add engine-stream";
const LIMITED_TOKEN =
  "A token limited to some functions cannot follow streams; create one without --allow";

function fullText(max: number): string {
  return `The engine serves ${max} connections and accepts no more`;
}

/** The open connections, and for each address those that have sent nothing yet. */
class ConnectionCounts {
  open = 0;
  readonly #quiet = new Map<string, number>();

  quiet(address: string): number {
    return this.#quiet.get(address) ?? 0;
  }

  opened(address: string): void {
    this.open++;
    this.#quiet.set(address, this.quiet(address) + 1);
  }

  /** The first message came, or the connection ended without one. */
  notQuiet(address: string): void {
    const left = this.quiet(address) - 1;
    if (left > 0) this.#quiet.set(address, left);
    else this.#quiet.delete(address);
  }
}

/**
 * Forwards events and counts. A class: five closures would be 400 bytes per connection.
 */
class CountedConnection implements Required<ConnectionEvents> {
  readonly #events: ConnectionEvents;
  readonly #counts: ConnectionCounts;
  readonly #address: string | undefined;
  #isQuiet: boolean;

  readonly #ended: (() => void) | undefined;

  /** Without an address it does not count among the connections that have sent nothing. */
  constructor(
    events: ConnectionEvents,
    counts: ConnectionCounts,
    address: string | undefined,
    ended?: () => void,
  ) {
    this.#ended = ended;
    this.#events = events;
    this.#counts = counts;
    this.#address = address;
    this.#isQuiet = address !== undefined;
  }

  text(text: string): void {
    if (this.#isQuiet) this.#notQuiet();
    this.#events.text(text);
  }

  textBytes(
    memory: Uint8Array,
    start: number,
    end: number,
    isPlain: boolean,
    outline?: Outline,
  ): void {
    if (this.#isQuiet) this.#notQuiet();
    this.#events.textBytes(memory, start, end, isPlain, outline);
  }

  binary(bytes: Uint8Array): void {
    if (this.#isQuiet) this.#notQuiet();
    this.#events.binary(bytes);
  }

  drained(): void {
    this.#events.drained();
  }

  suspected(isSuspect: boolean): void {
    this.#events.suspected(isSuspect);
  }

  retire(): boolean {
    return this.#events.retire?.() ?? false;
  }

  closed(code: number, reason: string): void {
    if (this.#isQuiet) this.#notQuiet();
    this.#counts.open--;
    this.#ended?.();
    this.#events.closed(code, reason);
  }

  #notQuiet(): void {
    this.#isQuiet = false;
    this.#counts.notQuiet(this.#address!);
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
  /** Called when the connection is closed. */
  closed?(): void;
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

  suspected(): void {}

  closed(): void {
    this.#options.closed?.();
  }
}
