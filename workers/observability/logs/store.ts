/**
 * Takes lines in from everywhere, finds out which function was running, keeps them and tells
 * whoever listens.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { EngineLogLine, PrintedLine } from "../../../engine/ports/telemetry.ts";
import { LOG_JOIN_KEPT_MAX, LOG_JOIN_WITHIN_MS, LOG_JOINS_PER_SECOND } from "../../limits.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { logOfPrint, readLogs } from "./otlp.ts";
import { isAtLeast, type LogFeed, type LogRecord, type NewLog, type Severity } from "./record.ts";
import type { LogRing } from "./ring.ts";
import type { Redactor } from "../redact.ts";

/** What taking in needs. */
export interface LogStoreSetup {
  readonly clock: Clock;
  readonly ring: LogRing;
  readonly redactor: Redactor;
  /** What is less is not kept. */
  readonly least: Severity;
  /** The function that a span is about, looked for among those that began since; if known. */
  functionOf(trace_id: string | null, span_id: string, since_ms: number): string | undefined;
}

/** See the top of this file. */
export class LogStore implements LogFeed {
  readonly #setup: LogStoreSetup;
  readonly #listeners = new Set<(record: LogRecord) => void>();
  readonly #forgetters = new Set<() => void>();
  /** By span id; `null`: nobody knows. */
  readonly #joined = new Map<string, string | null>();
  #joins = 0;
  #joinsUntil = 0;

  /** Stores. */
  constructor(setup: LogStoreSetup) {
    this.#setup = setup;
  }

  /** The records that are kept. */
  get ring(): LogRing {
    return this.#setup.ring;
  }

  listen(listener: (record: LogRecord) => void): () => void {
    const own = (record: LogRecord): void => listener(record);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Forgets all records. */
  clear(): void {
    this.#setup.ring.clear();
    for (const forget of [...this.#forgetters]) forget();
  }

  /** Hears when all is forgotten; call the result to stop. */
  onClear(forget: () => void): () => void {
    this.#forgetters.add(forget);
    return () => void this.#forgetters.delete(forget);
  }

  /** Keeps a line, unless it is less important than what is kept. */
  add(log: NewLog): LogRecord | undefined {
    if (!isAtLeast(log.severity, this.#setup.least)) return undefined;
    const function_id = log.function_id ?? this.#join(log);
    const record = this.#setup.ring.add({ ...log, function_id });
    for (const listener of [...this.#listeners]) listener(record);
    return record;
  }

  /**
   * Takes in a frame of OTLP; says how many records came and how many were broken.
   *
   * @throws {Error} When it is none.
   */
  take(frame: unknown): { readonly taken: number; readonly dropped: number } {
    const { clock, redactor } = this.#setup;
    const { items, dropped } = readLogs(frame, redactor, clock.wall());
    for (const item of items) this.add(item);
    return { taken: items.length, dropped };
  }

  /** Takes in what a worker printed, but for what its logger sends as well. */
  addPrint(line: PrintedLine): void {
    if (line.isLogger) return;
    this.add(logOfPrint(line, this.#setup.clock.wall()));
  }

  /** Takes in what the engine says of itself. */
  addEngineLine({ level, text, fields, at_ms }: EngineLogLine): void {
    const { redactor, clock } = this.#setup;
    const attributes: Record<string, Json> = {};
    for (const [name, value] of Object.entries(fields)) {
      if (value === undefined || TAKEN_OVER.has(name)) continue;
      attributes[name] = redactor.hits(name) ? "[redacted]" : value;
    }
    this.add({
      at_ms,
      observed_ms: clock.wall(),
      severity: level,
      body: text,
      attributes,
      trace_id: textOf(fields.trace_id),
      span_id: textOf(fields.span_id),
      service_name: "engine",
      worker: textOf(fields.worker),
      replica: null,
      source: "engine",
      function_id: textOf(fields.function_id),
      scope_name: null,
    });
  }

  /**
   * Which function was running. A search in vain is one through all recorded calls, so only so many
   * are made in a second; lines beyond that stay without their function.
   */
  #join({ trace_id, span_id }: NewLog): string | null {
    if (span_id === null) return null;
    const known = this.#joined.get(span_id);
    if (known !== undefined) return known;
    const { clock } = this.#setup;
    if (clock.now() >= this.#joinsUntil) {
      this.#joins = 0;
      this.#joinsUntil = clock.now() + 1_000;
    }
    if (this.#joins >= LOG_JOINS_PER_SECOND) return null;
    const since_ms = clock.wall() - LOG_JOIN_WITHIN_MS;
    const found = this.#setup.functionOf(trace_id, span_id, since_ms) ?? null;
    this.#joins += found === null ? 1 : FOUND_COST;
    this.#joined.set(span_id, found);
    if (this.#joined.size > LOG_JOIN_KEPT_MAX) {
      const [oldest] = this.#joined.keys();
      this.#joined.delete(oldest!);
    }
    return found;
  }
}

/** What a search costs that finds its span, among the newest mostly, beside one in vain. */
const FOUND_COST = 0.02;

/** Fields of the engine's log that become fields of the record. */
const TAKEN_OVER: ReadonlySet<string> = new Set(["trace_id", "span_id", "worker", "function_id"]);

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
