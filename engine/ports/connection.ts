/**
 * A connection to one peer, independent of its transport, and the listener that accepts
 * connections.
 *
 * @module
 */

import type { ListenSettings } from "./listen.ts";
import type { MemoryBudget } from "./memory.ts";

/** Default limit of one message on a worker connection. */
export const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;

/** Largest read buffer of a connection, except for a larger message. */
export const READ_BYTES_MAX = 256 * 1024;

/** Connections that the engine serves at once. */
export const CONNECTIONS_MAX = 20_000;
/** Bytes that a connection gives to the platform ahead of the network; it can drop the rest. */
export const SEND_AHEAD_BYTES = 1024 * 1024;
/** A queue that was above {@linkcode SEND_AHEAD_BYTES} counts as drained at this size. */
export const DRAINED_BYTES = 256 * 1024;
/** As {@linkcode SEND_AHEAD_BYTES}, of a connection that carries a stream. */
export const STREAM_AHEAD_BYTES = 256 * 1024;
/** As {@linkcode DRAINED_BYTES}, of a connection that carries a stream. */
export const STREAM_DRAINED_BYTES = 64 * 1024;
/** The reader of a stream may be busy for this long, in milliseconds, while bytes wait for it. */
export const STREAM_STALLED_MS = 300_000;
/**
 * A peer that reads nothing for this long is cut, in milliseconds, while more than
 * `maxQueuedBytes` are unsent, or over {@linkcode SEND_AHEAD_BYTES} while memory is tight.
 */
export const STALLED_MS = 5_000;
/** How long a closing connection waits for the peer to close its half, in milliseconds. */
export const CLOSE_MS = 2_000;

/** A connection to one peer. No method blocks or throws. */
export interface Connection {
  /** Unique among the connections of this engine. */
  readonly id: string;
  /** Whether several messages may share a frame. */
  readonly isBatching: boolean;
  /** Bytes that were sent and have not left this process. */
  readonly queuedBytes: number;
  /** Sends one text message. */
  send(text: string): void;
  /**
   * Sends one text message in two parts: the first `prefixBytes` bytes of `prefix`, then the
   * bytes of `memory` from `start` to `end`. Together they are UTF-8. Copies before it returns.
   */
  forward(
    prefix: Uint8Array,
    prefixBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void;
  /** Sends one binary message. */
  sendBinary(bytes: Uint8Array): void;
  /** Stops reading until resume(); `false` if the transport cannot. */
  pause(): boolean;
  /** Continues reading. */
  resume(): void;
  /**
   * Pings the peer at once, because something is overdue from it; `suspected` follows when it does
   * not answer. Absent where the peer cannot freeze alone.
   */
  probe?(): void;
  /**
   * The connection carries a stream whose reader may be slow: `drained` has lower marks, a peer
   * that is alive may read nothing for {@linkcode STREAM_STALLED_MS}, and closing waits for it.
   */
  asStream?(): void;
  /** Closes the connection; `closed` follows, whatever the peer does. */
  close(code: number, reason: string): void;
}

/** Messages from this size on are read in parts while they arrive, see {@linkcode Outline}. */
export const LARGE_BYTES = 4 * 1024 * 1024;

/** One member of an object: offsets of its key, quotes included, and of its value. */
export interface Member {
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly start: number;
  readonly end: number;
  /** Nesting of arrays and objects in the value. */
  readonly depth: number;
  /** Objects, arrays and members in the value. */
  readonly parts: number;
}

/**
 * What is known of a large message when it is complete, so that its receiver need not read all of
 * it at once.
 */
export interface Outline {
  /** `undefined` when the message is no JSON object, or one with too many members. */
  readonly members: readonly Member[] | undefined;
}

/** The events of a connection, in order; `closed` comes once and last. */
export interface ConnectionEvents {
  text(text: string): void;
  /**
   * A text message as UTF-8: the bytes of `memory` from `start` to `end`, valid until this returns.
   * The receiver may overwrite them and all bytes before them, which belong to earlier messages.
   * `isPlain`: the message contains no backslash. `outline`: of a large message, if its bytes were
   * read as they came.
   */
  textBytes(
    memory: Uint8Array,
    start: number,
    end: number,
    isPlain: boolean,
    outline?: Outline,
  ): void;
  /** A binary message, valid until this returns. */
  binary(bytes: Uint8Array): void;
  /** `queuedBytes` has fallen below the low-water mark. */
  drained(): void;
  /**
   * The peer has left a ping unanswered (`true`), or something arrived from it again. It may be
   * frozen, or busy; the connection stays open until it has been silent for too long.
   */
  suspected(isSuspect: boolean): void;
  /**
   * Removes some of the many registrations of a peer whose connection has ended, before `closed`;
   * `true`: to be called again, in the next turn. Optional; one that passes events on to another
   * implements `Required<ConnectionEvents>`.
   */
  retire?(): boolean;
  closed(code: number, reason: string): void;
}

/** A WebSocket upgrade request. */
export interface Upgrade {
  /** Path without the query, such as `/` or `/otel`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  /** Address of the peer, such as `127.0.0.1`. */
  readonly address: string;
}

/** The HTTP response to a rejected upgrade. */
export interface Refusal {
  readonly status: number;
  /** One sentence, sent as text. */
  readonly message: string;
}

/** Accepts an open connection. */
export type Accept = (connection: Connection) => ConnectionEvents;

/** Rejects an upgrade with an HTTP response, or returns the receiver of the connection. */
export type Gate = (upgrade: Upgrade) => Refusal | Accept;

/** A GET request to a path of the worker port. */
export interface PageRequest {
  /** Such as `/metrics`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
}

/** The response to a request that is not an upgrade. */
export interface PageAnswer {
  readonly status: number;
  /** Such as `text/plain; version=0.0.4; charset=utf-8`. */
  readonly contentType: string;
  readonly body: string;
}

/** Answers such a GET request; `undefined` for an unknown path. Never rejects. */
export type AnswerPage = (request: Upgrade) => Promise<PageAnswer | Refusal> | undefined;

/** Where to listen, and the limits of connections. */
export interface ListenOptions {
  readonly hostname: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly maxMessageBytes: number;
  /** With more bytes unsent, a peer that reads nothing is closed: {@linkcode STALLED_MS}. */
  readonly maxQueuedBytes: number;
  /** A connection is closed when nothing arrives for this long. Default: `SILENCE_MS`. */
  readonly silenceMs?: number;
  /** Time between pings; at most a third of `silenceMs`. Default: `PING_INTERVAL_MS`. */
  readonly heartbeatMs?: number;
  /** The memory that buffers of this port share with the process. Default: unlimited. */
  readonly memory?: MemoryBudget;
  /**
   * Sockets that may be open at once; an eighth of them, up to 256, is for requests without an
   * upgrade. Default: {@linkcode CONNECTIONS_MAX} and 256.
   */
  readonly maxSockets?: number;
  /** How long the head of an upgrade may take. Default: `UPGRADE_HEAD_MS`. */
  readonly upgradeHeadMs?: number;
  /** How long the peer may take to answer a close frame. Default: {@linkcode CLOSE_MS}. */
  readonly closeMs?: number;
  /** Called when the listener itself closes a connection; for the log. */
  readonly onCut?: (address: string, reason: string) => void;
  /** Called when the system refuses a socket, such as without a descriptor; at most every 10 s. */
  readonly onAcceptError?: (reason: string) => void;
  /** How errors name the settings of its address. Default: those of the section `engine`. */
  readonly settings?: ListenSettings;
  /** Pages of the port. Default: none. */
  readonly answerPage?: AnswerPage;
}

/** An open port. */
export interface Listener {
  readonly hostname: string;
  /** The actual port, also if 0 was requested. */
  readonly port: number;
  /** Stops accepting, closes all connections with 1001, and resolves when they are closed. */
  close(): Promise<void>;
}

/**
 * Opens a port.
 *
 * @throws {EngineError} `address_in_use` or `address_not_available`, with what to do.
 */
export type Listen = (options: ListenOptions, gate: Gate) => Listener;
