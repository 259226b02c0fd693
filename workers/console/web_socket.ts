/**
 * The WebSocket of one page, over a connection that the port hands over.
 *
 * The protocol is that of `ws`. What a page sends before its `hello`, what a long message needs
 * until it is whole, and what waits to be sent are bounded, the last two by the memory of the
 * process.
 *
 * @module
 */
import { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { HeldMemory } from "../kit/held_memory.ts";
import type { ByteStream } from "../kit/http/input.ts";
import type { PlainHeaders } from "../kit/http/head.ts";
import { MESSAGE_CHARS_MAX } from "./browser_connection.ts";
import type { BrowserSocket } from "./outbox.ts";

/** Bytes that may come before `hello` was accepted: one short message. */
export const HELLO_BYTES_MAX = 8 * 1024;
/** Messages up to this size take no memory of the process while they arrive. */
const SMALL_BYTES = 64 * 1024;
const READ_BYTES = 64 * 1024;
/** Largest write, so that progress of a slow page is visible. */
const WRITE_BYTES = 256 * 1024;
/** A character of the longest message may have this many bytes. */
const BYTES_PER_CHAR = 3;

/** `WebSocket.readyState` of an open socket. */
const OPEN = 1;
const POLICY_VIOLATION_CLOSE = 1008;
const TRY_LATER_CLOSE = 1013;

/** What {@linkcode WebSockets} works with. */
export interface WebSocketOptions {
  readonly stream: ByteStream;
  /** What was received already. */
  readonly rest: Uint8Array;
  readonly headers: PlainHeaders;
  /** Of this page alone. */
  readonly held: HeldMemory;
  /** The socket is open; called once, before the first event. */
  opened(socket: PageSocket): PageEvents;
}

/** The socket of a page. */
export interface PageSocket extends BrowserSocket {
  /** From now on long messages are taken. */
  welcome(): void;
  /** Asks the page for a sign of life; one that gave none since the last time is cut. */
  ping(): void;
  /** Cuts the connection. */
  terminate(): void;
}

/** What happens on the socket of a page. */
export interface PageEvents {
  text(text: string): void;
  binary(): void;
  closed(): void;
}

/** The part of a WebSocket of `ws` that is used here. */
interface Socket {
  readonly bufferedAmount: number;
  readonly readyState: number;
  on(event: "message", listener: (data: Uint8Array, isBinary: boolean) => void): void;
  on(event: "pong" | "close" | "error", listener: () => void): void;
  send(text: string, sent: () => void): void;
  close(code: number, reason: string): void;
  ping(): void;
  terminate(): void;
}

/** The part of a `WebSocketServer` that is used here. */
interface SocketServer {
  handleUpgrade(
    request: { readonly method: string; readonly headers: PlainHeaders },
    stream: Duplex,
    rest: Uint8Array,
    opened: (socket: Socket) => void,
  ): void;
}

/** Makes WebSockets of connections. */
export class WebSockets {
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MESSAGE_CHARS_MAX * BYTES_PER_CHAR,
  }) as SocketServer;

  /** Does the handshake; resolves when the connection has ended. Never rejects. */
  accept({ stream, rest, headers, held, opened }: WebSocketOptions): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    let received = (_bytes: number): void => {};
    let wrote = received;
    const duplex = duplexOf(stream, {
      received: (bytes) => received(bytes),
      wrote: (bytes) => wrote(bytes),
      ended() {
        held.release();
        resolve();
      },
    });
    this.#server.handleUpgrade({ method: "GET", headers }, duplex, rest, (socket) => {
      const page = new Page(socket, held);
      received = (bytes) => page.received(bytes);
      wrote = (bytes) => page.wrote = bytes;
      page.listen(opened(page));
      page.received(rest.length);
    });
    return promise;
  }
}

/** See {@linkcode PageSocket}. */
class Page implements PageSocket {
  readonly #socket: Socket;
  readonly #held: HeldMemory;
  #isWelcome = false;
  #isAlive = true;
  /** Bytes of the present write that have left. */
  wrote = 0;
  /** Of the message that is arriving. */
  #pending = 0;
  #taken = 0;

  constructor(socket: Socket, held: HeldMemory) {
    this.#socket = socket;
    this.#held = held;
  }

  get bufferedAmount(): number {
    return Math.max(0, this.#socket.bufferedAmount - this.wrote);
  }

  get readyState(): number {
    return this.#socket.readyState;
  }

  listen(events: PageEvents): void {
    this.#socket.on("message", (data: Uint8Array, isBinary: boolean) => {
      this.#held.give(this.#taken);
      this.#pending = this.#taken = 0;
      if (isBinary) events.binary();
      else events.text(`${data}`);
    });
    this.#socket.on("pong", () => this.#isAlive = true);
    this.#socket.on("close", () => events.closed());
    this.#socket.on("error", () => {}); // `close` follows and says the same.
  }

  /** Bytes of frames have come. */
  received(bytes: number): void {
    this.#isAlive = true;
    this.#pending += bytes;
    if (!this.#isWelcome && this.#pending > HELLO_BYTES_MAX) {
      return this.close(POLICY_VIOLATION_CLOSE, "hello comes first");
    }
    if (this.#pending <= SMALL_BYTES) return;
    if (!this.#held.take(bytes)) {
      return this.close(TRY_LATER_CLOSE, "the memory of the engine has no room for the message");
    }
    this.#taken += bytes;
  }

  send(text: string): void {
    if (!this.#held.take(text.length)) {
      return this.close(TRY_LATER_CLOSE, "the memory of the engine has no room for what waits");
    }
    this.#socket.send(text, () => this.#held.give(text.length));
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  welcome(): void {
    this.#isWelcome = true;
  }

  ping(): void {
    if (!this.#isAlive) return this.terminate();
    this.#isAlive = false;
    if (this.#socket.readyState === OPEN) this.#socket.ping();
  }

  terminate(): void {
    this.#socket.terminate();
  }
}

/** What {@linkcode duplexOf} reports. */
interface StreamEvents {
  /** So many bytes came. */
  received(bytes: number): void;
  /** So many bytes of the present write have left; 0 after its end. */
  wrote(bytes: number): void;
  ended(): void;
}

/** A connection as a stream of Node. It is closed by the port, not here. */
function duplexOf(
  stream: ByteStream,
  { received, wrote, ended }: StreamEvents,
): Duplex {
  const bytes = new Uint8Array(READ_BYTES);
  const duplex: Duplex = new Duplex({
    allowHalfOpen: false,
    read() {
      stream.read(bytes).then((count) => {
        if (duplex.destroyed) return;
        if (count !== null) received(count);
        duplex.push(count === null ? null : bytes.slice(0, count));
      }, (error) => duplex.destroy(error));
    },
    write(chunk: Uint8Array, _encoding, done) {
      writeAll(stream, chunk, wrote).then(() => done(), done);
    },
    final(done) {
      stream.closeWrite().then(() => done(), done);
    },
    destroy(error, done) {
      ended();
      done(error);
    },
  });
  return duplex;
}

/** Reports what has left on the way, so that a large message shows progress. */
async function writeAll(
  stream: ByteStream,
  bytes: Uint8Array,
  wrote: (bytes: number) => void,
): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += await stream.write(bytes.subarray(at, at + WRITE_BYTES));
    wrote(at);
  }
  wrote(0);
}
