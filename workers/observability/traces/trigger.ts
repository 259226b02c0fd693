/**
 * Triggers of type `trace`: call a function with the ids of traces in which spans have ended.
 *
 * Spans are collected once for all triggers, and only while there is a trigger. Internal functions
 * and the spans of firings never fire a trigger.
 *
 * @module
 */
import type { TriggerInstance } from "../../../sdk/typescript/options.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import * as v from "../../kit/schema.ts";
import { fitTrigger } from "../../kit/triggers.ts";
import { BatchMs, TriggerBatcher, type TriggerDispatcher } from "../trigger_dispatcher.ts";
import { type TraceIndex, wireTrace } from "./index.ts";
import type { SpanFeed, StoredSpan } from "./span.ts";

const Config = v.object({
  service_name: v.opt(v.string()),
  status: v.opt(v.pipe(v.string(), v.toLowerCase())),
  batch_ms: BatchMs,
  summaries: v.opt(v.boolean()),
});

interface Subscription {
  readonly service_name: string | undefined;
  readonly status: string | undefined;
  readonly batch: TriggerBatcher<string>;
}

/** Dependencies of {@linkcode TraceTriggers}. */
export interface TraceTriggersSetup {
  readonly dispatcher: TriggerDispatcher;
  readonly spans: SpanFeed;
  readonly index: Pick<TraceIndex, "list">;
  /** Whether a span belongs to an internal function. */
  isInternal(span: StoredSpan): boolean;
}

/** Provider of the trigger type `trace`. */
export class TraceTriggers {
  readonly #setup: TraceTriggersSetup;
  readonly #subscriptions = new Map<string, Subscription>();
  #stopListening: (() => void) | undefined;

  constructor(setup: TraceTriggersSetup) {
    this.#setup = setup;
  }

  /** Registers the trigger type. */
  register(worker: Pick<Worker, "registerTriggerType">): void {
    worker.registerTriggerType({
      id: "trace",
      description: "Runs a function when something in a trace has ended",
      trigger_request_format: {
        type: "object",
        properties: {
          service_name: { type: "string", description: "Only spans of this worker" },
          status: { type: "string", description: "Only spans with this status, such as error" },
          batch_ms: { type: "integer", description: "Interval of batches, in milliseconds" },
          summaries: { type: "boolean", description: "Adds a summary of each trace" },
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

  /** @throws {EngineError} `trigger_registration_failed` for an invalid config. */
  add(trigger: TriggerInstance): void {
    const { service_name, status, batch_ms, summaries } = fitTrigger(Config, trigger);
    const batch = new TriggerBatcher<string>(this.#setup.dispatcher, {
      trigger,
      batchMs: batch_ms ?? 0,
      payload: async (ids, dropped) => ({
        ...await this.#payload(ids, summaries ?? false),
        ...batch_ms !== undefined && { dropped },
      }),
    });
    this.remove(trigger.id);
    this.#subscriptions.set(trigger.id, { service_name, status, batch });
    this.#stopListening ??= this.#setup.spans.listen((spans) => this.#onSpans(spans));
  }

  /** Removes a trigger and discards its pending batch. */
  remove(id: string): void {
    this.#subscriptions.get(id)?.batch.stop();
    this.#subscriptions.delete(id);
    if (this.#subscriptions.size > 0) return;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #onSpans(spans: readonly StoredSpan[]): void {
    const { dispatcher, isInternal } = this.#setup;
    const firing = spans.filter((span) => !dispatcher.causedBy(span.trace_id) && !isInternal(span));
    for (const { service_name, status, batch } of this.#subscriptions.values()) {
      const ids = new Set<string>();
      for (const span of firing) {
        if (service_name !== undefined && span.service_name !== service_name) continue;
        if (status === undefined || span.status.includes(status)) ids.add(span.trace_id);
      }
      for (const id of ids) batch.add(id);
    }
  }

  /** Removes all triggers. */
  stop(): void {
    for (const id of [...this.#subscriptions.keys()]) this.remove(id);
  }

  async #payload(trace_ids: string[], withSummaries: boolean): Promise<JsonObject> {
    if (!withSummaries) return { trace_ids };
    const wanted = new Set(trace_ids);
    const entries = (await this.#setup.index.list()).filter(({ trace_id }) => wanted.has(trace_id));
    const traces: JsonObject[] = entries.map(wireTrace);
    return { trace_ids, traces };
  }
}
