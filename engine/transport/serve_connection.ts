/**
 * One WebSocket line on Deno's own WebSocket, with a queue that cannot grow without bound.
 *
 * Deno takes whatever it is given and cannot take it back: what a peer does not read stays in
 * memory until the socket dies, and a socket whose peer does not read never dies by itself. So only
 * {@linkcode SEND_AHEAD_BYTES} are handed to Deno ahead of the wire; the rest waits here, where it
 * can be dropped when the peer turns out to have stopped reading.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import {
  DRAINED_BYTES,
  LINE_CLOSE_MS,
  SEND_AHEAD_BYTES,
  SEND_RETRY_MS,
} from "../../sdk/typescript/wire/limits.ts";
import type { Connection, ConnectionEvents } from "../ports/connection.ts";
import { shortReason } from "./close_reason.ts";
import { TextJoiner } from "./text_joiner.ts";

/** What Deno says of a peer that has not answered its ping. */
const DENO_GAVE_UP = "No response from ping frame.";

/** What a line is told when it is made. */
export interface ServeConnectionOptions {
  readonly maxMessageBytes: number;
  readonly maxQueuedBytes: number;
  /** A peer that takes nothing of what is due for so long is cut. */
  readonly silenceMs: number;
  /** The line was ended from this side because the peer broke a bound. */
  cut(reason: string): void;
  /** The peer has been told, or will never know: no resource is left. */
  gone(): void;
}

/** A line that is open. Its owner calls `start` once and `look` every now and then. */
export class ServeConnection implements Connection {
  readonly id: string = crypto.randomUUID();
  readonly isBatching = false;
  readonly #socket: WebSocket;
  readonly #options: ServeConnectionOptions;
  #events: ConnectionEvents | undefined;
  #state: "open" | "closing" | "closed" = "open";
  /** What the socket was told to end with. */
  #farewell: { code: number; reason: string } | undefined;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #failure = "";

  /** Waits for its turn to be handed to Deno. */
  #waiting: (string | Uint8Array)[] = [];
  /** Where in {@linkcode #waiting} the next one stands. */
  #next = 0;
  #waitingBytes = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  /** Never less than what Deno holds, but for text beyond ASCII. */
  #aheadAtMost = 0;

  #sends = 0;
  /** What {@linkcode look} saw last, and since when it has not moved. */
  #lastLook = { sends: 0, buffered: 0, since: 0 };

  /** Takes a socket that is open. */
  constructor(socket: WebSocket, options: ServeConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
  }

  /** Hands everything from now on to `events`. */
  start(events: ConnectionEvents): void {
    this.#events = events;
    const socket = this.#socket;
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onerror = (event) => this.#failure = (event as ErrorEvent).message;
    socket.onclose = ({ code, reason }) => this.#socketClosed(code, reason);
  }

  get queuedBytes(): number {
    return this.#state === "open" ? this.#socket.bufferedAmount + this.#waitingBytes : 0;
  }

  send(text: string): void {
    if (this.#state === "open") this.#send(text);
  }

  forward(
    head: Uint8Array,
    headBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (this.#state === "open") this.#send(joiner.join(head, headBytes, memory, start, end));
  }

  sendBinary(bytes: Uint8Array): void {
    if (this.#state !== "open") return;
    this.#send(this.#mayHandOver() ? bytes : bytes.slice());
  }

  pause(): boolean {
    return false; // Deno reads ahead whatever is done with the messages.
  }

  resume(): void {}

  close(code: number, reason: string): void {
    if (this.#state !== "open") return;
    this.#farewell = { code, reason };
    this.#state = "closing";
    this.#drop();
    this.#socket.close(code, shortReason(reason));
    // A peer that does not answer is gone for the engine all the same.
    this.#closeTimer = setTimeout(() => this.#report(code, reason), LINE_CLOSE_MS);
  }

  /** Ends a line whose peer does not take what is sent; `now` is in milliseconds. */
  look(now: number): void {
    if (this.#state !== "open") return;
    const buffered = this.#socket.bufferedAmount;
    const last = this.#lastLook;
    const moved = buffered === 0 || buffered !== last.buffered || this.#sends !== last.sends;
    if (moved) this.#lastLook = { sends: this.#sends, buffered, since: now };
    else if (now - last.since >= this.#options.silenceMs) this.#cut("has read nothing", buffered);
  }

  #receive(data: string | ArrayBuffer): void {
    if (this.#state !== "open") return;
    if (isLarger(data, this.#options.maxMessageBytes)) {
      const reason = `message larger than ${this.#options.maxMessageBytes} bytes`;
      this.#options.cut(reason);
      this.close(1009, reason);
    } else if (typeof data === "string") {
      this.#events!.text(data);
    } else {
      this.#events!.binary(new Uint8Array(data));
    }
  }

  #send(message: string | Uint8Array): void {
    if (this.#mayHandOver()) {
      this.#handOver(message);
      return;
    }
    this.#waiting.push(message);
    this.#waitingBytes += bytesOf(message);
    const queued = this.queuedBytes;
    if (queued > this.#options.maxQueuedBytes) this.#cut("has stopped reading", queued);
    else this.#retryTimer ??= setTimeout(() => this.#retry(), SEND_RETRY_MS);
  }

  /** Asks Deno only when by our own count there may be too much. */
  #mayHandOver(): boolean {
    if (this.#retryTimer !== undefined) return false;
    if (this.#aheadAtMost < SEND_AHEAD_BYTES) return true;
    this.#aheadAtMost = this.#socket.bufferedAmount;
    return this.#aheadAtMost < SEND_AHEAD_BYTES;
  }

  #handOver(message: string | Uint8Array): void {
    this.#sends++;
    this.#aheadAtMost += message.length;
    this.#socket.send(message as string);
  }

  #retry(): void {
    this.#retryTimer = undefined;
    let buffered = this.#socket.bufferedAmount;
    while (this.#next < this.#waiting.length && buffered < SEND_AHEAD_BYTES) {
      const message = this.#waiting[this.#next++]!;
      const bytes = bytesOf(message);
      this.#waitingBytes -= bytes;
      buffered += bytes;
      this.#handOver(message);
    }
    if (this.#next * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    if (this.#waiting.length === 0 && buffered <= DRAINED_BYTES) this.#events!.drained();
    else this.#retryTimer = setTimeout(() => this.#retry(), SEND_RETRY_MS);
  }

  #cut(what: string, bytes: number): void {
    const reason = `peer ${what}: ${bytes} bytes unsent`;
    this.#options.cut(reason);
    this.close(1008, reason);
    // The farewell will never be read: whoever waits for this peer learns it now.
    queueMicrotask(() => this.#report(1008, reason));
  }

  #socketClosed(code: number, reason: string): void {
    if (code === 1001 && reason === DENO_GAVE_UP) {
      const silent = `peer silent for ${this.#options.silenceMs} ms`;
      if (this.#state === "open") this.#options.cut(silent);
      this.#report(1006, silent);
    } else if (this.#farewell) {
      this.#report(this.#farewell.code, this.#farewell.reason);
    } else if (code === 0) { // So Deno says of a line that broke off or broke the protocol.
      this.#report(1006, this.#failure || "connection lost");
    } else {
      this.#report(code, reason);
    }
    this.#options.gone();
  }

  #report(code: number, reason: string): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    clearTimeout(this.#closeTimer);
    this.#drop();
    this.#events?.closed(code, reason);
  }

  #drop(): void {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
    this.#waiting = [];
    this.#next = 0;
    this.#waitingBytes = 0;
  }
}

const joiner = new TextJoiner();

function bytesOf(message: string | Uint8Array): number {
  return typeof message === "string" ? Buffer.byteLength(message) : message.byteLength;
}

/** Counts only where the text could be too large: no character needs more than three bytes. */
function isLarger(message: string | ArrayBuffer, bound: number): boolean {
  if (typeof message !== "string") return message.byteLength > bound;
  return message.length * 3 > bound && Buffer.byteLength(message) > bound;
}
