/**
 * Spans for tests of the console's models.
 *
 * @module
 */
import type { TraceSpan } from "../../workers/console/page/pages/traces/span_tree.ts";

/** A span of a worker that took a millisecond and ended well, but for what is given. */
export function span(fields: Partial<TraceSpan> & { readonly id: string }): TraceSpan {
  const startMs = fields.startMs ?? 0;
  return {
    trace_id: "t",
    parentId: null,
    name: fields.id,
    service: "shop",
    kind: "work",
    startMs,
    endMs: startMs + 1,
    failed: false,
    errorCode: null,
    errorMessage: null,
    attributes: {},
    ...fields,
  };
}
