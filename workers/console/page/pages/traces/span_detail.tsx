/**
 * The detail view of a span: caller and callee, times, payloads, logs, and the engine's
 * explanation.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Badge,
  Detail,
  formatDateTime,
  formatDuration,
  JsonView,
  Link,
  link,
  Pairs,
  Skeleton,
  Stack,
  STACK_NAMES,
  stackOf,
  useLive,
} from "../../kit/mod.ts";
import { readPayload } from "./call_path.ts";
import { ALL_LOGS } from "../logs/log_lines.ts";
import {
  attributeNumber,
  attributeText,
  durationOf,
  functionOf,
  type SpanRow,
  type SpanTree,
  type TraceSpan,
} from "./span_tree.ts";
import { objectOf, textOf } from "../../kit/json.ts";
import { useLogs } from "../logs/use_logs.ts";
import { LogLineText } from "../logs/log_table.tsx";
import { copiedId, figure, functionLink, workerLink } from "../references.tsx";
import { PayloadView } from "./view.tsx";

/** Attributes that are shown elsewhere in the detail view. */
const SHOWN_ELSEWHERE = new Set([
  "engine.request",
  "engine.response",
  "engine.replicas",
  "engine.function_id",
  "engine.namespace",
  "engine.invocation_id",
  "engine.caller",
  "engine.worker",
  "engine.queued_ms",
  "engine.error_code",
  "engine.ended_by",
  "engine.kind",
  ...STACK_NAMES,
]);
/** Log lines shown; the rest is on the Logs page. */
const LOG_LINES = 50;

/** The detail view of a span. */
export function SpanDetail(
  { tree, row, nowMs, onClose }: {
    tree: SpanTree;
    row: SpanRow;
    nowMs: number;
    onClose: () => void;
  },
): VNode {
  const { span } = row;
  const isCall = span.kind === "call";
  const stack = stackOf(span.attributes);
  const request = readPayload(attributeText(span, "engine.request"));
  const response = readPayload(attributeText(span, "engine.response"));
  const sent = attributeNumber(span, "engine.request_chars");
  const answered = attributeNumber(span, "engine.response_chars");
  return (
    <Detail
      title={<span class="cut">{span.name}</span>}
      label={`Span ${span.name}`}
      onClose={onClose}
    >
      {span.failed && (
        <div class="span-error" role="note">
          <Badge tone="bad">{span.errorCode ?? "failed"}</Badge> {span.errorMessage}
        </div>
      )}
      <SpanFacts row={row} startMs={tree.startMs} nowMs={nowMs} />
      {stack !== null && (
        <Section title="Stack">
          <Stack text={stack} />
        </Section>
      )}
      {isCall && <Why span={span} />}
      {isCall && (
        <Section title="Request">
          <PayloadView payload={request} label="Request" chars={sent} />
        </Section>
      )}
      {isCall && span.endMs !== null && !span.failed && (
        <Section title="Result">
          <PayloadView payload={response} label="Result" chars={answered} />
        </Section>
      )}
      <SpanLogs row={row} />
      <Attributes span={span} />
    </Detail>
  );
}

function Section({ title, children }: { title: string; children: ComponentChildren }): VNode {
  return (
    <section class="detail-part">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function SpanFacts(
  { row: { span, handler }, startMs, nowMs }: { row: SpanRow; startMs: number; nowMs: number },
): VNode {
  const called = functionOf(span);
  const caller = attributeText(span, "engine.caller");
  const endedBy = attributeText(span, "engine.ended_by");
  const afterMs = formatDuration(span.startMs - startMs);
  const tookMs = formatDuration(durationOf(span, nowMs));
  const handlerEndMs = handler?.endMs ?? nowMs;
  const queuedMs = attributeNumber(span, "engine.queued_ms");
  const isCall = span.kind === "call";
  return (
    <Pairs
      pairs={[
        ["Function", functionLink(called, attributeText(span, "engine.namespace"))],
        ["Worker", workerLink(span.service)],
        ["Engine", span.engine],
        ["Called by", workerLink(caller)],
        ["Started", figure(`${formatDateTime(span.startMs, true)} `, `+${afterMs}`)],
        ["Took", span.endMs === null ? running(`running for ${tookMs}`) : figure(tookMs)],
        ["Queued", isCall ? figure(formatDuration(queuedMs)) : null],
        ["In the handler", handler && figure(formatDuration(handlerEndMs - handler.startMs))],
        ["Ended by", endedBy || null],
        ["Invocation", copiedId(attributeText(span, "engine.invocation_id"), "invocation id")],
        ["Span", copiedId(span.id, "span id")],
      ]}
    />
  );
}

/** The engine's explanation, as printed by `engine why`. */
function Why({ span }: { span: TraceSpan }): VNode | null {
  const live = useLive();
  const [said, setSaid] = useState<{ lines: readonly string[]; failed: boolean } | null>(null);
  const invocation_id = attributeText(span, "engine.invocation_id") || span.id;
  const isRunning = span.endMs === null;
  useEffect(() => {
    const gone = new AbortController();
    live.call("engine::traces::explain", { invocation_id }, { signal: gone.signal })
      .then((answer) => setSaid({ lines: linesOf(answer), failed: false }))
      .catch((failure: Error) => {
        if (!gone.signal.aborted) setSaid({ lines: [failure.message], failed: true });
      });
    return () => gone.abort();
  }, [live, invocation_id, isRunning]);
  return (
    <Section title="Why it went so">
      {said === null ? <Skeleton rows={3} /> : (
        <ul class={`why ${said.failed ? "quiet" : ""}`}>
          {said.lines.map((line, at) => <li key={at}>{line}</li>)}
        </ul>
      )}
    </Section>
  );
}

function SpanLogs({ row: { span, handler } }: { row: SpanRow }): VNode | null {
  const filter = useMemo(() => ({ ...ALL_LOGS, traceId: span.trace_id }), [span.trace_id]);
  const { lines } = useLogs(filter, false);
  const own = lines.filter(({ spanId }) => spanId === span.id || spanId === handler?.id);
  if (own.length === 0) return null;
  return (
    <Section title="Logs">
      <ol class="detail-logs">
        {own.slice(0, LOG_LINES).map((line) => (
          <li key={line.seq}>
            <LogLineText line={line} />
          </li>
        ))}
      </ol>
      <Link to={link("/logs", { trace: span.trace_id })}>
        {own.length > LOG_LINES ? `All ${own.length} lines` : "On the Logs page"}
      </Link>
    </Section>
  );
}

function Attributes({ span }: { span: TraceSpan }): VNode | null {
  const rest = Object.entries(span.attributes).filter(([name]) => !SHOWN_ELSEWHERE.has(name));
  if (rest.length === 0) return null;
  return (
    <Section title="Attributes">
      <JsonView value={Object.fromEntries(rest) as Json} label="Attributes" depth={1} />
    </Section>
  );
}

function running(text: string): VNode {
  return <Badge tone="info" dot>{text}</Badge>;
}

function linesOf(answer: Json): string[] {
  const { lines } = objectOf(answer);
  return (Array.isArray(lines) ? lines : []).map(textOf);
}
