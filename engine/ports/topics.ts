/**
 * Topics: messages to everyone who is subscribed at that moment, at most once.
 *
 * This is a table in each engine (`workers/pubsub/local_topics.ts`). In a cluster the subscriptions
 * of all engines are in each of them, so a message needs no way of its own to the others.
 *
 * @module
 */
import type { FiringPayload } from "./firings.ts";

/** Longest topic, and longest pattern, in characters. */
export const TOPIC_CHARS_MAX = 1_024;
/** Parts of a pattern, which are separated by dots. */
export const PATTERN_PARTS_MAX = 32;
/** Stands for one part of a topic. */
export const ANY_PART = "*";
/** As the last part of a pattern: stands for one part or more. */
export const ANY_REST = ">";

/** Publishes messages and delivers them to subscribers. */
export interface Topics {
  /**
   * Sends a message to all that are subscribed now, and returns at once; those of one publisher
   * arrive in order. `false`: too many messages wait, and this one was not accepted.
   */
  publish(topic: string, message: FiringPayload): boolean;
  /**
   * Calls `hear` with the messages of a topic, or of all topics that a pattern matches: `*` stands
   * for one part, `>` at the end for one or more. Call the result to stop. `hear` must not throw.
   */
  subscribe(pattern: string, hear: (message: FiringPayload) => void): () => void;
}
