/**
 * Triggers of type `log`: call a function for matching log records.
 *
 * Records caused by a firing never fire a trigger. Neither do records that the worker of the
 * trigger's function writes outside of any call, since a firing may have caused them.
 *
 * @module
 */
import type { TriggerInstance } from "../../../sdk/typescript/options.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import * as v from "../../kit/schema.ts";
import { fitTrigger } from "../../kit/triggers.ts";
import {
  BatchMs,
  TRIGGER_BATCH_MS_MAX,
  TRIGGER_BATCH_MS_MIN,
  TriggerBatcher,
  type TriggerDispatcher,
} from "../trigger_dispatcher.ts";
import { type LogRecord, SEVERITIES, wireLog } from "./record.ts";
import { matcher } from "./store.ts";

const Config = v.object({
  level: v.opt(v.picklist(["all", ...SEVERITIES])),
  min_level: v.opt(v.picklist(SEVERITIES)),
  worker: v.opt(v.string()),
  function_id: v.opt(v.string()),
  text: v.opt(v.string()),
  batch_ms: BatchMs,
});

interface Subscription {
  readonly trigger: TriggerInstance;
  readonly fits: (record: LogRecord) => boolean;
  readonly batch: TriggerBatcher<LogRecord>;
}

/** Provider of the trigger type `log`. */
export class LogTriggers {
  readonly #dispatcher: TriggerDispatcher;
  readonly #subscriptions = new Map<string, Subscription>();

  constructor(dispatcher: TriggerDispatcher) {
    this.#dispatcher = dispatcher;
  }

  /** Registers the trigger type. */
  register(worker: Pick<Worker, "registerTriggerType">): void {
    const text = { type: "string" };
    worker.registerTriggerType({
      id: "log",
      description: "Runs a function for log records",
      trigger_request_format: {
        type: "object",
        properties: {
          level: { enum: ["all", ...SEVERITIES], default: "all", description: "Exactly this" },
          min_level: { enum: [...SEVERITIES], description: "This and above" },
          worker: text,
          function_id: text,
          text: { type: "string", description: "In the text or an attribute" },
          batch_ms: {
            type: "integer",
            minimum: TRIGGER_BATCH_MS_MIN,
            maximum: TRIGGER_BATCH_MS_MAX,
            description: "Interval of batches: {logs, dropped} instead of one record",
          },
        },
      },
      call_request_format: { type: "object" },
    }, {
      registerTrigger: (trigger) => this.add(trigger),
      unregisterTrigger: ({ id }) => this.remove(id),
    });
  }

  /** @throws {EngineError} `trigger_registration_failed` for an invalid config. */
  add(trigger: TriggerInstance): void {
    const { level, min_level, worker, function_id, text, batch_ms } = fitTrigger(Config, trigger);
    const fits = matcher({
      severity: level === "all" ? undefined : level,
      least: min_level,
      worker,
      function_id,
      text,
    });
    const batch = new TriggerBatcher<LogRecord>(this.#dispatcher, {
      trigger,
      batchMs: batch_ms,
      payload: (records, dropped): Json =>
        batch_ms === undefined ? wireLog(records[0]!) : { logs: records.map(wireLog), dropped },
    });
    this.remove(trigger.id);
    this.#subscriptions.set(trigger.id, { trigger, fits, batch });
  }

  /** Removes a trigger and discards its pending batch. */
  remove(id: string): void {
    this.#subscriptions.get(id)?.batch.stop();
    this.#subscriptions.delete(id);
  }

  /** Fires the matching triggers. */
  onRecord(record: LogRecord): void {
    if (this.#subscriptions.size === 0 || this.#dispatcher.causedBy(record.trace_id)) return;
    if (this.#dispatcher.mentionsFiring(record)) return;
    const isOutsideCall = record.span_id === null && record.source !== "engine";
    for (const { trigger, fits, batch } of this.#subscriptions.values()) {
      if (!fits(record)) continue;
      if (isOutsideCall && this.#dispatcher.offers(trigger, record.worker)) continue;
      batch.add(record);
    }
  }

  /** Removes all triggers. */
  stop(): void {
    for (const id of [...this.#subscriptions.keys()]) this.remove(id);
  }
}
