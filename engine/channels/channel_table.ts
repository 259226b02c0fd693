/**
 * All channels of an engine: creates them, checks who may claim an end, and removes channels of
 * which an end is not claimed in time.
 *
 * The access key of an end is its only credential (PROTOCOL 1.1). Each end has a key of its own, so
 * who may read cannot write.
 *
 * @module
 */
import * as nodeCrypto from "node:crypto";
import {
  CHANNEL_CLOSE,
  CHANNEL_PATH,
  type ChannelDirection,
  type ChannelRefs,
} from "../../sdk/typescript/wire/channels.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  CHANNEL_SWEEP_MS,
  CHANNEL_UNCLAIMED_MS,
  type Channels,
  CHANNELS_MAX,
  CHANNELS_PER_OWNER_MAX,
  type ChannelStats,
  type LocalChannels,
  type LocalEnds,
} from "../ports/channels.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  Accept,
  Connection,
  ConnectionEvents,
  Refusal,
  Upgrade,
} from "../ports/connection.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { Channel } from "./channel.ts";
import { OFFER_PREFIX, Offers } from "./offers.ts";

/** What {@linkcode ChannelTable} works with. */
export interface ChannelTableOptions {
  readonly clock: Clock;
  readonly memory: MemoryBudget;
}

/** A channel with what its table knows of it. */
interface Entry {
  readonly channel: Channel;
  readonly keys: Readonly<Record<ChannelDirection, Uint8Array>>;
  readonly createdAt: number;
}

/** Claims an end of a channel of another engine, which is given by its life. */
export type ClaimElsewhere = (life: string, upgrade: Upgrade) => Refusal | Accept;

/** The id of a channel with the life of its engine. */
const ID_ELSEWHERE = /^([0-9a-f]{16})\./;

const NOT_FOUND: Refusal = { status: 404, message: "Channel not found" };
const BAD_QUERY: Refusal = {
  status: 400,
  message: "A channel needs ?key=<access_key>&dir=read or dir=write",
};
const STOPPING = "the engine is stopping";
const CLAIMED = "this end of the channel is claimed already";
const UNCLAIMED = `an end did not connect within ${CHANNEL_UNCLAIMED_MS / 1_000} s`;

const encoder = new TextEncoder();

/** The channels of one engine. */
export class ChannelTable implements Channels {
  readonly #options: ChannelTableOptions;
  /** In the order of their creation. */
  readonly #entries = new Map<string, Entry>();
  readonly #offers: Offers;
  readonly #owned = new Map<string, number>();
  /** Before the ids of channels of this engine; empty in an engine that is alone. */
  #prefix = "";
  #claimElsewhere: ClaimElsewhere | undefined;
  #stopSweep: (() => void) | undefined;
  #created = 0;
  #bytes = 0;

  constructor(options: ChannelTableOptions) {
    this.#options = options;
    const { memory } = options;
    this.#offers = new Offers({ memory, moved: (bytes) => this.#bytes += bytes });
  }

  /**
   * Makes this engine one of several: ids of channels that are created from now on name it by its
   * life, and those of others are claimed there.
   */
  join(life: string, claimElsewhere: ClaimElsewhere): void {
    this.#prefix = `${life}.`;
    this.#claimElsewhere = claimElsewhere;
  }

  get stats(): ChannelStats {
    return { open: this.#entries.size, created: this.#created, bytes: this.#bytes };
  }

  create(owner: string, bufferFrames: number): ChannelRefs {
    const owned = this.#owned.get(owner) ?? 0;
    this.#checkRoom(owned);
    const { clock, memory } = this.#options;
    const channel_id = this.#prefix + crypto.randomUUID();
    const [read, write] = [crypto.randomUUID(), crypto.randomUUID()];
    const channel = new Channel({
      bufferFrames,
      memory,
      moved: (bytes) => this.#bytes += bytes,
      ended: () => this.#remove(channel_id, owner),
    });
    const keys = { read: encoder.encode(read), write: encoder.encode(write) };
    this.#entries.set(channel_id, { channel, keys, createdAt: clock.now() });
    this.#owned.set(owner, owned + 1);
    this.#created++;
    this.#stopSweep ??= clock.after(CHANNEL_SWEEP_MS, this.#sweep);
    return {
      writer: { channel_id, access_key: write, direction: "write" },
      reader: { channel_id, access_key: read, direction: "read" },
    };
  }

  offer(ends: LocalEnds): LocalChannels {
    return this.#offers.offer(ends, this.#prefix);
  }

  /** Answers an upgrade to a path below {@linkcode CHANNEL_PATH}. */
  claim(upgrade: Upgrade): Refusal | Accept {
    const id = upgrade.path.slice(CHANNEL_PATH.length);
    const [, life] = this.#claimElsewhere ? ID_ELSEWHERE.exec(id) ?? [] : [];
    if (life === undefined || id.startsWith(this.#prefix)) return this.claimOwn(upgrade);
    return this.#claimElsewhere!(life, upgrade);
  }

  /** The same for a channel of this engine. */
  claimOwn({ path, query }: Upgrade): Refusal | Accept {
    const key = query.get("key");
    const direction = query.get("dir");
    if (!key || (direction !== "read" && direction !== "write")) return BAD_QUERY;
    const channel = this.#find(path.slice(CHANNEL_PATH.length), direction, key);
    if (!channel) return NOT_FOUND;
    return (connection) => accept(channel, direction, connection);
  }

  /** Ends all channels; the engine stops. */
  close(): void {
    this.#stopSweep?.();
    this.#stopSweep = undefined;
    const { goingAway } = CHANNEL_CLOSE;
    for (const { channel } of [...this.#entries.values()]) channel.abort(goingAway, STOPPING);
    this.#offers.close(goingAway, STOPPING);
  }

  #find(channel_id: string, direction: ChannelDirection, key: string): Channel | undefined {
    if (channel_id.startsWith(this.#prefix + OFFER_PREFIX)) {
      return this.#offers.claim(channel_id, direction, key);
    }
    const entry = this.#entries.get(channel_id);
    return entry && isEqual(entry.keys[direction], encoder.encode(key)) ? entry.channel : undefined;
  }

  #checkRoom(owned: number): void {
    if (owned >= CHANNELS_PER_OWNER_MAX) {
      const message = `This worker has ${owned} open channels, the maximum; ` +
        "close those that are done, or connect to both ends";
      throw new EngineError("overloaded", message);
    }
    if (this.#entries.size < CHANNELS_MAX) return;
    throw new EngineError("overloaded", `The engine has ${CHANNELS_MAX} open channels already`);
  }

  #remove(channel_id: string, owner: string): void {
    this.#entries.delete(channel_id);
    const left = this.#owned.get(owner)! - 1;
    if (left > 0) this.#owned.set(owner, left);
    else this.#owned.delete(owner);
  }

  readonly #sweep = (): void => {
    this.#stopSweep = undefined;
    const { clock } = this.#options;
    const before = clock.now() - CHANNEL_UNCLAIMED_MS;
    for (const { channel, createdAt } of [...this.#entries.values()]) {
      if (createdAt > before) break;
      if (!channel.isClaimed) channel.abort(CHANNEL_CLOSE.aborted, UNCLAIMED);
    }
    if (this.#entries.size > 0) this.#stopSweep = clock.after(CHANNEL_SWEEP_MS, this.#sweep);
  };
}

function accept(
  channel: Channel,
  direction: ChannelDirection,
  connection: Connection,
): ConnectionEvents {
  if (direction === "read") connection.asStream?.();
  const events = direction === "write"
    ? channel.claimWriter(connection)
    : channel.claimReader(connection);
  if (!events) connection.close(CHANNEL_CLOSE.claimed, CLAIMED);
  return events ?? REFUSED;
}

/** For a connection that is closed at once. */
const REFUSED: ConnectionEvents = {
  text() {},
  textBytes() {},
  binary() {},
  drained() {},
  suspected() {},
  closed() {},
};

/** Lengths of keys are known to all; their bytes are compared in constant time. */
function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && nodeCrypto.timingSafeEqual(one, other);
}
