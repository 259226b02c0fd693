/**
 * Spans of the engine's own: of the calls that the router saw, and of what built-in workers did.
 *
 * @module
 */
import type { CallSpan, EndedSpan } from "../../../engine/ports/telemetry.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { readTraceparent } from "../../../sdk/typescript/traceparent.ts";
import type { Redactor } from "../redact.ts";
import type { SpanAttribute, StoredSpan } from "./spans_stored.ts";

/** As the engine itself writes them, so that no more has to be looked at. */
const OWN_TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Nobody ran it. */
const NOBODY = "engine";

/** The span of a call; with its payloads, redacted, when a redactor is given. */
export function spanOfCall(call: CallSpan, redactor: Redactor | null): StoredSpan {
  return {
    trace_id: call.trace_id,
    span_id: call.span_id,
    parent_span_id: call.parent_span_id,
    name: call.function_id,
    service_name: call.callee?.name ?? NOBODY,
    start_ms: call.start_ms,
    end_ms: call.end_ms,
    status: call.error_code !== null ? "error" : call.end_ms === null ? "unset" : "ok",
    status_description: call.error_message,
    attributes: attributesOf(call, redactor),
    events: [],
    links: [],
    scope_name: null,
    scope_version: null,
  };
}

/** The span of what a built-in worker did; `undefined` when its traceparent is none of ours. */
export function spanOfEnded(ended: EndedSpan, redactor: Redactor): WorkSpan | undefined {
  return OWN_TRACEPARENT.test(ended.traceparent) ? new WorkSpan(ended, redactor) : undefined;
}

/**
 * What a built-in worker did. There may be one for each HTTP request, and most are forgotten
 * unread: so it keeps what it was told as it is, and has attributes once somebody looks at them.
 */
export class WorkSpan implements StoredSpan {
  readonly trace_id: string;
  readonly #ended: EndedSpan;
  readonly #redactor: Redactor;
  #attributes: readonly SpanAttribute[] | undefined;

  /** Made by {@linkcode spanOfEnded}. */
  constructor(ended: EndedSpan, redactor: Redactor) {
    this.trace_id = ended.traceparent.slice(3, 35);
    this.#ended = ended;
    this.#redactor = redactor;
  }

  get span_id(): string {
    return this.#ended.traceparent.slice(36, 52);
  }

  get parent_span_id(): string | null {
    const { parent } = this.#ended;
    const above = parent === null ? undefined : readTraceparent(parent);
    return above?.trace_id === this.trace_id ? above.span_id : null;
  }

  get name(): string {
    return this.#ended.name;
  }

  get service_name(): string {
    return this.#ended.service;
  }

  get start_ms(): number {
    return this.#ended.start_ms;
  }

  get end_ms(): number {
    return this.#ended.end_ms;
  }

  get status(): "ok" | "error" {
    return this.#ended.error === null ? "ok" : "error";
  }

  get status_description(): string | null {
    return this.#ended.error;
  }

  get attributes(): readonly SpanAttribute[] {
    return this.#attributes ??= attributesOfWork(this.#ended, this.#redactor);
  }

  get events(): readonly [] {
    return [];
  }

  get links(): readonly [] {
    return [];
  }

  get scope_name(): null {
    return null;
  }

  get scope_version(): null {
    return null;
  }

  /** The characters in it, as `bytesOf()` counts them, and how many attributes it will have. */
  get size(): { readonly chars: number; readonly attributes: number } {
    const { name, error, service, attributes } = this.#ended;
    let chars = name.length + (error?.length ?? 0);
    let count = 0;
    const names = Object.keys(attributes);
    for (const own of names) {
      const value = attributes[own]!;
      chars += own.length + (typeof value === "string" ? value.length : 8);
      count++;
    }
    const worker = "engine.worker".length + service.length;
    return { chars: chars + worker, attributes: count + 1 };
  }

  /** All of it, for the disk. */
  toJSON(): StoredSpan {
    const { trace_id, span_id, parent_span_id, name, service_name, start_ms, end_ms } = this;
    const { status, status_description, attributes, events, links } = this;
    return {
      trace_id,
      span_id,
      parent_span_id,
      name,
      service_name,
      start_ms,
      end_ms,
      status,
      status_description,
      attributes,
      events,
      links,
      scope_name: null,
      scope_version: null,
    };
  }
}

function attributesOfWork({ attributes: own, service }: EndedSpan, redactor: Redactor) {
  const attributes: SpanAttribute[] = Object.entries(own)
    .map(([name, value]) => [name, redactor.hits(name) ? "[redacted]" : value]);
  if (own["engine.kind"] === undefined) attributes.unshift(["engine.kind", "work"]);
  if (own["engine.worker"] === undefined) attributes.push(["engine.worker", service]);
  return attributes;
}

function attributesOf(call: CallSpan, redactor: Redactor | null): SpanAttribute[] {
  const { caller, callee, sent_ms, start_ms } = call;
  const attributes: [name: string, value: Json | undefined][] = [
    ["engine.kind", "call"],
    ["engine.function_id", call.function_id],
    ["engine.namespace", call.namespace],
    ["engine.invocation_id", call.invocation_id || undefined],
    ["engine.caller_invocation_id", call.caller_invocation_id ?? undefined],
    ["engine.caller", caller.name],
    ["engine.caller_id", caller.worker_id],
    ["engine.worker", callee?.name],
    ["engine.worker_id", callee?.worker_id],
    ["engine.queued_ms", sent_ms === null ? undefined : Math.max(0, sent_ms - start_ms)],
    ["engine.timeout_ms", call.timeout_ms],
    ["engine.error_code", call.error_code ?? undefined],
    ["engine.ended_by", call.ended_by ?? undefined],
    ["engine.request_chars", call.request_chars ?? undefined],
    ["engine.response_chars", call.response_chars ?? undefined],
    ["engine.baggage", call.baggage ?? undefined],
    ["engine.replicas", call.candidates?.map((candidate) => ({ ...candidate }))],
  ];
  if (redactor) {
    attributes.push(["engine.request", textOf(call.request, redactor)]);
    attributes.push(["engine.response", textOf(call.response, redactor)]);
  }
  return attributes.filter((pair): pair is [string, Json] => pair[1] !== undefined);
}

function textOf(json: string | null, redactor: Redactor): string | undefined {
  return json === null ? undefined : redactor.text(json) ?? undefined;
}
