/**
 * Triggers of type `log`: functions that hear of log records.
 *
 * What a firing causes to be logged never fires a trigger. Neither does what the function's own
 * worker says outside of any call: it cannot be told from what the firing made it say.
 *
 * @module
 */
import * as v from "../../kit/schema.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { TRIGGER_BATCH_MS_MAX, TRIGGER_BATCH_MS_MIN } from "../../limits.ts";
import type { TriggerInstance } from "../../../sdk/typescript/options.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import { problemsOf } from "../../kit/fit.ts";
import { type LogRecord, SEVERITIES, wireLog } from "./record.ts";
import { matcher } from "./store.ts";
import { TriggerBatcher, type TriggerDispatcher } from "../trigger_dispatcher.ts";

/** `batch_ms` of a trigger. */
export const BatchMs = v.opt(v.int(TRIGGER_BATCH_MS_MIN, TRIGGER_BATCH_MS_MAX));

const Config = v.object({
  level: v.opt(v.picklist(["all", ...SEVERITIES])),
  min_level: v.opt(v.picklist(SEVERITIES)),
  worker: v.opt(v.string()),
  function_id: v.opt(v.string()),
  text: v.opt(v.string()),
  batch_ms: BatchMs,
});

interface Watch {
  readonly trigger: TriggerInstance;
  readonly fits: (record: LogRecord) => boolean;
  readonly batch: TriggerBatcher<LogRecord>;
}

/** The triggers of type `log` that are registered now. */
export class LogTriggers {
  readonly #dispatcher: TriggerDispatcher;
  readonly #watches = new Map<string, Watch>();

  /** Stores. */
  constructor(dispatcher: TriggerDispatcher) {
    this.#dispatcher = dispatcher;
  }

  /** Provides the type. */
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
            description: "Heaps so far apart: {logs, dropped} instead of one record",
          },
        },
      },
      call_request_format: { type: "object" },
    }, {
      registerTrigger: (trigger) => this.add(trigger),
      unregisterTrigger: ({ id }) => this.remove(id),
    });
  }

  /** @throws {EngineError} `trigger_registration_failed` for a config that does not fit. */
  add(trigger: TriggerInstance): void {
    const { level, min_level, worker, function_id, text, batch_ms } = readConfig(Config, trigger);
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
    this.#watches.set(trigger.id, { trigger, fits, batch });
  }

  /** Forgets a trigger, and what it has not told yet. */
  remove(id: string): void {
    this.#watches.get(id)?.batch.stop();
    this.#watches.delete(id);
  }

  /** A record is there. */
  onRecord(record: LogRecord): void {
    if (this.#watches.size === 0 || this.#dispatcher.causedBy(record.trace_id)) return;
    if (this.#dispatcher.mentionsFiring(record)) return;
    const isUntold = record.span_id === null && record.source !== "engine";
    for (const { trigger, fits, batch } of this.#watches.values()) {
      if (!fits(record)) continue;
      if (isUntold && this.#dispatcher.offers(trigger, record.worker)) continue;
      batch.add(record);
    }
  }

  /** Fires nothing any more. */
  stop(): void {
    for (const id of [...this.#watches.keys()]) this.remove(id);
  }
}

/**
 * What a trigger is told, checked.
 *
 * @throws {EngineError} `trigger_registration_failed`, naming every problem.
 */
export function readConfig<Of>(
  of: v.Schema<Of>,
  { config, trigger_type }: TriggerInstance,
): Of {
  const read = v.safeParse(of, config ?? {});
  if (read.success) return read.output;
  const problems = problemsOf(read.issues, config).join("; ");
  const message = `The config of the ${trigger_type} trigger does not fit: ${problems}`;
  throw new EngineError("trigger_registration_failed", message);
}
