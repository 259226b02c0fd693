/**
 * Triggers of type `engine::metrics-sampled`: call a function with a sample at an interval.
 *
 * Triggers with the same interval share one sample. Calls do not wait for a result, so a slow
 * function does not delay others; many triggers fire in slices.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory } from "../../../engine/ports/directory.ts";
import type { TriggerInstance } from "../../../sdk/typescript/options.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import * as v from "../../kit/schema.ts";
import { fireTriggers, fitTrigger } from "../../kit/triggers.ts";
import { Slices } from "../slices.ts";
import { TriggerQuota } from "../trigger_quota.ts";
import {
  type Interval,
  METRICS_STEP_MS,
  type MetricsSample,
  type Sampler,
  SampleWindow,
} from "./sampler.ts";

/** Longest interval of `engine::metrics-sampled`, in milliseconds. */
const METRICS_INTERVAL_MS_MAX = 60_000;
/** Triggers that one task fires. */
const TASK_TRIGGERS = 16;

const Config = v.object({
  /** Rounded up to whole seconds. */
  interval_ms: v.optional(
    v.pipe(v.number(), v.minValue(METRICS_STEP_MS), v.maxValue(METRICS_INTERVAL_MS_MAX)),
    METRICS_STEP_MS,
  ),
});

/** Dependencies of {@linkcode MetricsTriggers}. */
export interface MetricsTriggersSetup {
  readonly worker: Pick<Worker, "trigger">;
  readonly sampler: Sampler;
  readonly clock: Clock;
  readonly directory: Pick<Directory, "trigger" | "worker">;
}

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
  readonly #quota: TriggerQuota;
  readonly #slices: Slices;
  readonly #stop: () => void;

  constructor({ worker, sampler, clock, directory }: MetricsTriggersSetup) {
    this.#worker = worker;
    this.#sampler = sampler;
    this.#quota = new TriggerQuota(directory);
    this.#slices = new Slices(clock);
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
    this.#quota.take(trigger);
    this.#drop(trigger.id);
    const seconds = Math.ceil(interval_ms / METRICS_STEP_MS);
    const group = this.#groups.get(seconds);
    if (group) group.triggers.set(trigger.id, trigger);
    else {
      const triggers = new Map([[trigger.id, trigger]]);
      this.#groups.set(seconds, { triggers, window: new SampleWindow() });
    }
  }

  remove(id: string): void {
    this.#quota.give(id);
    this.#drop(id);
  }

  #drop(id: string): void {
    for (const [seconds, { triggers }] of this.#groups) {
      if (triggers.delete(id) && triggers.size === 0) this.#groups.delete(seconds);
    }
  }

  [Symbol.dispose](): void {
    this.#stop();
    this.#slices.stop();
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
    const list = [...triggers.values()];
    for (let at = 0; at < list.length; at += TASK_TRIGGERS) {
      this.#slices.run(() => {
        const some = list.slice(at, at + TASK_TRIGGERS)
          .filter((trigger) => triggers.get(trigger.id) === trigger);
        fireTriggers(this.#worker, some, sample as unknown as Json);
      });
    }
  }
}
