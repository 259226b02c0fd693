/**
 * Takes lines in from everywhere, finds out which function was running, keeps them and tells
 * whoever listens.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { EngineLogLine, PrintedLine } from "../../../engine/ports/telemetry.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { LOG_JOIN_KEPT_MAX, LOG_JOIN_WITHIN_MS, LOG_JOINS_PER_SECOND } from "../../limits.ts";
import type { Redactor } from "../redact.ts";
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

/** Around the texts of a record. */
const RECORD_BYTES = 350;

/** Which records; all that is given has to fit. */
export interface LogFilter {
  readonly since_ms?: number | undefined;
  readonly until_ms?: number | undefined;
  readonly trace_id?: string | undefined;
  readonly span_id?: string | undefined;
  /** This severity or a more important one. */
  readonly least?: Severity | undefined;
  /** This severity exactly. */
  readonly severity?: Severity | undefined;
  readonly worker?: string | undefined;
  readonly function_id?: string | undefined;
  readonly source?: LogSource | undefined;
  /** In the text or in an attribute, whatever the case. */
  readonly text?: string | undefined;
  readonly after_seq?: number | undefined;
  readonly before_seq?: number | undefined;
}

/** A record and what it costs. */
interface Kept {
  readonly record: LogRecord;
  readonly bytes: number;
}

/** See the top of this file. */
export class LogRing {
  #bytesMax: number;
  #bytes = 0;
  #seq = 0;
  /** The oldest first; those before `#head` are gone. */
  #kept: Kept[] = [];
  #head = 0;

  /** Keeps so many bytes. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Records that are there. */
  get size(): number {
    return this.#kept.length - this.#head;
  }

  /** What they cost, about. */
  get bytes(): number {
    return this.#bytes;
  }

  /** When the oldest was said; `null` when there is none. */
  get oldestMs(): number | null {
    return this.#kept[this.#head]?.record.at_ms ?? null;
  }

  /** Changes how much is kept; the oldest go at once. */
  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#makeRoom();
  }

  /** Keeps a record, and says which number it has. */
  add(log: NewLog): LogRecord {
    const record = { ...log, seq: ++this.#seq };
    const bytes = bytesOf(record);
    this.#kept.push({ record, bytes });
    this.#bytes += bytes;
    this.#makeRoom();
    return record;
  }

  /** Records that fit, newest first or oldest first, and how many fit in all. */
  find(
    filter: LogFilter,
    { offset, limit, order }: { offset: number; limit: number; order: "asc" | "desc" },
  ): { readonly records: LogRecord[]; readonly total: number } {
    const fits = matcher(filter);
    const records: LogRecord[] = [];
    let total = 0;
    const count = this.size;
    for (let i = 0; i < count; i++) {
      const at = order === "asc" ? this.#head + i : this.#kept.length - 1 - i;
      const { record } = this.#kept[at]!;
      if (!fits(record)) continue;
      if (total++ >= offset && records.length < limit) records.push(record);
    }
    return { records, total };
  }

  /** Forgets all. */
  clear(): void {
    this.#kept = [];
    this.#head = 0;
    this.#bytes = 0;
  }

  #makeRoom(): void {
    while (this.#bytes > this.#bytesMax && this.#head < this.#kept.length) {
      this.#bytes -= this.#kept[this.#head++]!.bytes;
    }
    if (this.#head > 1_024 && this.#head * 2 > this.#kept.length) {
      this.#kept.splice(0, this.#head);
      this.#head = 0;
    }
  }
}

/** What a filter says, ready to be asked of many records. */
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

function bytesOf({ body, attributes, service_name }: LogRecord): number {
  let bytes = RECORD_BYTES + 2 * (body.length + service_name.length);
  for (const [name, value] of Object.entries(attributes)) {
    const isPlain = value === null || typeof value !== "object";
    // Objects take several times the room of their text.
    bytes += 80 + 2 * name.length + (isPlain ? 2 * String(value).length : 8 * sizeOf(value));
  }
  return bytes;
}

function sizeOf(value: object): number {
  return JSON.stringify(value).length;
}
