/**
 * Counts of one function's calls, and the bounds of their durations.
 *
 * @module
 */
import { METERED_CODE_CHARS_MAX, METERED_CODES_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { FunctionMeter } from "../ports/telemetry.ts";
import { kept } from "./kept_text.ts";

const FIRST_MS = 0.01;
const LAST_MS = 100_000;
/** Bounds per doubling. */
const STEPS = 4;
const COUNT = Math.ceil(STEPS * Math.log2(LAST_MS / FIRST_MS)) + 1;
/** Codes beyond those that are counted apart. */
const OTHER_CODES = "(other)";

/** Upper bounds of durations in milliseconds: 0.01 ms, and from there by the fourth root of 2. */
export const BOUNDS_MS: readonly number[] = Array.from(
  { length: COUNT },
  (_, at) => Math.min(LAST_MS, FIRST_MS * 2 ** (at / STEPS)),
);

/** The place of a duration among {@linkcode BOUNDS_MS}: the first bound that it does not pass. */
export function bucketOf(ms: number): number {
  if (!(ms > FIRST_MS)) return 0;
  if (ms > LAST_MS) return COUNT;
  const at = Math.min(COUNT - 1, Math.ceil(STEPS * Math.log2(ms / FIRST_MS)));
  // Logarithms are not exact at the bounds themselves.
  if (ms > BOUNDS_MS[at]!) return at + 1;
  return ms <= BOUNDS_MS[at - 1]! ? at - 1 : at;
}

/** Counts calls of one function. */
export class CountingMeter implements FunctionMeter {
  readonly function_id: string;
  readonly namespace: string;
  calls = 0;
  in_flight = 0;
  duration_sum_ms = 0;
  readonly errors: Map<string, number> = new Map();
  readonly durations: Float64Array = new Float64Array(COUNT + 1);
  /** A duration and its bucket: calls of one turn begin and end at the same times. */
  #lastMs = 0;
  #lastBucket = 0;

  /** Makes one that has counted nothing. */
  constructor(namespace: string, function_id: string) {
    this.namespace = namespace;
    this.function_id = function_id;
  }

  /** A call that had begun is over. */
  ended(ms: number): void {
    this.in_flight--;
    this.duration_sum_ms += ms;
    if (ms !== this.#lastMs) {
      this.#lastMs = ms;
      this.#lastBucket = bucketOf(ms);
    }
    this.durations[this.#lastBucket]!++;
  }

  /** A call ended with an error, or did not begin. */
  failed(code: string): void {
    const { errors } = this;
    let name = code.length > METERED_CODE_CHARS_MAX ? kept(code, METERED_CODE_CHARS_MAX) : code;
    const count = errors.get(name);
    if (count === undefined) name = errors.size < METERED_CODES_MAX ? kept(name) : OTHER_CODES;
    errors.set(name, (count ?? errors.get(name) ?? 0) + 1);
  }
}
