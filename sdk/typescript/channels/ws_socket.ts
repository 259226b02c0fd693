/**
 * The WebSocket of one end of a channel with the npm package `ws`, in Deno and Node; it disables
 * Nagle's algorithm, and it can stop reading.
 *
 * @module
 */
import { isLoopback } from "../wire/loopback.ts";
import {
  type ChannelSocket,
  type ChannelSocketEvents,
  INBOUND_BYTES_MAX,
  shortReason,
  SOCKET_TIMES,
  type SocketTimes,
  UNSENT_BYTES_MAX,
} from "./socket.ts";

/** The parts of a `ws` socket that are used; its types would be a dependency of users. */
interface Socket {
  readonly bufferedAmount: number;
  on(event: "open" | "ping" | "pong", listener: () => void): void;
  on(event: "message", listener: (data: Uint8Array, isBinary: boolean) => void): void;
  on(event: "close", listener: (code: number, reason: Uint8Array) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  send(data: string | Uint8Array, done?: (error?: Error) => void): void;
  ping(): void;
  pause(): void;
  resume(): void;
  close(code?: number, reason?: string): void;
  terminate(): void;
}

type SocketClass = new (
  url: string,
  protocols: readonly string[],
  options: Record<string, unknown>,
) => Socket;

/** A slow reader may take any time; longest delay of a timer. */
const CLOSE_TIMEOUT_MS = 2_147_483_647;

/** Opens an end with `ws`. */
export function openWsSocket(
  url: string,
  events: ChannelSocketEvents,
  times: SocketTimes = SOCKET_TIMES,
): ChannelSocket {
  return new WsSocket(url, events, times);
}

class WsSocket implements ChannelSocket {
  readonly #events: ChannelSocketEvents;
  readonly #times: SocketTimes;
  #socket: Socket | undefined;
  #isPaused = false;
  #isOver = false;
  #problem = "";
  #silentMs = 0;
  #openTimer: ReturnType<typeof setTimeout> | undefined;
  #pingTimer: ReturnType<typeof setInterval> | undefined;

  constructor(url: string, events: ChannelSocketEvents, times: SocketTimes) {
    this.#events = events;
    this.#times = times;
    this.#connect(url).catch((error) => this.#end(1006, String(error)));
  }

  send(data: string | Uint8Array): Promise<void> | undefined {
    const socket = this.#socket;
    if (!socket || this.#isOver) return undefined;
    if (socket.bufferedAmount + data.length <= UNSENT_BYTES_MAX) {
      socket.send(data);
      return undefined;
    }
    // Also resolved when the connection ends; `closed` says so.
    return new Promise((resolve) => socket.send(data, () => resolve()));
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#silentMs = 0;
    this.#socket?.resume();
  }

  finish(code: number, reason: string): void {
    if (this.#isOver) return;
    this.resume(); // To read the engine's close frame.
    this.#socket?.close(code, shortReason(reason));
  }

  terminate(): void {
    this.#socket?.terminate();
    this.#end(1006, "ended");
  }

  async #connect(url: string): Promise<void> {
    const module = await import("ws");
    if (this.#isOver) return;
    const WebSocket = module.default as unknown as SocketClass;
    const socket = new WebSocket(url, [], {
      perMessageDeflate: false,
      maxPayload: INBOUND_BYTES_MAX,
      closeTimeout: CLOSE_TIMEOUT_MS,
      ...isLoopback(new URL(url).hostname) && { generateMask: withoutMask },
    });
    this.#socket = socket;
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

  #opened(): void {
    clearTimeout(this.#openTimer);
    if (this.#isOver) return;
    this.#pingTimer = setInterval(() => this.#heartbeat(), this.#times.pingMs);
    this.#events.opened();
  }

  #message(data: Uint8Array, isBinary: boolean): void {
    this.#silentMs = 0;
    if (this.#isOver) return;
    if (!isBinary) return this.#events.message(data.toString()); // A Buffer: this decodes UTF-8.
    // Without the methods of a Buffer, some of which differ from those of its class.
    this.#events.message(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }

  /** Pings also while it does not read, so that the engine knows that this side lives. */
  #heartbeat(): void {
    if (this.#isPaused) this.#silentMs = 0;
    else this.#silentMs += this.#times.pingMs;
    if (this.#silentMs < this.#times.silenceMs) return this.#socket?.ping();
    this.#problem = `nothing received for ${this.#times.silenceMs} ms`;
    this.#socket?.terminate();
  }

  #end(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#openTimer);
    clearInterval(this.#pingTimer);
    this.#events.closed(code, reason);
  }
}

/** A mask of zero, with which `ws` copies nothing: see `client_frames.ts`. */
function withoutMask(mask: Uint8Array): void {
  mask.fill(0);
}

/** The cause, such as `HTTP 404` or `connect ECONNREFUSED 127.0.0.1:49134`. */
function describe(error: unknown): string {
  const { message = String(error), errors } = error as { message?: string; errors?: Error[] };
  const text = message || errors?.[0]?.message || "no connection";
  return text.replace(/^Unexpected server response: (\d+)$/, "HTTP $1");
}
