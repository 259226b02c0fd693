/**
 * What the claims about a {@linkcode Connection} are tried on: one line with both its ends.
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

/** One thing that a listener and its lines hold. */
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

/** What a line has reported. */
export class RecordedLine implements ConnectionEvents {
  readonly connection: Connection;
  readonly texts: string[] = [];
  readonly binaries: Uint8Array[] = [];
  readonly closings: { code: number; reason: string }[] = [];
  drains = 0;
  /** Called with each text message. */
  onText: ((message: string) => void) | undefined;
  /** Called with each binary message; its bytes are the line's again when it returns. */
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

  drained(): void {
    this.drains++;
  }

  closed(code: number, reason: string): void {
    this.closings.push({ code, reason });
  }

  /** How the line ended, once it has. */
  async end(): Promise<{ code: number; reason: string }> {
    await until(() => this.closings.length > 0, "the line is closed");
    return this.closings[0]!;
  }
}

/** An open port, its lines in the order they opened, and what it cut. */
export class Port implements AsyncDisposable {
  readonly listener: Listener;
  readonly lines: RecordedLine[] = [];
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
      const line = new RecordedLine(connection);
      this.lines.push(line);
      return line;
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

  /** Asks for a line, whatever the answer. */
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

  /** Opens a line and returns both its ends. */
  async open(shape?: UpgradeShape): Promise<{ client: RawWsClient; line: RecordedLine }> {
    const before = this.lines.length;
    const client = await this.ask(shape);
    assert.equal(client.status, 101, client.head);
    await until(() => this.lines.length > before, "the line is open");
    return { client, line: this.lines[before]! };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.clients) client.destroy();
    await this.listener.close();
    const ended = () => this.lines.every((line) => line.closings.length > 0);
    await until(ended, "every line has reported its end");
    for (const line of this.lines) assert.equal(line.closings.length, 1, "closed comes once");
  }
}

/** UTF-8. */
export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
