/**
 * What carries messages between engines: subjects, at most once.
 *
 * A message may be lost, repeated or late, and nothing says so; links notice it by their numbers.
 * Everything here is by callbacks, so that a test can run many engines in one thread with a clock
 * of its own.
 *
 * @module
 */

/** A message that arrived. */
export interface BusMessage {
  readonly subject: string;
  /** Valid until the receiver returns. */
  readonly data: Uint8Array;
  /** Answers a request; without effect on a message that is none. */
  respond(data?: Uint8Array): void;
}

/** What became of a request. */
export type BusAnswer =
  | { readonly state: "answered"; readonly data: Uint8Array }
  /** No engine listens on the subject. */
  | { readonly state: "no_responders" }
  /** No answer came in time. */
  | { readonly state: "timeout" }
  /** The bus cannot be reached. */
  | { readonly state: "away" };

/** Carries messages. */
export interface Bus {
  /** Whether the bus can be reached now. */
  readonly isConnected: boolean;
  /** Sends a message; while the bus is away it is dropped. `data` must not change afterwards. */
  publish(subject: string, data: Uint8Array): void;
  /** Receives what is published on a subject; `*` stands for one part. Call the result to stop. */
  subscribe(subject: string, hear: (message: BusMessage) => void): () => void;
  /** Asks the listener of a subject; `done` is called once, not before this returns. */
  request(
    subject: string,
    data: Uint8Array,
    timeout_ms: number,
    done: (answer: BusAnswer) => void,
  ): void;
  /**
   * Calls `hear` when the bus is reached (`true`) or lost: messages that were on their way are lost
   * then. Call the result to stop.
   */
  onStatus(hear: (isConnected: boolean) => void): () => void;
}
