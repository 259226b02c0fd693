/**
 * The functions `stream::*`: items by stream and group, and events that are not stored.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Handler } from "../../sdk/typescript/options.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import {
  type AnswerMemory,
  changeAnswer,
  checkAnswer,
  LARGE_BYTES,
  listAnswer,
  updateEntry,
} from "../state/answers.ts";
import { listEntries, type StateEntries } from "../state/entries.ts";
import type { Expiry } from "../state/expiry.ts";
import {
  entryOf,
  type GroupPlace,
  GROUPS_MAX,
  listGroups,
  listStreams,
  makeEvent,
  scopeOf,
  type StreamEvent,
} from "./items.ts";
import { codeOf, happeningIn, type Overrides } from "./overrides.ts";
import { fitRequest, FORMATS, REQUESTS, type StreamOp } from "./payloads.ts";

/** Largest data of an event that is not stored, as JSON. */
export const SENT_BYTES_MAX: number = 1024 * 1024;

/** Dependencies of {@linkcode StreamFunctions}. */
export interface StreamFunctionsSetup {
  readonly entries: StateEntries;
  readonly expiry: Pick<Expiry, "sweep">;
  readonly clock: Pick<Clock, "wall">;
  readonly answers: AnswerMemory;
  readonly overrides: Overrides;
  /** Too many events wait for triggers or subscribers. */
  isBehind(): boolean;
  /** Passes an event on that is no change in the store; `bytes`: of its values. */
  emit(event: StreamEvent, bytes: number): void;
}

/** The implementation of each function. */
export class StreamFunctions {
  readonly #setup: StreamFunctionsSetup;
  readonly #entries: StateEntries;

  constructor(setup: StreamFunctionsSetup) {
    this.#setup = setup;
    this.#entries = setup.entries;
  }

  /** `stream::set` */
  async set(payload: Json): Promise<Json | JsonText | undefined> {
    const { data, ttl_ms, ...place } = fitRequest("set", REQUESTS.set, payload);
    this.#refuseIfBehind();
    const overridden = await this.#change("set", place, payload);
    if (overridden) return overridden.answer;
    const expires_at_ms = typeof ttl_ms === "number"
      ? this.#setup.clock.wall() + ttl_ms
      : undefined;
    const changed = await withCode("set", () =>
      this.#entries.write(entryOf(place), (old) => {
        checkAnswer(old, data);
        return { value: data, expires_at_ms };
      }, expires_at_ms));
    return changeAnswer(changed.old, changed.new!.json);
  }

  /** `stream::get` */
  async get(payload: Json): Promise<Json | JsonText | undefined> {
    const place = fitRequest("get", REQUESTS.get, payload);
    const overridden = await this.#setup.overrides.call("get", place.stream_name, payload);
    if (overridden) return overridden.answer ?? undefined;
    const found = await withCode("get", () => this.#entries.get(entryOf(place)));
    if (found && found.bytes >= LARGE_BYTES) {
      await this.#setup.answers.hold((add) => add(found.bytes));
    }
    return found && new JsonText(found.json);
  }

  /** `stream::delete` */
  async delete(payload: Json): Promise<Json | JsonText | undefined> {
    const place = fitRequest("delete", REQUESTS.delete, payload);
    this.#refuseIfBehind();
    const overridden = await this.#change("delete", place, payload);
    if (overridden) return overridden.answer;
    const changed = await withCode(
      "delete",
      () => this.#entries.write(entryOf(place), () => undefined),
    );
    return new JsonText(`{"old_value":${changed.old?.json ?? null}}`);
  }

  /** `stream::update` */
  async update(payload: Json): Promise<Json | JsonText | undefined> {
    const { ops, ...place } = fitRequest("update", REQUESTS.update, payload);
    this.#refuseIfBehind();
    const overridden = await this.#change("update", place, payload);
    if (overridden) return overridden.answer;
    return await withCode("update", () => updateEntry(this.#entries, entryOf(place), ops));
  }

  /** `stream::list` */
  async list(payload: Json): Promise<Json | JsonText | undefined> {
    const group = fitRequest("list", REQUESTS.list, payload);
    const overridden = await this.#setup.overrides.call("list", group.stream_name, payload);
    if (overridden) return overridden.answer;
    const { answers } = this.#setup;
    return await withCode("list", () => listAnswer(this.#entries, answers, scopeOf(group)));
  }

  /** `stream::list_items` */
  async listItems(payload: Json): Promise<JsonObject> {
    const { prefix, limit, cursor, ...group } = fitRequest(
      "list_items",
      REQUESTS.list_items,
      payload,
    );
    const { answers, overrides } = this.#setup;
    if (overrides.has("list", group.stream_name)) {
      const message =
        `The items of stream ${group.stream_name} are kept by a worker, which lists ` +
        "them without ids; use stream::list";
      throw new EngineError(codeOf("list"), message);
    }
    const query = { scope: scopeOf(group), prefix, limit, cursor };
    const { entries, ...more } = await withCode(
      "list",
      () => answers.hold((add) => listEntries(this.#entries, query, add)),
    );
    const items = (entries as JsonObject[]).map(({ key, value }) => ({ id: key!, data: value! }));
    return { items, ...more };
  }

  /** `stream::list_groups` */
  async listGroups(payload: Json): Promise<Json | undefined> {
    const { stream_name, ...page } = fitRequest("list_groups", REQUESTS.list_groups, payload);
    const overridden = await this.#setup.overrides.call("list_groups", stream_name, payload);
    if (overridden) return overridden.answer;
    await this.#setup.expiry.sweep();
    const groups = await withCode(
      "list_groups",
      () => listGroups(this.#entries, stream_name, page),
    );
    if (groups) return groups;
    const message =
      `Stream ${stream_name} has over ${GROUPS_MAX} groups, too many for one answer; ` +
      "ask for pages with limit, and the last group as cursor of the next one";
    throw new EngineError(codeOf("list_groups"), message);
  }

  /** `stream::list_all` */
  async listAll(payload: Json): Promise<JsonObject> {
    const page = fitRequest("list_all", REQUESTS.list_all, payload);
    await this.#setup.expiry.sweep();
    const { streams, cursor } = await withCode(
      "list_all",
      () => listStreams(this.#entries, page),
    );
    const more = cursor !== undefined && { cursor };
    return { stream: streams, count: streams.length, ...more };
  }

  /** `stream::send` */
  send(payload: Json): void {
    const { id, type, data, ...group } = fitRequest("send", REQUESTS.send, payload);
    this.#refuseIfBehind();
    const bytes = JSON.stringify(data).length;
    if (bytes > SENT_BYTES_MAX) {
      const message = `The data of an event has ${bytes} characters of JSON; ${SENT_BYTES_MAX} ` +
        "are allowed";
      throw new EngineError("VALUE_TOO_LARGE", message, {
        details: { bytes, bytes_max: SENT_BYTES_MAX },
      });
    }
    const event = { type: "event", event: { type, data: data as Json } } as const;
    this.#setup.emit(makeEvent(group, id ?? null, this.#setup.clock.wall(), event), bytes);
  }

  /** Lets a worker's function make a change, and passes it on. */
  async #change(
    op: "set" | "update" | "delete",
    { item_id, ...group }: GroupPlace & { readonly item_id: string },
    payload: Json,
  ): Promise<{ readonly answer: Json | undefined } | undefined> {
    const overridden = await this.#setup.overrides.call(op, group.stream_name, payload);
    if (!overridden) return undefined;
    const happening = happeningIn(op, group.stream_name, overridden.answer);
    if (happening) {
      const event = makeEvent(group, item_id, this.#setup.clock.wall(), happening);
      this.#setup.emit(event, JSON.stringify(happening).length);
    }
    return overridden;
  }

  #refuseIfBehind(): void {
    if (!this.#setup.isBehind()) return;
    const message =
      "Too many events wait for their triggers and subscribers; try again in a moment";
    throw new EngineError("overloaded", message);
  }
}

/** Registers all of them. */
export function registerFunctions(
  worker: Pick<Worker, "registerFunction">,
  stream: StreamFunctions,
): void {
  const functions: Record<StreamOp, Handler> = {
    set: (payload) => stream.set(payload),
    get: (payload) => stream.get(payload),
    delete: (payload) => stream.delete(payload),
    update: (payload) => stream.update(payload),
    list: (payload) => stream.list(payload),
    list_items: (payload) => stream.listItems(payload),
    list_groups: (payload) => stream.listGroups(payload),
    list_all: (payload) => stream.listAll(payload),
    send: (payload) => stream.send(payload),
  };
  for (const [name, format] of Object.entries(FORMATS)) {
    worker.registerFunction(`stream::${name}`, functions[name as StreamOp], format);
  }
}

/** Replaces the codes of the store by the function's own. */
export async function withCode<T>(op: StreamOp, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    const isStore = thrown instanceof EngineError &&
      ["SET_ERROR", "GET_ERROR", "LIST_ERROR"].includes(thrown.code);
    if (!isStore) throw thrown;
    const { message, details } = thrown;
    throw new EngineError(codeOf(op), message, { cause: thrown, ...details && { details } });
  }
}
