/**
 * A trace as a sequence diagram, with the payloads of its calls and answers.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Badge, Detail, Empty, formatDuration, Split, VirtualList } from "../../kit/mod.ts";
import { callPath, OUTSIDE, type PathStep, readPayload } from "./call_path.ts";
import { colourOf, PayloadView, type TraceViewProps } from "./view.tsx";

const ROW_HEIGHT = 44;
/** Participants with a lane of their own; the others share the last lane. */
const LANES_MAX = 8;

/** The sequence diagram of a trace. */
export function PathView({ tree, colours, choose }: TraceViewProps): VNode {
  const path = useMemo(() => callPath(tree), [tree]);
  const [open, setOpen] = useState<PathStep | null>(null);
  if (path.steps.length === 0) {
    return (
      <Empty icon="traces" title="No call in this trace">
        Only work inside of workers was recorded; see the waterfall.
      </Empty>
    );
  }
  const lanes = Math.min(path.participants.length, LANES_MAX);
  const show = (step: PathStep) => setOpen((was) => was === step ? null : step);
  return (
    <Split
      detail={open && (
        <StepDetail
          step={open}
          participants={path.participants}
          onSpan={() => choose(tree.rows[open.row]!.span.id)}
          onClose={() => setOpen(null)}
        />
      )}
    >
      <div class="path" style={{ "--lanes": String(lanes) }}>
        <PathHeads participants={path.participants} lanes={lanes} colours={colours} />
        <VirtualList
          items={path.steps}
          rowHeight={ROW_HEIGHT}
          keyOf={(_, at) => at}
          label="What was said"
          row={(step) => (
            <PathLine
              step={step}
              participants={path.participants}
              lanes={lanes}
              isOpen={step === open}
              onPress={() => show(step)}
            />
          )}
        />
      </div>
    </Split>
  );
}

function PathHeads({ participants, lanes, colours }: {
  participants: readonly string[];
  lanes: number;
  colours: ReadonlyMap<string, number>;
}): VNode {
  const more = participants.length - lanes;
  return (
    <div class="path-heads" aria-hidden="true">
      <span class="path-time" />
      <div class="path-lanes">
        {participants.slice(0, lanes).map((name, lane) => (
          <span
            key={name}
            class="path-endpoint"
            title={name}
            style={{ left: `${(lane + 0.5) / lanes * 100}%` }}
          >
            <i class="service-mark" style={{ background: participantColour(colours, name) }} />
            <span class="cut">
              {lane === lanes - 1 && more > 0 ? `${name} and ${more} more` : name}
            </span>
          </span>
        ))}
      </div>
    </div>
  );
}

interface PathLineProps {
  readonly step: PathStep;
  readonly participants: readonly string[];
  readonly lanes: number;
  readonly isOpen: boolean;
  readonly onPress: () => void;
}

function PathLine({ step, participants, lanes, isOpen, onPress }: PathLineProps): VNode {
  const from = (Math.min(step.from, lanes - 1) + 0.5) / lanes;
  const to = (Math.min(step.to, lanes - 1) + 0.5) / lanes;
  const left = Math.min(from, to);
  const width = Math.abs(to - from);
  const isSelf = width === 0;
  const isBack = to < from || (isSelf && step.type === "answer");
  const failed = step.failed && step.type === "answer";
  return (
    <div role="listitem" style={{ height: `${ROW_HEIGHT}px` }}>
      <button
        type="button"
        class={`path-line ${isOpen ? "chosen" : ""}`}
        aria-expanded={isOpen}
        onClick={onPress}
      >
        <span class="offscreen">{stepText(step, participants)}</span>
        <span class="path-time num" aria-hidden="true">+{formatDuration(step.atMs)}</span>
        <span class="path-lanes" aria-hidden="true">
          {Array.from(
            { length: lanes },
            (_, lane) => (
              <i key={lane} class="path-lane" style={{ left: `${(lane + 0.5) / lanes * 100}%` }} />
            ),
          )}
          <span
            class={`path-arrow ${step.type} ${isBack ? "back" : ""} ${isSelf ? "self" : ""} ${
              failed ? "failed" : ""
            }`}
            style={{
              left: `${left * 100}%`,
              width: isSelf ? `${50 / lanes}%` : `${width * 100}%`,
            }}
          >
            <span class="path-text">
              {step.type === "call" ? step.label : failed ? step.errorCode ?? "failed" : "answer"}
              <span class="quiet num">
                {step.tookMs !== null && formatDuration(step.tookMs)}
                {step.queuedMs >= 1 && `waited ${formatDuration(step.queuedMs)}`}
              </span>
            </span>
          </span>
        </span>
        <span class="path-payload cut" aria-hidden="true">{shortPayload(step.payload)}</span>
      </button>
    </div>
  );
}

function StepDetail(
  { step, participants, onSpan, onClose }: {
    step: PathStep;
    participants: readonly string[];
    onSpan: () => void;
    onClose: () => void;
  },
): VNode {
  const what = step.type === "call" ? "sent" : "answered";
  return (
    <Detail
      wide
      title={`What ${participants[step.from]} ${what}`}
      label={stepText(step, participants)}
      onClose={onClose}
    >
      <p>
        <b>{step.label}</b> · {participants[step.from]} to {participants[step.to]}{" "}
        <button type="button" class="link" onClick={onSpan}>Show its span</button>
      </p>
      {step.failed && step.type === "answer" && (
        <p>
          <Badge tone="bad">{step.errorCode ?? "failed"}</Badge> {step.errorMessage}
        </p>
      )}
      <PayloadView payload={readPayload(step.payload)} label={`What was ${what}`} />
    </Detail>
  );
}

function shortPayload(text: string): string {
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

function participantColour(colours: ReadonlyMap<string, number>, name: string): string {
  return name === OUTSIDE ? "var(--text-3)" : colourOf(colours, name);
}

function stepText(step: PathStep, participants: readonly string[]): string {
  const from = participants[step.from];
  const to = participants[step.to];
  if (step.type === "call") return `${from} calls ${step.label} of ${to}`;
  return `${from} answers ${to}: ${step.failed ? step.errorCode ?? "failed" : "done"}`;
}
