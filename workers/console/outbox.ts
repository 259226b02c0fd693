/**
 * What is sent to one page, with back-pressure.
 *
 * Answers to requests are always sent. Pushed messages are dropped while the page is behind, that
 * is while too many bytes wait in its socket. When it has caught up it learns how many firings it
 * missed, and watched queries send their whole state again. A page is cut when it reads nothing for
 * long, not for the size of what waits, which takes from the memory of the process.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { ConsoleMessage } from "./wire.ts";

/** Unsent bytes above which pushed messages are dropped. */
export const BEHIND_BYTES = 1024 * 1024;
/** How often a page that is behind is checked. */
export const BEHIND_CHECK_MS = 50;
/** A page that has read nothing for this time is disconnected. */
export const STALLED_MS = 30_000;

/** `WebSocket.readyState` of an open socket. */
const OPEN = 1;

/** The part of a WebSocket that is used here. */
export interface BrowserSocket {
  /** Bytes passed to {@linkcode send} that the network has not taken yet. */
  readonly bufferedAmount: number;
  readonly readyState: number;
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** See the module. */
export class Outbox {
  readonly #socket: BrowserSocket;
  readonly #clock: Clock;
  readonly #disconnect: (reason: string) => void;
  /** Dropped messages of each watch, by id. */
  readonly #missed = new Map<number, number>();
  /** Watched queries that send their whole state when there is room again, by id. */
  readonly #stale = new Map<number, () => void>();
  #cancelCheck: (() => void) | undefined;
  #lastBytes = 0;
  #lastProgressMs = 0;

  /** `disconnect` is called with the reason when the page is too slow. */
  constructor(socket: BrowserSocket, clock: Clock, disconnect: (reason: string) => void) {
    this.#socket = socket;
    this.#clock = clock;
    this.#disconnect = disconnect;
  }

  /** Whether pushed messages are dropped now. */
  get isBehind(): boolean {
    return this.#socket.bufferedAmount > BEHIND_BYTES;
  }

  /** Sends a message that must not be dropped. Never throws. */
  send(message: ConsoleMessage): void {
    this.#sendText(messageText(message));
  }

  /** Sends a message of a watch, or counts it as missed. */
  push(message: ConsoleMessage & { readonly id: number }): void {
    if (!this.isBehind) return this.send(message);
    this.#missed.set(message.id, (this.#missed.get(message.id) ?? 0) + 1);
    this.#startChecks();
  }

  /** Sends a change of a watched query, or calls `sendAll` when there is room again. */
  pushState(id: number, text: () => string, sendAll: () => void): void {
    if (!this.isBehind && !this.#stale.has(id)) return this.#sendText(text());
    this.#stale.set(id, sendAll);
    this.#startChecks();
  }

  /** Drops what waits for a request that has ended. */
  forget(id: number): void {
    this.#missed.delete(id);
    this.#stale.delete(id);
  }

  /** Sends nothing any more. */
  stop(): void {
    this.#cancelCheck?.();
    this.#missed.clear();
    this.#stale.clear();
  }

  #sendText(text: string): void {
    if (this.#socket.readyState !== OPEN) return;
    this.#socket.send(text);
    if (this.isBehind) this.#startChecks();
  }

  #startChecks(): void {
    if (this.#cancelCheck) return;
    this.#lastBytes = this.#socket.bufferedAmount;
    this.#lastProgressMs = this.#clock.now();
    this.#checkLater();
  }

  #checkLater(): void {
    this.#cancelCheck = this.#clock.after(BEHIND_CHECK_MS, () => {
      this.#cancelCheck = undefined;
      const bytes = this.#socket.bufferedAmount;
      const now = this.#clock.now();
      if (bytes !== this.#lastBytes) this.#lastProgressMs = now;
      this.#lastBytes = bytes;
      if (now - this.#lastProgressMs > STALLED_MS) {
        return this.#disconnect("it has read nothing for too long");
      }
      this.#catchUp();
      if (this.isBehind) this.#checkLater();
    });
  }

  #catchUp(): void {
    for (const [id, count] of this.#missed) {
      if (this.isBehind) return;
      this.#missed.delete(id);
      this.send({ type: "missed", id, count });
    }
    for (const [id, sendAll] of this.#stale) {
      if (this.isBehind) return;
      this.#stale.delete(id);
      sendAll();
    }
  }
}

/** The text of a message; values that are nested too deep for JSON become an error or a miss. */
function messageText(message: ConsoleMessage): string {
  try {
    return JSON.stringify(message);
  } catch (thrown) {
    if (!("id" in message)) throw thrown; // Those messages hold no values of others.
    const { id, type } = message;
    if (type === "fired" || type === "progress") {
      return JSON.stringify({ type: "missed", id, count: 1 });
    }
    const error = { code: "too_deep", message: "What came is nested too deep to be shown" };
    return JSON.stringify({ type: "error", id, error, duration_ms: 0, trace_id: null });
  }
}
