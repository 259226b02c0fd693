/**
 * Connections without a network that record what was sent: of the engine to a peer, and of the
 * console to a browser.
 *
 * @module
 */
import type { Connection, ConnectionEvents } from "../../engine/ports/connection.ts";
import type { EngineMessage } from "../../sdk/typescript/wire/protocol.ts";
import type { BrowserSocket } from "../../workers/console/outbox.ts";
import type { ConsoleMessage } from "../../workers/console/wire.ts";

// Fatal: bytes that are not UTF-8 fail the test.
const UTF_8 = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

/** How a connection was closed by its owner. */
export interface Closing {
  readonly code: number;
  readonly reason: string;
}

/** A {@linkcode Connection} that records. `queuedBytes` is what the test says it is. */
export class FakeConnection implements Connection {
  readonly id: string;
  isBatching = false;
  queuedBytes = 0;
  /** Whether pause() is supported. */
  canPause = true;
  /** Whether reading is stopped now. */
  paused = false;
  /** How the owner closed the connection; `undefined` while it is open. */
  closing: Closing | undefined;
  /** Called with each text message, as one string. */
  onText: ((text: string) => void) | undefined;
  readonly #texts: string[] = [];
  readonly #binaries: Uint8Array[] = [];

  constructor(id: string) {
    this.id = id;
  }

  forward(
    head: Uint8Array,
    headBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    const bytes = new Uint8Array(headBytes + end - start);
    bytes.set(head.subarray(0, headBytes));
    bytes.set(memory.subarray(start, end), headBytes);
    this.send(UTF_8.decode(bytes));
  }

  send(text: string): void {
    if (this.closing) return;
    this.#texts.push(text);
    this.onText?.(text);
  }

  sendBinary(bytes: Uint8Array): void {
    if (!this.closing) this.#binaries.push(bytes.slice());
  }

  pause(): boolean {
    if (this.canPause) this.paused = true;
    return this.canPause;
  }

  resume(): void {
    this.paused = false;
  }

  /** Records the first call; the test reports `closed` itself, with {@linkcode cut}. */
  close(code: number, reason: string): void {
    this.closing ??= { code, reason };
  }

  /** The text messages sent since the last call, as they were sent. */
  takeTexts(): string[] {
    return this.#texts.splice(0);
  }

  /** The text messages sent since the last call, parsed. */
  take(): EngineMessage[] {
    return this.takeTexts().map((text) => JSON.parse(text) as EngineMessage);
  }

  /** The binary messages sent since the last call. */
  takeBinaries(): Uint8Array[] {
    return this.#binaries.splice(0);
  }
}

/** The remote end of a connection: sends frames to the engine and reads its messages. */
export interface FakePeer {
  readonly connection: FakeConnection;
  readonly events: ConnectionEvents;
  /** Sends a frame: a string as it is, anything else as JSON. */
  say(message: unknown): void;
  /** The connection is lost. */
  cut(code?: number, reason?: string): void;
}

/** Joins a recording connection and the receiver of its events. */
export function fakePeer(connection: FakeConnection, events: ConnectionEvents): FakePeer {
  return {
    connection,
    events,
    say: (message) => events.text(typeof message === "string" ? message : JSON.stringify(message)),
    cut: (code = 1006, reason = "") => {
      connection.close(code, reason);
      events.closed(code, reason);
    },
  };
}

export class FakeBrowserSocket implements BrowserSocket {
  /** What a test says that the browser has not read. */
  bufferedAmount = 0;
  readyState = 1;
  /** The messages, in order. */
  readonly sent: ConsoleMessage[] = [];
  /** Code and reason, once it is closed. */
  closedWith: readonly [number, string] | undefined;
  /** Counts what is sent as unread. */
  isStalled = false;

  send(text: string): void {
    if (this.isStalled) this.bufferedAmount += text.length;
    this.sent.push(JSON.parse(text));
  }

  close(code: number, reason: string): void {
    this.readyState = 3;
    this.closedWith ??= [code, reason];
  }

  /** What was sent for an id. */
  about(id: number): ConsoleMessage[] {
    return this.sent.filter((message) => (message as { id?: number }).id === id);
  }
}
