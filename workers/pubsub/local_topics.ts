/**
 * The {@linkcode Topics} of one process: messages wait in order, and are delivered in slices.
 *
 * A message may concern thousands of subscribers. So deliveries run for {@linkcode SLICE_MS}, with
 * a timer between slices in which the engine serves its connections. What waits is bounded: a
 * publisher that is faster than its messages are delivered is refused, and never waits.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { FiringPayload } from "../../engine/ports/firings.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import type { Topics } from "../../engine/ports/topics.ts";
import { TopicTree } from "./topic_tree.ts";

/** How long deliveries may run before other work gets its turn. */
export const SLICE_MS = 4;
/** Pause between slices; a timer, because only that lets sockets be read. */
const PAUSE_MS = 1;
/** Messages that wait for their deliveries, and their bytes. */
export const MESSAGES_WAITING_MAX = 10_000;
/** See {@linkcode MESSAGES_WAITING_MAX}. */
export const BYTES_WAITING_MAX = 32 * 1024 * 1024;
/** Deliveries, or bytes, between two looks at the clock. */
const DELIVERIES_PER_LOOK = 16;
const BYTES_PER_LOOK = 512 * 1024;
/** Estimated bytes of a message and of a delivery beside the payload. */
const MESSAGE_OVERHEAD_BYTES = 256;
const DELIVERY_OVERHEAD_BYTES = 8;

/** Dependencies of {@linkcode LocalTopics}. */
export interface LocalTopicsSetup {
  readonly clock: Pick<Clock, "now" | "after">;
  readonly memory: MemoryBudget;
}

/** Someone who is subscribed. */
interface Listener {
  readonly hear: (message: FiringPayload) => void;
  isStopped: boolean;
}

/** A message that has not reached all of its listeners. */
interface Delivery {
  readonly message: FiringPayload;
  readonly listeners: readonly Listener[];
  readonly bytes: number;
  next: number;
}

/** Topics in this process. */
export class LocalTopics implements Topics, Disposable {
  readonly #setup: LocalTopicsSetup;
  readonly #listeners = new TopicTree<Listener>();
  /** From `#first` on. */
  #waiting: Delivery[] = [];
  #first = 0;
  #waitingBytes = 0;
  #cancel: (() => void) | undefined;

  constructor(setup: LocalTopicsSetup) {
    this.#setup = setup;
  }

  /** Messages that wait for their deliveries. */
  get waiting(): number {
    return this.#waiting.length - this.#first;
  }

  publish(topic: string, message: FiringPayload): boolean {
    const listeners = this.#listeners.find(topic);
    if (listeners.length === 0) return true;
    const bytes = message.json.length + MESSAGE_OVERHEAD_BYTES +
      listeners.length * DELIVERY_OVERHEAD_BYTES;
    const isFull = this.waiting >= MESSAGES_WAITING_MAX ||
      (this.waiting > 0 && this.#waitingBytes + bytes > BYTES_WAITING_MAX);
    if (isFull || !this.#setup.memory.take("queues", bytes)) return false;
    this.#waitingBytes += bytes;
    this.#waiting.push({ message, listeners, bytes, next: 0 });
    if (!this.#cancel) this.#run();
    return true;
  }

  subscribe(pattern: string, hear: (message: FiringPayload) => void): () => void {
    const listener: Listener = { hear, isStopped: false };
    this.#listeners.add(pattern, listener);
    return () => {
      if (listener.isStopped) return;
      listener.isStopped = true;
      this.#listeners.remove(pattern, listener);
    };
  }

  /** Drops all messages that wait. */
  [Symbol.dispose](): void {
    this.#cancel?.();
    this.#cancel = undefined;
    while (this.waiting > 0) this.#shift();
  }

  #run(): void {
    const { clock } = this.#setup;
    const end = clock.now() + SLICE_MS;
    // Set while it runs: what a delivery causes waits for its turn.
    this.#cancel = () => {};
    let left = DELIVERIES_PER_LOOK;
    while (this.waiting > 0) {
      const delivery = this.#waiting[this.#first]!;
      const { listeners, message } = delivery;
      const perLook = Math.ceil(message.json.length * DELIVERIES_PER_LOOK / BYTES_PER_LOOK) || 1;
      while (delivery.next < listeners.length) {
        const listener = listeners[delivery.next++]!;
        if (!listener.isStopped) listener.hear(message);
        left -= perLook;
        if (left > 0) continue;
        left = DELIVERIES_PER_LOOK;
        if (clock.now() >= end) return this.#pause();
      }
      this.#shift();
    }
    this.#cancel = undefined;
  }

  #pause(): void {
    this.#cancel = this.#setup.clock.after(PAUSE_MS, () => this.#run());
  }

  /** Removes the first message. */
  #shift(): void {
    const { bytes } = this.#waiting[this.#first]!;
    this.#waitingBytes -= bytes;
    this.#setup.memory.release("queues", bytes);
    if (++this.#first < MESSAGES_WAITING_MAX && this.waiting > 0) return;
    this.#waiting = this.#waiting.slice(this.#first);
    this.#first = 0;
  }
}
