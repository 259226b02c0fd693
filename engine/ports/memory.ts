/**
 * The memory that all parts of the process share, so that no peer can fill it.
 *
 * A part takes bytes where it stores what a peer sent or has not read: buffers, bodies, queued
 * calls, registrations. It returns exactly what it took, on every path. Small fixed costs, such as
 * those of an idle connection, are bounded by counts instead and are not taken.
 *
 * @module
 */

/** What memory is used for; metrics and `engine doctor` report bytes by it. */
export type MemoryUse =
  /** Incoming frames and fragments, and unsent frames. */
  | "buffers"
  /** Bodies of HTTP requests and responses. */
  | "bodies"
  /** Calls and writes that wait: parked calls, writes before their commit, events to fan out. */
  | "queues"
  /** Functions, triggers, trigger types and announcements. */
  | "registrations"
  /** Recorded spans, logs and metrics, and what waits to be exported. */
  | "rings"
  /** Cached entries of the store. */
  | "caches";

/** A budget in bytes. No method throws. */
export interface MemoryBudget {
  /** Most bytes that may be taken at once. */
  readonly limitBytes: number;
  /** Bytes that are taken now. */
  readonly usedBytes: number;
  /** Over three quarters are taken: caches shrink, and large holders are asked to hurry. */
  readonly isTight: boolean;
  /** Bytes that are taken now for a use. */
  used(use: MemoryUse): number;
  /**
   * Takes bytes; `false`, and nothing is taken, when they do not fit. The caller then stops
   * reading, or refuses with `overloaded`, status 429 or close code 1009.
   */
  take(use: MemoryUse, bytes: number): boolean;
  /** Returns bytes that {@linkcode take} took. */
  release(use: MemoryUse, bytes: number): void;
  /**
   * Calls `then` once, in a later task, when `bytes` fit again; waiting parts are called in their
   * order, each after the one before had its chance to take. Call the result to stop waiting.
   */
  whenRoom(bytes: number, then: () => void): () => void;
}

/** A budget that has room for everything, for tests and for parts that run without an engine. */
export const UNLIMITED_MEMORY: MemoryBudget = {
  limitBytes: Infinity,
  usedBytes: 0,
  isTight: false,
  used: () => 0,
  take: () => true,
  release() {},
  whenRoom(_bytes, then) {
    queueMicrotask(then);
    return () => {};
  },
};
