/**
 * The newest log records. The oldest make room; memory is bounded in bytes.
 *
 * @module
 */
import { isAtLeast, type LogRecord, type LogSource, type NewLog, type Severity } from "./record.ts";

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
