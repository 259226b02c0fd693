/**
 * Channels of which one end is in this process, such as the bodies of an HTTP request.
 *
 * Two are made for every request and few are ever claimed, so an offer is a place in an array and a
 * random key; the {@linkcode Channel} is created when the other end connects.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import type { ChannelDirection, ChannelRef } from "../../sdk/typescript/wire/channels.ts";
import type { LocalChannel, LocalEnd, ReaderEnd, WriterEnd } from "../ports/channels.ts";
import { Channel, type ChannelOptions } from "./channel.ts";

/** The start of the ids of all offers; no UUID starts so. */
export const OFFER_PREFIX = "local-";

/** An end in this process. */
type AnyEnd = LocalEnd & (WriterEnd | ReaderEnd);

const KEY_BYTES = 16;
/** Random bytes that are made at once. */
const POOL_BYTES = KEY_BYTES * 256;
const ID = /^local-(\d{1,9})-(\d{1,15})$/;
const encoder = new TextEncoder();

/** One channel, claimed or not. */
class Offer implements LocalChannel {
  readonly ref: ChannelRef;
  readonly place: number;
  readonly end: AnyEnd;
  channel: Channel | undefined;
  readonly #offers: Offers;

  constructor(offers: Offers, place: number, ref: ChannelRef, end: AnyEnd) {
    this.#offers = offers;
    this.place = place;
    this.ref = ref;
    this.end = end;
  }

  withdraw(): void {
    if (!this.channel) this.#offers.remove(this);
  }
}

/** The channels with an end in this process. */
export class Offers {
  readonly #options: Omit<ChannelOptions, "ended" | "bufferFrames">;
  readonly #places: (Offer | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #pool = new Uint8Array(POOL_BYTES);
  #poolAt = POOL_BYTES;
  #made = 0;

  constructor(options: Omit<ChannelOptions, "ended" | "bufferFrames">) {
    this.#options = options;
  }

  /** How many there are. */
  get size(): number {
    return this.#places.length - this.#free.length;
  }

  /** How many there ever were. */
  get made(): number {
    return this.#made;
  }

  /** Offers the end that is not in this process; `direction` is that end's. */
  offer(direction: ChannelDirection, end: AnyEnd): LocalChannel {
    const place = this.#free.pop() ?? this.#places.length;
    const ref: ChannelRef = {
      channel_id: `${OFFER_PREFIX}${place}-${++this.#made}`,
      access_key: this.#key(),
      direction,
    };
    const offer = new Offer(this, place, ref, end);
    this.#places[place] = offer;
    return offer;
  }

  /** The channel of an id whose key fits; it exists from the first claim on. */
  claim(channel_id: string, direction: ChannelDirection, key: string): Channel | undefined {
    const offer = this.#places[Number(ID.exec(channel_id)?.[1] ?? -1)];
    if (!offer || offer.ref.channel_id !== channel_id || offer.ref.direction !== direction) {
      return undefined;
    }
    const [wanted, given] = [encoder.encode(offer.ref.access_key), encoder.encode(key)];
    const isEqual = wanted.length === given.length && nodeCrypto.timingSafeEqual(wanted, given);
    return isEqual ? offer.channel ??= this.#open(offer) : undefined;
  }

  /** Removes a channel. */
  remove(offer: Offer): void {
    if (this.#places[offer.place] !== offer) return;
    this.#places[offer.place] = undefined;
    this.#free.push(offer.place);
  }

  /** Ends all channels that are claimed. */
  close(code: number, reason: string): void {
    for (const offer of [...this.#places]) offer?.channel?.abort(code, reason);
  }

  #open(offer: Offer): Channel {
    const { end } = offer;
    const channel = new Channel({
      ...this.#options,
      bufferFrames: 1,
      ended: () => this.remove(offer),
    });
    const events = offer.ref.direction === "read"
      ? channel.claimWriter(end as WriterEnd)!
      : channel.claimReader(end as ReaderEnd)!;
    // Not before the other end has the channel.
    queueMicrotask(() => end.connected(events));
    return channel;
  }

  #key(): string {
    if (this.#poolAt === POOL_BYTES) {
      crypto.getRandomValues(this.#pool);
      this.#poolAt = 0;
    }
    const bytes = this.#pool.subarray(this.#poolAt, this.#poolAt += KEY_BYTES);
    return bytes.toHex();
  }
}
