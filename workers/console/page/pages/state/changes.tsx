/**
 * What changed in the state since the page was opened, each change with its difference.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { Badge, Button, Empty, Icon, Time, type Tone } from "../../kit/mod.ts";
import type { SeenChange, StateChange } from "./entries.ts";
import { type DiffLine, diffValues, foldDiff } from "./value_diff.ts";

const KINDS: Readonly<Record<StateChange["event_type"], readonly [word: string, tone: Tone]>> = {
  "state:created": ["created", "ok"],
  "state:updated": ["updated", "info"],
  "state:deleted": ["deleted", "bad"],
};

/** The newest first; `onKey` leads to an entry. They can be held still, to be read. */
export function StateChanges(
  { changes, onKey }: { changes: readonly SeenChange[]; onKey?: (key: string) => void },
): VNode {
  const [held, hold] = useState<readonly SeenChange[] | null>(null);
  if (changes.length === 0) {
    return (
      <Empty icon="state" title="No changes since this page was opened">
        They show up here as they happen, each with what is different.
      </Empty>
    );
  }
  const shown = held ?? changes;
  const fresh = held ? changes.findIndex(({ number }) => number === held[0]?.number) : 0;
  return (
    <>
      <div class="changes-head">
        <Button
          small
          icon={held ? "play" : "pause"}
          pressed={held !== null}
          onPress={() => hold(held ? null : changes)}
        >
          {held ? "Go on" : "Hold"}
        </Button>
        {held && (
          <span class="said num">
            {fresh < 0 ? `${changes.length} or more` : fresh} since then
          </span>
        )}
      </div>
      <ol class="changes" aria-label="Changes, the newest first">
        {shown.map((seen) => (
          <Change
            key={seen.number}
            seen={seen}
            onOpen={() => held ?? hold(changes)}
            {...onKey && { onKey }}
          />
        ))}
      </ol>
    </>
  );
}

/** `onOpen`: somebody reads, so the list shall not run away. */
function Change(
  { seen, onKey, onOpen }: {
    seen: SeenChange;
    onKey?: (key: string) => void;
    onOpen: () => void;
  },
): VNode {
  const [open, setOpen] = useState(false);
  const { change, at_ms } = seen;
  const [before, after] = sides(change);
  const [word, tone] = KINDS[change.event_type] ?? [change.event_type, "neutral"];
  return (
    <li>
      <div class="change-line">
        <button type="button" aria-expanded={open} onClick={() => (setOpen(!open), onOpen())}>
          <Icon name={open ? "down" : "right"} size={12} />
          <Time ms={at_ms} fine />
          <Badge tone={tone}>{word}</Badge>
          {!onKey && <DiffCount before={before} after={after} />}
        </button>
        {onKey && (
          <>
            <button type="button" class="change-key" onClick={() => onKey(change.key)}>
              <code>{change.key}</code>
            </button>
            <DiffCount before={before} after={after} />
          </>
        )}
      </div>
      {open && <DiffView before={before} after={after} label={`Difference in ${change.key}`} />}
    </li>
  );
}

/** The wire says null for a side that is missing. */
function sides(
  { event_type, old_value, new_value }: StateChange,
): [before: Json | undefined, after: Json | undefined] {
  return [
    event_type === "state:created" ? undefined : old_value,
    event_type === "state:deleted" ? undefined : new_value,
  ];
}

/** Unchanged lines beside a change. */
const AROUND = 3;

/** Shows a diff; `undefined` is no value at all. */
export function DiffView(
  { before, after, label }: {
    before: Json | undefined;
    after: Json | undefined;
    /** Said by screen readers. */
    label: string;
  },
): VNode {
  const [whole, setWhole] = useState(false);
  const diff = useMemo(() => diffValues(before, after), [before, after]);
  const lines = useMemo(() => whole ? diff.lines : foldDiff(diff, AROUND), [diff, whole]);
  if (diff.added === 0 && diff.removed === 0) return <p class="said">Nothing is different.</p>;
  return (
    <div class="diff" role="group" aria-label={label} tabIndex={0}>
      {lines.map((line, at) =>
        line === null
          ? (
            <button type="button" key={at} class="diff-gap" onClick={() => setWhole(true)}>
              … unchanged lines
            </button>
          )
          : <Line key={at} line={line} />
      )}
      {diff.cut > 0 && <p class="said">{diff.cut} lines more</p>}
    </div>
  );
}

/** How much changed: `+3 −1`. */
export function DiffCount(
  { before, after }: { before: Json | undefined; after: Json | undefined },
): VNode {
  const { added, removed } = useMemo(() => diffValues(before, after), [before, after]);
  return (
    <span class="diff-count num">
      {added > 0 && <b class="added" aria-label={`${added} lines added`}>+{added}</b>}
      {removed > 0 && <b class="removed" aria-label={`${removed} lines removed`}>−{removed}</b>}
    </span>
  );
}

function Line({ line: { mark, level, text } }: { line: DiffLine }): VNode {
  const kind = mark === "+" ? "added" : mark === "-" ? "removed" : "";
  return (
    <div class={`diff-line ${kind}`}>
      <i>{mark}</i>
      <span style={{ paddingLeft: `${level * 14}px` }}>{text}</span>
    </div>
  );
}
