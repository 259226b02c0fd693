/**
 * Spans as the recorder holds them, in a few words each.
 *
 * @module
 */
import { bytesOf } from "../../engine/core/text_bytes.ts";
import { CountingMeter } from "../../engine/telemetry/function_meter.ts";
import {
  NO_NUMBER,
  OpenSpan,
  Party,
  Subject,
  TIME,
  WORD,
} from "../../engine/telemetry/open_span.ts";
import { writeUuid } from "../../engine/telemetry/uuid.ts";

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

/** A span of a call from `shop` to a worker without a name. */
export function spanOf(said: SpanWords): OpenSpan {
  const { seq, trace = 1, span = seq, parent = 0, function_id = "a::f", callerId = "" } = said;
  const made = new OpenSpan();
  const { words, times } = made;
  words[WORD.trace] = trace;
  words[WORD.span] = span;
  words[WORD.parent] = parent;
  words[WORD.slot] = said.slot ?? NO_NUMBER;
  words[WORD.requestChars] = said.request?.length ?? NO_NUMBER;
  words[WORD.responseChars] = NO_NUMBER;
  times[TIME.seq] = seq;
  times[TIME.since] = said.since ?? seq;
  times[TIME.sent] = said.sent ?? NaN;
  times[TIME.ended] = said.ended ?? NaN;
  times[TIME.timeout_ms] = 1_000;
  times[TIME.uses] = said.uses ?? 0;
  made.subject = new Subject("default", function_id, new CountingMeter("default", function_id));
  made.caller = new Party("caller-1", "shop");
  if (said.sent !== undefined) made.callee = new Party("callee-1", "");
  const idBytes = bytesOf(callerId);
  if (!writeUuid(idBytes, 0, idBytes.length, words, WORD.callerId) && callerId !== "") {
    made.more.caller_invocation_id = callerId;
  }
  if (said.request !== undefined) {
    made.more.request = said.request;
    made.more.bytes += said.request.length;
  }
  if (said.error !== undefined) made.more.error_code = said.error;
  return made;
}

/** Ids of calls, as the router makes them. */
export function callId(slot: number, uses: number): string {
  return `${slot.toString(16).padStart(8, "0")}-${
    String(uses).padStart(4, "0")
  }-4000-8000-00000000abcd`;
}
