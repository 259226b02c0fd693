/**
 * What a store that several engines share asks of a database or broker: messages in one order, kept
 * on several machines, that only the engine may extend that knows the last one.
 *
 * The number of a message is its place in the order: each is one more than the one before, and none
 * is given twice. So an engine that extends the log after the number of the last message it applied
 * has applied them all, whatever clocks and leases say.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** Bytes of one message; below the 1 MiB that NATS takes by default. */
export const LOG_MESSAGE_BYTES_MAX = 960 * 1024;

/** One message of the log. */
export interface LogMessage {
  readonly kind: "message";
  readonly number: number;
  readonly bytes: Uint8Array;
}

/** A piece of the snapshot that takes the place of older messages. */
export interface SnapshotPiece {
  readonly kind: "piece";
  /** The message up to which the snapshot stands for the log. */
  readonly upTo: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
  readonly bytes: Uint8Array;
}

/** Where a log ends. */
export interface LogEnd {
  /** Identity of the log; another one after it was made anew. */
  readonly id: string;
  /** The last message that was ever appended; 0: none. */
  readonly number: number;
}

/** Messages in one order, kept by another system. */
export interface StateLog extends AsyncDisposable {
  /** Bytes of the messages that a snapshot has not replaced yet, as far as this log knows. */
  readonly bytes: number;
  /** Where it ends now. */
  end(): Promise<LogEnd>;
  /**
   * Appends a message behind the one with the number `after`, which has to be the last one, and
   * resolves to its number when it is durable. An aborted signal ends the attempts.
   *
   * @throws {EngineError} {@linkcode notOwner}: another one is the last, nothing was appended;
   * {@linkcode unknownOutcome}: it was or will be appended, or not.
   */
  append(bytes: Uint8Array, after: number, signal?: AbortSignal): Promise<number>;
  /**
   * The messages from a number up to the one that is the last when this is called. Where they were
   * replaced, the whole snapshot comes first. Ends early with an error, never with a gap.
   */
  read(from: number): AsyncIterable<LogMessage | SnapshotPiece>;
  /**
   * Replaces the messages up to a number, that one included, when all pieces are durable. The
   * pieces may hold more than those messages made, as applying later ones again has no effect.
   *
   * @throws {EngineError} {@linkcode notOwner} when a later snapshot was made meanwhile.
   */
  snapshot(pieces: AsyncIterable<Uint8Array>, upTo: number): Promise<void>;
}

/** Who leads a cluster, as one value with a revision that changes with each write. */
export interface LeaderKey {
  /** The value and its revision; an empty value: given up. `undefined` before the first write. */
  read(): Promise<{ readonly life: string; readonly revision: number } | undefined>;
  /**
   * Writes the value if the revision is still the current one (0: there is none) and resolves to
   * the new one.
   *
   * @throws {EngineError} {@linkcode notOwner} when it is not.
   */
  write(life: string, revision: number): Promise<number>;
}

/** The error of an engine that no longer is the one that writes. */
export function notOwner(): EngineError {
  const message = "Another engine keeps the state now; the write was not made";
  return new EngineError("SET_ERROR", message, { details: { reason: "not_owner" } });
}

/** Whether an error is {@linkcode notOwner}. */
export function isNotOwner(thrown: unknown): boolean {
  const details = thrown instanceof EngineError ? thrown.details : undefined;
  return (details as { reason?: unknown } | undefined)?.reason === "not_owner";
}

/** The error of a write of which nothing is known; `cause` is the last reason. */
export function unknownOutcome(cause?: unknown): EngineError {
  const reason = cause instanceof Error ? ` (${cause.message})` : "";
  const message = `The log of the cluster did not answer${reason}; the write may have been made`;
  return new EngineError("SET_ERROR", message, { cause, details: { unknown: true } });
}
