/**
 * One peer's line, whatever carries it, and how a port is opened for such lines.
 *
 * @module
 */

/** One peer's line. Nothing here waits or throws. */
export interface Connection {
  /** Unique among the lines of this engine's life. */
  readonly id: string;
  /** Whether several messages may share a frame on it. */
  readonly isBatching: boolean;
  /** Bytes that send() took and that have not left this process. */
  readonly queuedBytes: number;
  /** Sends one text message. */
  send(text: string): void;
  /**
   * Sends one text message of two parts: the first `headBytes` bytes of `head`, and behind them
   * those of `memory` from `start` to `end`. Together they are UTF-8. Copies before it returns.
   */
  forward(
    head: Uint8Array,
    headBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void;
  /** Sends one binary message. */
  sendBinary(bytes: Uint8Array): void;
  /** Stops reading until resume(); `false` where the carrier cannot stop. */
  pause(): boolean;
  /** Reads again. */
  resume(): void;
  /** Ends the line; `closed` follows, whatever the peer does. */
  close(code: number, reason: string): void;
}

/** What a line reports, in order; `closed` comes once and last. */
export interface ConnectionEvents {
  text(text: string): void;
  /**
   * A text message as UTF-8: the bytes of `memory` from `start` to `end`, valid until this
   * returns; they may be overwritten meanwhile, and so may all that lies before them: messages
   * that are done with. `isPlain`: no backslash is among them.
   */
  textBytes(memory: Uint8Array, start: number, end: number, isPlain: boolean): void;
  /** A binary message, valid until this returns. */
  binary(bytes: Uint8Array): void;
  /** `queuedBytes` has fallen below the low mark again. */
  drained(): void;
  closed(code: number, reason: string): void;
}

/** The request that wants to become a line. */
export interface Upgrade {
  /** Path without the query, such as `/` or `/otel`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  /** Address of the peer, such as `127.0.0.1`. */
  readonly address: string;
}

/** The HTTP answer to an upgrade that is not wanted. */
export interface Refusal {
  readonly status: number;
  /** One sentence, sent as text. */
  readonly message: string;
}

/** Takes a line that has opened. */
export type Accept = (connection: Connection) => ConnectionEvents;

/** Refuses an upgrade with an HTTP answer, or says who takes the line. */
export type Gate = (upgrade: Upgrade) => Refusal | Accept;

/** What is answered to a request that asks for no WebSocket. */
export interface PageAnswer {
  readonly status: number;
  /** Such as `text/plain; version=0.0.4; charset=utf-8`. */
  readonly contentType: string;
  readonly body: string;
}

/** Answers such a GET request; `undefined` when there is nothing at its path. Never rejects. */
export type AnswerPage = (request: Upgrade) => Promise<PageAnswer | Refusal> | undefined;

/** Where to listen, and the bounds of its lines. */
export interface ListenOptions {
  readonly hostname: string;
  /** 0: any free port. */
  readonly port: number;
  readonly maxMessageBytes: number;
  /** A line whose unsent bytes pass this is cut: its peer has stopped reading. */
  readonly maxQueuedBytes: number;
  /** A line from which nothing comes for so long is dead. Default: `SILENCE_MS`. */
  readonly silenceMs?: number;
  /** Hears which lines the listener itself ended, and why; for the log. */
  readonly onCut?: (address: string, reason: string) => void;
  /** Pages of the port; left out: there are none. */
  readonly answerPage?: AnswerPage;
}

/** An open port. */
export interface Listener {
  readonly hostname: string;
  /** The port in fact, also when 0 was asked for. */
  readonly port: number;
  /** Takes no new lines, closes those there are with 1001, and returns when they are gone. */
  close(): Promise<void>;
}

/**
 * Opens a port.
 *
 * @throws {EngineError} `address_in_use` or `address_not_available`, with what to do.
 */
export type Listen = (options: ListenOptions, gate: Gate) => Listener;
