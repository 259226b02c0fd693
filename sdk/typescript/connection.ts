/**
 * The connection of one worker: connects, and reconnects until it is stopped.
 *
 * A dial that is not answered does not delay the next one: after each delay a dial begins, beside
 * the oldest that is in progress, and the first that opens is used. So a worker is connected within
 * one delay after the engine's return, whatever became of its packets before, and a slow network
 * still has the whole open timeout.
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
/**
 * Longest delay before a worker reconnects, its variation included: with the time for opening, at
 * most two seconds after the engine's return.
 */
const RECONNECT_MAX_MS = 1_800;
/**
 * Longest delay after refusals, unless `maxMs` is longer: each one is a call of a function that
 * decides, and the engine, which was reached, is not about to return.
 */
const REFUSED_MAX_MS = 30_000;
/** A delay varies at random by this part of it, in both directions, so that workers spread. */
const RECONNECT_JITTER = 0.3;
/** Dials in progress at once: the oldest, and one that is begun anew after each delay. */
const DIALS_MAX = 2;

/** Unsent bytes above which a connection is full: calls are refused, and results wait. */
const UNSENT_BYTES_MAX = 64 * 1024 * 1024;
/** Unsent bytes above which a connection is closed: the engine sends, but does not read. */
const UNSENT_BYTES_END = 3 * UNSENT_BYTES_MAX;
/**
 * Characters between two looks at the unsent bytes; each costs as much as sending a short frame.
 */
const CHECK_CHARS = 1024 * 1024;
/** Interval at which a full connection is looked at. */
const FULL_CHECK_MS = 100;
/** An engine that reads nothing for so long, while a connection is full, does not read. */
export const STALLED_MS = 30_000;

/** What waits until a connection is no longer full. */
export interface LateMessage {
  /** Sends it; must not throw. */
  send(): void;
  /** The engine does not read, or the connection was lost. */
  fail(): void;
}

/** A connection that has opened. When it is closed, messages sent on it are dropped. */
export interface Connection {
  readonly isOpen: boolean;
  /** Bytes that were sent but have not left this process; `undefined` if unknown. */
  readonly queuedBytes?: number | undefined;
  /** Whether so many bytes are unsent that calls are refused and results wait. */
  readonly isFull?: boolean;
  /** Sends a message when the connection is no longer full, in the order of these calls. */
  sendLate?(message: LateMessage): void;
  /** Sends a message: a string as a text frame, bytes as a binary one. */
  send(message: string | Uint8Array): void;
  /** The engine has let this worker in, or refuses it and will close the connection. */
  judged?(isAdmitted: boolean): void;
}

/** The events of a {@linkcode ReconnectingConnection}. */
export interface ConnectionEvents {
  /** A new connection is open; what the listener sends now is sent before anything else. */
  opened(connection: Connection): void;
  /** A message arrived. */
  text(message: string, connection: Connection): void;
  /** An open connection was lost, for this reason. */
  lost(reason: string): void;
  /**
   * An attempt to connect failed, or an open connection was lost. `retryMs` is the delay before the
   * next attempt, 0 if one is in progress, `undefined` if there is none.
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
  isFull: boolean;
  /** Characters that were sent since the unsent bytes were looked at. */
  uncheckedChars: number;
  /** What waits for room. While it is watched: unsent bytes, and since when they do not shrink. */
  late: LateMessage[];
  isWatched: boolean;
  unsentBytes: number;
  stuckSince: number;
  transport: Transport | undefined;
  /** It failed, was lost, or another one is used instead; its events are ignored. */
  isOver: boolean;
}

/** The connection of a worker to the engine, over any number of transports. */
export class ReconnectingConnection {
  readonly #setup: ConnectionSetup;
  readonly #events: ConnectionEvents;
  readonly #ended: Promise<void>;
  #resolveEnded: () => void = () => {};
  #state: ConnectionState = "connecting";
  /** The attempt that has opened. */
  #attempt: Attempt | undefined;
  /** The attempts in progress, oldest first. */
  #dialing: Attempt[] = [];
  /** All attempts whose transport has not closed. */
  readonly #unclosed = new Set<Attempt>();
  #cancelRetry: (() => void) | undefined;
  #failures = 0;
  /** Connections in a row that were refused after they had opened. */
  #refusals = 0;

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

  /** Closes the connection for good; resolves when all transports have closed. */
  stop(state: "failed" | "disconnected"): Promise<void> {
    if (!this.isFinal) this.#moveTo(state);
    this.#stopTimer();
    if (this.#attempt) end(this.#attempt);
    for (const attempt of [...this.#unclosed]) attempt.transport?.close(1000, "");
    this.#resolveIfEnded();
    return this.#ended;
  }

  #dial(): void {
    this.#stopTimer();
    const { url, dial, dialOptions } = this.#setup;
    const attempt: Attempt = {
      isOpen: false,
      isFull: false,
      uncheckedChars: 0,
      late: [],
      isWatched: false,
      unsentBytes: 0,
      stuckSince: 0,
      isOver: false,
      transport: undefined,
      get queuedBytes(): number | undefined {
        return attempt.transport?.queuedBytes;
      },
      send: (message) => {
        if (!attempt.isOpen) return;
        attempt.transport?.send(message);
        attempt.uncheckedChars += message.length;
        if (attempt.isFull || attempt.uncheckedChars >= CHECK_CHARS) this.#checkUnsent(attempt);
      },
      sendLate: (message) => {
        if (attempt.isOpen && (attempt.isFull || attempt.late.length > 0)) {
          attempt.late.push(message);
        } else if (attempt.isOpen) message.send();
        else message.fail();
      },
      judged: (isAdmitted) => this.#refusals = isAdmitted ? 0 : this.#refusals + 1,
    };
    this.#dialing.push(attempt);
    this.#unclosed.add(attempt);
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
    if (this.#dialing.includes(attempt)) this.#dialAfter(this.#delay());
  }

  /** Dials after a delay, unless a connection opens before. */
  #dialAfter(delayMs: number): void {
    this.#cancelRetry = this.#setup.clock.after(delayMs, () => this.#dialAgain());
  }

  /** Dials beside the oldest attempt that is not answered. */
  #dialAgain(): void {
    this.#cancelRetry = undefined;
    // Without attempts left, those that are not answered yet decide.
    if (this.#failures + this.#dialing.length >= this.#attemptsMax) return;
    this.#moveTo("reconnecting");
    if (this.#dialing.length === DIALS_MAX) {
      this.#failures++;
      abandon(this.#dialing.pop()!);
    }
    this.#dial();
  }

  #opened(attempt: Attempt): void {
    if (attempt.isOver || this.isFinal) return;
    this.#stopTimer();
    const others = this.#dialing.filter((other) => other !== attempt);
    this.#dialing = [];
    this.#attempt = attempt;
    attempt.isOpen = true;
    this.#failures = 0;
    for (const other of others) abandon(other);
    this.#events.opened(attempt);
    if (attempt.isOpen) this.#moveTo("connected");
  }

  #checkUnsent(attempt: Attempt): void {
    attempt.uncheckedChars = 0;
    const bytes = attempt.queuedBytes ?? 0;
    attempt.isFull = bytes > UNSENT_BYTES_MAX;
    if (bytes > UNSENT_BYTES_END) attempt.transport?.close(1008, "the engine does not read");
    // Also when nothing more is sent, which is what a full connection leads to.
    if (!attempt.isFull || attempt.isWatched) return;
    attempt.isWatched = true;
    attempt.unsentBytes = bytes;
    attempt.stuckSince = this.#setup.clock.now();
    this.#watchFull(attempt);
  }

  #watchFull(attempt: Attempt): void {
    this.#setup.clock.after(FULL_CHECK_MS, () => {
      if (!attempt.isOpen) return;
      const bytes = attempt.queuedBytes ?? 0;
      const now = this.#setup.clock.now();
      if (bytes < attempt.unsentBytes) attempt.stuckSince = now;
      attempt.unsentBytes = bytes;
      attempt.isFull = bytes > UNSENT_BYTES_MAX;
      if (now - attempt.stuckSince >= STALLED_MS) failLate(attempt);
      while (!attempt.isFull && attempt.late.length > 0) attempt.late.shift()!.send();
      attempt.isWatched = attempt.isFull;
      if (attempt.isWatched) this.#watchFull(attempt);
    });
  }

  #text(message: string, attempt: Attempt): void {
    if (attempt.isOpen && message !== "") this.#events.text(message, attempt);
  }

  #closed(attempt: Attempt, reason: string): void {
    this.#unclosed.delete(attempt);
    if (this.isFinal) return this.#resolveIfEnded();
    if (attempt.isOver) return;
    attempt.isOver = true;
    const wasOpen = attempt.isOpen;
    end(attempt);
    this.#dialing = this.#dialing.filter((other) => other !== attempt);
    if (attempt === this.#attempt) this.#attempt = undefined;
    if (wasOpen) this.#events.lost(reason);
    else {
      this.#failures++;
      this.#refusals = 0;
    }
    if (this.isFinal) return;
    if (this.#dialing.length > 0) this.#events.failed(reason, 0);
    else this.#retry(reason);
  }

  #retry(reason: string): void {
    this.#stopTimer();
    if (Math.max(this.#failures, this.#refusals) >= this.#attemptsMax) {
      this.#events.failed(reason, undefined);
      void this.stop("failed");
      return;
    }
    const delayMs = this.#delayAfterLoss();
    this.#moveTo("reconnecting");
    this.#events.failed(reason, delayMs);
    if (!this.isFinal) this.#dialAfter(delayMs);
  }

  get #attemptsMax(): number {
    return this.#setup.reconnect.maxAttempts ?? Infinity;
  }

  /** The delay before the next dial: twice as long with each that failed or is not answered. */
  #delay(): number {
    const { maxMs = RECONNECT_MAX_MS } = this.#setup.reconnect;
    return this.#doubled(this.#failures + this.#dialing.length, maxMs);
  }

  #delayAfterLoss(): number {
    if (this.#refusals === 0) return this.#delay();
    return this.#doubled(
      this.#refusals,
      Math.max(REFUSED_MAX_MS, this.#setup.reconnect.maxMs ?? 0),
    );
  }

  #doubled(attempts: number, maxMs: number): number {
    const { firstMs = RECONNECT_FIRST_MS } = this.#setup.reconnect;
    const wantedMs = firstMs * 2 ** Math.max(0, attempts - 1);
    const meanMs = Math.min(maxMs / (1 + RECONNECT_JITTER), wantedMs);
    return meanMs * (1 + RECONNECT_JITTER * (2 * this.#setup.random() - 1));
  }

  #stopTimer(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
  }

  #resolveIfEnded(): void {
    if (this.#unclosed.size === 0) this.#resolveEnded();
  }

  #moveTo(state: ConnectionState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#events.state(state);
  }
}

/** Closes an attempt in whose place another one is used. */
function end(attempt: Attempt): void {
  attempt.isOpen = false;
  failLate(attempt);
}

function failLate(attempt: Attempt): void {
  for (const message of attempt.late.splice(0)) message.fail();
}

function abandon(attempt: Attempt): void {
  attempt.isOver = true;
  attempt.transport?.close(1000, "");
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
