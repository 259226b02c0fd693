/**
 * The first message of a subscription: what the group, or the item, is now.
 *
 * Subscribers of one topic who wait at the same time get the same bytes, which are read once. A
 * bounded number of topics is read at once, a large group in parts, with the rest of the engine in
 * between.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { AnswerMemory } from "../state/answers.ts";
import { readScope, type StateEntries } from "../state/entries.ts";
import { entryOf, scopeOf } from "./items.ts";
import { type Topic, topicMessage } from "./messages.ts";
import { codeOf, type Overrides } from "./overrides.ts";
import { withCode } from "./functions.ts";

/** Topics that are read at once. */
export const READS_MAX = 4;
/** Largest group that a subscriber gets, in bytes of its items as JSON. */
export const SYNC_BYTES_MAX: number = 16 * 1024 * 1024;
/** Items that are written before others get their turn. */
const ITEMS_PER_TURN = 500;

/** Dependencies of {@linkcode TopicReader}. */
export interface TopicReaderSetup {
  readonly entries: StateEntries;
  readonly overrides: Overrides;
  readonly answers: Pick<AnswerMemory, "hold" | "giveWay">;
  readonly clock: Pick<Clock, "wall">;
}

/** Reads topics, a bounded number at once, each once for those who wait for it. */
export class SyncReads {
  readonly #source: Pick<TopicReader, "read">;
  #running = 0;
  readonly #queue: (() => void)[] = [];
  /** Reads that have not begun, by topic: later subscribers join them. */
  readonly #waiting = new Map<string, Promise<Uint8Array>>();

  constructor(source: Pick<TopicReader, "read">) {
    this.#source = source;
  }

  /**
   * The message `sync` of a topic, as it is after this call.
   *
   * @throws {EngineError} `STREAM_LIST_ERROR`, `STREAM_GET_ERROR`, `overloaded`.
   */
  read(topic: Topic): Promise<Uint8Array> {
    const key = JSON.stringify([topic.stream_name, topic.group_id, topic.id]);
    const known = this.#waiting.get(key);
    if (known) return known;
    const reading = this.#readInTurn(key, topic);
    this.#waiting.set(key, reading);
    return reading;
  }

  async #readInTurn(key: string, topic: Topic): Promise<Uint8Array> {
    if (this.#running >= READS_MAX) {
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    } else {
      this.#running++;
      await undefined; // Those who ask in the same turn share it.
    }
    this.#waiting.delete(key);
    try {
      return await this.#source.read(topic);
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#running--;
    }
  }
}

/** Reads what a topic is. */
export class TopicReader {
  readonly #setup: TopicReaderSetup;

  constructor(setup: TopicReaderSetup) {
    this.#setup = setup;
  }

  /** See {@linkcode SyncReads.read}. */
  async read(topic: Topic): Promise<Uint8Array> {
    const event = topic.id === null
      ? await this.#group(topic)
      : await this.#item({ ...topic, id: topic.id });
    return topicMessage(topic, this.#setup.clock.wall(), event);
  }

  async #item({ stream_name, group_id, id }: Topic & { readonly id: string }): Promise<string> {
    const place = { stream_name, group_id, item_id: id };
    const overridden = await this.#setup.overrides.call("get", stream_name, { ...place });
    const json = overridden
      ? jsonOf(overridden.answer)
      : (await withCode("get", () => this.#setup.entries.get(entryOf(place))))?.json ?? "null";
    return `{"type":"sync","data":${json}}`;
  }

  async #group({ stream_name, group_id }: Topic): Promise<string> {
    const group = { stream_name, group_id };
    const overridden = await this.#setup.overrides.call("list", stream_name, { ...group });
    if (overridden) {
      const data = jsonOf(overridden.answer ?? []);
      if (data.length > SYNC_BYTES_MAX) throw tooLarge(group);
      return `{"type":"sync","data":${data}}`;
    }
    const { answers, entries } = this.#setup;
    const found = await withCode("list", () =>
      answers.hold(async (add) => {
        const items: { readonly id: string; readonly created: number; readonly json: string }[] =
          [];
        let bytes = 0;
        for await (const entry of readScope(entries, scopeOf(group), undefined)) {
          if (typeof entry === "string") continue; // It is damaged; the store has reported it.
          bytes += entry.bytes;
          if (bytes > SYNC_BYTES_MAX) throw tooLarge(group);
          await add(2 * entry.bytes); // The item, and the message with it.
          items.push({ id: entry.key, created: entry.created, json: entry.json });
          if (items.length % ITEMS_PER_TURN === 0) await answers.giveWay();
        }
        return items;
      }));
    found.sort((a, b) => a.created - b.created);
    const ids = JSON.stringify(found.map(({ id }) => id));
    return `{"type":"sync","data":[${found.map(({ json }) => json).join(",")}],"ids":${ids}}`;
  }
}

function jsonOf(value: Json | undefined): string {
  return JSON.stringify(value ?? null);
}

function tooLarge({ stream_name, group_id }: Omit<Topic, "id">): EngineError {
  const message = `Group ${group_id} of stream ${stream_name} has more than ${SYNC_BYTES_MAX} ` +
    "bytes, too many for a subscriber; follow single items, or use smaller groups";
  return new EngineError(codeOf("list"), message);
}
