/**
 * Lets callers wait whose calls pile up before a worker that does not take them.
 *
 * While a target has too much unsent, nothing more is read from those who call it: so what waits
 * stays at the callers, where it came from. That also holds up what they want of others, so it goes
 * on for a bounded time only, and once: a target that has not caught up by then is left to the
 * bounds of what a worker may have unanswered.
 *
 * @module
 */
import { TARGET_FULL_BYTES, TARGET_WAIT_MS } from "../../sdk/typescript/wire/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Peer } from "./peer.ts";

/** A target that has too much unsent. */
interface Jam {
  /** Callers that wait for it. */
  readonly held: Set<Peer>;
  /** Nobody waits for it any more. */
  isGivenUp: boolean;
  readonly disarm: () => void;
}

/** Who waits for whom. */
export class BackPressure {
  readonly #clock: Clock;
  readonly #jams = new Map<Peer, Jam>();

  /** Makes one in which nobody waits. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A call went out: nothing more is read from its caller if that was too much for the target. */
  sent(caller: Peer, target: Peer): void {
    if (target.connection.queuedBytes > TARGET_FULL_BYTES && caller !== target) {
      this.#wait(caller, this.#jams.get(target) ?? this.#open(target));
    }
  }

  /** A target has caught up, or is gone. */
  drained(target: Peer): void {
    const jam = this.#jams.get(target);
    if (!jam) return;
    this.#jams.delete(target);
    jam.disarm();
    letGo(jam);
  }

  /** A line is over. */
  left(peer: Peer): void {
    this.drained(peer);
    for (const { held } of this.#jams.values()) held.delete(peer);
  }

  /** Leaves nothing on the clock. */
  stop(): void {
    for (const target of [...this.#jams.keys()]) this.drained(target);
  }

  #open(target: Peer): Jam {
    const disarm = this.#clock.after(TARGET_WAIT_MS, () => {
      jam.isGivenUp = true;
      letGo(jam);
    });
    const jam: Jam = { held: new Set(), isGivenUp: false, disarm };
    this.#jams.set(target, jam);
    return jam;
  }

  #wait(caller: Peer, { held, isGivenUp }: Jam): void {
    if (!isGivenUp && !held.has(caller) && caller.hold()) held.add(caller);
  }
}

function letGo({ held }: Jam): void {
  for (const caller of held) caller.release();
  held.clear();
}
