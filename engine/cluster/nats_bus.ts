/**
 * The {@linkcode Bus} on core NATS.
 *
 * Connects in the background and again whenever the connection is lost, so an engine starts and
 * works while NATS is away. The only file that knows the client.
 *
 * @module
 */
import {
  type Authenticator,
  type ConnectionOptions,
  credsAuthenticator,
  errors,
  type Msg,
  type NatsConnection,
  NatsConnectionImpl,
  nkeyAuthenticator,
  setTransportFactory,
} from "@nats-io/transport-node";
import { nodeResolveHost, NodeTransport } from "@nats-io/transport-node/lib/node_transport.js";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { ClusterSettings } from "../ports/config.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Bus, BusAnswer, BusMessage } from "./transport.ts";

export type { NatsConnection };

/** Between two attempts to reach NATS. */
const AGAIN_MS = 1_000;
/** How long a server may take for its first word. */
const CONNECT_MS = 5_000;
/** Between attempts of the client after a connection was lost. */
const RECONNECT_MS = 250;
/** A connection that leaves two of its pings unanswered is lost. */
const PING_MS = 1_000;
const PINGS_OUT_MAX = 2;

/** What a {@linkcode NatsBus} uses. */
export interface NatsBusSetup {
  readonly settings: ClusterSettings;
  readonly clock: Clock;
  readonly log: Log;
}

interface Subscription {
  readonly subject: string;
  readonly hear: (message: BusMessage) => void;
  stop: () => void;
}

/** A connection to NATS. */
export class NatsBus implements Bus, AsyncDisposable {
  readonly #setup: NatsBusSetup;
  readonly #subscriptions = new Set<Subscription>();
  readonly #listeners = new Set<(isConnected: boolean) => void>();
  readonly #first = Promise.withResolvers<NatsConnection>();
  #connection: NatsConnection | undefined;
  #isConnected = false;
  #isClosed = false;
  #cancelAgain = (): void => {};
  #problem = "";

  constructor(setup: NatsBusSetup) {
    this.#setup = setup;
    this.#first.promise.catch(() => {}); // Closed before NATS was reached.
  }

  /** Begins to connect. */
  start(): void {
    void this.#connect();
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Address of the node, for lists; `undefined` while NATS is away. */
  get server(): string | undefined {
    return this.#isConnected ? this.#connection?.getServer() : undefined;
  }

  /** Version of the node; `undefined` before the first one was reached. */
  get version(): string | undefined {
    return this.#connection?.info?.version;
  }

  /** Why NATS was not reached last; empty when it was. */
  get problem(): string {
    return this.#problem;
  }

  /** The client's connection, for packages that are built on it; settles when NATS is reached. */
  connection(): Promise<NatsConnection> {
    return this.#first.promise;
  }

  publish(subject: string, data: Uint8Array): void {
    // What the client would keep until it is back would come too late.
    if (this.#isConnected) this.#connection!.publish(subject, data);
  }

  subscribe(subject: string, hear: (message: BusMessage) => void): () => void {
    const subscription: Subscription = { subject, hear, stop: () => {} };
    this.#subscriptions.add(subscription);
    if (this.#connection) this.#subscribe(this.#connection, subscription);
    return () => {
      this.#subscriptions.delete(subscription);
      subscription.stop();
    };
  }

  request(
    subject: string,
    data: Uint8Array,
    timeout_ms: number,
    done: (answer: BusAnswer) => void,
  ): void {
    if (!this.#isConnected) return queueMicrotask(() => done({ state: "away" }));
    this.#connection!.request(subject, data, { timeout: timeout_ms }).then(
      ({ data }) => done({ state: "answered", data: bytesOf(data) }),
      (thrown) => done({ state: this.#isConnected ? stateOf(thrown) : "away" }),
    );
  }

  onStatus(hear: (isConnected: boolean) => void): () => void {
    this.#listeners.add(hear);
    return () => this.#listeners.delete(hear);
  }

  /** Resolves when everything that was published has reached the node, or NATS is away. */
  async flush(): Promise<void> {
    if (this.#isConnected) await this.#connection!.flush().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancelAgain();
    this.#first.reject(new Error("the engine stops"));
    await this.flush();
    this.#isConnected = false;
    await this.#connection?.close();
  }

  async #connect(): Promise<void> {
    const { settings, clock, log } = this.#setup;
    try {
      const connection = await connect(await optionsOf(settings));
      if (this.#isClosed) return await connection.close();
      this.#connection = connection;
      for (const subscription of this.#subscriptions) this.#subscribe(connection, subscription);
      void this.#watch(connection);
      this.#problem = "";
      log.info("connected to NATS", { server: connection.getServer() });
      this.#changed(true);
      this.#first.resolve(connection);
    } catch (thrown) {
      const reason = thrownText(thrown);
      if (this.#isClosed) return;
      if (reason !== this.#problem) log.warn("NATS cannot be reached; trying again", { reason });
      this.#problem = reason;
      this.#cancelAgain = clock.after(AGAIN_MS, () => void this.#connect());
    }
  }

  #subscribe(connection: NatsConnection, subscription: Subscription): void {
    const { subject, hear } = subscription;
    const callback = (error: unknown, message: Msg): void => {
      if (!error) return hear(new NatsMessage(message));
      const reason = thrownText(error);
      this.#setup.log.warn("NATS refused a subscription", { subject, reason });
    };
    const one = connection.subscribe(subject, { callback });
    subscription.stop = () => one.unsubscribe();
  }

  async #watch(connection: NatsConnection): Promise<void> {
    const { log } = this.#setup;
    for await (const status of connection.status()) {
      if (status.type === "disconnect") this.#changed(false);
      else if (status.type === "reconnect") this.#changed(true);
      else if (status.type === "error") {
        log.warn("NATS reported an error", { reason: thrownText(status.error) });
      } else if (status.type === "slowConsumer") {
        log.warn("the engine reads messages from NATS too slowly", { pending: status.pending });
      }
    }
  }

  #changed(isConnected: boolean): void {
    if (this.#isConnected === isConnected || this.#isClosed) return;
    this.#isConnected = isConnected;
    const { log } = this.#setup;
    if (!isConnected) log.warn("the connection to NATS is lost; trying again");
    else if (this.#problem !== "") this.#problem = "";
    for (const hear of [...this.#listeners]) hear(isConnected);
  }
}

/**
 * The client's transport, with a listener for errors on its socket at all times.
 *
 * The client removes all listeners before it destroys a socket. When a server that refused the
 * password resets the connection at that moment, the socket's error has no listener and ends the
 * process.
 */
class GuardedTransport extends NodeTransport {
  override async dial(to: Parameters<NodeTransport["dial"]>[0]): Promise<Socket> {
    return hearErrors(await super.dial(to));
  }

  override async tlsFirst(to: Parameters<NodeTransport["tlsFirst"]>[0]): Promise<TLSSocket> {
    return hearErrors(await super.tlsFirst(to));
  }

  override async startTLS(): Promise<TLSSocket> {
    return hearErrors(await super.startTLS());
  }
}

function hearErrors<S extends Socket>(socket: S): S {
  const removeAll = socket.removeAllListeners.bind(socket);
  socket.removeAllListeners = (...event) => removeAll(...event).on("error", () => {});
  return socket;
}

/** As the package's `connect` does, with {@linkcode GuardedTransport}. */
function connect(options: ConnectionOptions): Promise<NatsConnection> {
  const factory = (): GuardedTransport => new GuardedTransport();
  setTransportFactory({ factory, dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}

/** A message without the client's kind of bytes, for which nothing here is optimized. */
class NatsMessage implements BusMessage {
  readonly data: Uint8Array;
  readonly #message: Msg;

  constructor(message: Msg) {
    this.#message = message;
    this.data = bytesOf(message.data);
  }

  get subject(): string {
    return this.#message.subject;
  }

  respond(data?: Uint8Array): void {
    this.#message.respond(data);
  }
}

function bytesOf({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function stateOf(thrown: unknown): "no_responders" | "timeout" {
  const isUnheard = thrown instanceof errors.NoRespondersError ||
    thrown instanceof errors.RequestError && thrown.isNoResponders();
  return isUnheard ? "no_responders" : "timeout";
}

/** Reads the files that the settings name. */
async function optionsOf(settings: ClusterSettings): Promise<ConnectionOptions> {
  const { nats, name, engine_name, user, password, token, credentials, tls } = settings;
  const isSecured = tls !== undefined || nats.some((address) => address.startsWith("tls:"));
  return {
    servers: nats.map((address) => address.replace(/^\w+:\/\//, "")),
    name: `engine ${name} ${engine_name}`,
    timeout: CONNECT_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_MS,
    ignoreAuthErrorAbort: true,
    pingInterval: PING_MS,
    maxPingOut: PINGS_OUT_MAX,
    ...user !== undefined && { user },
    ...password !== undefined && { pass: password },
    ...token !== undefined && { token },
    ...credentials !== undefined && {
      authenticator: authenticatorOf(await Deno.readFile(credentials)),
    },
    ...isSecured && {
      tls: {
        ...tls?.ca !== undefined && { caFile: tls.ca },
        ...tls?.cert !== undefined && { certFile: tls.cert },
        ...tls?.key !== undefined && { keyFile: tls.key },
      },
    },
  };
}

/** Of a file with a user's JWT and seed, as `nsc` writes it, or with the seed of an NKey alone. */
function authenticatorOf(file: Uint8Array): Authenticator {
  const [seed] = /\bSU[A-Z2-7]{56}\b/.exec(new TextDecoder().decode(file)) ?? [];
  const hasJwt = new TextDecoder().decode(file).includes("USER JWT");
  if (seed !== undefined && !hasJwt) return nkeyAuthenticator(new TextEncoder().encode(seed));
  return credsAuthenticator(file);
}
