/**
 * Opens the global `WebSocket` of a browser with a time limit, and says once why it ended.
 *
 * It sends no headers and no pings, cannot stop reading and cannot end at once; in Deno and Node
 * the package `ws` is used instead.
 *
 * @module
 */
import { OPEN_TIMEOUT_MS } from "./wire/limits.ts";

/** The events of a {@linkcode BrowserSocket}. `closed` comes once and last. */
export interface BrowserSocketEvents {
  opened(): void;
  text(data: string): void;
  binary(data: Uint8Array): void;
  /** The WebSocket close code, 1006 when the connection failed, and a reason. */
  closed(code: number, reason: string): void;
}

/** A socket that reports its events until it is over. */
export class BrowserSocket {
  readonly #socket: WebSocket;
  readonly #events: BrowserSocketEvents;
  readonly #timer: ReturnType<typeof setTimeout>;
  // Browsers do not report why a connection failed; Deno does.
  #problem = "no connection";
  #isOver = false;

  /** `protocols` are offered; a browser fails the connection if the server selects none of them. */
  constructor(url: string, events: BrowserSocketEvents, protocols: readonly string[] = []) {
    const socket = this.#socket = new WebSocket(url, [...protocols]);
    this.#events = events;
    this.#timer = setTimeout(
      () => this.end(`no answer within ${OPEN_TIMEOUT_MS} ms`),
      OPEN_TIMEOUT_MS,
    );
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      clearTimeout(this.#timer);
      this.#problem = "";
      if (!this.#isOver) events.opened();
    };
    socket.onmessage = ({ data }) => {
      if (this.#isOver) return;
      if (typeof data === "string") events.text(data);
      else events.binary(new Uint8Array(data as ArrayBuffer));
    };
    socket.onerror = (event) => {
      this.#problem = (event as { message?: string }).message || this.#problem;
    };
    socket.onclose = ({ code, reason }) => this.#closed(code || 1006, reason || this.#problem);
  }

  /** Bytes that are not sent yet. */
  get queuedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  /** Whether messages can be sent. */
  get isOpen(): boolean {
    return !this.#isOver && this.#socket.readyState === WebSocket.OPEN;
  }

  /** Sends a message; one that is not open does nothing. */
  send(message: string | Uint8Array): void {
    if (this.isOpen) this.#socket.send(message as string | Uint8Array<ArrayBuffer>);
  }

  /** Closes when all is sent; `closed` follows. */
  close(code: number, reason: string): void {
    if (!this.#isOver) this.#socket.close(code, reason);
  }

  /** Closes, and is over at once. */
  end(reason: string): void {
    if (this.#isOver) return;
    this.#socket.close();
    this.#closed(1006, reason);
  }

  #closed(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#events.closed(code, reason);
  }
}
