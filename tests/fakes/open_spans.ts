/**
 * Spans as the recorder holds them, in a few words each.
 *
 * @module
 */
import { bytesOf } from "../../engine/core/wire/bytes.ts";
import { CountingMeter, MeteredFunction } from "../../engine/telemetry/function_meters.ts";
import {
  NO_NUMBER,
  OPEN_WORD,
  OpenSpans,
  UNOPENED_PLACE,
} from "../../engine/telemetry/open_spans.ts";
import { SpanEndpoint } from "../../engine/telemetry/span_detail.ts";
import type { SpanPage } from "../../engine/telemetry/span_page.ts";

/** What a test says of a span; everything else is made up. */
export interface SpanWords {
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
export function spanOf(said: SpanWords): OpenSpans {
  const { seq, trace = 1, span = seq, parent = 0, function_id = "a::f" } = said;
  const open = new OpenSpans();
  const callerId = bytesOf(said.callerId ?? "");
  const call = {
    slot: said.slot ?? NO_NUMBER,
    uses: said.uses ?? 0,
    callerId,
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
export function writeSpans(page: SpanPage, epoch: number, ...spans: SpanWords[]): void {
  for (const span of spans) page.write(spanOf(span), UNOPENED_PLACE, epoch);
}

/** Ids of calls, as the router makes them. */
export function callId(slot: number, uses: number): string {
  return `${slot.toString(16).padStart(8, "0")}-${
    String(uses).padStart(4, "0")
  }-4000-8000-00000000abcd`;
}
