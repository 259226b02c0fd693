/**
 * Where subscribers connect: a port of its own, and a path of the worker port.
 *
 * A web page may open a WebSocket to any host, with the cookies of its user, so an upgrade of a
 * page of another origin is refused unless the configuration lists it. Everything else is decided
 * when the connection is open, since a browser does not show a page why an upgrade was refused.
 *
 * @module
 */
import type { Accept, Connection, Refusal, Upgrade } from "../../engine/ports/connection.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { AllowedHosts } from "../kit/allowed_hosts.ts";
import { DRAIN_MS, type EngineHost } from "../kit/define.ts";
import { HeldMemory } from "../kit/held_memory.ts";
import { clientOf } from "../kit/http/clients.ts";
import { HttpPort } from "../kit/http/port.ts";
import { problemResponse, type ServedRequest, type ServedResponse } from "../kit/http/response.ts";
import { mayUse } from "../http/origins.ts";
import { RefusedOrigins } from "../kit/refused_origins.ts";
import type { StreamConfig } from "./config.ts";
import type { AuthRequest } from "./joins.ts";
import { REQUEST_BYTES_MAX } from "./messages.ts";
import { RecentCounts } from "./recent_counts.ts";
import {
  Subscriber,
  type SubscriberCounts,
  type SubscriberServices,
  UNSENT_BYTES_MAX,
} from "./subscriber.ts";

/** The path of the worker port that serves subscribers. */
export const STREAM_PATH = "/stream";
/** The subprotocol that is selected when a client offers it, beside which it may send a token. */
export const SUBPROTOCOL = "engine.stream.v1";
/** One client has all connections but this share, which is for the others. */
const SHARE_OF_OTHERS = 1 / 8;
/** Streams in one answer of `engine::stream::stats`. */
const STREAMS_LISTED_MAX = 1_000;
const SETTINGS = { port: "port of engine-stream", address: "host or port of engine-stream" };

/** What the server needs of the engine. */
export type ServerHost = Pick<
  EngineHost,
  "clock" | "log" | "memory" | "webSockets" | "socketBounds"
>;

/** See the module. */
export class StreamServer implements AsyncDisposable {
  /** Such as `ws://127.0.0.1:3112`. */
  readonly url: string;
  readonly #config: StreamConfig;
  readonly #host: ServerHost;
  readonly #services: SubscriberServices;
  readonly #port: HttpPort;
  readonly #subscribers = new Set<Subscriber>();
  readonly #perClient = new Map<string, number>();
  readonly #max: number;
  /** How long clients may take to answer a close frame at the end. */
  readonly #endMs: number;
  readonly #mayUse: (origin: string, host: string | undefined) => boolean;
  readonly #hosts: AllowedHosts;
  readonly #counts: SubscriberCounts = {
    subscriptions: 0,
    sent: 0,
    closedSlow: 0,
    byStream: new Map(),
  };
  /** Events by stream, with and without subscribers. */
  readonly #events = new RecentCounts(STREAMS_LISTED_MAX);
  #eventCount = 0;
  /** Places of all connections, also of those that are being upgraded. */
  #places = 0;
  /** Connections of the own port whose close handshake is not over. */
  #wires = 0;
  #isDraining = false;
  #whenEmpty: (() => void)[] = [];

  /**
   * Opens the port.
   *
   * @throws {EngineError} `address_in_use` or `address_not_available`, with what to do.
   */
  constructor(
    config: StreamConfig,
    host: ServerHost,
    services: Omit<SubscriberServices, "counts" | "closed">,
    endMs: number = DRAIN_MS,
  ) {
    this.#config = config;
    this.#host = host;
    this.#max = config.connections_max;
    this.#endMs = endMs;
    const refused = new RefusedOrigins(host.log, "allowed_origins of engine-stream");
    this.#mayUse = mayUse({ origins: config.allowed_origins }, (origin) => refused.report(origin));
    this.#hosts = new AllowedHosts([config.host, ...config.allowed_hosts]);
    this.#services = { ...services, counts: this.#counts, closed: (it) => this.#closed(it) };
    this.#port = new HttpPort({
      ...host,
      host: config.host,
      port: config.port,
      socketsMax: host.socketBounds.streams,
      name: "engine-stream",
      settings: SETTINGS,
      handle: (request) => this.#serve(request),
    });
    this.url = this.#port.url.replace("http:", "ws:");
  }

  /** Connections and subscriptions, and what was sent. */
  stats(): JsonObject {
    const { subscriptions, sent, closedSlow, byStream } = this.#counts;
    const names = new Set([...byStream.keys(), ...this.#events.names()]);
    const streams: Json[] = [...names].slice(0, STREAMS_LISTED_MAX).map((stream_name) => ({
      stream_name,
      subscriptions: byStream.get(stream_name) ?? 0,
      events: this.#events.get(stream_name),
    }));
    return {
      url: this.url,
      connections: this.#subscribers.size,
      connections_max: this.#max,
      subscriptions,
      events: this.#eventCount,
      events_sent: sent,
      closed_slow: closedSlow,
      streams,
    };
  }

  /** Counts an event of a stream. */
  count(stream_name: string): void {
    this.#eventCount++;
    this.#events.add(stream_name);
  }

  /** Accepts an upgrade of the worker port. */
  accept({ headers, path, query, address }: Upgrade): Refusal | Accept {
    const client = clientOf(address);
    const full = this.#take(client);
    if (full !== undefined) return { status: 503, message: full };
    const request = {
      headers: Object.fromEntries(headers),
      path,
      query_params: Object.fromEntries(query),
      addr: address,
    };
    return (connection) => this.#open(connection, request, client);
  }

  /** Closes all connections, because some have missed events; they come back and get all anew. */
  lost(reason = "events were lost; connect again"): void {
    for (const subscriber of [...this.#subscribers]) subscriber.close(1013, reason);
  }

  /** Accepts no more, and closes all connections with 1001. Resolves when they have ended. */
  drain(): Promise<void> {
    this.#isDraining = true;
    this.#port.drain();
    for (const subscriber of [...this.#subscribers]) {
      subscriber.close(1001, "the engine is stopping");
    }
    return new Promise((resolve) => {
      this.#whenEmpty.push(resolve);
      this.#tellEmpty();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    let cancel = (): void => {};
    const waited = new Promise<void>((resolve) => {
      cancel = this.#host.clock.after(this.#endMs, resolve);
    });
    await Promise.race([this.drain(), waited]);
    cancel();
    this.#port.destroy();
    await this.#port.close();
  }

  #serve(request: ServedRequest): ServedResponse {
    const { headers, target } = request;
    const [path = "/", query = ""] = target.split("?", 2);
    const refused = this.#refusalOf(request, path);
    if (refused) return refused;
    const client = request.client.name;
    const full = this.#take(client);
    if (full !== undefined) return problemResponse({ status: 503, problem: full });
    const query_params = Object.fromEntries(new URLSearchParams(query));
    const asked = { headers, path, query_params, addr: client };
    const upgrade: ServedResponse["upgrade"] = (stream, rest) =>
      this.#carry(this.#host.webSockets.accept({
        request,
        stream,
        rest,
        address: client,
        protocol: offersProtocol(headers) ? SUBPROTOCOL : undefined,
        maxMessageBytes: REQUEST_BYTES_MAX,
        maxQueuedBytes: UNSENT_BYTES_MAX,
      }, (connection) => this.#open(connection, asked, client)));
    const lost = (): void => this.#give(client);
    return { status: 101, headers: [], body: null, upgrade, lost };
  }

  #refusalOf(request: ServedRequest, path: string): ServedResponse | undefined {
    const { host, origin } = request.headers;
    if (host !== undefined && !this.#hosts.allows(host)) {
      const problem = "This port is not meant to be reached by that name; if it is, add it to " +
        "allowed_hosts of engine-stream";
      return problemResponse({ status: 403, problem });
    }
    if (path !== "/" && path !== STREAM_PATH) {
      return problemResponse({ status: 404, problem: "Subscribers connect to /" });
    }
    const wrong = this.#host.webSockets.problemOf(request);
    if (wrong) {
      const response = problemResponse({ status: wrong.status, problem: wrong.message });
      return {
        ...response,
        headers: [...response.headers, ...Object.entries(wrong.headers ?? {})],
      };
    }
    if (origin === undefined || this.#mayUse(origin, host)) return undefined;
    const problem = "A page of another origin may not connect here; list its origin in " +
      "allowed_origins of engine-stream if it may";
    return problemResponse({ status: 403, problem });
  }

  #open(connection: Connection, request: AuthRequest, client: string): Subscriber {
    const held = new HeldMemory(this.#host.memory, this.#host.clock);
    const subscriber = new Subscriber(connection, request, held, {
      ...this.#services,
      closed: (it) => {
        this.#give(client);
        this.#services.closed(it);
      },
    });
    this.#subscribers.add(subscriber);
    if (this.#isDraining) subscriber.close(1001, "the engine is stopping");
    return subscriber;
  }

  /** Takes a place for a connection; otherwise why there is none. */
  #take(client: string): string | undefined {
    const own = this.#perClient.get(client) ?? 0;
    const share = this.#max - Math.floor(this.#max * SHARE_OF_OTHERS);
    if (this.#isDraining) return "The engine is stopping; try again";
    if (this.#places >= this.#max) return `${this.#max} subscribers are connected; try again`;
    if (own >= share) return `This client has ${own} connections, and may have no more`;
    this.#places++;
    this.#perClient.set(client, own + 1);
    return undefined;
  }

  #give(client: string): void {
    this.#places--;
    const left = this.#perClient.get(client)! - 1;
    if (left > 0) this.#perClient.set(client, left);
    else this.#perClient.delete(client);
  }

  /** Waits for an upgraded connection, which ends after its {@linkcode Subscriber}. */
  async #carry(connection: Promise<void>): Promise<void> {
    this.#wires++;
    await connection;
    this.#wires--;
    this.#tellEmpty();
  }

  #closed(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber);
    this.#tellEmpty();
  }

  #tellEmpty(): void {
    if (!this.#isDraining || this.#subscribers.size > 0 || this.#wires > 0) return;
    for (const tell of this.#whenEmpty.splice(0)) tell();
  }
}

function offersProtocol(headers: Readonly<Record<string, string>>): boolean {
  const offered = (headers["sec-websocket-protocol"] ?? "").split(",").map((one) => one.trim());
  return offered.includes(SUBPROTOCOL);
}
