/**
 * Calls the functions of `log` and `trace` triggers without feedback: nothing that a firing causes
 * fires a trigger again.
 *
 * Each firing starts a trace whose id begins with eight digits chosen at start-up, so every span
 * and log record below it is recognizable by its trace id alone; no table of firings is needed.
 * {@linkcode workerLog} marks what this worker writes to the engine's log for the same reason.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Directory } from "../../engine/ports/directory.ts";
import type { Log, LogFields, LogLevel } from "../../engine/ports/log.ts";
import type { Spans } from "../../engine/ports/telemetry.ts";
import { TriggerAction, type TriggerInstance } from "../../sdk/typescript/options.ts";
import { readTraceparent } from "../../sdk/typescript/trace_context.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import * as v from "../kit/schema.ts";
import type { LogRecord } from "./logs/record.ts";

/** Firings of one trigger of type `log` or `trace` in a second, unless it takes batches. */
const FIRINGS_PER_SECOND_MAX = 200;
/** Records or traces in one batch; further ones are only counted. */
const TRIGGER_BATCH_RECORDS_MAX = 500;

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

  constructor(setup: DispatcherSetup) {
    this.#setup = setup;
  }

  get clock(): Clock {
    return this.#setup.clock;
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

/** Shortest `batch_ms` of a trigger. */
export const TRIGGER_BATCH_MS_MIN = 100;
/** Longest `batch_ms` of a trigger. */
export const TRIGGER_BATCH_MS_MAX = 10_000;

/** `batch_ms` in a trigger's config. */
export const BatchMs = v.opt(v.int(TRIGGER_BATCH_MS_MIN, TRIGGER_BATCH_MS_MAX));

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
  #cancel: (() => void) | undefined;

  constructor(dispatcher: TriggerDispatcher, options: BatcherOptions<Item>) {
    this.#dispatcher = dispatcher;
    this.#options = options;
  }

  /** Fires the trigger with this item, at once or with the next batch. */
  add(item: Item): void {
    const { batchMs, trigger, payload } = this.#options;
    const { clock } = this.#dispatcher;
    if (batchMs !== undefined) {
      if (this.#items.size < TRIGGER_BATCH_RECORDS_MAX) this.#items.add(item);
      else if (!this.#items.has(item)) this.#dropped++;
      this.#cancel ??= clock.after(batchMs, () => this.#flush());
      return;
    }
    this.#cancel ??= clock.after(1_000, () => this.#resetRate());
    if (this.#fired >= FIRINGS_PER_SECOND_MAX) this.#dropped++;
    else {
      this.#fired++;
      void this.#dispatcher.fire(trigger, payload([item], 0));
    }
  }

  /** Discards the pending batch. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#items = new Set();
  }

  #flush(): void {
    this.#cancel = undefined;
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
