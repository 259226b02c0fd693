/**
 * The set-up of the claims about a {@linkcode Connection}: a port and both ends of its connections.
 *
 * @module
 */
import assert from "node:assert/strict";
import type {
  Connection,
  ConnectionEvents,
  Gate,
  Listen,
  Listener,
  ListenOptions,
} from "../../engine/ports/connection.ts";
import { dial, type Dialled, RawWsClient, type UpgradeShape } from "../fakes/raw_ws_client.ts";
import { until } from "../fakes/until.ts";

/** One requirement of a listener and its connections. */
export interface Claim {
  /** A whole sentence; a listener that cannot hold it names it. */
  readonly name: string;
  run(carrier: Carrier): Promise<void>;
}

/** What is tested, and how a client reaches it. */
export interface Carrier {
  readonly listen: Listen;
  /** Certificate of the CA that a client has to trust, in PEM; left out: no TLS is spoken. */
  readonly ca?: string;
}

/** Keeps a byte order mark, which is part of a message as any other character. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The events of a connection, recorded. */
export class RecordedConnection implements ConnectionEvents {
  readonly connection: Connection;
  readonly texts: string[] = [];
  readonly binaries: Uint8Array[] = [];
  readonly closings: { code: number; reason: string }[] = [];
  drains = 0;
  /** Each report of `suspected`. */
  readonly suspicions: boolean[] = [];
  /** Called with each text message. */
  onText: ((message: string) => void) | undefined;
  /** Called with each binary message; its bytes are valid until it returns. */
  onBinary: ((message: Uint8Array) => void) | undefined;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  text(text: string): void {
    this.texts.push(text);
    this.onText?.(text);
  }

  textBytes(memory: Uint8Array, start: number, end: number, isPlain: boolean): void {
    const text = UTF_8.decode(memory.subarray(start, end));
    assert.equal(isPlain, !text.includes("\\"), "what is said about the bytes is true");
    this.text(text);
  }

  binary(bytes: Uint8Array): void {
    this.binaries.push(bytes.slice());
    this.onBinary?.(bytes);
  }

  suspected(isSuspect: boolean): void {
    this.suspicions.push(isSuspect);
  }

  drained(): void {
    this.drains++;
  }

  closed(code: number, reason: string): void {
    this.closings.push({ code, reason });
  }

  /** Waits for the end of the connection; returns how it ended. */
  async end(): Promise<{ code: number; reason: string }> {
    await until(() => this.closings.length > 0, "the connection is closed");
    return this.closings[0]!;
  }
}

/** An open port, its connections in the order they opened, and what it cut. */
export class Port implements AsyncDisposable {
  readonly listener: Listener;
  readonly connections: RecordedConnection[] = [];
  readonly cuts: string[] = [];
  /** In the order they asked. */
  readonly clients: RawWsClient[] = [];
  readonly #dial: Dialled;

  constructor(
    { listen, ca }: Carrier,
    options: Partial<ListenOptions> = {},
    gate?: Gate,
  ) {
    const takeAll: Gate = () => (connection) => {
      const recorded = new RecordedConnection(connection);
      this.connections.push(recorded);
      return recorded;
    };
    this.listener = listen({
      hostname: "127.0.0.1",
      port: 0,
      maxMessageBytes: 64 * 1024 * 1024,
      maxQueuedBytes: 256 * 1024 * 1024,
      onCut: (_address, reason) => void this.cuts.push(reason),
      ...options,
    }, gate ?? takeAll);
    this.#dial = { port: this.listener.port, ...ca !== undefined && { ca } };
  }

  /** A connection on which nothing was sent; in TLS if that is spoken. */
  dial(): Promise<Deno.Conn> {
    return dial(this.#dial);
  }

  /** Asks for a page. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const { port, ca } = this.#dial;
    if (ca === undefined) return await fetch(`http://127.0.0.1:${port}${path}`, init);
    using client = Deno.createHttpClient({ caCerts: [ca] });
    const answer = await fetch(`https://127.0.0.1:${port}${path}`, { ...init, client });
    // The whole of it, since the client ends here.
    const body = init.method === "HEAD" ? null : await answer.text();
    return new Response(body, { status: answer.status, headers: answer.headers });
  }

  /** Sends an upgrade request; any answer is accepted. */
  async ask(shape?: UpgradeShape): Promise<RawWsClient> {
    const client = await RawWsClient.connect(this.#dial, shape);
    this.clients.push(client);
    return client;
  }

  /** Sends bytes instead of a request of the usual shape, in as many writes. */
  async send(writes: readonly Uint8Array[]): Promise<RawWsClient> {
    const client = await RawWsClient.open(this.#dial, writes);
    this.clients.push(client);
    return client;
  }

  /** Opens a connection and returns both its ends. */
  async open(shape?: UpgradeShape): Promise<{ client: RawWsClient; recorded: RecordedConnection }> {
    const before = this.connections.length;
    const client = await this.ask(shape);
    assert.equal(client.status, 101, client.head);
    await until(() => this.connections.length > before, "the connection is open");
    return { client, recorded: this.connections[before]! };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.clients) client.destroy();
    await this.listener.close();
    const ended = () => this.connections.every((recorded) => recorded.closings.length > 0);
    await until(ended, "every connection has reported its end");
    for (const recorded of this.connections) {
      assert.equal(recorded.closings.length, 1, "closed comes once");
    }
  }
}

/** UTF-8. */
export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
