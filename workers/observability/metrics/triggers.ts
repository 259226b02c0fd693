/**
 * Triggers of type `engine::metrics-sampled`: call a function with a sample at an interval.
 *
 * Triggers with the same interval share one sample. Calls do not wait for a result, so a slow
 * function does not delay others.
 *
 * @module
 */
import type { TriggerInstance } from "../../../sdk/typescript/options.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import * as v from "../../kit/schema.ts";
import { fireTriggers, fitTrigger } from "../../kit/triggers.ts";
import {
  type Interval,
  METRICS_STEP_MS,
  type MetricsSample,
  type Sampler,
  SampleWindow,
} from "./sampler.ts";

/** Longest interval of `engine::metrics-sampled`, in milliseconds. */
const METRICS_INTERVAL_MS_MAX = 60_000;
/** Triggers of type `engine::metrics-sampled`. */
export const METRICS_TRIGGERS_MAX = 1_000;

const Config = v.object({
  /** Rounded up to whole seconds. */
  interval_ms: v.optional(
    v.pipe(v.number(), v.minValue(METRICS_STEP_MS), v.maxValue(METRICS_INTERVAL_MS_MAX)),
    METRICS_STEP_MS,
  ),
});

/** Triggers with the same interval. */
interface Group {
  readonly triggers: Map<string, TriggerInstance>;
  readonly window: SampleWindow;
}

/** Provider of the trigger type; fires until disposed. */
export class MetricsTriggers implements Disposable {
  readonly #worker: Pick<Worker, "trigger">;
  readonly #sampler: Sampler;
  /** By interval in seconds. */
  readonly #groups = new Map<number, Group>();
  readonly #stop: () => void;

  constructor(worker: Pick<Worker, "trigger">, sampler: Sampler) {
    this.#worker = worker;
    this.#sampler = sampler;
    this.#stop = sampler.listen((interval, sample) => this.#onSample(interval, sample));
  }

  /** Registers the trigger type. */
  register(worker: Pick<Worker, "registerTriggerType">): void {
    worker.registerTriggerType({
      id: "engine::metrics-sampled",
      description:
        "Calls and resource usage of the engine, its functions and workers, every interval_ms",
      trigger_request_format: v.jsonSchema(Config),
    }, {
      registerTrigger: (trigger) => this.add(trigger),
      unregisterTrigger: (trigger) => this.remove(trigger.id),
    });
  }

  /** @throws {EngineError} `trigger_registration_failed` for an invalid config. */
  add(trigger: TriggerInstance): void {
    const { interval_ms } = fitTrigger(Config, trigger);
    this.remove(trigger.id);
    let count = 0;
    for (const { triggers } of this.#groups.values()) count += triggers.size;
    if (count >= METRICS_TRIGGERS_MAX) {
      const message = `There are ${count} triggers of this type, the most that are allowed`;
      throw new EngineError("trigger_registration_failed", message);
    }
    const seconds = Math.ceil(interval_ms / METRICS_STEP_MS);
    const group = this.#groups.get(seconds);
    if (group) group.triggers.set(trigger.id, trigger);
    else {
      const triggers = new Map([[trigger.id, trigger]]);
      this.#groups.set(seconds, { triggers, window: new SampleWindow() });
    }
  }

  remove(id: string): void {
    for (const [seconds, { triggers }] of this.#groups) {
      if (triggers.delete(id) && triggers.size === 0) this.#groups.delete(seconds);
    }
  }

  [Symbol.dispose](): void {
    this.#stop();
    this.#groups.clear();
  }

  #onSample(interval: Interval, sample: MetricsSample): void {
    if (this.#groups.size > 0) this.#sampler.markRead();
    for (const [seconds, { triggers, window }] of this.#groups) {
      if (seconds === 1) {
        this.#fire(triggers, sample);
        continue;
      }
      window.add(interval);
      // Timers run late, never early: tolerates half a step.
      if (window.interval_ms < (seconds - 0.5) * METRICS_STEP_MS) continue;
      const taken = window.take();
      if (taken) this.#fire(triggers, this.#sampler.sampleOf(taken));
    }
  }

  #fire(triggers: ReadonlyMap<string, TriggerInstance>, sample: MetricsSample): void {
    fireTriggers(this.#worker, triggers.values(), sample as unknown as Json);
  }
}
