/**
 * Reads a W3C `traceparent`: which trace something belongs to, and below which span.
 *
 * Whoever sends one may be anybody, so what does not have the form counts as absent.
 *
 * @module
 */

/** What a `traceparent` says. */
export interface TraceIds {
  /** 32 hexadecimal digits. */
  readonly trace_id: string;
  /** 16 hexadecimal digits: the span that what carries it belongs to. */
  readonly span_id: string;
  /** Whether the trace is recorded. */
  readonly isSampled: boolean;
}

/** Version, trace, span, flags; a later version may have more behind. */
const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})/;

/** The ids in a `traceparent`; `undefined` when it is none. */
export function readTraceparent(text: string | undefined): TraceIds | undefined {
  const found = text === undefined ? null : FORM.exec(text);
  if (!found) return undefined;
  const rest = text!.slice(found[0].length);
  if (rest !== "" && (text!.startsWith("00-") || !rest.startsWith("-"))) return undefined;
  const [, trace_id, span_id, flags] = found;
  return { trace_id: trace_id!, span_id: span_id!, isSampled: (parseInt(flags!, 16) & 1) === 1 };
}

/** Whether a text would say that its trace is recorded, if it is a `traceparent`: a quick look. */
export function looksSampled(text: string): boolean {
  return SAMPLED_FLAGS.includes(text[54] ?? "?");
}

/** Last digits of flags whose lowest bit is set. */
const SAMPLED_FLAGS = "13579bdf";
