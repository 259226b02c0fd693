/**
 * A trace as a waterfall: one row per span, for any number of spans.
 *
 * The box has the focus: Up and Down move, Left and Right collapse and expand, Enter shows the
 * detail view.
 *
 * @module
 */
import type { JSX, VNode } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import {
  Badge,
  Button,
  Empty,
  formatCount,
  formatDuration,
  rowAfterKey,
  Search,
  useFocusBack,
  VirtualList,
} from "../../kit/mod.ts";
import {
  ancestorsOf,
  durationOf,
  matchingRows,
  type SpanRow,
  type SpanTree,
  visibleRows,
} from "./span_tree.ts";
import { type Bar, barOf } from "./waterfall.ts";
import { colourOf, TraceAxis, type TraceViewProps } from "./view.tsx";

const ROW_HEIGHT = 26;
const PAGE_ROWS = 20;
const INDENT = 12;
const INDENTS_MAX = 24;
/** Space of a duration beside its bar, and of each letter of an error code, in pixels. */
const TIME_WIDTH = 62;
const CODE_CHAR_WIDTH = 6.4;
/** Space behind the time column, in pixels, as in the style sheet. */
const BEHIND = 62;

/** The waterfall of a trace. */
export function Waterfall(props: TraceViewProps): VNode {
  const { tree, chosen, window, setWindow } = props;
  const id = useId();
  const box = useFocusBack(chosen !== "");
  const [text, setText] = useState("");
  const [width, setWidth] = useState(600);
  const rows = useRows(props);
  const found = useMemo(() => matchingRows(tree, text), [tree, text]);
  const hits = useMemo(() => new Set(found), [found]);
  const { shown, closed, at } = rows;
  return (
    <div ref={box} class="waterfall">
      <div class="view-tools">
        <Search
          label="Find a span"
          value={text}
          onChange={setText}
          onKey={({ key, shiftKey }) => key === "Enter" && rows.step(shiftKey ? -1 : 1, found)}
        />
        {text !== "" && <span class="num quiet">{formatCount(found.length)} found</span>}
        <RowTools tree={tree} rows={rows} />
        <Button small icon="fit" onPress={() => setWindow(null)}>Reset zoom</Button>
      </div>
      <TraceAxis tree={tree} window={window} setWindow={setWindow} onWidth={setWidth} />
      <VirtualList
        items={shown}
        rowHeight={ROW_HEIGHT}
        keyOf={(row) => tree.rows[row]!.span.id}
        role="rowgroup"
        class="waterfall-rows"
        reach={at}
        box={{
          role: "treegrid",
          tabIndex: 0,
          "aria-label": "Spans",
          "aria-rowcount": shown.length,
          "aria-activedescendant": at < 0 ? undefined : `${id}-${at}`,
          onKeyDown: rows.keyDown,
        }}
        row={(index, place) => (
          <SpanLine
            {...props}
            id={`${id}-${place}`}
            row={tree.rows[index]!}
            place={place}
            isClosed={closed.has(tree.rows[index]!.span.id)}
            isHit={hits.has(index)}
            width={width}
            onToggle={rows.toggle}
          />
        )}
      />
      {text !== "" && found.length === 0 && <Empty icon="filter" title="No span is called so" />}
    </div>
  );
}

/** The visible rows and what can be done with them. */
interface Rows {
  /** Indices of the rows that are not below a collapsed one. */
  readonly shown: readonly number[];
  readonly closed: ReadonlySet<string>;
  /** Position of the selected row among them; -1: none. */
  readonly at: number;
  readonly setClosed: (closed: ReadonlySet<string>) => void;
  readonly toggle: (row: SpanRow) => void;
  /** Selects the next or previous one of some rows. */
  readonly step: (by: 1 | -1, rows: readonly number[]) => void;
  readonly keyDown: (event: JSX.TargetedKeyboardEvent<HTMLElement>) => void;
}

function useRows({ tree, chosen, choose }: TraceViewProps): Rows {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const shown = useMemo(() => visibleRows(tree, closed), [tree, closed]);
  const at = useMemo(
    () => chosen === "" ? -1 : shown.findIndex((row) => tree.rows[row]!.span.id === chosen),
    [tree, shown, chosen],
  );
  const toggle = (row: SpanRow) => setClosed((was) => toggled(was, row.span.id));
  const go = (row: number | undefined) => {
    if (row === undefined) return;
    const above = ancestorsOf(tree, row).map((above) => tree.rows[above]!.span.id);
    setClosed((was) => above.some((id) => was.has(id)) ? without(was, above) : was);
    choose(tree.rows[row]!.span.id);
  };
  const step = (by: 1 | -1, rows: readonly number[]) => {
    const now = shown[at] ?? -1;
    const next = by > 0 ? rows.find((row) => row > now) : rows.findLast((row) => row < now);
    go(next ?? (by > 0 ? rows[0] : rows.at(-1)));
  };
  const keyDown = (event: JSX.TargetedKeyboardEvent<HTMLElement>) => {
    if (event.target !== event.currentTarget) return;
    const row = tree.rows[shown[at] ?? -1];
    const to = rowAfterKey(event.key, at, shown.length, PAGE_ROWS);
    if (to !== undefined) go(shown[to]);
    else if (event.key === "ArrowLeft" && row) {
      if (row.children > 0 && !closed.has(row.span.id)) toggle(row);
      else if (row.parent >= 0) go(row.parent);
    } else if (event.key === "ArrowRight" && row && closed.has(row.span.id)) toggle(row);
    else return;
    event.preventDefault();
  };
  return { shown, closed, at, setClosed, toggle, step, keyDown };
}

/** Buttons that concern all rows. */
function RowTools({ tree, rows }: { tree: SpanTree; rows: Rows }): VNode {
  const failed = useMemo(() => failedRows(tree.rows), [tree]);
  const { closed, setClosed, step } = rows;
  return (
    <>
      {failed.length > 0 && (
        <Button small icon="warning" onPress={() => step(1, failed)}>Next failure</Button>
      )}
      <Button small onPress={() => setClosed(closed.size > 0 ? new Set() : allParents(tree.rows))}>
        {closed.size > 0 ? "Open all" : "Close all"}
      </Button>
    </>
  );
}

interface SpanLineProps extends TraceViewProps {
  readonly id: string;
  readonly row: SpanRow;
  readonly place: number;
  readonly isClosed: boolean;
  readonly isHit: boolean;
  /** Width of the column of bars, in pixels. */
  readonly width: number;
  readonly onToggle: (row: SpanRow) => void;
}

function SpanLine(props: SpanLineProps): VNode {
  const { row, place, isClosed, isHit, window, nowMs, chosen, choose, colours } = props;
  const { span, depth, children, descendants, errorsBelow } = row;
  const bar = barOf(row, window, nowMs);
  const isChosen = span.id === chosen;
  const marks = `${isChosen ? "chosen" : ""} ${isHit ? "hit" : ""} ${span.failed ? "failed" : ""}`;
  return (
    <div
      role="row"
      id={props.id}
      class={`span-line ${marks}`}
      style={{ height: `${ROW_HEIGHT}px` }}
      aria-level={depth + 1}
      aria-rowindex={place + 1}
      aria-selected={isChosen}
      aria-expanded={children > 0 ? !isClosed : undefined}
      onClick={() => choose(isChosen ? "" : span.id)}
    >
      <div
        role="gridcell"
        class="span-name"
        style={{ paddingLeft: `${8 + INDENT * Math.min(depth, INDENTS_MAX)}px` }}
      >
        {children > 0
          ? (
            <button
              type="button"
              class="span-twist"
              tabIndex={-1}
              aria-label={isClosed ? "Open" : "Close"}
              onClick={(event) => (event.stopPropagation(), props.onToggle(row))}
            >
              <i class={isClosed ? "twist" : "twist open"} />
            </button>
          )
          : <span class="span-twist" />}
        <i class="service-mark" style={{ background: colourOf(colours, span.service) }} />
        <span class="cut" title={`${span.name} · ${span.service}`}>{span.name}</span>
        {isClosed && <Badge tone={errorsBelow > 0 ? "bad" : "neutral"}>{descendants}</Badge>}
        <span class="span-service">
          {span.service}
          {span.engine !== null && ` at ${span.engine}`}
        </span>
      </div>
      <div role="gridcell" class="span-bar-cell">
        {bar && (
          <SpanBar
            bar={bar}
            row={row}
            nowMs={nowMs}
            colour={colourOf(colours, span.service)}
            width={props.width}
          />
        )}
      </div>
    </div>
  );
}

function SpanBar(
  { bar, row, nowMs, colour, width }: {
    bar: Bar;
    row: SpanRow;
    nowMs: number;
    colour: string;
    /** Width of the column, in pixels. */
    width: number;
  },
): VNode {
  const { span } = row;
  const place = placeOf(bar, row, width);
  const part = (inner: { left: number; width: number }) => ({
    left: percent(inner.left),
    width: percent(inner.width),
    background: colour,
  });
  return (
    <>
      <i
        class={`span-bar ${bar.isOpen ? "running" : ""} ${bar.handler ? "" : "whole"}`}
        style={part(bar)}
      />
      {bar.handler && <i class="span-handler" style={part(bar.handler)} />}
      {bar.queued && bar.queued.width > 0.004 && (
        <i class="span-queued" style={{ ...part(bar.queued), background: undefined }} />
      )}
      <span class="span-time num" style={place.style}>
        {place.hasCode && <b class="bad-text">{span.errorCode}</b>}
        {bar.isOpen ? "running" : formatDuration(durationOf(span, nowMs))}
      </span>
    </>
  );
}

/**
 * Where the label of a bar is: right of it, or left of it. An error code that has no room is left
 * out: the name of a failed span is red, and its detail has the code.
 */
function placeOf(
  bar: Bar,
  { span }: SpanRow,
  width: number,
): { readonly style: Record<string, string>; readonly hasCode: boolean } {
  const room = TIME_WIDTH + (span.errorCode?.length ?? 0) * CODE_CHAR_WIDTH;
  const right = bar.left + bar.width;
  const behind = { left: `calc(${percent(right)} + 6px)` };
  if ((1 - right) * width + BEHIND >= room) {
    return { style: behind, hasCode: span.errorCode !== null };
  }
  if (bar.left * width > room) {
    return { style: { right: `calc(${percent(1 - bar.left)} + 6px)` }, hasCode: true };
  }
  return { style: behind, hasCode: false };
}

function percent(part: number): string {
  return `${Math.round(part * 1e5) / 1e3}%`;
}

function toggled(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(id)) next.add(id);
  return next;
}

function without(set: ReadonlySet<string>, ids: readonly string[]): ReadonlySet<string> {
  const next = new Set(set);
  for (const id of ids) next.delete(id);
  return next;
}

function allParents(rows: readonly SpanRow[]): ReadonlySet<string> {
  return new Set(rows.filter(({ children }) => children > 0).map(({ span }) => span.id));
}

function failedRows(rows: readonly SpanRow[]): number[] {
  return rows.flatMap(({ span }, index) => span.failed ? [index] : []);
}
