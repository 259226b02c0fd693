/**
 * WebSockets on a port that a built-in worker serves: RFC 6455 over a connection whose request that
 * worker has read.
 *
 * The worker decides about the request; framing, pings, back-pressure and the close handshake are
 * those of every {@linkcode Connection}.
 *
 * @module
 */
import type { Accept, Refusal } from "./connection.ts";

/** Bytes of each direction of such a connection that take nothing from the memory budget. */
export const SOCKET_FREE_BYTES = 4 * 1024;

/** Both halves of a connection. Reads and writes reject when it broke off. */
export interface SocketStream {
  /** Bytes read, `null` at the end. */
  read(into: Uint8Array): Promise<number | null>;
  /** Bytes written, which may be fewer. */
  write(bytes: Uint8Array): Promise<number>;
  /** Ends the write half; the other half stays open. */
  closeWrite(): Promise<void>;
  close(): void;
}

/** The request for an upgrade. */
export interface SocketRequest {
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The HTTP response to a request that is no proper upgrade. */
export interface SocketProblem extends Refusal {
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request without a problem, and its connection. */
export interface SocketStart {
  readonly request: SocketRequest;
  readonly stream: SocketStream;
  /** What was received behind the request. */
  readonly rest: Uint8Array;
  /** Of the peer, for the log. */
  readonly address: string;
  /** The subprotocol that was selected, a token; `undefined`: none. */
  readonly protocol: string | undefined;
  /** A larger message ends the connection with 1009. */
  readonly maxMessageBytes: number;
  /** With more bytes unsent, a peer that reads nothing is closed: `STALLED_MS`. */
  readonly maxQueuedBytes: number;
}

/** Makes WebSockets of connections. */
export interface WebSockets {
  /** Why a request is no upgrade that RFC 6455 allows; `undefined`: it is one. */
  problemOf(request: SocketRequest): SocketProblem | undefined;
  /**
   * Accepts the upgrade, and reports the events of the connection until it has ended; then the
   * caller closes the stream. Never rejects.
   */
  accept(start: SocketStart, accept: Accept): Promise<void>;
}
