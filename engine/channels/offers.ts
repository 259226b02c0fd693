/**
 * Channels of which one end is in this process: the two bodies of an HTTP request.
 *
 * They are offered with every request and few are ever claimed, so an offer is a place in an array
 * and random keys; the ends and the {@linkcode Channel} are created when a worker connects.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import type { ChannelDirection, ChannelRef } from "../../sdk/typescript/wire/channels.ts";
import type { LocalChannels, LocalEnds } from "../ports/channels.ts";
import { Channel, type ChannelOptions } from "./channel.ts";

/** The start of the ids of all offers; no UUID starts so. */
export const OFFER_PREFIX = "local-";

const KEY_BYTES = 16;
/** Random bytes that are made at once. */
const POOL_BYTES = KEY_BYTES * 256;
const POOL_CHARS = POOL_BYTES * 2;
const KEY_CHARS = KEY_BYTES * 2;
const ID = /^(?:[0-9a-f]{16}\.)?local-(\d{1,9})-\d{1,15}-[rw]$/;
const encoder = new TextEncoder();

/** Two channels, claimed or not. */
class Offer implements LocalChannels {
  readonly id: string;
  readonly keys: string;
  readonly place: number;
  readonly ends: LocalEnds;
  isWithdrawn = false;
  /** Of the channels that were claimed. */
  read: Channel | undefined;
  write: Channel | undefined;
  /** Claimed channels that have not ended. */
  open = 0;
  readonly #offers: Offers;

  /** `keys`: that of the reader, then that of the writer. */
  constructor(offers: Offers, place: number, id: string, keys: string, ends: LocalEnds) {
    this.#offers = offers;
    this.place = place;
    this.id = id;
    this.keys = keys;
    this.ends = ends;
  }

  get reader(): ChannelRef {
    const access_key = this.keys.slice(0, KEY_CHARS);
    return { channel_id: `${this.id}-r`, access_key, direction: "read" };
  }

  get writer(): ChannelRef {
    const access_key = this.keys.slice(KEY_CHARS);
    return { channel_id: `${this.id}-w`, access_key, direction: "write" };
  }

  withdraw(): void {
    this.isWithdrawn = true;
    if (this.open === 0) this.#offers.remove(this);
  }
}

/** The channels with an end in this process. */
export class Offers {
  readonly #options: Omit<ChannelOptions, "ended" | "bufferFrames">;
  readonly #places: (Offer | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #pool = new Uint8Array(POOL_BYTES);
  /** The pool in hexadecimal digits, of which the first {@linkcode #used} are used. */
  #digits = "";
  #used = POOL_CHARS;
  #made = 0;

  constructor(options: Omit<ChannelOptions, "ended" | "bufferFrames">) {
    this.#options = options;
  }

  /** How many there are. */
  get size(): number {
    return this.#places.length - this.#free.length;
  }

  /** Offers the ends that are not in this process; `prefix`: of the ids of all channels. */
  offer(ends: LocalEnds, prefix = ""): LocalChannels {
    const place = this.#free.pop() ?? this.#places.length;
    const id = `${prefix}${OFFER_PREFIX}${place}-${++this.#made}`;
    const offer = new Offer(this, place, id, this.#twoKeys(), ends);
    this.#places[place] = offer;
    return offer;
  }

  /** The channel of an id whose key fits; it exists from the first claim on. */
  claim(channel_id: string, direction: ChannelDirection, key: string): Channel | undefined {
    const offer = this.#places[Number(ID.exec(channel_id)?.[1] ?? -1)];
    const ref = direction === "read" ? offer?.reader : offer?.writer;
    if (!offer || ref!.channel_id !== channel_id) return undefined;
    const [wanted, given] = [encoder.encode(ref!.access_key), encoder.encode(key)];
    const isEqual = wanted.length === given.length && nodeCrypto.timingSafeEqual(wanted, given);
    if (!isEqual) return undefined;
    return offer[direction] ?? (offer.isWithdrawn ? undefined : this.#open(offer, direction));
  }

  /** Removes an offer. */
  remove(offer: Offer): void {
    if (this.#places[offer.place] !== offer) return;
    this.#places[offer.place] = undefined;
    this.#free.push(offer.place);
  }

  /** Ends all channels that are claimed. */
  close(code: number, reason: string): void {
    for (const offer of [...this.#places]) {
      offer?.read?.abort(code, reason);
      offer?.write?.abort(code, reason);
    }
  }

  #open(offer: Offer, direction: ChannelDirection): Channel {
    const channel = new Channel({
      ...this.#options,
      bufferFrames: 1,
      ended: () => {
        if (--offer.open === 0 && offer.isWithdrawn) this.remove(offer);
      },
    });
    offer.open++;
    offer[direction] = channel;
    if (direction === "read") {
      const end = offer.ends.writerEnd();
      const events = channel.claimWriter(end)!;
      // Not before the other end has the channel.
      queueMicrotask(() => end.connected(events));
    } else {
      const end = offer.ends.readerEnd();
      const events = channel.claimReader(end)!;
      queueMicrotask(() => end.connected(events));
    }
    return channel;
  }

  #twoKeys(): string {
    if (this.#used === POOL_CHARS) {
      crypto.getRandomValues(this.#pool);
      this.#digits = this.#pool.toHex();
      this.#used = 0;
    }
    return this.#digits.slice(this.#used, this.#used += 2 * KEY_CHARS);
  }
}
