/**
 * Who follows which group, and what goes out to them.
 *
 * One event may concern ten thousand followers, and the next one comes before it has reached them
 * all. So a group keeps the events that have not reached everyone, and goes around its followers:
 * each gets at once whatever has come since its last turn, which makes one write of many events.
 * After some of them the engine serves its other connections, and the next group has its turn. What
 * is kept is bounded; beyond, {@linkcode Audience.publish} refuses.
 *
 * @module
 */
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import type { Turns, Work } from "../../engine/ports/turns.ts";

/** Followers that get their events in one turn: each is a write to the network behind it. */
export const FOLLOWERS_PER_TURN = 64;
/** Events that have not reached all followers, and their bytes. */
export const EVENTS_KEPT_MAX = 10_000;
/** See {@linkcode EVENTS_KEPT_MAX}. */
export const BYTES_KEPT_MAX: number = 32 * 1024 * 1024;
/** Deliveries, or bytes, between two looks at the clock. */
const DELIVERIES_PER_LOOK = 16;
const BYTES_PER_LOOK = 512 * 1024;
/** Estimated bytes of an event beside its message. */
const OVERHEAD_BYTES = 256;

/** An event on its way. */
export interface GroupEvent {
  /** The item that it is about. */
  readonly id: string | null;
  /** The message, as UTF-8; must not change. */
  readonly bytes: Uint8Array;
}

/** Someone who follows a group. */
export interface Follower {
  /** Gets each event of the group, in order. Must not throw. */
  hear(event: GroupEvent): void;
}

/** Dependencies of {@linkcode Audience}. */
export interface AudienceSetup {
  readonly turns: Turns;
  readonly memory: Pick<MemoryBudget, "take" | "release">;
}

/** A follower, and the number of the event that it gets next. */
interface Member {
  readonly follower: Follower;
  next: number;
}

/** A group that is followed. */
interface Group {
  readonly key: string;
  readonly members: Set<Member>;
  /** Events that have not reached all members; the first has the number `first`. */
  events: GroupEvent[];
  first: number;
  /** The round of deliveries that is under way, and the number after its oldest event. */
  round: IterableIterator<Member> | undefined;
  roundEnd: number;
}

/** The followers of all groups. */
export class Audience implements Disposable, Work {
  readonly #setup: AudienceSetup;
  readonly #groups = new Map<string, Group>();
  /** Groups with something to deliver; the first is next. */
  #active: Group[] = [];
  #events = 0;
  #bytes = 0;
  #isQueued = false;

  constructor(setup: AudienceSetup) {
    this.#setup = setup;
  }

  /** Whether half of what may be kept is: who can wait should not publish more. */
  get isBehind(): boolean {
    return this.#events > EVENTS_KEPT_MAX / 2 || this.#bytes > BYTES_KEPT_MAX / 2;
  }

  /**
   * Follows a group from its next event on; call the result to stop. `key` is one for each group.
   */
  follow(key: string, follower: Follower): () => void {
    let group = this.#groups.get(key);
    if (!group) this.#groups.set(key, group = newGroup(key));
    const member = { follower, next: group.first + group.events.length };
    group.members.add(member);
    return () => {
      if (!group.members.delete(member) || group.members.size > 0) return;
      this.#forget(group, group.events.length);
      group.round = undefined;
      this.#groups.delete(key);
    };
  }

  /** Whether anyone follows the group. */
  isFollowed(key: string): boolean {
    return this.#groups.has(key);
  }

  /** Sends an event to all that follow the group now; `false`: there is no room for it. */
  publish(key: string, event: GroupEvent): boolean {
    const group = this.#groups.get(key);
    if (!group) return true;
    const bytes = event.bytes.length + OVERHEAD_BYTES;
    const isFull = this.#events >= EVENTS_KEPT_MAX ||
      (this.#events > 0 && this.#bytes + bytes > BYTES_KEPT_MAX);
    if (isFull || !this.#setup.memory.take("queues", bytes)) return false;
    this.#events++;
    this.#bytes += bytes;
    if (group.events.push(event) === 1) this.#active.push(group);
    if (!this.#isQueued) {
      this.#isQueued = true;
      this.#setup.turns.queue(this);
    }
    return true;
  }

  /** Drops everything that has not gone out. */
  [Symbol.dispose](): void {
    this.#active = [];
    for (const group of this.#groups.values()) this.#forget(group, group.events.length);
    this.#groups.clear();
  }

  /** Delivers to some followers; the next turn begins with another group. */
  work(): boolean {
    let left = FOLLOWERS_PER_TURN;
    for (let group = this.#active.shift(); group; group = this.#active.shift()) {
      left = this.#deliver(group, left);
      if (group.events.length > 0) this.#active.push(group);
      if (left <= 0 || this.#setup.turns.isSpent()) break;
    }
    return this.#isQueued = this.#active.length > 0;
  }

  /** Goes around a group, to so many followers at most; returns how many are left of them. */
  #deliver(group: Group, max: number): number {
    const { turns } = this.#setup;
    if (!group.round) {
      group.round = group.members.values();
      group.roundEnd = group.first + group.events.length;
    }
    let left = max;
    let look = DELIVERIES_PER_LOOK;
    // There is no round any more when the last member has left.
    for (let turn = group.round.next(); !turn.done; turn = group.round?.next() ?? NO_MORE) {
      look -= deliverTo(turn.value, group);
      if (--left === 0) return 0;
      if (look > 0) continue;
      look = DELIVERIES_PER_LOOK;
      if (turns.isSpent()) return 0;
    }
    group.round = undefined;
    this.#forget(group, group.roundEnd - group.first);
    return left;
  }

  /** Gives up the oldest events of a group. */
  #forget(group: Group, count: number): void {
    const gone = group.events.slice(0, count);
    group.events = group.events.slice(count);
    group.first += gone.length;
    const bytes = gone.reduce((sum, event) => sum + event.bytes.length + OVERHEAD_BYTES, 0);
    this.#events -= gone.length;
    this.#bytes -= bytes;
    this.#setup.memory.release("queues", bytes);
  }
}

const NO_MORE: IteratorResult<Member> = { done: true, value: undefined };

function newGroup(key: string): Group {
  return { key, members: new Set(), events: [], first: 0, round: undefined, roundEnd: 0 };
}

/** Delivers what a member has not heard; returns what that counts until the next look. */
function deliverTo(member: Member, { events, first }: Group): number {
  let bytes = 0;
  const end = events.length;
  const from = member.next - first;
  // Its number is set first: what it causes must not deliver twice.
  member.next = first + end;
  for (let at = from; at < end; at++) {
    const event = events[at]!;
    bytes += event.bytes.length;
    member.follower.hear(event);
  }
  return 1 + Math.floor(bytes * DELIVERIES_PER_LOOK / BYTES_PER_LOOK);
}
