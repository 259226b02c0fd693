/**
 * Streams in a worker: reads and writes items, sends events, follows both, decides about
 * subscribers, and keeps the items of a stream in place of the engine.
 *
 * Everything here is calls of `stream::*` and triggers of `engine-stream`; the engine's
 * WebSocket for browsers is not used.
 *
 * @module
 */
import { checkCallable, checkId, invalid, show } from "../arguments.ts";
import { together } from "../implementation.ts";
import type { CallContext, Handler, Registration, WorkerCalls } from "../options.ts";
import { newId } from "../platform.ts";
import type { Json, JsonInput, JsonObject } from "../wire/protocol.ts";

/** What `set` and `update` of an item did. */
export interface StreamChange<Item = Json> {
  /** The item before; `null` if there was none. */
  readonly old_value: Item | null;
  /** The item now. */
  readonly new_value: Item;
  /** Operations of an update that could not be applied; the others were. */
  readonly errors?: readonly {
    readonly op_index: number;
    readonly code: string;
    readonly message: string;
  }[];
}

/**
 * One operation of an update, which is atomic for its item. `path` names a member of the item; an
 * array of names leads into nested objects; `""` is the item itself.
 */
export type UpdateOp =
  | { readonly type: "set"; readonly path: string; readonly value: JsonInput }
  | {
    readonly type: "merge";
    readonly path?: string | readonly string[];
    readonly value: object;
  }
  | { readonly type: "increment" | "decrement"; readonly path: string; readonly by: number }
  | {
    readonly type: "append";
    readonly path?: string | readonly string[];
    readonly value: JsonInput;
  }
  | { readonly type: "remove"; readonly path: string };

/** An event of a stream, as the function of a trigger of type `stream` gets it. */
export interface StreamTriggerEvent<Item = Json> {
  /** Always `stream`. */
  readonly type: "stream";
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  /** Name of the stream. */
  readonly streamName: string;
  /** The group. */
  readonly groupId: string;
  /** The item; `null` for an event of the group that was sent. */
  readonly id: string | null;
  /** What happened; `data` of `delete` is the removed item. `event` is what was sent. */
  readonly event:
    | { readonly type: "create" | "update" | "delete"; readonly data: Item }
    | { readonly type: "event"; readonly event: { readonly type: string; readonly data: Json } };
}

/** A subscription of a client, as functions of `stream:join` and `stream:leave` get it. */
export interface StreamSubscriber<Context = Json> {
  /** The id that the client gave it. */
  readonly subscription_id: string;
  /** Name of the stream. */
  readonly stream_name: string;
  /** The group. */
  readonly group_id: string;
  /** The item that is followed; `null`: the whole group. */
  readonly id: string | null;
  /** What the auth function of `engine-stream` returned; `null` without one. */
  readonly context: Context;
}

/** Options of a function that is called for a stream. */
export interface StreamTriggerOptions {
  /**
   * Id of the function: workers that use the same id share its calls. By default each worker has
   * one of its own, and every worker gets every call.
   */
  readonly function_id?: string | undefined;
  /** A function that gets the same payload first; when it returns `false`, nothing is called. */
  readonly condition_function_id?: string | undefined;
  /** Second argument of the handler. */
  readonly metadata?: JsonInput | undefined;
}

/** Options of {@linkcode Stream.onEvent}. */
export interface StreamEventOptions extends StreamTriggerOptions {
  /** Only events of this group. Default: all. */
  readonly group_id?: string | undefined;
  /** Only events of items with this id. Default: all. */
  readonly item_id?: string | undefined;
}

/**
 * A stream: items by group and id, kept by `engine-stream`. Created by `Worker.stream()`, which
 * sends nothing.
 *
 * Its calls fail as those of `Worker.trigger()` do: `function_not_found` without `engine-stream`,
 * `JSON_ERROR` for a name that is not allowed, `STREAM_<OP>_ERROR`, `overloaded`.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * interface Message {
 *   text: string;
 * }
 * async function greet() {
 *   await using worker = registerWorker();
 *   const chat = worker.stream<Message>("chat");
 *   chat.onEvent(({ id, event }) => console.log(id, event.type), { group_id: "room-1" });
 *   await chat.group("room-1").set("m1", { text: "hi" });
 *   return await chat.groups();
 * }
 * ```
 */
export interface Stream<Item = Json> {
  /** Its name. */
  readonly name: string;
  /** A group of it; sends nothing. */
  group(id: string): StreamGroup<Item>;
  /** The groups that have items, sorted. */
  groups(): Promise<string[]>;
  /**
   * Calls `handler` with each event until it is unregistered. What the engine refuses is reported
   * to `onError` of the worker.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`
   */
  onEvent(
    handler: Handler<StreamTriggerEvent<Item>>,
    options?: StreamEventOptions,
  ): Registration;
  /**
   * Calls `handler` before a client may follow a group or an item of this stream. It refuses with
   * `false` or `{ unauthorized: true }`; one that fails refuses as well. While no worker has a
   * handler, everyone may follow: let the auth function of `engine-stream` refuse strangers.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`
   */
  onJoin<Context = Json>(
    handler: Handler<StreamSubscriber<Context>>,
    options?: StreamTriggerOptions,
  ): Registration;
  /**
   * Calls `handler` after each subscription that was allowed has ended.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`
   */
  onLeave<Context = Json>(
    handler: Handler<StreamSubscriber<Context>>,
    options?: StreamTriggerOptions,
  ): Registration;
}

/** A group of a stream. */
export interface StreamGroup<Item = Json> {
  /** Name of the stream. */
  readonly stream: string;
  /** Its id. */
  readonly id: string;
  /** An item; `undefined` if there is none. */
  get(item_id: string): Promise<Item | undefined>;
  /**
   * Stores an item. Resolves when it is on disk; all that follow it get `create` or `update`.
   *
   * @param options `ttl_ms`: the item is removed after so many milliseconds. Default: never.
   */
  set(
    item_id: string,
    item: Item,
    options?: { readonly ttl_ms?: number | undefined },
  ): Promise<StreamChange<Item>>;
  /** Changes an item in one step; a missing one begins as `{}`. */
  update(item_id: string, ops: readonly UpdateOp[]): Promise<StreamChange<Item>>;
  /** Removes an item; resolves with it, `undefined` if there was none. */
  delete(item_id: string): Promise<Item | undefined>;
  /** The items, the oldest first. */
  list(): Promise<Item[]>;
  /**
   * The items with their ids, sorted by id, read page by page; changes meanwhile may be missing.
   * Not where a worker keeps the stream.
   *
   * @param prefix Only ids that begin with it. Default: all.
   */
  entries(prefix?: string): AsyncIterableIterator<[id: string, item: Item]>;
  /**
   * Sends an event to all that follow the group; nothing is stored.
   *
   * @param type Its name, such as `typing`.
   * @param data Any JSON. Default: `null`.
   * @param item_id The item that it is about. Default: none.
   */
  send(type: string, data?: JsonInput, item_id?: string): Promise<void>;
}

/** Where an item is, as the functions of a {@linkcode StreamSource} get it. */
export interface StreamItemPlace {
  /** Name of the stream. */
  readonly stream_name: string;
  /** The group. */
  readonly group_id: string;
  /** The item. */
  readonly item_id: string;
}

/** What a {@linkcode StreamSource} returns: a value, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/**
 * Keeps the items of a stream in place of the engine, such as in a database.
 *
 * The engine calls it for `stream::get` and the others, and passes changes on to all that follow
 * the stream, as `set`, `update` and `delete` answer. What it throws reaches the caller as
 * `STREAM_<OP>_ERROR`. `ttl_ms` of `set` is its own matter.
 *
 * @example The items are in a map; changes of it reach all that follow the stream
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * const users = new Map<string, { name: string }>();
 * const worker = registerWorker();
 * worker.createStream<{ name: string }>("users", {
 *   get: ({ item_id }) => users.get(item_id),
 *   set: ({ item_id, data }) => {
 *     const old_value = users.get(item_id);
 *     users.set(item_id, data);
 *     return { old_value, new_value: data };
 *   },
 *   delete: ({ item_id }) => {
 *     const old_value = users.get(item_id);
 *     users.delete(item_id);
 *     return { old_value };
 *   },
 *   list: () => [...users.values()],
 *   listGroups: () => ["all"],
 * });
 * await worker.shutdown();
 * ```
 */
export interface StreamSource<Item = Json> {
  /** An item; `undefined` if there is none. */
  get(place: StreamItemPlace, context: CallContext): Awaitable<Item | null | undefined>;
  /** Stores an item, and returns it with the one before. */
  set(
    request: StreamItemPlace & { readonly data: Item; readonly ttl_ms?: number | null },
    context: CallContext,
  ): Awaitable<{ readonly old_value?: Item | null | undefined; readonly new_value: Item }>;
  /** Removes an item, and returns it if there was one. */
  delete(
    place: StreamItemPlace,
    context: CallContext,
  ): Awaitable<{ readonly old_value?: Item | null | undefined }>;
  /** The items of a group, in the order in which clients get them. */
  list(
    group: Pick<StreamItemPlace, "stream_name" | "group_id">,
    context: CallContext,
  ): Awaitable<readonly Item[]>;
  /** The groups that have items. */
  listGroups(
    stream: Pick<StreamItemPlace, "stream_name">,
    context: CallContext,
  ): Awaitable<readonly string[]>;
  /** Changes an item. Without it, `stream::update` changes the items that the engine keeps. */
  update?(
    request: StreamItemPlace & { readonly ops: readonly UpdateOp[] },
    context: CallContext,
  ): Awaitable<{ readonly old_value?: Item | null | undefined; readonly new_value: Item }>;
}

/** `Worker.stream()` */
export function streamOf<Item>(worker: WorkerCalls, name: string): Stream<Item> {
  checkId("The name of a stream", name, "chat");
  return new WorkerStream<Item>(worker, name);
}

/** Functions of a source: the name after `stream::`, and the method. */
const SOURCE_OPS = [
  ["get", "get"],
  ["set", "set"],
  ["delete", "delete"],
  ["list", "list"],
  ["list_groups", "listGroups"],
  ["update", "update"],
] as const;

/** `Worker.createStream()` */
export function createStream<Item>(
  worker: WorkerCalls,
  name: string,
  source: StreamSource<Item>,
): Registration {
  checkId("The name of a stream", name, "chat");
  if (typeof source !== "object" || source === null) {
    throw invalid(`The source of stream ${name} must be an object, got ${show(source)}`);
  }
  // All are checked before the first one is registered.
  const ops = SOURCE_OPS.filter(([, method]) => method !== "update" || source.update !== undefined);
  for (const [, method] of ops) checkCallable(`${method} of stream ${name}`, source[method]);
  const description = `Keeps the items of stream ${name}`;
  const registered = ops.map(([op, method]) => {
    const handler: Handler = (payload, _metadata, context) =>
      source[method]!(payload as never, context);
    return worker.registerFunction(`stream::${op}(${name})`, handler, { description });
  });
  return together(name, registered);
}

/** The trigger types: the group of the functions that they call, and what those get. */
const KINDS = {
  stream: { group: "stream-event", what: "Events" },
  "stream:join": { group: "stream-join", what: "Decides about subscribers" },
  "stream:leave": { group: "stream-leave", what: "Subscribers that left" },
} as const;

/** See {@linkcode Stream}. */
class WorkerStream<Item> implements Stream<Item> {
  readonly name: string;
  readonly #worker: WorkerCalls;

  constructor(worker: WorkerCalls, name: string) {
    this.#worker = worker;
    this.name = name;
  }

  group(id: string): StreamGroup<Item> {
    checkId("A group", id, "room-1");
    return new WorkerStreamGroup<Item>(this.#worker, this.name, id);
  }

  async groups(): Promise<string[]> {
    const payload = { stream_name: this.name };
    return await this.#worker.trigger({ function_id: "stream::list_groups", payload });
  }

  onEvent(
    handler: Handler<StreamTriggerEvent<Item>>,
    { group_id, item_id, ...options }: StreamEventOptions = {},
  ): Registration {
    return this.#on("stream", handler, options, { group_id, item_id });
  }

  onJoin<Context>(
    handler: Handler<StreamSubscriber<Context>>,
    options: StreamTriggerOptions = {},
  ): Registration {
    checkCallable("The handler of stream:join", handler);
    const { name } = this;
    const decide: Handler<StreamSubscriber<Context>> = async (subscriber, metadata, context) => {
      if (subscriber.stream_name !== name) return undefined; // Of an engine that does not filter.
      const said = await handler(subscriber, metadata, context);
      return said === false ? { unauthorized: true } : said;
    };
    return this.#on("stream:join", decide, options);
  }

  onLeave<Context>(
    handler: Handler<StreamSubscriber<Context>>,
    options: StreamTriggerOptions = {},
  ): Registration {
    checkCallable("The handler of stream:leave", handler);
    const { name } = this;
    const tell: Handler<StreamSubscriber<Context>> = (subscriber, metadata, context) =>
      subscriber.stream_name === name ? handler(subscriber, metadata, context) : undefined;
    return this.#on("stream:leave", tell, options);
  }

  /** A function, and the trigger that calls it for this stream. */
  #on<Event>(
    type: keyof typeof KINDS,
    handler: Handler<Event>,
    { function_id = `${KINDS[type].group}::${newId()}`, condition_function_id, metadata }:
      StreamTriggerOptions,
    filter: { readonly group_id?: string | undefined; readonly item_id?: string | undefined } = {},
  ): Registration {
    const config: JsonObject = { stream_name: this.name };
    for (const [key, value] of Object.entries({ ...filter, condition_function_id })) {
      if (value !== undefined) config[key] = value;
    }
    const called = this.#worker.registerFunction(function_id, handler, {
      description: `${KINDS[type].what} of stream ${this.name}`,
      metadata: { internal: true },
    });
    const trigger = this.#worker.registerTrigger({ type, function_id, config, metadata });
    return together(trigger.id, [trigger, called]);
  }
}

/** Items that are read at once. */
const PAGE_ITEMS = 500;

/** The answer of `stream::list_items`. */
interface ItemsPage<Item> {
  readonly items: readonly { readonly id: string; readonly data: Item }[];
  readonly cursor?: string;
}

/** See {@linkcode StreamGroup}. */
class WorkerStreamGroup<Item> implements StreamGroup<Item> {
  readonly stream: string;
  readonly id: string;
  readonly #worker: WorkerCalls;

  constructor(worker: WorkerCalls, stream: string, id: string) {
    this.#worker = worker;
    this.stream = stream;
    this.id = id;
  }

  async get(item_id: string): Promise<Item | undefined> {
    return await this.#call("get", { item_id });
  }

  async set(
    item_id: string,
    item: Item,
    { ttl_ms }: { readonly ttl_ms?: number | undefined } = {},
  ): Promise<StreamChange<Item>> {
    return await this.#call("set", { item_id, ...ttl_ms !== undefined && { ttl_ms }, data: item });
  }

  async update(item_id: string, ops: readonly UpdateOp[]): Promise<StreamChange<Item>> {
    return await this.#call("update", { item_id, ops });
  }

  async delete(item_id: string): Promise<Item | undefined> {
    const { old_value } = await this.#call<{ old_value?: Item | null }>("delete", { item_id });
    return old_value ?? undefined;
  }

  async list(): Promise<Item[]> {
    return await this.#call("list", {});
  }

  async *entries(prefix = ""): AsyncIterableIterator<[id: string, item: Item]> {
    let cursor: string | undefined;
    do {
      const query = { prefix, limit: PAGE_ITEMS, ...cursor !== undefined && { cursor } };
      const page = await this.#call<ItemsPage<Item>>("list_items", query);
      for (const { id, data } of page.items) yield [id, data];
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  async send(type: string, data?: JsonInput, item_id?: string): Promise<void> {
    await this.#call("send", {
      ...item_id !== undefined && { id: item_id },
      type,
      ...data !== undefined && { data },
    });
  }

  #call<Out>(op: string, payload: Record<string, unknown>): Promise<Out> {
    return this.#worker.trigger<unknown, Out>({
      function_id: `stream::${op}`,
      payload: { stream_name: this.stream, group_id: this.id, ...payload },
    });
  }
}
