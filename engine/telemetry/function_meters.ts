/**
 * Counts per function: calls, errors and durations.
 *
 * The number of functions and of error codes with counts of their own is limited; all others count
 * under `(other)`.
 *
 * @module
 */
import type { ObservedFunction } from "../ports/call_observer.ts";
import type { FunctionMeter } from "../ports/telemetry.ts";
import { copyText, textBytes, TRACE_NAME_CHARS_MAX } from "./span_detail.ts";

/** Functions with a meter of their own; all others share one. */
export const METERED_FUNCTIONS_MAX = 10_000;
/** Error codes of one function that are counted separately. */
export const METERED_CODES_MAX = 100;
/** Longest error code, in characters; the rest is cut off. */
export const METERED_CODE_CHARS_MAX = 100;

const FIRST_MS = 0.01;
const LAST_MS = 100_000;
/** Buckets per doubling. */
const STEPS = 4;
const COUNT = Math.ceil(STEPS * Math.log2(LAST_MS / FIRST_MS)) + 1;
const NO_DURATIONS: ArrayLike<number> = new Float64Array(COUNT + 1);
/** Name for all further error codes. */
const OTHER_CODES = "(other)";

/** Name of the meter for all further functions. */
const OTHER = "(other)";

/** The meters of all functions that were called. */
export class FunctionMeters {
  /** By namespace, then by id. */
  readonly #subjects = new Map<string, Map<string, MeteredFunction>>();
  #count = 0;
  /** Meter of the functions without one of their own. */
  readonly other: CountingMeter = new CountingMeter("", OTHER);

  /** A registered function; it gets its own meter while there is room. */
  functionOf(namespace: string, function_id: string): MeteredFunction {
    const known = this.#subjects.get(namespace)?.get(function_id);
    if (known) return known;
    if (this.#count >= METERED_FUNCTIONS_MAX) return this.#unmetered(namespace, function_id);
    this.#count++;
    const meter = new CountingMeter(namespace, function_id);
    const subject = new MeteredFunction(namespace, function_id, meter);
    const subjects = this.#subjects.get(namespace);
    if (subjects) subjects.set(function_id, subject);
    else this.#subjects.set(namespace, new Map([[function_id, subject]]));
    return subject;
  }

  /** A function that may not exist: only known ones have their own meter. */
  functionOrOther(namespace: string, function_id: string): MeteredFunction {
    return this.#subjects.get(namespace)?.get(function_id) ??
      this.#unmetered(namespace, function_id);
  }

  /** Removes the meter of a function, unless a call of it runs. */
  forget(namespace: string, function_id: string): void {
    const subjects = this.#subjects.get(namespace);
    const subject = subjects?.get(function_id);
    if (!subjects || !subject || subject.meter.in_flight > 0) return;
    subjects.delete(function_id);
    if (subjects.size === 0) this.#subjects.delete(namespace);
    this.#count--;
  }

  /** All meters except {@linkcode other}. */
  *meters(): Generator<FunctionMeter> {
    for (const subjects of this.#subjects.values()) {
      for (const { meter } of subjects.values()) yield meter;
    }
  }

  #unmetered(namespace: string, function_id: string): MeteredFunction {
    const [space, id] = [namespace, function_id].map((text) =>
      copyText(text, TRACE_NAME_CHARS_MAX)
    );
    return new MeteredFunction(space!, id!, this.other);
  }
}

/** Upper bounds of the duration buckets in milliseconds: from 0.01 ms by a factor of 2^(1/4). */
export const BOUNDS_MS: readonly number[] = Array.from(
  { length: COUNT },
  (_, at) => Math.min(LAST_MS, FIRST_MS * 2 ** (at / STEPS)),
);

/** Index of the first of {@linkcode BOUNDS_MS} that a duration does not exceed. */
export function bucketOf(ms: number): number {
  if (!(ms > FIRST_MS)) return 0;
  if (ms > LAST_MS) return COUNT;
  const at = Math.min(COUNT - 1, Math.ceil(STEPS * Math.log2(ms / FIRST_MS)));
  // Logarithms are not exact at the bounds.
  if (ms > BOUNDS_MS[at]!) return at + 1;
  return ms <= BOUNDS_MS[at - 1]! ? at - 1 : at;
}

/** Counts the calls of one function. */
export class CountingMeter implements FunctionMeter {
  readonly function_id: string;
  readonly namespace: string;
  calls = 0;
  in_flight = 0;
  duration_sum_ms = 0;
  readonly errors: Map<string, number> = new Map();
  /** Most functions of a large system are never called: they share one of zeros. */
  #durations: Float64Array | undefined;
  /** Cache of the last bucket: calls of one tick start and end at the same times. */
  #lastMs = 0;
  #lastBucket = 0;

  constructor(namespace: string, function_id: string) {
    this.namespace = namespace;
    this.function_id = function_id;
  }

  get durations(): ArrayLike<number> {
    return this.#durations ?? NO_DURATIONS;
  }

  /** Counts the end of a call that was open. */
  ended(ms: number): void {
    this.in_flight--;
    this.duration_sum_ms += ms;
    if (ms !== this.#lastMs) {
      this.#lastMs = ms;
      this.#lastBucket = bucketOf(ms);
    }
    const durations = this.#durations ??= new Float64Array(COUNT + 1);
    durations[this.#lastBucket]!++;
  }

  /** Counts an error, also of a call that was never opened. */
  failed(code: string): void {
    const { errors } = this;
    let name = code.length > METERED_CODE_CHARS_MAX ? copyText(code, METERED_CODE_CHARS_MAX) : code;
    const count = errors.get(name);
    if (count === undefined) name = errors.size < METERED_CODES_MAX ? copyText(name) : OTHER_CODES;
    errors.set(name, (count ?? errors.get(name) ?? 0) + 1);
  }
}

/** A function, shared by its spans. */
export class MeteredFunction implements ObservedFunction {
  readonly function_id: string;
  readonly namespace: string;
  readonly meter: CountingMeter;
  /** See {@linkcode SpanEndpoint.page}. */
  page = -1;
  place = 0;
  /** Share of new traces to record that start with it, for this version of the settings. */
  rate = 0;
  rateVersion = -1;

  constructor(namespace: string, function_id: string, meter: CountingMeter) {
    this.namespace = namespace;
    this.function_id = function_id;
    this.meter = meter;
  }

  /** Memory of this object. */
  get bytes(): number {
    return 64 + textBytes(this.function_id) + textBytes(this.namespace);
  }
}
