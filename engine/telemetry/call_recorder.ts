/**
 * Records calls: receives the router's events, provides spans and counts.
 *
 * Every call is counted, except those that pages of the console make by themselves: a look at the
 * numbers must not change them. Spans are recorded while {@linkcode CallTraces.configure} enables
 * it: each call then gets a `traceparent`, and if its trace is sampled it is written to the ring
 * when it ends. Payloads and candidates are kept for a limited number of calls per second, so a
 * flood costs only its numbers.
 *
 * @module
 */
import type { ErrorBody } from "../../sdk/typescript/wire/protocol.ts";
import type {
  CallLayout,
  CallObserver,
  CallSource,
  ObservedCall,
  ObservedEndpoint,
  ObservedFunction,
  TraceBytes,
  UnopenedCall,
} from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  CallFilter,
  CallRows,
  CallSpan,
  CallTraces,
  Candidate,
  FunctionMeter,
  Meters,
  RouterLoad,
  Spans,
  TraceSettings,
  TraceUsage,
} from "../ports/telemetry.ts";
import { RecordedRows } from "./call_rows.ts";
import {
  BOUNDS_MS,
  type CountingMeter,
  FunctionMeters,
  type MeteredFunction,
} from "./function_meters.ts";
import { copyText, SpanEndpoint } from "./span_detail.ts";
import { BuiltinSpans, SpanRecorder } from "./span_recorder.ts";
import { findSpans } from "./span_ring.ts";
import { type FillRandom, IdSource } from "./trace_ids.ts";

/** Dependencies of a {@linkcode CallRecorder}. */
export interface CallRecorderOptions {
  readonly clock: Clock;
  /** Default: `crypto.getRandomValues`. */
  readonly random?: FillRandom;
}

/** Settings until the first {@linkcode CallTraces.configure}. */
const OFF: TraceSettings = {
  enabled: false,
  ratio: 1,
  rules: [],
  memory_bytes: 0,
  payload_chars: 0,
};
const WORKER_NAME_CHARS_MAX = 128;

/** Records the calls of one router, as its `observer`. */
export class CallRecorder implements CallObserver, CallTraces, Meters {
  readonly #clock: Clock;
  readonly #spans: SpanRecorder;
  readonly #meters = new FunctionMeters();
  readonly #engine = new SpanEndpoint("engine", "engine");
  /** Slots of the running calls that are not counted. */
  readonly #uncounted = new Set<number>();
  #isTracing = false;
  #source: CallSource = { callId: () => "", load: () => NO_LOAD };

  readonly spans: Spans;
  readonly bounds_ms: readonly number[] = BOUNDS_MS;

  constructor({ clock, random = cryptoRandom }: CallRecorderOptions) {
    const ids = new IdSource(random);
    const spans = new SpanRecorder(clock, ids, OFF);
    this.#clock = clock;
    this.#spans = spans;
    this.spans = new BuiltinSpans({
      ids,
      isTracing: () => this.#isTracing,
      shouldSample: (operation, chance) => spans.shouldSample(operation, chance),
    });
  }

  attach(source: CallSource): void {
    this.#source = source;
  }

  functionOf(namespace: string, function_id: string): ObservedFunction {
    return this.#meters.functionOf(namespace, function_id);
  }

  endpointOf(worker_id: string, name: string, isBuiltin: boolean): ObservedEndpoint {
    return new SpanEndpoint(worker_id, copyText(name, WORKER_NAME_CHARS_MAX), isBuiltin);
  }

  opened(call: ObservedCall, caller: ObservedEndpoint, layout: CallLayout): void {
    const endpoint = caller as SpanEndpoint;
    if (endpoint.isConsole && isUnsampled(layout)) this.#uncounted.add(call.slot);
    else {
      const { meter } = call.subject as MeteredFunction;
      meter.calls++;
      meter.in_flight++;
    }
    if (this.#isTracing) this.#spans.open(call, endpoint, layout);
  }

  wantsCandidates(call: ObservedCall): boolean {
    if (!this.#isTracing) return false;
    const place = this.#spans.find(call);
    return place >= 0 && this.#spans.isDetailed(place);
  }

  sent(
    call: ObservedCall,
    callee: ObservedEndpoint,
    now: number,
    candidates: readonly Candidate[] | undefined,
  ): TraceBytes | undefined {
    const place = this.#spans.find(call);
    return place < 0 ? undefined : this.#spans.sent(place, callee as SpanEndpoint, now, candidates);
  }

  settled(call: ObservedCall, memory: Uint8Array, start: number, end: number): void {
    const now = this.#clock.now();
    this.#ended(call, now);
    const place = this.#spans.find(call);
    if (place >= 0) this.#spans.settle(place, now, memory, start, end);
  }

  failed(call: ObservedCall, error: ErrorBody, endedBy: string | null): void {
    const now = this.#clock.now();
    this.#ended(call, now)?.failed(error.code);
    const place = this.#spans.find(call);
    if (place >= 0) this.#spans.fail(place, now, error, endedBy);
  }

  refused(call: UnopenedCall, error: ErrorBody): void {
    const subject = this.#meters.functionOrOther(call.namespace, call.function_id);
    if (isCounted(call)) {
      subject.meter.calls++;
      subject.meter.failed(error.code);
    }
    if (this.#isTracing) this.#spans.record(call, subject, undefined, error);
  }

  answered(call: UnopenedCall, result: () => string): void {
    const subject = this.#meters.functionOf(call.namespace, call.function_id);
    if (isCounted(call)) {
      subject.meter.calls++;
      subject.meter.in_flight++;
      subject.meter.ended(0);
    }
    if (this.#isTracing) this.#spans.record(call, subject, this.#engine, result);
  }

  /** Counts the end of a call and returns its meter, if it has been counted. */
  #ended(call: ObservedCall, now: number): CountingMeter | undefined {
    // The size is checked first: nearly all calls end while no call of the console runs.
    if (this.#uncounted.size > 0 && this.#uncounted.delete(call.slot)) return undefined;
    const { meter } = call.subject as MeteredFunction;
    meter.ended(now - call.since);
    return meter;
  }

  get settings(): TraceSettings {
    return this.#spans.settings;
  }

  configure(settings: TraceSettings): void {
    this.#spans.configure(settings);
    this.#isTracing = settings.enabled;
  }

  ended(cursor: number, limit: number): { spans: CallSpan[]; cursor: number } {
    return this.#spans.ring.after(cursor, limit, this.#callId);
  }

  find(filter: CallFilter, limit: number): CallSpan[] {
    const pages = filter.running === true ? [] : this.#spans.ring.pages.toReversed();
    if (filter.running !== false) pages.unshift(this.#spans.running());
    return findSpans(pages, filter, limit, this.#callId);
  }

  rows(limit: number): CallRows {
    return new RecordedRows(this.#spans.running(), this.#spans.ring.pages, limit, this.#callId);
  }

  clear(): void {
    this.#spans.ring.clear();
  }

  get usage(): TraceUsage {
    const { ring, settings } = this.#spans;
    const { spans, capacity, recorded, overwritten } = ring;
    return { spans, capacity, bytes: settings.memory_bytes, recorded, overwritten };
  }

  functions(): Iterable<FunctionMeter> {
    return this.#meters.meters();
  }

  get other(): FunctionMeter {
    return this.#meters.other;
  }

  forget(namespace: string, function_id: string): void {
    this.#meters.forget(namespace, function_id);
  }

  load(): RouterLoad {
    return this.#source.load();
  }

  readonly #callId = (slot: number, uses: number): string => this.#source.callId(slot, uses);
}

/** Whether the trace context says that the trace is not recorded; the console's has version 0. */
function isUnsampled({ memory, traceStart, traceEnd }: CallLayout): boolean {
  return traceEnd > traceStart && memory[traceEnd - FLAGS_DIGIT_BACK] === DIGIT_0;
}

function isCounted({ caller, traceparent }: UnopenedCall): boolean {
  return !(caller as SpanEndpoint).isConsole || traceparent?.at(-1) !== "0";
}

/** The last digit of the flags stands before the closing quote. */
const FLAGS_DIGIT_BACK = 2;
const DIGIT_0 = 0x30;

const NO_LOAD: RouterLoad = { running: 0, parked: 0, connections: 0, queued_bytes: 0 };

function cryptoRandom(bytes: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(bytes);
}
