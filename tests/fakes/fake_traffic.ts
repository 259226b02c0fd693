/**
 * Traffic without a core: tests say how many calls relieved lines run.
 *
 * @module
 */
import type { DrainOptions, Handover, Traffic } from "../../engine/ports/traffic.ts";

/** A {@linkcode Handover} in the hands of a test. */
export class FakeHandover implements Handover {
  readonly worker_ids: readonly string[];
  readonly isComingBack: boolean;
  runningCalls: number;
  /** Whether end() was called. */
  isOver = false;

  /** Relieves these lines, which run so many calls. */
  constructor(worker_ids: readonly string[], isComingBack: boolean, runningCalls: number) {
    this.worker_ids = worker_ids;
    this.isComingBack = isComingBack;
    this.runningCalls = runningCalls;
  }

  end(): void {
    this.isOver = true;
  }
}

/** A {@linkcode Traffic} that writes down what it is asked. */
export class FakeTraffic implements Traffic {
  /** All there were, in order. */
  readonly handovers: FakeHandover[] = [];
  /** Calls that lines run when they are relieved. */
  runningCalls = 0;

  drain(worker_ids: readonly string[], { isComingBack }: DrainOptions): Handover {
    const handover = new FakeHandover(worker_ids, isComingBack, this.runningCalls);
    this.handovers.push(handover);
    return handover;
  }
}
