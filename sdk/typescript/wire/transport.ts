/**
 * How a worker reaches the engine: a line that carries whole messages in order.
 *
 * The local line and the WebSocket ones differ in nothing else.
 *
 * @module
 */

/** What a line reports. `closed` comes once and last, also when the line never opened. */
export interface TransportEvents {
  /** Messages may be sent from now on. */
  opened(): void;
  /** A text message. */
  text(message: string): void;
  /** A binary message. */
  binary(bytes: Uint8Array): void;
  /** The line is over: a close code, or 1006 with what went wrong (such as `HTTP 401`). */
  closed(code: number, reason: string): void;
}

/** The SDK's end of a line. Nothing here waits or throws. */
export interface Transport {
  /** Sends a message: a string is a text frame, bytes a binary one. */
  send(message: string | Uint8Array): void;
  /** Bytes that were sent and have not left yet; left out where nobody can tell. */
  readonly queuedBytes?: number;
  /** Ends the line, at once and without a word about what was registered. */
  close(code?: number, reason?: string): void;
}

/** What a dialler may be told besides the address. */
export interface DialOptions {
  /** Sent with the upgrade where the platform can (a browser cannot). */
  readonly headers?: Readonly<Record<string, string>>;
  /** Offer to send several messages in one frame. @default false */
  readonly batch?: boolean;
}

/** Opens a line to an address. */
export type Dial = (url: string, events: TransportEvents, options: DialOptions) => Transport;
