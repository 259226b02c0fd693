/**
 * What happened since one looked last: the difference between two readings of the meters.
 *
 * Meters only grow. Somebody who wants rates reads them again and again, and each reading costs as
 * much as there are functions that were called in between.
 *
 * @module
 */
import type { Directory } from "../../../engine/ports/directory.ts";
import type { FunctionMeter, Meters } from "../../../engine/ports/telemetry.ts";
import { addCounts, totalOf } from "./samples_quantile.ts";

/** What a function did in a while. */
export interface FunctionDelta {
  readonly function_id: string;
  readonly namespace: string;
  readonly calls: number;
  /** Of those that ended, how many ended with an error. */
  readonly errors: number;
  /** At the end of the while. */
  readonly in_flight: number;
  /** Those that ended, by duration, as the meters have it. */
  readonly durations: Float64Array;
  /** `engine`: one of `engine::*`; `hidden`: its owner says that it is internal. */
  readonly kind: "user" | "engine" | "hidden";
}

/** A meter as it was read last. */
interface Seen {
  calls: number;
  ended: number;
  errors: number;
  readonly durations: Float64Array;
  kind: FunctionDelta["kind"];
  round: number;
}

/** Reads meters again and again. */
export class CountReader {
  readonly #meters: Meters;
  readonly #directory: Pick<Directory, "function">;
  /** By namespace, then id. */
  readonly #seen = new Map<string, Map<string, Seen>>();
  #round = 0;

  /** What was counted before is not told. */
  constructor(meters: Meters, directory: Pick<Directory, "function">) {
    this.#meters = meters;
    this.#directory = directory;
    this.read();
  }

  /** Functions that were called, ended or are running, since the last reading. */
  read(): FunctionDelta[] {
    this.#round++;
    const deltas: FunctionDelta[] = [];
    let count = 0;
    for (const meter of this.#meters.functions()) {
      count++;
      const delta = this.#look(meter);
      if (delta) deltas.push(delta);
    }
    const { other } = this.#meters;
    const delta = this.#look(other);
    if (delta) deltas.push(delta);
    this.#forget(count + 1);
    return deltas;
  }

  #look(meter: FunctionMeter): FunctionDelta | undefined {
    const { function_id, namespace, calls, in_flight } = meter;
    const seen = this.#seenOf(namespace, function_id);
    seen.round = this.#round;
    const ended = totalOf(meter.durations);
    if (calls === seen.calls && ended === seen.ended && in_flight === 0) return undefined;
    const durations = new Float64Array(meter.durations.length);
    if (ended !== seen.ended) {
      for (let i = 0; i < durations.length; i++) {
        const now = meter.durations[i]!;
        durations[i] = Math.max(0, now - seen.durations[i]!);
        seen.durations[i] = now;
      }
    }
    let errors = 0;
    for (const count of meter.errors.values()) errors += count;
    const delta: FunctionDelta = {
      function_id,
      namespace,
      calls: Math.max(0, calls - seen.calls),
      errors: Math.max(0, errors - seen.errors),
      in_flight,
      durations,
      kind: this.#kindOf(seen, namespace, function_id),
    };
    seen.calls = calls;
    seen.ended = ended;
    seen.errors = errors;
    return delta;
  }

  #seenOf(namespace: string, functionId: string): Seen {
    let ids = this.#seen.get(namespace);
    if (!ids) this.#seen.set(namespace, ids = new Map());
    let seen = ids.get(functionId);
    if (!seen) {
      const durations = new Float64Array(this.#meters.bounds_ms.length + 1);
      const kind = functionId.startsWith("engine::") ? "engine" : "user";
      ids.set(functionId, seen = { calls: 0, ended: 0, errors: 0, durations, kind, round: 0 });
    }
    return seen;
  }

  /** Whoever has left is what it was. */
  #kindOf(seen: Seen, namespace: string, functionId: string): FunctionDelta["kind"] {
    if (seen.kind === "engine") return seen.kind;
    const view = this.#directory.function(namespace, functionId);
    if (view) seen.kind = view.internal ? "hidden" : "user";
    return seen.kind;
  }

  /** Meters that are gone; looks for them only when there are fewer than were seen. */
  #forget(count: number): void {
    let known = 0;
    for (const ids of this.#seen.values()) known += ids.size;
    if (known <= count) return;
    for (const [namespace, ids] of this.#seen) {
      for (const [id, seen] of ids) if (seen.round !== this.#round) ids.delete(id);
      if (ids.size === 0) this.#seen.delete(namespace);
    }
  }
}

/** Several whiles together. */
export class DeltaSum {
  readonly #sums = new Map<string, { -readonly [K in keyof FunctionDelta]: FunctionDelta[K] }>();

  /** Adds what happened in one while. */
  add(deltas: readonly FunctionDelta[]): void {
    for (const sum of this.#sums.values()) sum.in_flight = 0;
    for (const delta of deltas) {
      const key = keyOf(delta);
      const sum = this.#sums.get(key);
      if (!sum) {
        this.#sums.set(key, { ...delta, durations: delta.durations.slice() });
        continue;
      }
      sum.calls += delta.calls;
      sum.errors += delta.errors;
      sum.in_flight = delta.in_flight;
      sum.kind = delta.kind;
      addCounts(sum.durations, delta.durations);
    }
  }

  /** One per function. */
  get functions(): FunctionDelta[] {
    return [...this.#sums.values()];
  }

  /** Begins anew. */
  clear(): void {
    this.#sums.clear();
  }
}

/** A function among others. */
export function keyOf(of: { readonly namespace: string; readonly function_id: string }): string {
  return `${of.namespace}\n${of.function_id}`;
}
