/**
 * The lines of a worker's log that are new since the last look.
 *
 * The engine hands out the last lines only, so what is new follows from the overlap with what was
 * seen: the lines carry their time, so an overlap is not chance.
 *
 * @module
 */
import type { EngineLine } from "./terminal.ts";

/** Lines asked for with every later look; more than that between two looks are lost. */
const LOOK_LINES = 1_000;

/** Follows one worker's log. */
export class LogTail {
  readonly #engine: EngineLine;
  readonly #name: string;
  #seen: readonly string[] | undefined;

  /** Asks for nothing yet. */
  constructor(engine: EngineLine, name: string) {
    this.#engine = engine;
    this.#name = name;
  }

  /** The last `first` lines at the first look, later all that came since. */
  async next(first: number): Promise<string[]> {
    const tail = this.#seen === undefined ? Math.max(1, first) : LOOK_LINES;
    const payload = { name: this.#name, tail };
    const answer = await this.#engine.call("engine::supervisor::logs", payload);
    const { lines } = answer as { lines: string[] };
    const atFirst = lines.slice(lines.length - Math.min(first, lines.length));
    const fresh = this.#seen === undefined ? atFirst : newLines(this.#seen, lines);
    // A log of which nothing is left (rotated away) says nothing about what was seen.
    if (this.#seen === undefined || lines.length > 0) this.#seen = lines;
    return fresh;
  }
}

/** The lines at the end of `now` that `seen` does not end with. */
export function newLines(seen: readonly string[], now: readonly string[]): string[] {
  const last = seen.at(-1);
  if (last === undefined) return [...now];
  for (let end = now.length; end > 0; end--) {
    if (now[end - 1] !== last) continue;
    const overlap = Math.min(end, seen.length);
    const isSame = Array.from({ length: overlap })
      .every((_, i) => now[end - 1 - i] === seen[seen.length - 1 - i]);
    if (isSame) return now.slice(end);
  }
  return [...now];
}
