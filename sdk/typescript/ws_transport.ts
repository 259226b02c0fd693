/**
 * Connects with the npm package `ws`, in Deno and Node.
 *
 * Deno's `WebSocket` does not disable Nagle's algorithm, which delays messages of 1 to 64 KiB by
 * 40 ms; `ws` does, and it sends headers and pings. The package is loaded with the first
 * connection, so that browsers never load it.
 *
 * The messages of one tick of the event loop are sent in one write: as one frame if the engine
 * selects the subprotocol `engine.batch.v1`, otherwise as frames that the corked socket collects.
 *
 * @module
 */
import { atEndOfTick } from "./platform.ts";
import { BATCH_CHARS_MAX, OPEN_TIMEOUT_MS, PING_INTERVAL_MS, SILENCE_MS } from "./wire/limits.ts";
import { BATCH_PROTOCOL } from "./wire/protocol.ts";
import type { Dial, DialOptions, Transport, TransportEvents } from "./wire/transport.ts";

/** The parts of a `ws` socket that are used; its types would be a dependency of users. */
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

/** The response to an upgrade, and the stream below the WebSocket. */
interface UpgradeResponse {
  readonly headers: Record<string, string | undefined>;
  readonly socket: { cork(): void; uncork(): void };
}

/** The constructor of sockets, which connects at once. */
type SocketClass = new (
  url: string,
  protocols: readonly string[],
  options: Record<string, unknown>,
) => Socket;

/**
 * Largest message that is received, four times what an engine sends by default: a longer one closes
 * the connection. Beyond 512 MiB the platform cannot hold it as a string.
 */
const INBOUND_BYTES_MAX = 256 * 1024 * 1024;
/** Header that offers and selects subprotocols. */
const PROTOCOL_HEADER = "sec-websocket-protocol";

/** Time limits of a connection; tests pass shorter ones. */
export interface WsTimes {
  /** How long the upgrade may take. */
  readonly openMs: number;
  /** Interval of pings. */
  readonly pingMs: number;
  /** The connection is closed when nothing arrives for this long. */
  readonly silenceMs: number;
  /** How long the peer may take to respond to a close frame. */
  readonly closeMs: number;
}

const TIMES: WsTimes = {
  openMs: OPEN_TIMEOUT_MS,
  pingMs: PING_INTERVAL_MS,
  silenceMs: SILENCE_MS,
  closeMs: 1_000,
};

/** Connects with `ws`. */
export const wsDial: Dial = makeWsDial(TIMES);

/** {@linkcode wsDial} with other time limits. */
export function makeWsDial(times: WsTimes): Dial {
  return (url, events, options) => new WsTransport(url, events, options, times);
}

class WsTransport implements Transport {
  readonly #events: TransportEvents;
  readonly #times: WsTimes;
  readonly #batch = new Batch((frame) => this.#socket?.send(frame));
  readonly #endOfTick = (): void => this.#flush();
  #socket: Socket | undefined;
  #stream: UpgradeResponse["socket"] | undefined;
  #isBatching = false;
  #isCorked = false;
  /** Whether a flush is scheduled for the end of the tick. */
  #isScheduled = false;
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
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      atEndOfTick(this.#endOfTick);
    }
    if (this.#isBatching && typeof message === "string") {
      this.#batch.add(message);
      return;
    }
    this.#batch.flush(); // Keeps the order of messages.
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
    if (!this.#socket) return; // Not created yet: #connect() checks the flag.
    this.#flush();
    this.#closeTimer = setTimeout(() => this.#socket?.terminate(), this.#times.closeMs);
    this.#socket.close(code, reason);
  }

  async #connect(url: string, { headers = {}, batch = false }: DialOptions): Promise<void> {
    const module = await import("ws");
    if (this.#isClosing) return this.#end(1006, "closed before it was open");
    const WebSocket = module.default as unknown as SocketClass;
    const options = { headers, perMessageDeflate: false, maxPayload: INBOUND_BYTES_MAX };
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
    socket.on("error", (error) => this.#failed(error));
    socket.on("close", (code, reason) => {
      this.#end(code, new TextDecoder().decode(reason) || this.#problem);
    });
  }

  #upgraded({ headers, socket }: UpgradeResponse, isOffered: boolean): void {
    this.#stream = socket;
    if (!isOffered) return;
    this.#isBatching = headers[PROTOCOL_HEADER] === BATCH_PROTOCOL;
    // RFC 6455 permits a server to select no subprotocol; `ws` would close such a connection.
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
    const text = data.toString(); // A Buffer, whose toString() decodes UTF-8.
    if (this.#isBatching) splitBatch(text, (message) => this.#events.text(message));
    else this.#events.text(text);
  }

  #flush(): void {
    this.#isScheduled = false;
    this.#batch.flush();
    if (this.#isCorked) this.#stream?.uncork();
    this.#isCorked = false;
  }

  /** Counts pings, not time: a process that was suspended must not close its connection. */
  #heartbeat(): void {
    this.#silentMs += this.#times.pingMs;
    if (this.#silentMs < this.#times.silenceMs) {
      this.#socket?.ping();
      return;
    }
    this.#problem = `nothing received for ${this.#times.silenceMs} ms`;
    this.#socket?.terminate();
  }

  /** A frame that breaks a rule: `ws` has sent a close frame, and waits 30 s for the peer's. */
  #failed(error: Error): void {
    this.#problem ||= describe(error);
    this.#closeTimer ??= setTimeout(() => this.#socket?.terminate(), this.#times.closeMs);
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

/** The cause, such as `HTTP 401` or `connect ECONNREFUSED 127.0.0.1:49134`. */
function describe(error: unknown): string {
  const { message = String(error), errors } = error as { message?: string; errors?: Error[] };
  const text = message || errors?.[0]?.message || "no connection";
  return text.replace(/^Unexpected server response: (\d+)$/, "HTTP $1");
}

/**
 * Joins messages into frames (`engine.batch.v1`), separated by newlines. A message contains none:
 * the SDK writes them with `JSON.stringify`, which escapes newlines.
 */
export class Batch {
  readonly #write: (frame: string) => void;
  #texts: string[] = [];
  #chars = 0;

  /** `write` receives each frame. */
  constructor(write: (frame: string) => void) {
    this.#write = write;
  }

  /** Characters that were added and not written. */
  get chars(): number {
    return this.#chars;
  }

  /** Adds a message; if the frame would become too long, writes what was added before. */
  add(text: string): void {
    const chars = text.length + 1;
    if (this.#chars + chars > BATCH_CHARS_MAX) this.flush();
    this.#texts.push(text);
    this.#chars += chars;
  }

  /** Writes the messages as one frame. */
  flush(): void {
    const texts = this.#texts;
    if (texts.length === 0) return;
    this.#texts = [];
    this.#chars = 0;
    this.#write(texts.length === 1 ? texts[0]! : texts.join("\n"));
  }
}

/** Passes each message of a frame to `take`; skips empty lines. */
export function splitBatch(frame: string, take: (message: string) => void): void {
  let start = 0;
  let end = frame.indexOf("\n");
  for (; end !== -1; end = frame.indexOf("\n", start)) {
    if (end > start) take(frame.slice(start, end));
    start = end + 1;
  }
  if (start < frame.length) take(start === 0 ? frame : frame.slice(start));
}
