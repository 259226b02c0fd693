/**
 * What changed between two values, with marks that need no colour.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { type DiffLine, diffValues, foldDiff } from "./value_diff.ts";

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
