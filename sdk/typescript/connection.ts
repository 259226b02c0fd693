/**
 * The connection of one worker: connects, and reconnects until it is stopped.
 *
 * It does not read messages. On each new connection the worker sends its registrations first
 * (`opened`). A message is delivered together with the connection that it came on, so that its
 * response is sent on the same connection or not at all.
 *
 * @module
 */
import { checkCallable } from "./arguments.ts";
import type { ConnectionState, ReconnectOptions } from "./options.ts";
import type { WorkerClock } from "./platform.ts";
import { EngineError, thrownText } from "./wire/errors.ts";
import type { Dial, DialOptions, Transport, TransportEvents } from "./wire/transport.ts";

/** First delay before a worker reconnects. */
const RECONNECT_FIRST_MS = 1_000;
/** Longest delay before a worker reconnects. */
const RECONNECT_MAX_MS = 30_000;
/** A delay varies at random by this part of it, in both directions. */
const RECONNECT_JITTER = 0.3;

/** A connection that has opened. When it is closed, messages sent on it are dropped. */
export interface Connection {
  readonly isOpen: boolean;
  /** Bytes that were sent but have not left this process; `undefined` if unknown. */
  readonly queuedBytes?: number | undefined;
  /** Sends a message: a string as a text frame, bytes as a binary one. */
  send(message: string | Uint8Array): void;
}

/** The events of a {@linkcode ReconnectingConnection}. */
export interface ConnectionEvents {
  /** A new connection is open; what the listener sends now is sent before anything else. */
  opened(connection: Connection): void;
  /** A message arrived. */
  text(message: string, connection: Connection): void;
  /** An open connection was lost. */
  lost(): void;
  /**
   * An attempt to connect failed, or an open connection was lost. `retryMs` is the delay before the
   * next attempt, `undefined` if there is none.
   */
  failed(reason: string, retryMs: number | undefined): void;
  /** The state has changed. */
  state(state: ConnectionState): void;
}

/** What a {@linkcode ReconnectingConnection} works with. */
export interface ConnectionSetup {
  readonly url: string;
  readonly dial: Dial;
  readonly dialOptions: DialOptions;
  readonly clock: WorkerClock;
  readonly reconnect: ReconnectOptions;
  /** Returns a number from 0 to 1, for the variation of delays. */
  readonly random: () => number;
}

/** One attempt to connect, and the connection that results from it. */
interface Attempt extends Connection {
  isOpen: boolean;
  transport: Transport | undefined;
  isOver: boolean;
}

/** The connection of a worker to the engine, over any number of transports. */
export class ReconnectingConnection {
  readonly #setup: ConnectionSetup;
  readonly #events: ConnectionEvents;
  readonly #ended: Promise<void>;
  #resolveEnded: () => void = () => {};
  #state: ConnectionState = "connecting";
  #attempt: Attempt | undefined;
  #cancelRetry: (() => void) | undefined;
  #failures = 0;

  constructor(setup: ConnectionSetup, events: ConnectionEvents) {
    this.#setup = setup;
    this.#events = events;
    // Promise.withResolvers() is missing in Node 20.
    this.#ended = new Promise((resolve) => this.#resolveEnded = resolve);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** The open connection, if there is one. */
  get current(): Connection | undefined {
    return this.#attempt?.isOpen ? this.#attempt : undefined;
  }

  /** Whether it will never be open again. */
  get isFinal(): boolean {
    return this.#state === "failed" || this.#state === "disconnected";
  }

  /** Connects for the first time. */
  start(): void {
    this.#dial();
  }

  /** Closes the connection for good; resolves when the transport has closed. */
  stop(state: "failed" | "disconnected"): Promise<void> {
    if (!this.isFinal) this.#moveTo(state);
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    if (this.#attempt) {
      this.#attempt.isOpen = false;
      this.#attempt.transport?.close(1000, "");
    } else {
      this.#resolveEnded();
    }
    return this.#ended;
  }

  #dial(): void {
    this.#cancelRetry = undefined;
    const { url, dial, dialOptions } = this.#setup;
    const attempt: Attempt = {
      isOpen: false,
      isOver: false,
      transport: undefined,
      get queuedBytes(): number | undefined {
        return attempt.transport?.queuedBytes;
      },
      send: (message) => {
        if (attempt.isOpen) attempt.transport?.send(message);
      },
    };
    this.#attempt = attempt;
    let openedEarly = false;
    const events: TransportEvents = {
      // A transport without a socket may open before dial() has returned it.
      opened: () => attempt.transport ? this.#opened(attempt) : openedEarly = true,
      text: (message) => this.#text(message, attempt),
      binary: (bytes) => this.#text(new TextDecoder().decode(bytes), attempt),
      closed: (code, reason) => this.#closed(attempt, reason || `code ${code}`),
    };
    attempt.transport = dial(url, events, dialOptions);
    if (openedEarly) this.#opened(attempt);
  }

  #opened(attempt: Attempt): void {
    if (attempt.isOver || attempt !== this.#attempt || this.isFinal) return;
    attempt.isOpen = true;
    this.#failures = 0;
    this.#events.opened(attempt);
    if (attempt.isOpen) this.#moveTo("connected");
  }

  #text(message: string, attempt: Attempt): void {
    if (attempt.isOpen && message !== "") this.#events.text(message, attempt);
  }

  #closed(attempt: Attempt, reason: string): void {
    if (attempt.isOver) return;
    attempt.isOver = true;
    const wasOpen = attempt.isOpen;
    attempt.isOpen = false;
    if (attempt === this.#attempt) this.#attempt = undefined;
    if (this.isFinal) {
      this.#resolveEnded();
      return;
    }
    if (wasOpen) this.#events.lost();
    if (!this.isFinal) this.#retry(reason, wasOpen);
  }

  #retry(reason: string, wasOpen: boolean): void {
    const {
      firstMs = RECONNECT_FIRST_MS,
      maxMs = RECONNECT_MAX_MS,
      maxAttempts = Infinity,
    } = this.#setup.reconnect;
    if (!wasOpen) this.#failures++;
    if (this.#failures >= maxAttempts) {
      this.#events.failed(reason, undefined);
      void this.stop("failed");
      return;
    }
    const meanMs = Math.min(maxMs, firstMs * 2 ** Math.max(0, this.#failures - 1));
    const delayMs = meanMs * (1 + RECONNECT_JITTER * (2 * this.#setup.random() - 1));
    this.#moveTo("reconnecting");
    this.#events.failed(reason, delayMs);
    if (!this.isFinal) this.#cancelRetry = this.#setup.clock.after(delayMs, () => this.#dial());
  }

  #moveTo(state: ConnectionState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#events.state(state);
  }
}

/** The listeners of one worker for its connection state. */
export class ConnectionListeners {
  readonly #listeners = new Set<(state: ConnectionState) => void>();
  readonly #report: (error: EngineError) => void;

  /** `report` receives the errors that listeners throw. */
  constructor(report: (error: EngineError) => void) {
    this.#report = report;
  }

  /**
   * Adds a listener; the returned function removes it. The same function may be added twice.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` if it is not a function.
   */
  add(listener: (state: ConnectionState) => void): () => void {
    checkCallable("The listener", listener);
    const own = (state: ConnectionState): void => listener(state);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Calls all listeners; an error of one does not affect the others. */
  notify(state: ConnectionState): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(state);
      } catch (cause) {
        const message = `A listener for the connection state failed: ${thrownText(cause)}`;
        this.#report(new EngineError("invocation_failed", message, { cause }));
      }
    }
  }
}
