/**
 * A store of spans over a record of calls that a test fills by hand, with no router.
 *
 * @module
 */
import type {
  CallFilter,
  CallSpan,
  CallTraces,
  EndedSpan,
  TraceSettings,
} from "../../engine/ports/telemetry.ts";
import { Redactor } from "../../workers/observability/redact.ts";
import { SpanRing } from "../../workers/observability/traces/ring.ts";
import { SpanStore } from "../../workers/observability/traces/store.ts";
import { FakeClock } from "./fake_clock.ts";

/** Calls as a test tells them, in the order of their ends. */
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
    record: (span: EndedSpan) => this.#listeners.forEach((hear) => hear(span)),
    listen: (listener: (span: EndedSpan) => void) => {
      this.#listeners.add(listener);
      return () => void this.#listeners.delete(listener);
    },
  };

  /** Calls happened; those without an end run. */
  add(...calls: CallSpan[]): void {
    for (const call of calls) {
      if (call.end_ms === null) this.#running.push(call);
      else this.#ended.push({ call, cursor: ++this.#count });
    }
    this.#ended.splice(0, this.#ended.length - this.capacity);
  }

  /** Whatever runs has ended otherwise. */
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

  clear(): void {
    this.#ended = [];
  }

  get usage() {
    const spans = this.#ended.length;
    const { capacity } = this;
    return { spans, capacity, bytes: 0, recorded: this.#count, overwritten: 0 };
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
