/**
 * Triggers of type `trace`: functions that hear of traces in which something has ended.
 *
 * Spans are collected for all triggers together, and only while there is one. Calls of internal
 * functions and what firings cause never fire a trigger.
 *
 * @module
 */
import * as v from "../../kit/schema.ts";
import type { TriggerInstance } from "../../../sdk/typescript/options.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";

import type { SpanFeed, StoredSpan } from "./span.ts";
import { summaryOf, type TraceIndex } from "./index.ts";
import { TriggerBatcher, type TriggerDispatcher } from "../trigger_dispatcher.ts";
import { BatchMs, readConfig } from "../logs/trigger.ts";

const Config = v.object({
  service_name: v.opt(v.string()),
  status: v.opt(v.pipe(v.string(), v.toLowerCase())),
  batch_ms: BatchMs,
  summaries: v.opt(v.boolean()),
});

interface Watch {
  readonly service_name: string | undefined;
  readonly status: string | undefined;
  readonly batch: TriggerBatcher<string>;
}

/** What the triggers hear of. */
export interface TraceTriggersSetup {
  readonly dispatcher: TriggerDispatcher;
  readonly spans: SpanFeed;
  readonly index: Pick<TraceIndex, "list">;
  /** Whether a span is of no interest to people. */
  isInternal(span: StoredSpan): boolean;
}

/** The triggers of type `trace` that are registered now. */
export class TraceTriggers {
  readonly #setup: TraceTriggersSetup;
  readonly #watches = new Map<string, Watch>();
  #stopListening: (() => void) | undefined;

  /** Stores. */
  constructor(setup: TraceTriggersSetup) {
    this.#setup = setup;
  }

  /** Provides the type. */
  register(worker: Pick<Worker, "registerTriggerType">): void {
    worker.registerTriggerType({
      id: "trace",
      description: "Runs a function when something in a trace has ended",
      trigger_request_format: {
        type: "object",
        properties: {
          service_name: { type: "string", description: "Only spans of this worker" },
          status: { type: "string", description: "Only spans with this status, such as error" },
          batch_ms: { type: "integer", description: "Heaps so far apart, in milliseconds" },
          summaries: { type: "boolean", description: "With a line on each trace" },
        },
      },
      call_request_format: {
        type: "object",
        properties: { trace_ids: { type: "array", items: { type: "string" } } },
      },
    }, {
      registerTrigger: (trigger) => this.add(trigger),
      unregisterTrigger: ({ id }) => this.remove(id),
    });
  }

  /** @throws {EngineError} `trigger_registration_failed` for a config that does not fit. */
  add(trigger: TriggerInstance): void {
    const { service_name, status, batch_ms, summaries } = readConfig(Config, trigger);
    const batch = new TriggerBatcher<string>(this.#setup.dispatcher, {
      trigger,
      batchMs: batch_ms ?? 0,
      payload: async (ids, dropped) => ({
        ...await this.#payload(ids, summaries ?? false),
        ...batch_ms !== undefined && { dropped },
      }),
    });
    this.remove(trigger.id);
    this.#watches.set(trigger.id, { service_name, status, batch });
    this.#stopListening ??= this.#setup.spans.listen((spans) => this.hear(spans));
  }

  /** Forgets a trigger, and what it has not told yet. */
  remove(id: string): void {
    this.#watches.get(id)?.batch.stop();
    this.#watches.delete(id);
    if (this.#watches.size > 0) return;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  /** Spans have ended. */
  hear(spans: readonly StoredSpan[]): void {
    const { dispatcher, isInternal } = this.#setup;
    const heard = spans.filter((span) => !dispatcher.causedBy(span.trace_id) && !isInternal(span));
    for (const { service_name, status, batch } of this.#watches.values()) {
      const ids = new Set<string>();
      for (const span of heard) {
        if (service_name !== undefined && span.service_name !== service_name) continue;
        if (status === undefined || span.status.includes(status)) ids.add(span.trace_id);
      }
      for (const id of ids) batch.add(id);
    }
  }

  /** Fires nothing any more. */
  stop(): void {
    for (const id of [...this.#watches.keys()]) this.remove(id);
  }

  async #payload(trace_ids: string[], withSummaries: boolean): Promise<JsonObject> {
    if (!withSummaries) return { trace_ids };
    const wanted = new Set(trace_ids);
    const entries = (await this.#setup.index.list()).filter(({ trace_id }) => wanted.has(trace_id));
    const traces: JsonObject[] = entries.map(summaryOf);
    return { trace_ids, traces };
  }
}
