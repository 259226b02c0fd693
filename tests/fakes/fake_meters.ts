/**
 * Meters that count what a test tells them.
 *
 * @module
 */
import type { FunctionMeter, Meters, RouterLoad } from "../../engine/ports/telemetry.ts";

/** One call that a test tells of. */
export interface FakeCall {
  /** How long it took; left out: it still runs. */
  readonly ms?: number;
  /** Code of the error it ended with. */
  readonly code?: string;
  readonly namespace?: string;
  /** How often it happened. */
  readonly times?: number;
}

type Growing = { -readonly [K in keyof FunctionMeter]: FunctionMeter[K] } & {
  errors: Map<string, number>;
  durations: Float64Array;
};

/** See the top of this file. */
export class FakeMeters implements Meters {
  /** Coarse, so that a test can tell the bucket of a duration. */
  readonly bounds_ms: readonly number[];
  readonly other: FunctionMeter;
  /** What {@linkcode load} says. */
  now: RouterLoad = { running: 0, parked: 0, connections: 0, queued_bytes: 0 };
  readonly #meters = new Map<string, Growing>();

  constructor(bounds_ms: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 1_000]) {
    this.bounds_ms = bounds_ms;
    this.other = this.#make("(other)", "");
  }

  functions(): Iterable<FunctionMeter> {
    return this.#meters.values();
  }

  load(): RouterLoad {
    return this.now;
  }

  /** A function was called. */
  call(function_id: string, call: FakeCall = {}): void {
    const { ms, code, namespace = "default", times = 1 } = call;
    const key = `${namespace} ${function_id}`;
    let meter = this.#meters.get(key);
    if (!meter) this.#meters.set(key, meter = this.#make(function_id, namespace));
    meter.calls += times;
    if (ms === undefined) meter.in_flight += times;
    else this.#end(meter, ms, times, code);
  }

  /** Calls that run end. */
  end(function_id: string, ms: number, code?: string): void {
    const meter = this.#meters.get(`default ${function_id}`)!;
    meter.in_flight--;
    this.#end(meter, ms, 1, code);
  }

  /** A function that nobody remembers. */
  forget(function_id: string): void {
    this.#meters.delete(`default ${function_id}`);
  }

  #end(meter: Growing, ms: number, times: number, code?: string): void {
    const found = this.bounds_ms.findIndex((bound) => ms <= bound);
    meter.durations[found < 0 ? this.bounds_ms.length : found]! += times;
    meter.duration_sum_ms += ms * times;
    if (code !== undefined) meter.errors.set(code, (meter.errors.get(code) ?? 0) + times);
  }

  #make(function_id: string, namespace: string): Growing {
    return {
      function_id,
      namespace,
      calls: 0,
      in_flight: 0,
      errors: new Map(),
      duration_sum_ms: 0,
      durations: new Float64Array(this.bounds_ms.length + 1),
    };
  }
}
