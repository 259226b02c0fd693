/**
 * Spans, calls and logs with all fields, of which a test changes some, and stores of them.
 *
 * @module
 */
import { bytesOf } from "../../engine/core/wire/bytes.ts";
import type {
  CallFilter,
  CallRows,
  CallSpan,
  CallTraces,
  EndedSpan,
  TraceSettings,
} from "../../engine/ports/telemetry.ts";
import { traceHeadOf } from "../../engine/ports/telemetry.ts";
import { CountingMeter, MeteredFunction } from "../../engine/telemetry/function_meters.ts";
import {
  NO_NUMBER,
  OPEN_WORD,
  OpenSpans,
  UNOPENED_PLACE,
} from "../../engine/telemetry/open_spans.ts";
import { SpanEndpoint } from "../../engine/telemetry/span_detail.ts";
import type { SpanPage } from "../../engine/telemetry/span_page.ts";
import type { NewLog } from "../../workers/observability/logs/record.ts";
import { Redactor } from "../../workers/observability/redact.ts";
import { SpanRing } from "../../workers/observability/traces/ring.ts";
import type { SpanAttribute, StoredSpan } from "../../workers/observability/traces/span.ts";
import { SpanStore } from "../../workers/observability/traces/store.ts";
import type { Search, Turn } from "../../workers/observability/turns.ts";
import { FakeClock } from "./fake_clock.ts";

/** 2025-11-21T12:00:00Z. */
export const NOON = Date.UTC(2025, 10, 21, 12);

/** An id of so many hexadecimal digits that ends with a number. */
export function idOf(number: number, digits: number): string {
  return (number + 1).toString(16).padStart(digits, "0");
}

/** A call of `orders::create` that succeeded after 10 ms. */
export function callSpan(changes: Partial<CallSpan> = {}): CallSpan {
  return {
    seq: 1,
    trace_id: idOf(1, 32),
    span_id: idOf(1, 16),
    parent_span_id: null,
    function_id: "orders::create",
    namespace: "default",
    invocation_id: "i-1",
    caller_invocation_id: "c-1",
    caller: { worker_id: "w-1", name: "shop" },
    callee: { worker_id: "w-2", name: "orders" },
    start_ms: NOON,
    sent_ms: NOON + 1,
    end_ms: NOON + 10,
    error_code: null,
    error_message: null,
    stacktrace: null,
    ended_by: null,
    timeout_ms: 30_000,
    request_chars: 7,
    response_chars: 8,
    request: '{"a":1}',
    response: '{"id":7}',
    baggage: null,
    candidates: null,
    ...changes,
  };
}

/** A span that succeeded after 10 ms, with its attributes by name. */
export function storedSpan(
  changes: Partial<Omit<StoredSpan, "attributes">> = {},
  attributes: Record<string, SpanAttribute[1]> = {},
): StoredSpan {
  return {
    trace_id: idOf(1, 32),
    span_id: idOf(1, 16),
    parent_span_id: null,
    name: "work",
    service_name: "shop",
    start_ms: NOON,
    end_ms: NOON + 10,
    status: "ok",
    status_description: null,
    attributes: Object.entries(attributes),
    events: [],
    links: [],
    scope_name: null,
    scope_version: null,
    ...changes,
  };
}

/** A log line of a worker. */
export function newLog(changes: Partial<NewLog> = {}): NewLog {
  return {
    at_ms: NOON,
    observed_ms: NOON,
    severity: "info",
    body: "hello",
    attributes: {},
    trace_id: null,
    span_id: null,
    service_name: "shop",
    worker: "shop",
    replica: null,
    source: "logger",
    function_id: null,
    scope_name: null,
    ...changes,
  };
}

/** The fields of a span that a test sets; all others have defaults. */
export interface SpanFields {
  readonly seq: number;
  readonly trace?: number;
  readonly span?: number;
  readonly parent?: number;
  readonly slot?: number;
  readonly uses?: number;
  readonly callerId?: string;
  readonly function_id?: string;
  readonly since?: number;
  readonly sent?: number;
  readonly ended?: number;
  readonly request?: string;
  readonly error?: string;
}

/** The span of a call from `shop` to a worker without a name, ready to be written. */
export function spanOf(said: SpanFields): OpenSpans {
  const { seq, trace = 1, span = seq, parent = 0, function_id = "a::f" } = said;
  const open = new OpenSpans();
  const callerId = bytesOf(said.callerId ?? "");
  const call = {
    slot: said.slot ?? NO_NUMBER,
    uses: said.uses ?? 0,
    callerId,
    callerIdAt: 0,
    callerIdBytes: callerId.length,
    timeout_ms: 1_000,
    since: said.since ?? seq,
    subject: new MeteredFunction("default", function_id, new CountingMeter("default", function_id)),
  };
  const place = open.open(call, new SpanEndpoint("caller-1", "shop"), UNOPENED_PLACE);
  open.words[OPEN_WORD.trace] = trace;
  open.words[OPEN_WORD.span] = span;
  open.words[OPEN_WORD.parent] = parent;
  open.sample(place, seq);
  if (said.sent !== undefined) open.send(place, new SpanEndpoint("callee-1", ""), said.sent);
  if (said.request !== undefined) {
    open.words[OPEN_WORD.requestChars] = said.request.length;
    open.more(place).setRequest(said.request);
  }
  if (said.error !== undefined) {
    open.more(place).setError({ code: said.error, message: said.error }, null);
  }
  open.prepare(place, said.ended ?? NaN);
  return open;
}

/** Writes such spans to a page. */
export function writeSpans(page: SpanPage, epoch: number, ...spans: SpanFields[]): void {
  for (const span of spans) page.write(spanOf(span), UNOPENED_PLACE, epoch);
}

/** Ids of calls, as the router makes them. */
export function callId(slot: number, uses: number): string {
  return `${slot.toString(16).padStart(8, "0")}-${
    String(uses).padStart(4, "0")
  }-4000-8000-00000000abcd`;
}

/** Calls that a test adds by hand, in the order of their ends. */
export class FakeTraces implements CallTraces {
  settings: TraceSettings = {
    enabled: true,
    ratio: 1,
    rules: [],
    memory_bytes: 1_000_000,
    payload_chars: 100,
  };
  capacity = 1_000;
  readonly #listeners = new Set<(span: EndedSpan) => void>();
  #ended: { readonly call: CallSpan; readonly cursor: number }[] = [];
  #running: CallSpan[] = [];
  #count = 0;

  readonly spans = {
    open: () => null,
    record: (span: EndedSpan) => this.#listeners.forEach((listener) => listener(span)),
    listen: (listener: (span: EndedSpan) => void) => {
      this.#listeners.add(listener);
      return () => void this.#listeners.delete(listener);
    },
  };

  /** Adds calls; those without an end are running. */
  add(...calls: CallSpan[]): void {
    for (const call of calls) {
      if (call.end_ms === null) this.#running.push(call);
      else this.#ended.push({ call, cursor: ++this.#count });
    }
    this.#ended.splice(0, this.#ended.length - this.capacity);
  }

  /** Removes all running calls. */
  stopRunning(): void {
    this.#running = [];
  }

  configure(settings: TraceSettings): void {
    this.settings = settings;
  }

  ended(after: number, limit: number): { spans: CallSpan[]; cursor: number } {
    const first = this.#ended[0]?.cursor ?? 0; // Cursors follow each other without a gap.
    const start = Math.max(0, after + 1 - first);
    const found = this.#ended.slice(start, start + limit);
    return { spans: found.map(({ call }) => call), cursor: found.at(-1)?.cursor ?? this.#count };
  }

  find(filter: CallFilter, limit: number): CallSpan[] {
    const { since_ms = -Infinity, until_ms = Infinity, running, ...equal } = filter;
    const ended = this.#ended.map(({ call }) => call);
    const calls = [...running === true ? [] : ended, ...running === false ? [] : this.#running];
    return calls.filter((call) =>
      call.start_ms >= since_ms && call.start_ms <= until_ms &&
      Object.entries(equal).every(([name, value]) =>
        call[name as keyof CallSpan] === value ||
        (name === "invocation_id" && call.caller_invocation_id === value)
      )
    ).sort((a, b) => b.start_ms - a.start_ms).slice(0, limit);
  }

  rows(limit: number): CallRows {
    const running = this.#running.toSorted((a, b) => b.start_ms - a.start_ms).slice(0, limit);
    const ended = this.#ended.map(({ call }) => call);
    return rowsOf([...running, ...ended.slice(Math.max(0, ended.length - limit))]);
  }

  clear(): void {
    this.#ended = [];
  }

  get usage() {
    const spans = this.#ended.length;
    const { capacity } = this;
    return { spans, capacity, bytes: 0, recorded: this.#count, overwritten: 0 };
  }
}

function rowsOf(calls: readonly CallSpan[]): CallRows {
  return {
    size: calls.length,
    functionAt: (row) => calls[row]!,
    callerNameAt: (row) => calls[row]!.caller.name,
    calleeNameAt: (row) => calls[row]!.callee?.name ?? null,
    seqAt: (row) => calls[row]!.start_ms, // As `find` does, which also knows no order of starts.
    startAt: (row) => calls[row]!.start_ms,
    endAt: (row) => calls[row]!.end_ms,
    errorCodeAt: (row) => calls[row]!.error_code,
    traceAt: (row) => calls[row]!.trace_id,
    mayBeOf: (row, heads) => heads.has(traceHeadOf(calls[row]!.trace_id)),
    spanAt: (row) => calls[row]!.span_id,
    parentAt: (row) => calls[row]!.parent_span_id,
    read: (row) => calls[row]!,
    [Symbol.dispose]: () => {},
  };
}

/** The time of a search that need not pause. */
export const ENDLESS: Turn = { isOver: () => false, charge: () => {} };
/** The time of a search that has to pause before each step. */
export const HASTY: Turn = { isOver: () => true, charge: () => {} };

/** The result of a search; `paused` is called in each pause. */
export function found<Found>(search: Search<Found>, paused: () => void = () => {}): Found {
  for (;;) {
    const { done, value } = search.next();
    if (done) return value as Found;
    paused();
  }
}

/** A store over such calls. */
export function recorded() {
  const clock = new FakeClock();
  const traces = new FakeTraces();
  const ring = new SpanRing(1_000_000);
  const redactor = new Redactor();
  const isInternal = (_namespace: string, id: string): boolean => id.startsWith("engine::");
  const store = new SpanStore({ clock, traces, ring, redactor, isInternal });
  return { clock, traces, ring, store };
}
