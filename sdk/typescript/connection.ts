/**
 * A line that comes back: dials, waits and dials again until it is told to stop.
 *
 * It knows nothing of messages. On every new line it lets the worker say what it has to say first
 * (`opened`), and what it receives it hands on together with the line it came on, so that an answer
 * can only leave on the line that asked.
 *
 * @module
 */
import { checkCallable } from "./arguments.ts";
import type { WorkerClock } from "./platform.ts";
import type { ConnectionState, ReconnectOptions } from "./options.ts";
import { EngineError, thrownText } from "./wire/errors.ts";
import { RECONNECT_FIRST_MS, RECONNECT_JITTER, RECONNECT_MAX_MS } from "./wire/limits.ts";
import type { Dial, DialOptions, Transport, TransportEvents } from "./wire/transport.ts";

/** One line that has opened. Once it is over it takes messages and forgets them. */
export interface Line {
  /** Whether it is still there. */
  readonly isOpen: boolean;
  /** Bytes that were sent and have not left yet, where the line can tell. */
  readonly queuedBytes?: number | undefined;
  /** Sends one message: a string is a text frame, bytes a binary one. */
  send(message: string | Uint8Array): void;
}

/** What the line tells its worker. */
export interface LineEvents {
  /** A new line is there; what is sent inside goes out before everything else. */
  opened(line: Line): void;
  /** A message came. */
  text(message: string, line: Line): void;
  /** An open line is over. */
  lost(): void;
  /** An attempt failed or an open line was lost; `retryMs` is `undefined` when it was the last. */
  failed(reason: string, retryMs: number | undefined): void;
  /** The state is another one now. */
  state(state: ConnectionState): void;
}

/** What a {@linkcode ReconnectingLine} needs. */
export interface LineSetup {
  readonly url: string;
  readonly dial: Dial;
  readonly dialOptions: DialOptions;
  readonly clock: WorkerClock;
  readonly reconnect: ReconnectOptions;
  /** A number from 0 to 1, for the variation of waits. */
  readonly random: () => number;
}

/** One attempt to open a line, and the line it became. */
interface Attempt extends Line {
  isOpen: boolean;
  transport: Transport | undefined;
  isOver: boolean;
}

/** One worker's line to the engine, over any number of connections. */
export class ReconnectingLine {
  readonly #setup: LineSetup;
  readonly #events: LineEvents;
  readonly #ended: Promise<void>;
  #resolveEnded: () => void = () => {};
  #state: ConnectionState = "connecting";
  #attempt: Attempt | undefined;
  #cancelRetry: (() => void) | undefined;
  #failures = 0;

  /** Stores; start() dials. */
  constructor(setup: LineSetup, events: LineEvents) {
    this.#setup = setup;
    this.#events = events;
    // Promise.withResolvers() is not there in Node 20.
    this.#ended = new Promise((resolve) => this.#resolveEnded = resolve);
  }

  /** Where it stands. */
  get state(): ConnectionState {
    return this.#state;
  }

  /** The line, if one is open. */
  get line(): Line | undefined {
    return this.#attempt?.isOpen ? this.#attempt : undefined;
  }

  /** Whether it will never be open again. */
  get isFinal(): boolean {
    return this.#state === "failed" || this.#state === "disconnected";
  }

  /** Dials for the first time. */
  start(): void {
    this.#dial();
  }

  /** Ends the line for good; resolves when nothing of it is left. */
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
      // A line without a socket may open before dial() has returned it.
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
    const steady = Math.min(maxMs, firstMs * 2 ** Math.max(0, this.#failures - 1));
    const wait = steady * (1 + RECONNECT_JITTER * (2 * this.#setup.random() - 1));
    this.#moveTo("reconnecting");
    this.#events.failed(reason, wait);
    if (!this.isFinal) this.#cancelRetry = this.#setup.clock.after(wait, () => this.#dial());
  }

  #moveTo(state: ConnectionState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#events.state(state);
  }
}

/** The listeners of one worker. */
export class ConnectionListeners {
  readonly #listeners = new Set<(state: ConnectionState) => void>();
  readonly #report: (error: EngineError) => void;

  /** `report` hears of listeners that fail. */
  constructor(report: (error: EngineError) => void) {
    this.#report = report;
  }

  /**
   * Adds one; call the result to take it out. One that is added twice hears twice.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` when it cannot be called.
   */
  add(listener: (state: ConnectionState) => void): () => void {
    checkCallable("The listener", listener);
    const own = (state: ConnectionState): void => listener(state);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Tells all; one that fails keeps nobody else from hearing. */
  tell(state: ConnectionState): void {
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
