/**
 * Dial on the npm package `ws`, for Deno and Node.
 *
 * Deno's own client leaves Nagle's algorithm on, which holds every message of 1 to 64 KiB back for
 * 40 ms; `ws` switches it off, and sends headers and pings as well. The package is loaded with the
 * first line, so that a browser which loads this file never looks for it.
 *
 * What is sent within one turn leaves in one write: as one frame where the server takes batches,
 * else as frames that the socket holds back until the turn ends.
 *
 * @module
 */
import { atEndOfTurn } from "./platform.ts";
import { BATCH_CHARS_MAX, OPEN_TIMEOUT_MS, PING_INTERVAL_MS, SILENCE_MS } from "./wire/limits.ts";
import { BATCH_PROTOCOL } from "./wire/protocol.ts";
import type { Dial, DialOptions, Transport, TransportEvents } from "./wire/transport.ts";

/** The parts of a `ws` socket that are used; its own types would be a dependency of the SDK's. */
interface Socket {
  readonly bufferedAmount: number;
  on(event: "upgrade", listener: (response: UpgradeResponse) => void): void;
  on(event: "open" | "ping" | "pong", listener: () => void): void;
  on(event: "message", listener: (data: Uint8Array, isBinary: boolean) => void): void;
  on(event: "close", listener: (code: number, reason: Uint8Array) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  send(data: string | Uint8Array): void;
  ping(): void;
  close(code?: number, reason?: string): void;
  terminate(): void;
}

/** The answer to an upgrade, and the stream below the WebSocket. */
interface UpgradeResponse {
  readonly headers: Record<string, string | undefined>;
  readonly socket: { cork(): void; uncork(): void };
}

/** Makes a socket; starts to connect at once. */
type SocketClass = new (
  url: string,
  protocols: readonly string[],
  options: Record<string, unknown>,
) => Socket;

/** Where an upgrade offers and selects subprotocols. */
const PROTOCOL_HEADER = "sec-websocket-protocol";

/** The times of a line; other than the default ones in tests only. */
export interface WsTimes {
  /** The upgrade has to be answered by then. */
  readonly openMs: number;
  /** How often a ping is sent. */
  readonly pingMs: number;
  /** After so long without anything from the peer the line is over. */
  readonly silenceMs: number;
  /** How long the peer may take to answer a close. */
  readonly closeMs: number;
}

const TIMES: WsTimes = {
  openMs: OPEN_TIMEOUT_MS,
  pingMs: PING_INTERVAL_MS,
  silenceMs: SILENCE_MS,
  closeMs: 1_000,
};

/** Opens lines with `ws`. */
export const wsDial: Dial = makeWsDial(TIMES);

/** As {@linkcode wsDial}, with other times. */
export function makeWsDial(times: WsTimes): Dial {
  return (url, events, options) => new WsTransport(url, events, options, times);
}

/** One line. */
class WsTransport implements Transport {
  readonly #events: TransportEvents;
  readonly #times: WsTimes;
  readonly #batch = new Batch((frame) => this.#socket?.send(frame));
  readonly #turnEnds = (): void => this.#flush();
  #socket: Socket | undefined;
  #stream: UpgradeResponse["socket"] | undefined;
  #isBatching = false;
  #isCorked = false;
  /** The end of the turn is waited for. */
  #isDue = false;
  #isOpen = false;
  #isOver = false;
  #isClosing = false;
  #problem = "";
  #silentMs = 0;
  #openTimer: ReturnType<typeof setTimeout> | undefined;
  #pingTimer: ReturnType<typeof setInterval> | undefined;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(url: string, events: TransportEvents, options: DialOptions, times: WsTimes) {
    this.#events = events;
    this.#times = times;
    this.#connect(url, options).catch((error) => this.#end(1006, describe(error)));
  }

  send(message: string | Uint8Array): void {
    if (!this.#isOpen) return;
    if (!this.#isDue) {
      this.#isDue = true;
      atEndOfTurn(this.#turnEnds);
    }
    if (this.#isBatching && typeof message === "string") {
      this.#batch.add(message);
      return;
    }
    this.#batch.flush(); // What was sent before it is to arrive before it.
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#stream?.cork();
    }
    this.#socket?.send(message);
  }

  get queuedBytes(): number {
    return (this.#socket?.bufferedAmount ?? 0) + this.#batch.chars;
  }

  close(code = 1000, reason = ""): void {
    if (this.#isOver || this.#isClosing) return;
    this.#isClosing = true;
    this.#isOpen = false;
    if (!this.#socket) return; // Not made yet: #connect() sees the mark.
    this.#flush();
    this.#closeTimer = setTimeout(() => this.#socket?.terminate(), this.#times.closeMs);
    this.#socket.close(code, reason);
  }

  async #connect(url: string, { headers = {}, batch = false }: DialOptions): Promise<void> {
    const module = await import("ws");
    if (this.#isClosing) return this.#end(1006, "closed before it was open");
    const WebSocket = module.default as unknown as SocketClass;
    // The engine bounds what it sends; a bound here could only be too small.
    const options = { headers, perMessageDeflate: false, maxPayload: 0 };
    const socket = new WebSocket(url, batch ? [BATCH_PROTOCOL] : [], options);
    this.#socket = socket;
    socket.on("upgrade", (response) => this.#upgraded(response, batch));
    this.#openTimer = setTimeout(() => {
      this.#problem = `no answer within ${this.#times.openMs} ms`;
      socket.terminate();
    }, this.#times.openMs);
    socket.on("open", () => this.#opened());
    socket.on("message", (data, isBinary) => this.#message(data, isBinary));
    socket.on("ping", () => this.#silentMs = 0);
    socket.on("pong", () => this.#silentMs = 0);
    socket.on("error", (error) => this.#problem ||= describe(error));
    socket.on("close", (code, reason) => {
      this.#end(code, new TextDecoder().decode(reason) || this.#problem);
    });
  }

  #upgraded({ headers, socket }: UpgradeResponse, isOffered: boolean): void {
    this.#stream = socket;
    if (!isOffered) return;
    this.#isBatching = headers[PROTOCOL_HEADER] === BATCH_PROTOCOL;
    // RFC 6455 lets a server select nothing of what it is offered; `ws` gives such a line up.
    headers[PROTOCOL_HEADER] ??= BATCH_PROTOCOL;
  }

  #opened(): void {
    clearTimeout(this.#openTimer);
    if (this.#isClosing) return;
    this.#isOpen = true;
    this.#pingTimer = setInterval(() => this.#heartbeat(), this.#times.pingMs);
    this.#events.opened();
  }

  #message(data: Uint8Array, isBinary: boolean): void {
    this.#silentMs = 0;
    if (isBinary) return this.#events.binary(data);
    const text = data.toString(); // A Buffer: its toString() decodes UTF-8.
    if (this.#isBatching) splitBatch(text, (message) => this.#events.text(message));
    else this.#events.text(text);
  }

  #flush(): void {
    this.#isDue = false;
    this.#batch.flush();
    if (this.#isCorked) this.#stream?.uncork();
    this.#isCorked = false;
  }

  /** Counts in pings, so that a process that slept does not take itself for a dead peer. */
  #heartbeat(): void {
    this.#silentMs += this.#times.pingMs;
    if (this.#silentMs < this.#times.silenceMs) {
      this.#socket?.ping();
      return;
    }
    this.#problem = `nothing heard for ${this.#times.silenceMs} ms`;
    this.#socket?.terminate();
  }

  #end(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#isOpen = false;
    clearTimeout(this.#openTimer);
    clearTimeout(this.#closeTimer);
    clearInterval(this.#pingTimer);
    this.#events.closed(code, reason);
  }
}

/** What went wrong, in few words: `HTTP 401`, `connect ECONNREFUSED 127.0.0.1:49134`. */
function describe(error: unknown): string {
  const { message = String(error), errors } = error as { message?: string; errors?: Error[] };
  const text = message || errors?.[0]?.message || "no connection";
  return text.replace(/^Unexpected server response: (\d+)$/, "HTTP $1");
}

/** Messages that are about to leave together, in order. */
export class Batch {
  readonly #write: (frame: string) => void;
  #texts: string[] = [];
  #chars = 0;

  /** Empty; `write` gets whole frames. */
  constructor(write: (frame: string) => void) {
    this.#write = write;
  }

  /** Characters that have not left. */
  get chars(): number {
    return this.#chars;
  }

  /** Puts a message at the end; what has no room in the same frame leaves first. */
  add(text: string): void {
    const chars = text.length + 1;
    if (this.#chars + chars > BATCH_CHARS_MAX) this.flush();
    this.#texts.push(text);
    this.#chars += chars;
  }

  /** Sends what there is. */
  flush(): void {
    const texts = this.#texts;
    if (texts.length === 0) return;
    this.#texts = [];
    this.#chars = 0;
    this.#write(texts.length === 1 ? texts[0]! : texts.join("\n"));
  }
}

/** Hands over each message of a frame; empty lines are none. */
export function splitBatch(frame: string, take: (message: string) => void): void {
  let start = 0;
  let end = frame.indexOf("\n");
  for (; end !== -1; end = frame.indexOf("\n", start)) {
    if (end > start) take(frame.slice(start, end));
    start = end + 1;
  }
  if (start < frame.length) take(start === 0 ? frame : frame.slice(start));
}
