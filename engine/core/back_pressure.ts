/**
 * Stops reading from callers whose calls pile up in front of a slow callee.
 *
 * While a callee has too much unsent data, the engine reads nothing from the workers that call it,
 * so waiting calls stay with their callers. That also delays their calls of other workers;
 * therefore a pause is limited in time and happens once: a callee that has not caught up by then is
 * left to the limits of its unanswered calls.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { Peer } from "./peer.ts";

/** Unsent bytes of a callee above which the engine stops reading from its callers. */
export const CALLEE_FULL_BYTES = 4 * 1024 * 1024;
/** Longest pause of callers, before only the limits of the callee count. */
export const CALLEE_WAIT_MS = 1_000;

/** A callee with too much unsent data. */
interface Congestion {
  /** The callers that are paused for it. */
  readonly callers: Set<Peer>;
  /** The pause has expired. */
  isGivenUp: boolean;
  readonly disarm: () => void;
}

/** Pauses and resumes callers. */
export class BackPressure {
  readonly #clock: Clock;
  readonly #congested = new Map<Peer, Congestion>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A call was sent: pauses its caller if the callee has too much unsent data. */
  sent(caller: Peer, callee: Peer): void {
    if (callee.connection.queuedBytes > CALLEE_FULL_BYTES && caller !== callee) {
      this.#pause(caller, this.#congested.get(callee) ?? this.#open(callee));
    }
  }

  /** A callee has caught up, or has disconnected. */
  drained(callee: Peer): void {
    const congestion = this.#congested.get(callee);
    if (!congestion) return;
    this.#congested.delete(callee);
    congestion.disarm();
    resumeCallers(congestion);
  }

  /** Resumes the callers of a disconnected peer, and forgets it as a caller. */
  disconnected(peer: Peer): void {
    this.drained(peer);
    for (const { callers } of this.#congested.values()) callers.delete(peer);
  }

  /** Resumes all callers and cancels all timers. */
  stop(): void {
    for (const callee of [...this.#congested.keys()]) this.drained(callee);
  }

  #open(callee: Peer): Congestion {
    const disarm = this.#clock.after(CALLEE_WAIT_MS, () => {
      congestion.isGivenUp = true;
      resumeCallers(congestion);
    });
    const congestion: Congestion = { callers: new Set(), isGivenUp: false, disarm };
    this.#congested.set(callee, congestion);
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
