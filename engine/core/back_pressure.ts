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
interface Congestion {
  /** Callers that wait for it. */
  readonly callers: Set<Peer>;
  /** Nobody waits for it any more. */
  isGivenUp: boolean;
  readonly disarm: () => void;
}

/** Who waits for whom. */
export class BackPressure {
  readonly #clock: Clock;
  readonly #congested = new Map<Peer, Congestion>();

  /** Makes one in which nobody waits. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A call went out: nothing more is read from its caller if that was too much for the target. */
  sent(caller: Peer, target: Peer): void {
    if (target.connection.queuedBytes > TARGET_FULL_BYTES && caller !== target) {
      this.#pause(caller, this.#congested.get(target) ?? this.#open(target));
    }
  }

  /** A target has caught up, or is gone. */
  drained(target: Peer): void {
    const congestion = this.#congested.get(target);
    if (!congestion) return;
    this.#congested.delete(target);
    congestion.disarm();
    resumeCallers(congestion);
  }

  /** A line is over. */
  disconnected(peer: Peer): void {
    this.drained(peer);
    for (const { callers } of this.#congested.values()) callers.delete(peer);
  }

  /** Leaves nothing on the clock. */
  stop(): void {
    for (const target of [...this.#congested.keys()]) this.drained(target);
  }

  #open(target: Peer): Congestion {
    const disarm = this.#clock.after(TARGET_WAIT_MS, () => {
      congestion.isGivenUp = true;
      resumeCallers(congestion);
    });
    const congestion: Congestion = { callers: new Set(), isGivenUp: false, disarm };
    this.#congested.set(target, congestion);
    return congestion;
  }

  #pause(caller: Peer, { callers, isGivenUp }: Congestion): void {
    if (!isGivenUp && !callers.has(caller) && caller.pauseReading()) callers.add(caller);
  }
}

function resumeCallers({ callers }: Congestion): void {
  for (const caller of callers) caller.resumeReading();
  callers.clear();
}
