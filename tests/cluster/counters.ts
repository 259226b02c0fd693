/**
 * Counters that workers increment at an engine of a cluster, and what may stand in the state of
 * them: an increment that was answered has to be there, one that failed for certain must not, and
 * one of which nothing is known may be.
 *
 * @module
 */
import type { Worker } from "../../mod.ts";
import { pause } from "../torture/waiting.ts";

/** After a failure. */
const AGAIN_MS = 20;
const TIMEOUT_MS = 20_000;
/** What callers get of calls that may have had their effect. */
const UNKNOWN = new Set(["invocation_stopped", "timeout", "TIMEOUT", "SHUTDOWN"]);

/** What became of the increments of one counter. */
interface Count {
  answered: number;
  unknown: number;
}

/** Lanes that increment one counter each, one call after another. */
export class Counters implements AsyncDisposable {
  readonly codes = new Map<string, number>();
  /** When the last increment was answered, and the longest time between two. */
  lastAt = performance.now();
  gapMs = 0;
  answered = 0;
  readonly #worker: Worker;
  readonly #name: string;
  readonly #counts: Count[];
  readonly #lanes: Promise<void>[];
  #isOver = false;

  constructor(worker: Worker, name: string, lanes: number) {
    this.#worker = worker;
    this.#name = name;
    this.#counts = Array.from({ length: lanes }, () => ({ answered: 0, unknown: 0 }));
    this.#lanes = this.#counts.map((count, i) => this.#increment(`${name}${i}`, count));
  }

  /** Starts to measure the gap anew, from now on. */
  measure(): void {
    this.gapMs = 0;
    this.lastAt = performance.now();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#lanes);
  }

  /** Ends the lanes and compares the state, as another worker reads it; what is wrong. */
  async wrong(reader: Worker): Promise<string[]> {
    await this[Symbol.asyncDispose]();
    const wrong: string[] = [];
    for (const [i, { answered, unknown }] of this.#counts.entries()) {
      const key = `${this.#name}${i}`;
      const found = await read(reader, key);
      if (found >= answered && found <= answered + unknown) continue;
      wrong.push(`${key} is ${found}: ${answered} were answered, of ${unknown} nothing is known`);
    }
    return wrong;
  }

  /** How many there were of each outcome, for the report. */
  get outcomes(): string {
    const sum = this.#counts.reduce((all, { unknown }) => all + unknown, 0);
    const codes = [...this.codes].map(([code, count]) => `${count} ${code}`).join(", ");
    return `${this.answered} answered, ${sum} unknown (${codes || "no errors"})`;
  }

  async #increment(key: string, count: Count): Promise<void> {
    while (!this.#isOver) {
      try {
        await this.#worker.trigger({
          function_id: "state::update",
          payload: { scope: "counters", key, ops: [{ type: "increment", path: "n", by: 1 }] },
          timeoutMs: TIMEOUT_MS,
        });
        count.answered++;
        this.answered++;
        const now = performance.now();
        this.gapMs = Math.max(this.gapMs, now - this.lastAt);
        this.lastAt = now;
      } catch (thrown) {
        const { code = "none", details } = thrown as { code?: string; details?: unknown };
        const isUnknown = (details as { unknown?: boolean } | undefined)?.unknown === true;
        if (isUnknown || UNKNOWN.has(code)) count.unknown++;
        const name = isUnknown ? `${code} unknown` : code;
        this.codes.set(name, (this.codes.get(name) ?? 0) + 1);
        await pause(AGAIN_MS);
      }
    }
  }
}

async function read(worker: Worker, key: string): Promise<number> {
  for (let attempt = 1;; attempt++) {
    try {
      const payload = { scope: "counters", key };
      const found = await worker.trigger({ function_id: "state::get", payload }) as
        | { n: number }
        | null;
      return found?.n ?? 0;
    } catch (thrown) {
      if (attempt === 100) throw thrown;
      await pause(200);
    }
  }
}
