/**
 * Changes of the state since the page was opened, each with a diff.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { Badge, Button, Empty, Icon, Time, type Tone } from "../../kit/mod.ts";
import type { Seen, SeenChange, StateChange } from "./entries.ts";
import { type DiffLine, diffValues, foldDiff } from "./value_diff.ts";

/** Unchanged lines shown beside a change. */
const AROUND = 3;

const KINDS: Readonly<Record<StateChange["event_type"], readonly [word: string, tone: Tone]>> = {
  "state:created": ["created", "ok"],
  "state:updated": ["updated", "info"],
  "state:deleted": ["deleted", "bad"],
};

/** The newest change first; `onKey` opens an entry. The list can be paused. */
export function StateChanges(
  { changes, onKey }: { changes: readonly SeenChange[]; onKey?: (key: string) => void },
): VNode {
  return (
    <HeldList
      seen={changes}
      label="Changes, the newest first"
      empty={
        <Empty icon="state" title="No changes since this page was opened">
          They show up here as they happen, each with what is different.
        </Empty>
      }
      row={(seen, onOpen) => <Change seen={seen} onOpen={onOpen} {...onKey && { onKey }} />}
    />
  );
}

/** What happened, the newest first; the list can be paused. */
export function HeldList<Happening>(
  { seen, label, empty, row }: {
    seen: readonly Seen<Happening>[];
    label: string;
    empty: VNode;
    /** `onOpen` pauses the list, so that what is open keeps its position. */
    row: (seen: Seen<Happening>, onOpen: () => void) => VNode;
  },
): VNode {
  const [held, hold] = useState<readonly Seen<Happening>[] | null>(null);
  if (seen.length === 0) return empty;
  const shown = held ?? seen;
  const fresh = held ? seen.findIndex(({ number }) => number === held[0]?.number) : 0;
  return (
    <>
      <div class="changes-head">
        <Button
          small
          icon={held ? "play" : "pause"}
          pressed={held !== null}
          onPress={() => hold(held ? null : seen)}
        >
          {held ? "Resume" : "Pause"}
        </Button>
        {held && (
          <span class="said num">
            {fresh < 0 ? `${seen.length} or more` : fresh} since then
          </span>
        )}
      </div>
      <ol class="changes" aria-label={label}>
        {shown.map((each) => <li key={each.number}>{row(each, () => held ?? hold(seen))}</li>)}
      </ol>
    </>
  );
}

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
    <>
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
    </>
  );
}

/** The two sides of a change; in events a missing side is null. */
function sides(
  { event_type, old_value, new_value }: StateChange,
): [before: Json | undefined, after: Json | undefined] {
  return [
    event_type === "state:created" ? undefined : old_value,
    event_type === "state:deleted" ? undefined : new_value,
  ];
}

/** A diff; `undefined`: no value. */
export function DiffView(
  { before, after, label }: {
    before: Json | undefined;
    after: Json | undefined;
    /** Read by screen readers. */
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

/** The number of changed lines: `+3 −1`. */
function DiffCount(
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
