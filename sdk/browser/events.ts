/**
 * What a program gets of a stream, and the items that the events add up to.
 *
 * @module
 */
import type { Json } from "../typescript/wire/protocol.ts";

/** All items of a group, or the one that is followed: at first, and after anything was missed. */
export interface SyncEvent<Item = Json> {
  /** Tells it from the other events. */
  readonly type: "sync";
  /** The oldest first. For one item: a list of it, empty if it is missing. */
  readonly items: readonly Item[];
  /** Milliseconds since 1970, on the clock of the engine. */
  readonly timestamp: number;
  /**
   * Events that this program did not take in time, and that are left out: their changes are in
   * `items`, events that were sent without an item's change are lost.
   */
  readonly missed: number;
}

/** An item was created, changed or deleted. */
export interface ChangeEvent<Item = Json> {
  /** What happened. */
  readonly type: "create" | "update" | "delete";
  /** Id of the item. */
  readonly id: string;
  /** The item as it is now; for `delete` as it was. */
  readonly item: Item;
  /** Milliseconds since 1970, on the clock of the engine. */
  readonly timestamp: number;
}

/** An event of `stream::send`. */
export interface SentEvent {
  /** Tells it from changes of items. */
  readonly type: "event";
  /** Id of the item that it is about; `null` for the group. */
  readonly id: string | null;
  /** Its name, such as `typing`. */
  readonly name: string;
  /** Any JSON; `null` if it was sent without. */
  readonly data: Json;
  /** Milliseconds since 1970, on the clock of the engine. */
  readonly timestamp: number;
}

/** What an iterator of a subscription yields. */
export type StreamEvent<Item = Json> = SyncEvent<Item> | ChangeEvent<Item> | SentEvent;

/** Says what the id of an item is, if its data has it; see `idOf` of the options of the client. */
export type ItemId = (item: Json, stream: string) => string | undefined;

/** What is followed: a group of a stream, or one item of it. */
export interface Topic {
  readonly streamName: string;
  readonly groupId: string;
  readonly id: string | null;
}

/** A message of the engine, checked. */
export type StreamMessage =
  | { readonly type: "event"; readonly topic: Topic; readonly event: StreamEvent }
  | {
    readonly type: "sync";
    readonly topic: Topic;
    readonly data: Json;
    readonly ids: readonly string[] | undefined;
    readonly timestamp: number;
  }
  | { readonly type: "unauthorized"; readonly topic: Topic }
  | { readonly type: "error"; readonly subscriptionId: string | null; readonly error: Json };

/** Identifies a topic. */
export function keyOf({ streamName, groupId, id }: Topic): string {
  return JSON.stringify([streamName, groupId, id]);
}

/** Reads a message of the engine; `undefined` for what is none that is known. */
export function readMessage(text: string): StreamMessage | undefined {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return undefined; // Reported by the caller.
  }
  if (!isObject(message)) return undefined;
  const { type, streamName, groupId, id = null, event, timestamp } = message;
  if (type === "error") {
    const { subscriptionId = null, error = null } = message;
    const isKnown = subscriptionId === null || typeof subscriptionId === "string";
    return isKnown ? { type, subscriptionId, error: error as Json } : undefined;
  }
  const isEvent = type === "stream" && typeof streamName === "string" &&
    typeof groupId === "string" && (id === null || typeof id === "string") && isObject(event);
  if (!isEvent) return undefined;
  const at = typeof timestamp === "number" ? timestamp : 0;
  return readEvent({ streamName, groupId, id }, event, at);
}

function readEvent(
  topic: Topic,
  event: Record<string, unknown>,
  timestamp: number,
): StreamMessage | undefined {
  const { type, data = null, ids } = event as Record<string, Json>;
  const { id } = topic;
  switch (type) {
    case "unauthorized":
      return { type, topic };
    case "sync":
      return { type, topic, data: data!, ids: isTexts(ids) ? ids : undefined, timestamp };
    case "create":
    case "update":
    case "delete":
      if (id === null) return undefined;
      return { type: "event", topic, event: { type, id, item: data!, timestamp } };
    case "event": {
      const sent = event.event;
      if (!isObject(sent) || typeof sent.type !== "string") return undefined;
      const { type: name, data = null } = sent;
      return {
        type,
        topic,
        event: { type, id, name, data: data as Json, timestamp },
      };
    }
    default:
      return undefined;
  }
}

/** The items of a topic, in the order in which they were created. */
export class Items {
  readonly #items = new Map<string, Json>();
  readonly #idOf: ItemId;

  constructor(idOf: ItemId) {
    this.#idOf = idOf;
  }

  /** The items by id; changes with every event. */
  get map(): ReadonlyMap<string, Json> {
    return this.#items;
  }

  /** Replaces them by those of a `sync`. Without `ids`, the data has to say which is which. */
  replace({ streamName, id }: Topic, data: Json, ids: readonly string[] | undefined): void {
    this.#items.clear();
    if (id !== null) {
      if (data !== null) this.#items.set(id, data);
      return;
    }
    const list = Array.isArray(data) ? data : [];
    list.forEach((item, at) => {
      this.#items.set(ids?.[at] ?? this.#idOf(item, streamName) ?? `#${at}`, item);
    });
  }

  /** Applies a change. */
  apply(event: StreamEvent): void {
    if (event.type === "delete") this.#items.delete(event.id);
    else if (event.type === "create" || event.type === "update") {
      this.#items.set(event.id, event.item);
    }
  }
}

/** The `id` of an object, if it is text. */
export function ownId(item: Json): string | undefined {
  return isObject(item) && typeof item.id === "string" ? item.id : undefined;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
