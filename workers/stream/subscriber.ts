/**
 * One subscriber: its connection, what it follows, and what is sent to it.
 *
 * Its requests are handled one after another, in the order in which they came. A subscription
 * begins with what the topic is now: events that come while that is read are kept, and follow it,
 * so none is missed. A subscriber that reads too slowly is closed and costs no other anything; when
 * it comes back, it gets everything anew.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import {
  type Connection,
  type ConnectionEvents,
  SEND_AHEAD_BYTES,
} from "../../engine/ports/connection.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { SOCKET_FREE_BYTES } from "../../engine/ports/web_sockets.ts";
import { EngineError, errorBody, thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody, Json } from "../../sdk/typescript/wire/protocol.ts";
import type { HeldMemory } from "../kit/held_memory.ts";
import type { Audience, Follower, GroupEvent } from "./audience.ts";
import type { AuthRequest, Joins } from "./joins.ts";
import {
  errorMessage,
  readRequest,
  REQUEST_BYTES_MAX,
  type SubscriberRequest,
  type Topic,
  unauthorizedMessage,
} from "./messages.ts";
import type { SyncReads } from "./sync.ts";

/** Subscriptions of one connection. */
export const SUBSCRIPTIONS_MAX = 1_000;
/** With more unsent, a subscriber is behind and is closed. */
export const UNSENT_BYTES_MAX: number = 1024 * 1024;
/** Requests that wait while one is handled; then nothing is read. */
export const REQUESTS_WAITING_MAX = 16;
/** Events that are kept while the first message of a subscription is read, and their bytes. */
export const HELD_EVENTS_MAX = 1_000;
/** See {@linkcode HELD_EVENTS_MAX}. */
export const HELD_BYTES_MAX: number = 1024 * 1024;
/** How long a large first message may take to leave before the next request is handled. */
export const LARGE_SYNC_MS = 30_000;
/** What a subscription takes beside its names. */
const SUBSCRIPTION_BYTES = 512;
const TOO_SLOW = "the subscriber reads too slowly; connect again";
const NOTHING = new Uint8Array();
const TEXT = new TextDecoder("utf-8", { ignoreBOM: true });

/** What all subscribers share. */
export interface SubscriberServices {
  readonly clock: Pick<Clock, "wall" | "after">;
  readonly memory: Pick<MemoryBudget, "isTight">;
  readonly audience: Pick<Audience, "follow">;
  readonly joins: Pick<Joins, "admit" | "allows" | "left">;
  readonly sync: Pick<SyncReads, "read">;
  readonly counts: SubscriberCounts;
  /** A connection has ended. */
  closed(subscriber: Subscriber): void;
}

/** What was sent to all subscribers, and what they follow. */
export interface SubscriberCounts {
  subscriptions: number;
  /** Events, one for each subscriber that got it. */
  sent: number;
  /** Connections that were closed because they read too slowly. */
  closedSlow: number;
  /** Subscriptions by stream. */
  readonly byStream: Map<string, number>;
}

/** Something that a subscriber follows. */
interface Subscription {
  readonly id: string;
  readonly topic: Topic;
  readonly bytes: number;
  /** Events that came before its first message; `undefined` afterwards. */
  held: GroupEvent[] | undefined;
  heldBytes: number;
  readonly group: FollowedGroup;
}

/** A group that a connection follows, once however many of its subscriptions are about it. */
interface FollowedGroup extends Follower {
  readonly subscriptions: Set<Subscription>;
  stop(): void;
}

/** An accepted connection. */
export class Subscriber implements ConnectionEvents {
  readonly #connection: Connection;
  readonly #held: HeldMemory;
  readonly #services: SubscriberServices;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #groups = new Map<string, FollowedGroup>();
  readonly #requests: string[] = [];
  #context: Json = null;
  #isRunning = true;
  #isPaused = false;
  #isOpen = true;
  #drained: (() => void) | undefined;

  constructor(
    connection: Connection,
    request: AuthRequest,
    held: HeldMemory,
    services: SubscriberServices,
  ) {
    this.#connection = connection;
    this.#held = held;
    this.#services = services;
    void this.#admit(request);
  }

  /** Closes the connection. */
  close(code: number, reason: string): void {
    if (!this.#isOpen) return;
    this.#connection.close(code, reason);
    this.closed();
  }

  text(text: string): void {
    if (text.length > REQUEST_BYTES_MAX) this.#refuseSize();
    else this.#receive(text);
  }

  textBytes(memory: Uint8Array, start: number, end: number): void {
    if (end - start > REQUEST_BYTES_MAX) this.#refuseSize();
    else this.#receive(TEXT.decode(memory.subarray(start, end)));
  }

  binary(): void {
    this.close(1003, "messages of a subscriber are JSON as text");
  }

  drained(): void {
    this.#drained?.();
  }

  suspected(): void {}

  closed(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#requests.length = 0;
    for (const subscription of this.#subscriptions.values()) this.#end(subscription);
    this.#drained?.();
    this.#held.release();
    this.#services.closed(this);
  }

  #refuseSize(): void {
    this.close(1009, `messages of a subscriber have at most ${REQUEST_BYTES_MAX} bytes`);
  }

  async #admit(request: AuthRequest): Promise<void> {
    const admitted = await this.#services.joins.admit(request);
    if (!admitted) return this.close(1008, "unauthorized");
    this.#context = admitted.context;
    this.#isRunning = false;
    void this.#run();
  }

  #receive(text: string): void {
    if (!this.#isOpen) return;
    this.#requests.push(text);
    if (this.#requests.length > REQUESTS_WAITING_MAX && !this.#isPaused) {
      this.#isPaused = true;
      this.#connection.pause();
    }
    void this.#run();
  }

  /** Handles what waits, one request after another. Never rejects. */
  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (;;) {
      const text = this.#requests.shift();
      if (text === undefined) break;
      if (this.#isPaused && this.#requests.length <= REQUESTS_WAITING_MAX / 2) {
        this.#isPaused = false;
        this.#connection.resume();
      }
      await this.#handle(text);
    }
    this.#isRunning = false;
  }

  async #handle(text: string): Promise<void> {
    const request = readRequest(text);
    if ("problem" in request) {
      const message = `A message does not fit: ${request.problem}`;
      return this.#fail(request.subscription_id, errorBody("bad_message", message));
    }
    const before = this.#subscriptions.get(request.subscription_id);
    if (before) this.#end(before);
    if (request.type === "leave") return;
    try {
      await this.#join(request);
    } catch (thrown) {
      this.#fail(request.subscription_id, bodyOf(thrown));
    }
  }

  async #join({ subscription_id, topic }: SubscriberRequest): Promise<void> {
    if (this.#subscriptions.size >= SUBSCRIPTIONS_MAX) {
      const message = `A connection may have at most ${SUBSCRIPTIONS_MAX} subscriptions`;
      throw new EngineError("overloaded", message, { retryable: false });
    }
    const bytes = bytesOf(subscription_id, topic);
    if (!this.#held.take(bytes)) {
      const message = "The memory of the engine has no room for the subscription; try again";
      throw new EngineError("overloaded", message);
    }
    const { joins, clock } = this.#services;
    let isAllowed = false;
    try {
      isAllowed = await joins.allows({ subscription_id, topic, context: this.#context });
    } finally {
      if (!isAllowed) this.#held.give(bytes);
    }
    if (!isAllowed) return void this.#send(unauthorizedMessage(topic, clock.wall()));
    const subscription = this.#begin(subscription_id, topic, bytes);
    // The handlers of joins have heard of it, so those of leaves must.
    if (!this.#isOpen) return this.#end(subscription);
    try {
      await this.#sync(subscription);
    } catch (thrown) {
      this.#end(subscription);
      throw thrown;
    }
  }

  #begin(id: string, topic: Topic, bytes: number): Subscription {
    const { counts } = this.#services;
    const group = this.#follow(groupKey(topic));
    const subscription: Subscription = { id, topic, bytes, held: [], heldBytes: 0, group };
    group.subscriptions.add(subscription);
    this.#subscriptions.set(id, subscription);
    counts.subscriptions++;
    const { byStream } = counts;
    byStream.set(topic.stream_name, (byStream.get(topic.stream_name) ?? 0) + 1);
    return subscription;
  }

  #follow(key: string): FollowedGroup {
    const known = this.#groups.get(key);
    if (known) return known;
    const subscriptions = new Set<Subscription>();
    const hear = (event: GroupEvent): void => this.#hear(subscriptions, event);
    const stop = this.#services.audience.follow(key, { hear });
    const group = { subscriptions, hear, stop };
    this.#groups.set(key, group);
    return group;
  }

  #end(subscription: Subscription): void {
    const { id, topic, bytes, group } = subscription;
    const { joins, counts: { byStream }, counts } = this.#services;
    if (!this.#subscriptions.delete(id)) return;
    group.subscriptions.delete(subscription);
    if (group.subscriptions.size === 0) {
      group.stop();
      this.#groups.delete(groupKey(topic));
    }
    this.#held.give(bytes);
    counts.subscriptions--;
    const left = byStream.get(topic.stream_name)! - 1;
    if (left > 0) byStream.set(topic.stream_name, left);
    else byStream.delete(topic.stream_name);
    joins.left({ subscription_id: id, topic, context: this.#context });
  }

  /** Sends what the topic is, then what happened meanwhile. */
  async #sync(subscription: Subscription): Promise<void> {
    const message = await this.#services.sync.read(subscription.topic);
    const held = subscription.held ?? [];
    subscription.held = undefined;
    if (!this.#isOpen) return;
    this.#send(message);
    for (const event of held) if (this.#isOpen) this.#sendEvent(event);
    if (this.#connection.queuedBytes > SEND_AHEAD_BYTES) await this.#whenDrained();
  }

  /** Sends an event once, however many subscriptions match; those that begin keep it. */
  #hear(subscriptions: ReadonlySet<Subscription>, event: GroupEvent): void {
    let isWanted = false;
    for (const subscription of subscriptions) {
      const { topic, held } = subscription;
      if (topic.id !== null && topic.id !== event.id) continue;
      if (held) this.#hold(subscription, held, event);
      else isWanted = true;
    }
    if (isWanted) this.#sendEvent(event);
  }

  #hold(subscription: Subscription, held: GroupEvent[], event: GroupEvent): void {
    held.push(event);
    subscription.heldBytes += event.bytes.length;
    const isFull = held.length > HELD_EVENTS_MAX || subscription.heldBytes > HELD_BYTES_MAX;
    if (isFull) this.#closeSlow();
  }

  #sendEvent({ bytes }: GroupEvent): void {
    if (this.#send(bytes)) this.#services.counts.sent++;
  }

  /** Sends a message, or closes a subscriber that is behind. */
  #send(bytes: Uint8Array): boolean {
    if (!this.#isOpen) return false;
    const unsent = this.#connection.queuedBytes;
    const room = this.#services.memory.isTight ? SOCKET_FREE_BYTES : UNSENT_BYTES_MAX;
    if (unsent > 0 && unsent + bytes.length > room) {
      this.#closeSlow();
      return false;
    }
    this.#connection.forward(NOTHING, 0, bytes, 0, bytes.length);
    return true;
  }

  #closeSlow(): void {
    if (!this.#isOpen) return;
    this.#services.counts.closedSlow++;
    this.close(1013, TOO_SLOW);
  }

  #fail(subscriptionId: string | null, error: ErrorBody): void {
    this.#send(errorMessage(subscriptionId, error));
  }

  #whenDrained(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#services.clock.after(LARGE_SYNC_MS, () => this.#closeSlow());
      this.#drained = () => {
        this.#drained = undefined;
        cancel();
        resolve();
      };
    });
  }
}

/** One for each group of a stream. */
export function groupKey({ stream_name, group_id }: Omit<Topic, "id">): string {
  return `${stream_name}\0${group_id}`;
}

function bytesOf(id: string, { stream_name, group_id, id: item }: Topic): number {
  const chars = id.length + 2 * (stream_name.length + group_id.length + (item?.length ?? 0));
  return SUBSCRIPTION_BYTES + 2 * chars;
}

function bodyOf(thrown: unknown): ErrorBody {
  if (thrown instanceof EngineError) {
    const { stacktrace: _, ...body } = thrown.toJSON();
    return body;
  }
  return errorBody("invocation_error", thrownText(thrown));
}
