/**
 * How busy another engine is with one function, and which replica a call gets where other engines
 * offer its function too.
 *
 * A worker of this engine goes first: a call there takes a sixth of the time. Another engine gets
 * calls when the least busy worker here runs `far_calls` more. How busy a worker here is, is known;
 * of another engine it is what was sent there and has no result yet, and what that engine reported
 * of others' calls, per replica. Of several engines two are compared, picked by chance, so that
 * numbers that are a moment old do not send everything to the same one.
 *
 * @module
 */
import type { EndListener, Peer } from "./peer.ts";

/** Default of `far_calls`. */
export const FAR_CALLS = 16;
/** The connection of an engine has the bounds of so many workers. */
export const WORKERS_OF_ENGINE = 10;

/** The calls of one function at another engine. */
export class FarLoad implements EndListener {
  /** Calls that this engine sent there and that have not ended. */
  #sent = 0;
  /** Calls of others there, as of the last report. */
  #others = 0;
  #replicas = 1;

  /** Calls for each replica there. */
  get calls(): number {
    return (this.#sent + this.#others) / this.#replicas;
  }

  /** A call is sent there; {@linkcode FarLoad.ended} follows. */
  started(): void {
    this.#sent++;
  }

  ended(): void {
    this.#sent--;
  }

  /** That engine runs so many calls in so many replicas, those of this engine included. */
  reported(replicas: number, running: number): void {
    this.#replicas = Math.max(1, replicas);
    this.#others = Math.max(0, running - this.#sent);
  }
}

/** A replica, as far as the choice needs it. */
export interface Placeable {
  readonly peer: Pick<Peer, "isBuiltin">;
  readonly callee: Pick<Peer, "inflightCalls">;
  /** The load of another engine; `undefined` for a worker of this one. */
  readonly far: FarLoad | undefined;
}

/** The replicas of a function, and where the search for the next one starts. */
export interface Choices<R extends Placeable> {
  readonly ready: readonly R[];
  cursor: number;
}

/** The choice of a replica; `hasRoom` says whether a worker may get the call. */
export interface FarChoice<R extends Placeable> {
  /** Default: {@linkcode FAR_CALLS}. */
  readonly farCalls: number | undefined;
  /** The call came from another engine: it goes to a worker of this one, or nowhere. */
  readonly isFromEngine: boolean;
  hasRoom(replica: R): boolean;
}

/** Picks the replica of a function that other engines offer, too; counts the call there. */
export class FarPicks {
  #chance = 1;

  /** `undefined` when no replica may get the call. */
  pick<R extends Placeable>(
    entry: Choices<R>,
    { farCalls = FAR_CALLS, isFromEngine, hasRoom }: FarChoice<R>,
  ): R | undefined {
    const { ready, cursor } = entry;
    const { length } = ready;
    let near: R | undefined;
    let engines = 0;
    let nearAt = cursor;
    for (let i = 0; i < length; i++) {
      const at = (cursor + i) % length;
      const replica = ready[at]!;
      if (replica.far) {
        engines++;
        continue;
      }
      if (near && replica.callee.inflightCalls >= near.callee.inflightCalls) continue;
      if (!hasRoom(replica)) continue;
      near = replica;
      nearAt = at;
    }
    if (near) entry.cursor = (nearAt + 1) % length;
    if (isFromEngine || engines === 0 || near?.peer.isBuiltin) return near;
    const best = this.#better(ready, engines, hasRoom);
    if (!best) return near;
    const most = best.far!.calls + farCalls;
    if (near && near.callee.inflightCalls <= most) return near;
    best.far!.started();
    return best;
  }

  /** The less busy one of two engines. */
  #better<R extends Placeable>(
    ready: readonly R[],
    count: number,
    hasRoom: (replica: R) => boolean,
  ): R | undefined {
    const first = this.#below(count);
    const second = count === 1 ? first : (first + 1 + this.#below(count - 1)) % count;
    let best: R | undefined;
    let at = 0;
    for (const replica of ready) {
      if (!replica.far) continue;
      const isChosen = at === first || at === second;
      at++;
      if (!isChosen || !hasRoom(replica)) continue;
      if (!best || replica.far.calls < best.far!.calls) best = replica;
    }
    // Both are at their bounds, so any other one is better.
    return best ?? ready.find((replica) => replica.far && hasRoom(replica));
  }

  /** A number below another one. The core has no chance of its own: these repeat, evenly enough. */
  #below(below: number): number {
    this.#chance = (Math.imul(this.#chance, 1_664_525) + 1_013_904_223) >>> 0;
    return (this.#chance >>> 8) % below;
  }
}
