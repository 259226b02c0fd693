/**
 * How a worker reaches the engine: a transport carries whole messages in order.
 *
 * WebSocket transports and the connection of a built-in worker inside the engine's process
 * implement the same interface; the SDK does not distinguish them.
 *
 * @module
 */

/** The events of a transport. `closed` comes once and last, also if it never opened. */
export interface TransportEvents {
  /** The connection is open: messages can be sent. */
  opened(): void;
  /** A text message arrived. */
  text(message: string): void;
  /** A binary message arrived. */
  binary(bytes: Uint8Array): void;
  /**
   * The connection is closed. `code` is the WebSocket close code, 1006 when the connection failed;
   * `reason` describes the cause, such as `HTTP 401`.
   */
  closed(code: number, reason: string): void;
}

/** One connection as the SDK holds it. No method blocks or throws. */
export interface Transport {
  /** Sends a message: a string as a text frame, bytes as a binary one. Ignored unless open. */
  send(message: string | Uint8Array): void;
  /** Bytes that were sent but have not left this process; absent if the platform cannot tell. */
  readonly queuedBytes?: number;
  /** Closes the connection; `closed` follows. The default code is 1000, without a reason. */
  close(code?: number, reason?: string): void;
}

/** Options of a {@linkcode Dial}. */
export interface DialOptions {
  /** Headers of the upgrade request; browsers send none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Propose batches: several messages in one frame. @default false */
  readonly batch?: boolean;
  /** Subprotocols to offer, where a browser's `WebSocket` is used. @default none */
  readonly protocols?: readonly string[];
}

/**
 * Connects to an address and returns at once; the outcome arrives as an event. `opened` may come
 * before it returns.
 */
export type Dial = (url: string, events: TransportEvents, options: DialOptions) => Transport;
