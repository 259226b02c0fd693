/**
 * Stops reading from callers whose calls pile up in front of a slow callee.
 *
 * A callee is full when it has too much unsent data, or, as a built-in worker, too many open calls:
 * it shares the thread and the heap with all others, and each collection of garbage takes as long
 * as there are open calls. While a callee is full, the engine reads nothing from the workers that
 * call it, so waiting calls stay with their callers. That also delays their calls of other workers;
 * therefore a pause is limited in time and happens once: a callee that has not caught up by then is
 * left to the limits of its unanswered calls.
 *
 * A built-in worker with many open calls pauses only callers that send many of them, and none that
 * executes one of its calls, since it may wait for that result.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { Peer } from "./peer.ts";

/** Unsent bytes of a callee above which the engine stops reading from its callers. */
export const CALLEE_FULL_BYTES = 4 * 1024 * 1024;
/** Open calls of a built-in worker above which the engine stops reading from its busy callers. */
export const BUILTIN_FULL_CALLS = 2_000;
/** With so many left, it reads from them again. */
export const BUILTIN_DRAINED_CALLS = 1_000;
/** Calls that a caller may send between these two; then it is paused, or exempt for as many. */
export const BUSY_CALLS = 64;
/** Longest pause of callers, before only the limits of the callee count. */
export const CALLEE_WAIT_MS = 1_000;

/** A callee that is full. */
interface Congestion {
  /** The callers that are paused for it. */
  readonly paused: Set<Peer>;
  /** Calls since a caller was last looked at; counted for built-in workers. */
  readonly calls: WeakMap<Peer, number>;
  /** The pause has expired. */
  isGivenUp: boolean;
  readonly disarm: () => void;
}

/** Pauses and resumes callers. */
export class BackPressure {
  /** Callees with too much unsent data. */
  readonly #unsent: Congestions;
  /** Built-in workers with too many open calls. */
  readonly #busy: Congestions;

  constructor(clock: Clock) {
    this.#unsent = new Congestions(clock);
    this.#busy = new Congestions(clock);
  }

  /** A call was sent: pauses its caller if the callee is full. */
  sent(caller: Peer, callee: Peer): void {
    if (caller === callee) return;
    if (callee.connection.queuedBytes > CALLEE_FULL_BYTES) {
      pause(caller, this.#unsent.of(callee) ?? this.#unsent.begin(callee));
    }
    if (callee.isBuiltin) this.#sentToBuiltin(caller, callee);
    else if (caller.isBuiltin && this.#busy.of(caller)?.paused.delete(callee)) {
      callee.resumeReading(); // The built-in worker may wait for its result.
    }
  }

  /** A call of it has ended. */
  ended(callee: Peer): void {
    if (callee.isBuiltin && callee.inflightCalls <= BUILTIN_DRAINED_CALLS) this.#busy.end(callee);
  }

  /** The unsent data of a callee has been sent. */
  drained(callee: Peer): void {
    this.#unsent.end(callee);
  }

  /** Resumes the callers of a disconnected peer, and forgets it as a caller. */
  disconnected(peer: Peer): void {
    this.#unsent.forget(peer);
    this.#busy.forget(peer);
  }

  #sentToBuiltin(caller: Peer, callee: Peer): void {
    let congestion = this.#busy.of(callee);
    if (!congestion) {
      if (callee.inflightCalls <= BUILTIN_FULL_CALLS) return;
      congestion = this.#busy.begin(callee);
    }
    if (congestion.isGivenUp) return;
    const { calls } = congestion;
    const count = calls.get(caller) ?? 0;
    if (count < BUSY_CALLS) return void calls.set(caller, count + 1);
    calls.set(caller, 0); // Not looked at for each call, since it may execute thousands.
    if (!executesCallOf(caller, callee)) pause(caller, congestion);
  }
}

/** The callees that are full for one reason. */
class Congestions {
  readonly #clock: Clock;
  readonly #byCallee = new Map<Peer, Congestion>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(callee: Peer): Congestion | undefined {
    return this.#byCallee.size === 0 ? undefined : this.#byCallee.get(callee);
  }

  begin(callee: Peer): Congestion {
    const disarm = this.#clock.after(CALLEE_WAIT_MS, () => {
      congestion.isGivenUp = true;
      resumeCallers(congestion);
    });
    const congestion: Congestion = {
      paused: new Set(),
      calls: new WeakMap(),
      isGivenUp: false,
      disarm,
    };
    this.#byCallee.set(callee, congestion);
    return congestion;
  }

  /** The callee has caught up, or has disconnected. */
  end(callee: Peer): void {
    const congestion = this.of(callee);
    if (!congestion) return;
    this.#byCallee.delete(callee);
    congestion.disarm();
    resumeCallers(congestion);
  }

  /** A peer has disconnected. */
  forget(peer: Peer): void {
    this.end(peer);
    for (const { paused } of this.#byCallee.values()) paused.delete(peer);
  }
}

function pause(caller: Peer, { paused, isGivenUp }: Congestion): void {
  if (!isGivenUp && !paused.has(caller) && caller.pauseReading()) paused.add(caller);
}

function resumeCallers({ paused }: Congestion): void {
  for (const caller of paused) caller.resumeReading();
  paused.clear();
}

/** Whether `peer` executes a call of `caller`. */
function executesCallOf(peer: Peer, caller: Peer): boolean {
  const first = peer.firstCall;
  if (!first) return false;
  let call = first;
  do {
    if (call.caller === caller) return true;
    call = call.after;
  } while (call !== first);
  return false;
}
