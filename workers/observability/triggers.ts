/**
 * The trigger types `log` and `trace`: call a function for matching log records, or with the ids of
 * traces in which spans have ended.
 *
 * Nothing that a firing causes fires a trigger again. Each firing starts a trace whose id begins
 * with eight digits chosen at start-up, so every span and log record below it is recognizable by
 * its trace id alone; no table of firings is needed. {@linkcode workerLog} marks what this worker
 * writes to the engine's log for the same reason.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { type Directory, ENGINE_NAMESPACE, type Engines } from "../../engine/ports/directory.ts";
import type { Log, LogFields, LogLevel } from "../../engine/ports/log.ts";
import type { Spans } from "../../engine/ports/telemetry.ts";
import { TriggerAction, type TriggerInstance } from "../../sdk/typescript/options.ts";
import { readTraceparent } from "../../sdk/typescript/trace_context.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import * as v from "../kit/schema.ts";
import { fitTrigger } from "../kit/triggers.ts";
import { type LogOrigin, type LogRecord, SEVERITIES, wireLog } from "./logs/record.ts";
import { bytesOf, matcher } from "./logs/store.ts";
import { type TraceEntry, type TraceIndex, wireTrace } from "./traces/index.ts";
import { Slices } from "./slices.ts";
import type { SpanFeed, StoredSpan } from "./traces/span.ts";
import { TriggerQuota } from "./trigger_quota.ts";

/** Firings of one trigger of type `log` or `trace` in a second, unless it takes batches. */
const FIRINGS_PER_SECOND_MAX = 200;
/** Records or traces in one batch; further ones are only counted. */
const TRIGGER_BATCH_RECORDS_MAX = 500;
/** Shortest `batch_ms` of a trigger. */
const TRIGGER_BATCH_MS_MIN = 100;
/** Longest `batch_ms` of a trigger. */
const TRIGGER_BATCH_MS_MAX = 10_000;
/** Memory of the records in one batch; those beyond it are only counted. */
const TRIGGER_BATCH_BYTES_MAX = 1024 * 1024;
/** Longest text that a trigger searches for. */
export const TRIGGER_TEXT_CHARS_MAX = 1_024;
/** Triggers that one task matches with a record. */
const TASK_TRIGGERS = 16;

/** `batch_ms` in a trigger's config. */
const BatchMs = v.opt(v.int(TRIGGER_BATCH_MS_MIN, TRIGGER_BATCH_MS_MAX));

const LogConfig = v.object({
  level: v.opt(v.picklist(["all", ...SEVERITIES])),
  min_level: v.opt(v.picklist(SEVERITIES)),
  worker: v.opt(v.string()),
  function_id: v.opt(v.string()),
  text: v.opt(v.text(0, TRIGGER_TEXT_CHARS_MAX)),
  batch_ms: BatchMs,
});

interface LogSubscription {
  readonly trigger: TriggerInstance;
  readonly fits: (record: LogRecord) => boolean;
  readonly batch: TriggerBatcher<LogRecord>;
}

/** Provider of the trigger type `log`. */
export class LogTriggers {
  readonly #dispatcher: TriggerDispatcher;
  readonly #quota: TriggerQuota;
  readonly #subscriptions = new Map<string, LogSubscription>();
  /** The same as a list; `undefined` after a change. */
  #list: readonly LogSubscription[] | undefined;

  readonly #engines: Pick<Engines, "life" | "list"> | undefined;

  /** `engines`: those of the cluster, whose triggers get the name of this one. */
  constructor(dispatcher: TriggerDispatcher, engines?: Pick<Engines, "life" | "list">) {
    this.#dispatcher = dispatcher;
    this.#engines = engines;
    this.#quota = new TriggerQuota(dispatcher.directory);
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
          level: {
            enum: ["all", ...SEVERITIES],
            default: "all",
            description: "Records of exactly this level",
          },
          min_level: { enum: [...SEVERITIES], description: "Records of this level and above" },
          worker: text,
          function_id: text,
          text: {
            type: "string",
            description: "Text that the record or one of its attributes contains",
          },
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
    const { level, min_level, worker, function_id, text, batch_ms } = fitTrigger(
      LogConfig,
      trigger,
    );
    this.#quota.take(trigger);
    const fits = matcher({
      severity: level === "all" ? undefined : level,
      least: min_level,
      worker,
      function_id,
      text,
    });
    const origin = this.#originFor(trigger);
    const batch = new TriggerBatcher<LogRecord>(this.#dispatcher, {
      trigger,
      batchMs: batch_ms,
      payload: (records, dropped): Json => {
        if (batch_ms === undefined) return wireLog(records[0]!, origin);
        const kept = withinBytes(records);
        const logs = kept.map((record) => wireLog(record, origin));
        return { logs, dropped: dropped + records.length - kept.length };
      },
    });
    this.#subscriptions.get(trigger.id)?.batch.stop();
    this.#subscriptions.set(trigger.id, { trigger, fits, batch });
    this.#list = undefined;
  }

  /** This engine, for a page of another one. */
  #originFor({ namespace }: TriggerInstance): LogOrigin | undefined {
    const engines = this.#engines;
    const isOfEngine = namespace?.startsWith(ENGINE_NAMESPACE) ?? false;
    if (!engines || !isOfEngine || namespace === ENGINE_NAMESPACE + engines.life) return undefined;
    return engines.list()[0]!;
  }

  /** Removes a trigger and discards its pending batch. */
  remove(id: string): void {
    this.#subscriptions.get(id)?.batch.stop();
    this.#subscriptions.delete(id);
    this.#quota.give(id);
    this.#list = undefined;
  }

  /** Fires the matching triggers, in slices when there are many. */
  onRecord(record: LogRecord): void {
    if (this.#subscriptions.size === 0 || this.#dispatcher.causedBy(record.trace_id)) return;
    if (this.#dispatcher.mentionsFiring(record)) return;
    const list = this.#list ??= [...this.#subscriptions.values()];
    for (let at = 0; at < list.length; at += TASK_TRIGGERS) {
      this.#dispatcher.run(() => this.#match(record, list.slice(at, at + TASK_TRIGGERS)));
    }
  }

  #match(record: LogRecord, subscriptions: readonly LogSubscription[]): void {
    const isOutsideCall = record.span_id === null && record.source !== "engine";
    for (const { trigger, fits, batch } of subscriptions) {
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

/** The first records, as many as fit into a batch; at least one. */
function withinBytes(records: readonly LogRecord[]): readonly LogRecord[] {
  let bytes = 0;
  const end = records.findIndex((record) => (bytes += bytesOf(record)) > TRIGGER_BATCH_BYTES_MAX);
  return end === -1 ? records : records.slice(0, Math.max(1, end));
}

const TraceConfig = v.object({
  service_name: v.opt(v.string()),
  status: v.opt(v.pipe(v.text(0, TRIGGER_TEXT_CHARS_MAX), v.toLowerCase())),
  batch_ms: BatchMs,
  summaries: v.opt(v.boolean()),
});

interface TraceSubscription {
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
  readonly #quota: TriggerQuota;
  readonly #subscriptions = new Map<string, TraceSubscription>();
  /** By trace id, with the place in the list; shared by all triggers until further spans end. */
  #summaries: Promise<Map<string, { entry: TraceEntry; at: number }>> | undefined;
  #stopListening: (() => void) | undefined;

  constructor(setup: TraceTriggersSetup) {
    this.#setup = setup;
    this.#quota = new TriggerQuota(setup.dispatcher.directory);
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
    const { service_name, status, batch_ms, summaries } = fitTrigger(TraceConfig, trigger);
    this.#quota.take(trigger);
    const batch = new TriggerBatcher<string>(this.#setup.dispatcher, {
      trigger,
      batchMs: batch_ms ?? 0,
      payload: async (ids, dropped) => ({
        ...await this.#payload(ids, summaries ?? false),
        ...batch_ms !== undefined && { dropped },
      }),
    });
    this.#subscriptions.get(trigger.id)?.batch.stop();
    this.#subscriptions.set(trigger.id, { service_name, status, batch });
    this.#stopListening ??= this.#setup.spans.listen((spans) => this.#onSpans(spans));
  }

  /** Removes a trigger and discards its pending batch. */
  remove(id: string): void {
    this.#subscriptions.get(id)?.batch.stop();
    this.#subscriptions.delete(id);
    this.#quota.give(id);
    if (this.#subscriptions.size > 0) return;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #onSpans(spans: readonly StoredSpan[]): void {
    const { dispatcher, isInternal } = this.#setup;
    const firing = spans.filter((span) => !dispatcher.causedBy(span.trace_id) && !isInternal(span));
    this.#summaries = undefined;
    for (const { service_name, status, batch } of this.#subscriptions.values()) {
      dispatcher.run(() => {
        const ids = new Set<string>();
        for (const span of firing) {
          if (service_name !== undefined && span.service_name !== service_name) continue;
          if (status === undefined || span.status.includes(status)) ids.add(span.trace_id);
        }
        for (const id of ids) batch.add(id);
      });
    }
  }

  /** Removes all triggers. */
  stop(): void {
    for (const id of [...this.#subscriptions.keys()]) this.remove(id);
  }

  async #payload(trace_ids: string[], withSummaries: boolean): Promise<JsonObject> {
    if (!withSummaries) return { trace_ids };
    this.#summaries ??= this.#setup.index.list().then((entries) =>
      new Map(entries.map((entry, at) => [entry.trace_id, { entry, at }]))
    );
    const known = await this.#summaries;
    const found = trace_ids.map((id) => known.get(id)).filter((it) => it !== undefined);
    const traces: JsonObject[] = found.sort((a, b) => a.at - b.at).map(({ entry }) => {
      return wireTrace(entry);
    });
    return { trace_ids, traces };
  }
}

/** Time after which dropped tasks are reported together. */
const DROPPED_REPORT_MS = 10_000;

/** Dependencies of {@linkcode TriggerDispatcher}. */
export interface DispatcherSetup {
  readonly worker: Pick<Worker, "trigger">;
  readonly clock: Clock;
  readonly directory: Directory;
  /** Must not fire triggers: see {@linkcode WorkerLog.tagged}. */
  readonly log: Log;
  readonly spans: Pick<Spans, "open">;
}

/** Fires the triggers of one engine. */
export class TriggerDispatcher {
  readonly #setup: DispatcherSetup;
  /** Prefix of the trace ids of all firings. */
  readonly #mark = hexDigits(4);
  readonly #slices: Slices;
  #dropped = 0;

  constructor(setup: DispatcherSetup) {
    this.#setup = setup;
    this.#slices = new Slices(setup.clock);
  }

  /** Runs a short task of a fan-out, at once or in a later slice; never too many wait. */
  run(task: () => void): void {
    if (this.#slices.run(task)) return;
    if (this.#dropped++ > 0) return;
    const { clock, log } = this.#setup;
    clock.after(DROPPED_REPORT_MS, () => {
      log.warn("triggers of types log and trace fall behind, so some did not fire", {
        tasks: this.#dropped,
      });
      this.#dropped = 0;
    });
  }

  /** Drops what waits. */
  stop(): void {
    this.#slices.stop();
  }

  get clock(): Clock {
    return this.#setup.clock;
  }

  get directory(): Directory {
    return this.#setup.directory;
  }

  get log(): Log {
    return this.#setup.log;
  }

  /** Whether a firing started the trace. */
  causedBy(trace_id: string | null): boolean {
    return trace_id !== null && trace_id.startsWith(this.#mark);
  }

  /** Whether a record of the engine's log may be about a firing, judged by the worker it names. */
  mentionsFiring({ source, attributes: { id, by } }: LogRecord): boolean {
    if (source !== "engine") return false;
    if (by === WORKER_NAME) return true;
    if (typeof id !== "string") return false;
    const view = this.#setup.directory.worker(id);
    return view?.builtin === true && view.name === WORKER_NAME;
  }

  /** Whether a worker with this name offers the function of a trigger. */
  offers({ function_id, namespace }: TriggerInstance, worker: string | null): boolean {
    if (worker === null) return false;
    const { directory } = this.#setup;
    const view = directory.function(namespace ?? "default", function_id);
    return view?.worker_ids.some((id) => directory.worker(id)?.name === worker) ?? false;
  }

  /** Calls the function of a trigger without waiting for a result. Never rejects. */
  async fire(
    { function_id, namespace, metadata }: TriggerInstance,
    payload: Json | Promise<Json>,
  ): Promise<void> {
    const { worker, log } = this.#setup;
    try {
      await worker.trigger({
        function_id,
        payload: payload instanceof Promise ? await payload : payload,
        action: TriggerAction.Void(),
        traceparent: this.#startTrace(function_id, namespace),
        ...namespace !== undefined && { namespace },
        ...metadata !== undefined && { metadata },
      });
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      log.warn("a trigger could not be fired", { function_id, reason });
    }
  }

  /** Firings of internal functions are not recorded. */
  #startTrace(function_id: string, namespace = "default"): string {
    const { directory, spans } = this.#setup;
    const isInternal = directory.function(namespace, function_id)?.internal ?? false;
    const opened = isInternal
      ? undefined
      : readTraceparent(spans.open(null, function_id) ?? undefined);
    return `00-${this.#mark}${hexDigits(12)}-${hexDigits(8)}-0${opened?.isSampled ? 1 : 0}`;
  }
}

/** How a trigger receives its items. */
export interface BatcherOptions<Item> {
  readonly trigger: TriggerInstance;
  /** Time between two batches; `undefined`: one call per item. */
  readonly batchMs: number | undefined;
  /** The payload of a call; `dropped` items did not fit into the batch. */
  payload(items: Item[], dropped: number): Json | Promise<Json>;
}

/** Collects the items of one trigger and fires it. Equal items appear once per batch. */
export class TriggerBatcher<Item> {
  readonly #dispatcher: TriggerDispatcher;
  readonly #options: BatcherOptions<Item>;
  #items = new Set<Item>();
  #dropped = 0;
  #fired = 0;
  #isStopped = false;
  #cancel: (() => void) | undefined;

  constructor(dispatcher: TriggerDispatcher, options: BatcherOptions<Item>) {
    this.#dispatcher = dispatcher;
    this.#options = options;
  }

  /** Fires the trigger with this item, at once or with the next batch. */
  add(item: Item): void {
    if (this.#isStopped) return;
    const { batchMs, trigger, payload } = this.#options;
    const { clock } = this.#dispatcher;
    if (batchMs !== undefined) {
      if (this.#items.size < TRIGGER_BATCH_RECORDS_MAX) this.#items.add(item);
      else if (!this.#items.has(item)) this.#dropped++;
      this.#cancel ??= clock.after(batchMs, () => {
        this.#cancel = undefined; // If the task is dropped, the next item asks again.
        this.#dispatcher.run(() => this.#flush());
      });
      return;
    }
    this.#cancel ??= clock.after(1_000, () => this.#resetRate());
    if (this.#fired >= FIRINGS_PER_SECOND_MAX) this.#dropped++;
    else {
      this.#fired++;
      void this.#dispatcher.fire(trigger, payload([item], 0));
    }
  }

  /** Discards the pending batch and all further items. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#items = new Set();
  }

  #flush(): void {
    if (this.#isStopped) return;
    const { trigger, payload } = this.#options;
    const items = [...this.#items];
    const dropped = this.#dropped;
    this.#items = new Set();
    this.#dropped = 0;
    void this.#dispatcher.fire(trigger, payload(items, dropped));
  }

  #resetRate(): void {
    this.#cancel = undefined;
    this.#fired = 0;
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped === 0) return;
    const { function_id } = this.#options.trigger;
    this.#dispatcher.log.warn("a trigger exceeds its firing rate; set batch_ms", {
      function_id,
      dropped,
    });
  }
}

/** Name of the worker that records logs and fires their triggers. */
export const WORKER_NAME = "engine-observability";

/** The engine's log as this worker writes to it. */
export interface WorkerLog {
  /** For records that the worker has stored already; see {@linkcode isUnrecorded}. */
  readonly unrecorded: Log;
  /** For everything else: adds the field `by`, which keeps the lines from firing triggers. */
  readonly tagged: Log;
  /** Whether the log line being written now comes from {@linkcode unrecorded}. */
  isUnrecorded(): boolean;
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Wraps the engine's log, which passes each line to its listeners synchronously. */
export function workerLog(log: Log): WorkerLog {
  let isUnrecorded = false;
  const write = (level: LogLevel, text: string, fields?: LogFields): void => {
    isUnrecorded = true;
    try {
      log[level](text, fields);
    } finally {
      isUnrecorded = false;
    }
  };
  return {
    unrecorded: logOf(write),
    tagged: logOf((level, text, fields) => log[level](text, { by: WORKER_NAME, ...fields })),
    isUnrecorded: () => isUnrecorded,
  };
}

function logOf(write: (level: LogLevel, text: string, fields?: LogFields) => void): Log {
  const entries = LEVELS.map((level) => [
    level,
    (text: string, fields?: LogFields) => write(level, text, fields),
  ]);
  return Object.fromEntries(entries) as unknown as Log;
}

function hexDigits(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}
