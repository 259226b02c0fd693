/**
 * What changed in the state since the page was opened, each change with its difference.
 *
 * @module
 */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { Badge, Button, Empty, Icon, Time, type Tone } from "../../kit/mod.ts";
import type { StateChange } from "./entries.ts";
import { DiffCount, DiffView } from "./diff_view.tsx";
import type { SeenChange } from "./use_entries.ts";

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
