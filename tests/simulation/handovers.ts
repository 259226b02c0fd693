/**
 * Which lines drain and what is expected back, as somebody knows it who sees all lines but not
 * the engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Handover } from "../../engine/ports/traffic.ts";
import type { SimLine } from "./line.ts";

/** A handover that has not ended. */
export interface SimHandover {
  readonly isComingBack: boolean;
  /** The lines it relieves, also those that are over. */
  readonly lines: Set<SimLine>;
  /** What they offered since. */
  readonly targets: Set<string>;
  /** The engine's; `undefined` until it has been asked. */
  handover: Handover | undefined;
}

/** All handovers of a simulated world. */
export class SimHandovers {
  readonly open: Set<SimHandover> = new Set();

  /** Lines are about to be relieved, which offer so much. */
  begin(lines: readonly SimLine[], targets: Iterable<string>, isComingBack: boolean): SimHandover {
    for (const line of lines) line.isDraining = true;
    const handover = undefined;
    const begun = { isComingBack, lines: new Set(lines), targets: new Set(targets), handover };
    this.open.add(begun);
    return begun;
  }

  /** A line is about to offer something. */
  offered(line: SimLine, target: string): void {
    for (const { lines, targets } of this.open) if (lines.has(line)) targets.add(target);
  }

  /** A worker is about to come back on another line; its old one may be over. */
  follow(old: SimLine, line: SimLine): void {
    line.isDraining = old.isDraining;
    for (const { lines } of this.open) if (lines.delete(old)) lines.add(line);
  }

  /** Whether a handover of the line is open. */
  concerns(line: SimLine): boolean {
    return [...this.open].some(({ lines }) => lines.has(line));
  }

  /** What the lines offered that are relieved together with this one. */
  offeredBy(line: SimLine): string[] {
    return [...this.open].flatMap(({ lines, targets }) => lines.has(line) ? [...targets] : []);
  }

  /** Whether calls that nobody can run wait. */
  isExpected(target: string): boolean {
    return [...this.open].some(({ isComingBack, targets }) => isComingBack && targets.has(target));
  }

  /** Whether the triggers of a line stay when it is over. */
  keeps(line: SimLine): boolean {
    return [...this.open].some(({ isComingBack, lines }) => isComingBack && lines.has(line));
  }

  /** The engine counts what drains as it is. */
  check(running: (line: SimLine) => number): void {
    for (const { lines, handover } of this.open) {
      const expected = [...lines].reduce((sum, line) => sum + running(line), 0);
      assert.equal(handover?.runningCalls, expected);
    }
  }
}
