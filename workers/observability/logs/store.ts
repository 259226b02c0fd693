/**
 * Stores log records in a ring bounded in bytes, and passes new ones to listeners.
 *
 * Records come from SDK loggers (OTLP), from the output of supervised workers, from the engine's
 * own log and from `engine::log::*`. A record with a span id but without a function gets the
 * function of that span, at a bounded number of lookups per second.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { EngineLogLine } from "../../../engine/ports/log.ts";
import type { PrintedLine } from "../../../engine/ports/telemetry.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Redactor } from "../redact.ts";
import type { Search, Turn } from "../turns.ts";
import {
  isAtLeast,
  type LogFeed,
  logOfPrint,
  type LogRecord,
  type LogSource,
  type NewLog,
  readLogs,
  type Severity,
} from "./record.ts";

/** Spans whose function is cached. */
const FUNCTION_CACHE_MAX = 5_000;
/** Failed lookups of a span per second. */
const FUNCTION_LOOKUPS_PER_SECOND = 20;
/** How long ago such a span may have begun, in milliseconds. */
const FUNCTION_LOOKUP_WITHIN_MS = 600_000;

/** Dependencies of {@linkcode LogStore}. */
export interface LogStoreSetup {
  readonly clock: Clock;
  readonly ring: LogRing;
  readonly redactor: Redactor;
  /** Less severe records are discarded. */
  readonly least: Severity;
  /** The function of a span that started at `since_ms` or later, if known. */
  functionOf(trace_id: string | null, span_id: string, since_ms: number): string | undefined;
  /** How far the clock of a worker is ahead of the engine's, in milliseconds. */
  ahead?(worker_id: string | null): number;
}

/** Accepts records from all sources. */
export class LogStore implements LogFeed {
  readonly #setup: LogStoreSetup;
  readonly #listeners = new Set<(record: LogRecord) => void>();
  readonly #clearListeners = new Set<() => void>();
  /** Function by span id; `null`: unknown. */
  readonly #functions = new Map<string, string | null>();
  #lookups = 0;
  #lookupsUntil = 0;

  constructor(setup: LogStoreSetup) {
    this.#setup = setup;
  }

  get ring(): LogRing {
    return this.#setup.ring;
  }

  listen(listener: (record: LogRecord) => void): () => void {
    const own = (record: LogRecord): void => listener(record);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Removes all records. */
  clear(): void {
    this.#setup.ring.clear();
    for (const listener of [...this.#clearListeners]) listener();
  }

  /** Calls the listener after each {@linkcode clear}; call the result to stop. */
  onClear(listener: () => void): () => void {
    this.#clearListeners.add(listener);
    return () => void this.#clearListeners.delete(listener);
  }

  /** Stores a record, unless it is less severe than the configured level. */
  add(log: NewLog): LogRecord | undefined {
    if (!isAtLeast(log.severity, this.#setup.least)) return undefined;
    const function_id = log.function_id ?? this.#functionOf(log);
    const record = this.#setup.ring.add({ ...log, function_id });
    for (const listener of [...this.#listeners]) listener(record);
    return record;
  }

  /**
   * Stores the records of an OTLP frame, with times of the engine's clock as far as the clock of
   * their worker is known. @throws {Error} The frame is malformed.
   */
  take(frame: unknown): { readonly taken: number; readonly dropped: number } {
    const { clock, redactor, ahead } = this.#setup;
    const { items, dropped } = readLogs(frame, redactor, clock.wall(), ahead);
    for (const item of items) this.add(item);
    return { taken: items.length, dropped };
  }

  /** Stores a line of output, unless the worker's logger sends the same record as telemetry. */
  addPrint(line: PrintedLine): void {
    if (line.isLogger) return;
    this.add(logOfPrint(line, this.#setup.clock.wall()));
  }

  /** Stores a line of the engine's log. */
  addEngineLine({ level, text, fields, at_ms }: EngineLogLine): void {
    const { redactor, clock } = this.#setup;
    const attributes: Record<string, Json> = {};
    for (const [name, value] of Object.entries(fields)) {
      if (value === undefined || RECORD_FIELDS.has(name)) continue;
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
   * The function that was running. A failed lookup scans all recorded calls, so lookups are limited
   * per second; records beyond the limit have no function.
   */
  #functionOf({ trace_id, span_id }: NewLog): string | null {
    if (span_id === null) return null;
    const known = this.#functions.get(span_id);
    if (known !== undefined) return known;
    const { clock } = this.#setup;
    if (clock.now() >= this.#lookupsUntil) {
      this.#lookups = 0;
      this.#lookupsUntil = clock.now() + 1_000;
    }
    if (this.#lookups >= FUNCTION_LOOKUPS_PER_SECOND) return null;
    const since_ms = clock.wall() - FUNCTION_LOOKUP_WITHIN_MS;
    const found = this.#setup.functionOf(trace_id, span_id, since_ms) ?? null;
    this.#lookups += found === null ? 1 : FOUND_COST;
    this.#functions.set(span_id, found);
    if (this.#functions.size > FUNCTION_CACHE_MAX) {
      const [oldest] = this.#functions.keys();
      this.#functions.delete(oldest!);
    }
    return found;
  }
}

/** Cost of a successful lookup relative to a failed one, which scans all recorded calls. */
const FOUND_COST = 0.02;

/** Fields of the engine's log that become fields of the record. */
const RECORD_FIELDS: ReadonlySet<string> = new Set([
  "trace_id",
  "span_id",
  "worker",
  "function_id",
]);

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** Memory of a record without its texts. */
const RECORD_BYTES = 350;

/** Estimated memory of the records in one page. */
export const LOG_PAGE_BYTES_MAX = 8 * 1024 * 1024;

/** Selects records; all given members must match. */
export interface LogFilter {
  readonly since_ms?: number | undefined;
  readonly until_ms?: number | undefined;
  readonly trace_id?: string | undefined;
  readonly span_id?: string | undefined;
  /** This severity or a higher one. */
  readonly least?: Severity | undefined;
  /** This severity exactly. */
  readonly severity?: Severity | undefined;
  readonly worker?: string | undefined;
  readonly function_id?: string | undefined;
  readonly source?: LogSource | undefined;
  /** Contained in the body or an attribute, ignoring case. */
  readonly text?: string | undefined;
  readonly after_seq?: number | undefined;
  readonly before_seq?: number | undefined;
}

/** Which of the matching records a page has. */
export interface LogRange {
  readonly offset: number;
  readonly limit: number;
  readonly order: "asc" | "desc";
}

/** Some of the matching records, and the number of all. */
export interface LogPage {
  readonly records: LogRecord[];
  readonly total: number;
  /** Whether the page ended early, because of its bytes. */
  readonly isCut: boolean;
}

interface SizedRecord {
  readonly record: LogRecord;
  readonly bytes: number;
}

/** The newest records, oldest first; the oldest are dropped beyond a bound in bytes. */
export class LogRing {
  #bytesMax: number;
  #bytes = 0;
  #seq = 0;
  /** Entries before `#head` have been dropped. */
  #records: SizedRecord[] = [];
  #head = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get size(): number {
    return this.#records.length - this.#head;
  }

  /** Estimated memory of the records. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Time of the oldest record; `null` if there are none. */
  get oldestMs(): number | null {
    return this.#records[this.#head]?.record.at_ms ?? null;
  }

  /** Changes the bound; drops the oldest records at once if needed. */
  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#evict();
  }

  /** Stores a record and assigns its `seq`. */
  add(log: NewLog): LogRecord {
    const record = { ...log, seq: ++this.#seq };
    const bytes = bytesOf(record);
    this.#records.push({ record, bytes });
    this.#bytes += bytes;
    this.#evict();
    return record;
  }

  /** A page of matching records, and the number of all that match. */
  find(filter: LogFilter, { offset, limit, order }: LogRange): Omit<LogPage, "isCut"> {
    const fits = matcher(filter);
    const records: LogRecord[] = [];
    let total = 0;
    const count = this.size;
    for (let i = 0; i < count; i++) {
      const at = order === "asc" ? this.#head + i : this.#records.length - 1 - i;
      const { record } = this.#records[at]!;
      if (!fits(record)) continue;
      if (total++ >= offset && records.length < limit) records.push(record);
    }
    return { records, total };
  }

  /** A page of all records; see {@linkcode search} for its end. */
  page({ offset, limit, order }: LogRange): LogPage {
    const total = this.size;
    const records: LogRecord[] = [];
    let bytes = 0;
    for (let i = offset; i < total && records.length < limit; i++) {
      const at = order === "asc" ? this.#head + i : this.#records.length - 1 - i;
      const found = this.#records[at]!;
      bytes += found.bytes;
      const isCut = records.length > 0 && bytes > LOG_PAGE_BYTES_MAX;
      if (isCut) return { records, total, isCut };
      records.push(found.record);
    }
    return { records, total, isCut: false };
  }

  /**
   * A page of matching records within a turn. Records that are added meanwhile are not found. It
   * ends early when its records have {@linkcode LOG_PAGE_BYTES_MAX}, and has one at least.
   */
  *search(filter: LogFilter, { offset, limit, order }: LogRange, turn: Turn): Search<LogPage> {
    const fits = matcher(filter);
    const records: LogRecord[] = [];
    let [total, bytes, isCut] = [0, 0, false];
    const last = this.#seq;
    const step = order === "asc" ? 1 : -1;
    let seq = order === "asc" ? this.#firstSeq : last;
    for (; seq <= last && seq >= this.#firstSeq; seq += step) {
      const found = this.#records[this.#head + seq - this.#firstSeq];
      if (!found) break; // Cleared meanwhile.
      if (fits(found.record) && total++ >= offset && records.length < limit && !isCut) {
        turn.charge(found.bytes);
        bytes += found.bytes;
        isCut = records.length > 0 && bytes > LOG_PAGE_BYTES_MAX;
        if (!isCut) records.push(found.record);
      }
      if (!turn.isOver()) continue;
      yield;
      if (step === 1) seq = Math.max(seq, this.#firstSeq - 1); // The oldest may have gone.
    }
    return { records, total, isCut };
  }

  /** `seq` of the oldest record. */
  get #firstSeq(): number {
    return this.#seq - this.size + 1;
  }

  clear(): void {
    this.#records = [];
    this.#head = 0;
    this.#bytes = 0;
  }

  #evict(): void {
    while (this.#bytes > this.#bytesMax && this.#head < this.#records.length) {
      this.#bytes -= this.#records[this.#head++]!.bytes;
    }
    if (this.#head > 1_024 && this.#head * 2 > this.#records.length) {
      this.#records.splice(0, this.#head);
      this.#head = 0;
    }
  }
}

/** Compiles a filter to a predicate. */
export function matcher(filter: LogFilter): (record: LogRecord) => boolean {
  const { since_ms, until_ms, trace_id, span_id, least, severity } = filter;
  const { worker, function_id, source, after_seq, before_seq } = filter;
  const text = filter.text?.toLowerCase();
  return (record) =>
    (after_seq === undefined || record.seq > after_seq) &&
    (before_seq === undefined || record.seq < before_seq) &&
    (since_ms === undefined || record.at_ms >= since_ms) &&
    (until_ms === undefined || record.at_ms <= until_ms) &&
    (trace_id === undefined || record.trace_id === trace_id) &&
    (span_id === undefined || record.span_id === span_id) &&
    (least === undefined || isAtLeast(record.severity, least)) &&
    (severity === undefined || record.severity === severity) &&
    (worker === undefined || record.worker === worker || record.service_name === worker) &&
    (function_id === undefined || record.function_id === function_id) &&
    (source === undefined || record.source === source) &&
    (text === undefined || hasText(record, text));
}

function hasText({ body, attributes }: LogRecord, text: string): boolean {
  if (body.toLowerCase().includes(text)) return true;
  for (const _name in attributes) return JSON.stringify(attributes).toLowerCase().includes(text);
  return false;
}

/** Estimated memory of a record. */
export function bytesOf({ body, attributes, service_name }: LogRecord): number {
  let bytes = RECORD_BYTES + 2 * (body.length + service_name.length);
  for (const [name, value] of Object.entries(attributes)) {
    const isPlain = value === null || typeof value !== "object";
    // Objects take several times the memory of their text.
    bytes += 80 + 2 * name.length + (isPlain ? 2 * String(value).length : 8 * sizeOf(value));
  }
  return bytes;
}

function sizeOf(value: object): number {
  return JSON.stringify(value).length;
}
