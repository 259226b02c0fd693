/**
 * What goes to one browser. Answers always go; what is pushed is left out while the browser is
 * behind, and made good when it has read on.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import {
  CONSOLE_AHEAD_BYTES,
  CONSOLE_BEHIND_LOOK_MS,
  CONSOLE_STALLED_MS,
  CONSOLE_UNSENT_BYTES_MAX,
} from "./limits.ts";
import type { ConsoleMessage } from "./wire.ts";

/** What of a WebSocket is needed. */
export interface BrowserSocket {
  /** Bytes that were given to {@linkcode send} and not taken by the network yet. */
  readonly bufferedAmount: number;
  /** 1 while it is open. */
  readonly readyState: number;
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** See the top of this file. */
export class Outbox {
  readonly #socket: BrowserSocket;
  readonly #clock: Clock;
  readonly #cut: (reason: string) => void;
  /** How many messages of each watch were left out. */
  readonly #missed = new Map<number, number>();
  /** Watches that are to say all they know when there is room again. */
  readonly #stale = new Map<number, () => void>();
  #cancelLook: (() => void) | undefined;
  #lastBytes = 0;
  #lastMoveMs = 0;

  /** `cut` is told once why the line cannot go on. */
  constructor(socket: BrowserSocket, clock: Clock, cut: (reason: string) => void) {
    this.#socket = socket;
    this.#clock = clock;
    this.#cut = cut;
  }

  /** Whether watches are to leave out what they have. */
  get isBehind(): boolean {
    return this.#socket.bufferedAmount > CONSOLE_AHEAD_BYTES;
  }

  /** Sends a message that has to arrive. Never throws. */
  send(message: ConsoleMessage): void {
    this.sendText(textOf(message));
  }

  /** The same for a message that is text already. */
  sendText(text: string): void {
    if (this.#socket.readyState !== 1) return;
    this.#socket.send(text);
    if (this.#socket.bufferedAmount > CONSOLE_UNSENT_BYTES_MAX) {
      this.#cut("it does not read what was sent to it");
    } else if (this.isBehind) this.#look();
  }

  /** Sends a message of a watch, or counts it as missed. */
  push(message: ConsoleMessage & { readonly id: number }): void {
    if (!this.isBehind) return this.send(message);
    this.#missed.set(message.id, (this.#missed.get(message.id) ?? 0) + 1);
    this.#look();
  }

  /** Sends the text of a watch's change, or has it say everything later. */
  pushState(id: number, text: () => string, sayAll: () => void): void {
    if (!this.isBehind && !this.#stale.has(id)) return this.sendText(text());
    this.#stale.set(id, sayAll);
    this.#look();
  }

  /** Nothing more is to go out for an id. */
  forget(id: number): void {
    this.#missed.delete(id);
    this.#stale.delete(id);
  }

  /** Sends nothing any more. */
  stop(): void {
    this.#cancelLook?.();
    this.#missed.clear();
    this.#stale.clear();
  }

  #look(): void {
    if (this.#cancelLook) return;
    this.#lastBytes = this.#socket.bufferedAmount;
    this.#lastMoveMs = this.#clock.now();
    this.#lookLater();
  }

  #lookLater(): void {
    this.#cancelLook = this.#clock.after(CONSOLE_BEHIND_LOOK_MS, () => {
      this.#cancelLook = undefined;
      const bytes = this.#socket.bufferedAmount;
      const now = this.#clock.now();
      if (bytes !== this.#lastBytes) this.#lastMoveMs = now;
      this.#lastBytes = bytes;
      if (now - this.#lastMoveMs > CONSOLE_STALLED_MS) {
        return this.#cut("it has read nothing for too long");
      }
      this.#makeGood();
      if (this.isBehind) this.#lookLater();
    });
  }

  #makeGood(): void {
    for (const [id, count] of this.#missed) {
      if (this.isBehind) return;
      this.#missed.delete(id);
      this.send({ type: "missed", id, count });
    }
    for (const [id, sayAll] of this.#stale) {
      if (this.isBehind) return;
      this.#stale.delete(id);
      sayAll();
    }
  }
}

/** The text of a message, or of one that says that it cannot be told: values may nest too deep. */
function textOf(message: ConsoleMessage): string {
  try {
    return JSON.stringify(message);
  } catch (thrown) {
    if (!("id" in message)) throw thrown; // Those hold nothing of anybody else's.
    const { id, type } = message;
    if (type === "fired" || type === "progress") {
      return JSON.stringify({ type: "missed", id, count: 1 });
    }
    const error = { code: "too_deep", message: "What came is nested too deep to be shown" };
    return JSON.stringify({ type: "error", id, error, duration_ms: 0, trace_id: null });
  }
}
