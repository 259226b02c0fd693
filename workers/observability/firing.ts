/**
 * Calling the functions of triggers, in heaps or at once, without ever feeding a trigger with what
 * its own firing caused.
 *
 * A firing begins a trace whose id starts with eight digits that are this engine's own, so every
 * line and every span it causes, however far down, can be told from all others. No table has to
 * remember anything.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Directory } from "../../engine/ports/directory.ts";
import type { Log, LogFields, LogLevel } from "../../engine/ports/log.ts";
import type { Spans } from "../../engine/ports/telemetry.ts";
import { TriggerAction, type TriggerInstance } from "../../sdk/typescript/options.ts";
import { readTraceparent } from "../../sdk/typescript/traceparent.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { FIRINGS_PER_SECOND_MAX, TRIGGER_BATCH_RECORDS_MAX } from "../limits.ts";
import type { LogRecord } from "./logs/record.ts";

/** What firing needs. */
export interface FiringSetup {
  readonly worker: Pick<Worker, "trigger">;
  readonly clock: Clock;
  readonly directory: Directory;
  /** What is said here must not fire triggers. */
  readonly log: Log;
  readonly spans: Pick<Spans, "open">;
}

/** Fires triggers. One for all triggers of an engine. */
export class Firing {
  readonly #setup: FiringSetup;
  /** First digits of all traces that firings begin. */
  readonly #mark = hexDigits(4);

  /** Stores. */
  constructor(setup: FiringSetup) {
    this.#setup = setup;
  }

  /** Time, for whoever waits between firings. */
  get clock(): Clock {
    return this.#setup.clock;
  }

  /** Where to say what goes wrong. */
  get log(): Log {
    return this.#setup.log;
  }

  /** Whether a trace was begun by a firing. */
  causedBy(trace_id: string | null): boolean {
    return trace_id !== null && trace_id.startsWith(this.#mark);
  }

  /** Whether a line of the engine's log may be about a firing: it names who fires. */
  isNamedBy({ source, attributes: { id, by } }: LogRecord): boolean {
    if (source !== "engine") return false;
    if (by === OWN_NAME) return true;
    if (typeof id !== "string") return false;
    const view = this.#setup.directory.worker(id);
    return view?.builtin === true && view.name === OWN_NAME;
  }

  /** Whether a worker of this name offers the function of a trigger. */
  offers({ function_id, namespace }: TriggerInstance, worker: string | null): boolean {
    if (worker === null) return false;
    const { directory } = this.#setup;
    const view = directory.function(namespace ?? "default", function_id);
    return view?.worker_ids.some((id) => directory.worker(id)?.name === worker) ?? false;
  }

  /** Calls the function of a trigger; nobody waits for it. Never rejects. */
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
        traceparent: this.#begin(function_id, namespace),
        ...namespace !== undefined && { namespace },
        ...metadata !== undefined && { metadata },
      });
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      log.warn("a trigger could not be fired", { function_id, reason });
    }
  }

  /** Firings of functions that nobody asks about are not recorded. */
  #begin(function_id: string, namespace = "default"): string {
    const { directory, spans } = this.#setup;
    const isInternal = directory.function(namespace, function_id)?.internal ?? false;
    const opened = isInternal
      ? undefined
      : readTraceparent(spans.open(null, function_id) ?? undefined);
    return `00-${this.#mark}${hexDigits(12)}-${hexDigits(8)}-0${opened?.isSampled ? 1 : 0}`;
  }
}

/** How a trigger collects: heaps that are `batchMs` apart; `undefined`: each thing by itself. */
export interface Collecting<Item> {
  readonly trigger: TriggerInstance;
  readonly batchMs: number | undefined;
  /** What the function gets; `dropped` things were too many. */
  payload(items: Item[], dropped: number): Json | Promise<Json>;
}

/** What one trigger has to tell; equal things of a heap are told once. */
export class Heap<Item> {
  readonly #firing: Firing;
  readonly #how: Collecting<Item>;
  #items = new Set<Item>();
  #dropped = 0;
  #fired = 0;
  #cancel: (() => void) | undefined;

  /** Tells nothing yet. */
  constructor(firing: Firing, how: Collecting<Item>) {
    this.#firing = firing;
    this.#how = how;
  }

  /** Something to tell: at once, or with the rest of its heap. */
  add(item: Item): void {
    const { batchMs, trigger, payload } = this.#how;
    const { clock } = this.#firing;
    if (batchMs !== undefined) {
      if (this.#items.size < TRIGGER_BATCH_RECORDS_MAX) this.#items.add(item);
      else if (!this.#items.has(item)) this.#dropped++;
      this.#cancel ??= clock.after(batchMs, () => this.#flush());
      return;
    }
    this.#cancel ??= clock.after(1_000, () => this.#reckon());
    if (this.#fired >= FIRINGS_PER_SECOND_MAX) this.#dropped++;
    else {
      this.#fired++;
      void this.#firing.fire(trigger, payload([item], 0));
    }
  }

  /** Tells nothing any more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#items = new Set();
  }

  #flush(): void {
    this.#cancel = undefined;
    const { trigger, payload } = this.#how;
    const items = [...this.#items];
    const dropped = this.#dropped;
    this.#items = new Set();
    this.#dropped = 0;
    void this.#firing.fire(trigger, payload(items, dropped));
  }

  #reckon(): void {
    this.#cancel = undefined;
    this.#fired = 0;
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped === 0) return;
    const { function_id } = this.#how.trigger;
    this.#firing.log.warn("a trigger would have fired too often; give it a batch_ms", {
      function_id,
      dropped,
    });
  }
}

function hexDigits(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}

/** Name of the worker that keeps logs and fires triggers for them. */
export const OWN_NAME = "engine-observability";

/** Two ways to write to the engine's log. */
export interface OwnLog {
  /** For what is kept already; what is written does not come back, see {@linkcode isSpeaking}. */
  readonly said: Log;
  /** For what is to be kept: the lines have a field `by`, so that they fire no trigger. */
  readonly own: Log;
  /** Whether a line that comes back now is one of `said`. */
  isSpeaking(): boolean;
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Makes both from the engine's log, which hands lines back while they are written. */
export function ownLog(log: Log): OwnLog {
  let isSpeaking = false;
  const speak = (level: LogLevel, text: string, fields?: LogFields): void => {
    isSpeaking = true;
    try {
      log[level](text, fields);
    } finally {
      isSpeaking = false;
    }
  };
  return {
    said: logOf(speak),
    own: logOf((level, text, fields) => log[level](text, { by: OWN_NAME, ...fields })),
    isSpeaking: () => isSpeaking,
  };
}

function logOf(write: (level: LogLevel, text: string, fields?: LogFields) => void): Log {
  const entries = LEVELS.map((level) => [
    level,
    (text: string, fields?: LogFields) => write(level, text, fields),
  ]);
  return Object.fromEntries(entries) as unknown as Log;
}
