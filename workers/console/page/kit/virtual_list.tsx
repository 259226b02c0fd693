/**
 * A list of any length of which only the visible rows are in the document.
 *
 * All rows have the same height, so the position of each is known without measuring.
 *
 * @module
 */
import type { ComponentChildren, JSX, Ref, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows rendered beyond the visible ones, on each side. */
const OVERSCAN_ROWS = 8;

/** Properties of a {@linkcode VirtualList}. */
interface VirtualListProps<T> {
  readonly items: readonly T[];
  /** In pixels, the same for all. */
  readonly rowHeight: number;
  readonly keyOf: (item: T, index: number) => string | number;
  /** Renders a row, which must be as high as `rowHeight`. */
  readonly row: (item: T, index: number) => ComponentChildren;
  /** Read by screen readers; left out when the list is part of a table. */
  readonly label?: string | undefined;
  /** @default "list" */
  readonly role?: JSX.AriaRole | undefined;
  readonly class?: string | undefined;
  /** Stays at the top while the rows scroll, such as the header of a table. */
  readonly head?: { readonly content: ComponentChildren; readonly height: number } | undefined;
  /** Attributes of the scrolling box, such as the role and key handler of a grid. */
  readonly box?: JSX.HTMLAttributes<HTMLDivElement> | undefined;
  /** Index of a row that is scrolled into view whenever this changes. */
  readonly reach?: number | null | undefined;
  /** Stays at the end while rows are added, unless the person scrolled up. */
  readonly follow?: boolean | undefined;
  /** Called when the list is scrolled to its end, or away from it. */
  readonly onAtEnd?: ((atEnd: boolean) => void) | undefined;
  /** Called near the end of the list, when more rows should be fetched. */
  readonly onNearEnd?: (() => void) | undefined;
}

/** A list of which only the visible rows are rendered. */
export function VirtualList<T>(props: VirtualListProps<T>): VNode {
  const { items, rowHeight, keyOf, row, reach, follow, head } = props;
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const newest = useRef(props); // Observers call the newest callbacks.
  newest.current = props;
  const [view, setView] = useState({ top: 0, height: 600 });
  const read = () => {
    if (box.current === null) return; // A scroll event after the list was unmounted.
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    setView((was) =>
      was.top === scrollTop && was.height === clientHeight
        ? was
        : { top: scrollTop, height: clientHeight }
    );
    const left = scrollHeight - scrollTop - clientHeight;
    if (left < clientHeight) newest.current.onNearEnd?.();
    if (atEnd.current === left < rowHeight) return;
    atEnd.current = left < rowHeight;
    newest.current.onAtEnd?.(atEnd.current);
  };
  useLayoutEffect(() => {
    const watch = new ResizeObserver(read);
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (follow && atEnd.current) box.current!.scrollTop = box.current!.scrollHeight;
  }, [items, follow]);
  useEffect(() => {
    if (reach === null || reach === undefined || reach < 0) return;
    const { scrollTop, clientHeight } = box.current!;
    const room = clientHeight - (head?.height ?? 0);
    const top = reachRow(reach, rowHeight, scrollTop, room);
    if (top !== scrollTop) box.current!.scrollTop = top;
  }, [reach, rowHeight]);
  const { first, last } = rowsInView(items.length, rowHeight, view, OVERSCAN_ROWS);
  return (
    <div
      ref={box}
      class={`virtual ${props.class ?? ""}`}
      onScroll={read}
      tabIndex={props.role === undefined ? 0 : undefined}
      {...props.box}
    >
      {head?.content}
      <div
        role={props.role ?? "list"}
        aria-label={props.label}
        class="virtual-all"
        style={{ height: `${items.length * rowHeight}px` }}
      >
        <div
          class="virtual-seen"
          style={{ transform: `translateY(${first * rowHeight}px)` }}
          role="presentation"
        >
          {items.slice(first, last).map((item, at) => (
            <RowSlot key={keyOf(item, first + at)}>{row(item, first + at)}</RowSlot>
          ))}
        </div>
      </div>
    </div>
  );
}

/** Carries the key of a row. */
function RowSlot({ children }: { children: ComponentChildren }): VNode {
  return <>{children}</>;
}

/** The rows from `first` up to and excluding `last`. */
interface RowRange {
  readonly first: number;
  readonly last: number;
}

/** The visible rows and `overscan` more on both sides. Heights are in pixels. */
export function rowsInView(
  count: number,
  rowHeight: number,
  view: { readonly top: number; readonly height: number },
  overscan: number,
): RowRange {
  // A list that became shorter keeps its old scroll position for a moment.
  const top = Math.max(0, Math.min(view.top, count * rowHeight - view.height));
  const first = Math.max(0, Math.floor(top / rowHeight) - overscan);
  const last = Math.min(count, Math.ceil((top + view.height) / rowHeight) + overscan);
  return { first: Math.min(first, last), last };
}

/** The least change of `scrollTop` that makes a row visible. */
export function reachRow(
  row: number,
  rowHeight: number,
  scrollTop: number,
  boxHeight: number,
): number {
  const top = row * rowHeight;
  if (top < scrollTop) return top;
  return top + rowHeight > scrollTop + boxHeight ? top + rowHeight - boxHeight : scrollTop;
}

/** The row that a key leads to, within the list; `undefined` for a key that does not move. */
export function rowAfterKey(
  key: string,
  from: number,
  count: number,
  pageRows: number,
): number | undefined {
  const rows: Readonly<Record<string, number | undefined>> = {
    ArrowDown: from + 1,
    j: from + 1,
    ArrowUp: from - 1,
    k: from - 1,
    PageDown: from + pageRows,
    PageUp: from - pageRows,
    Home: 0,
    End: count - 1,
  };
  const row = rows[key];
  return row === undefined ? undefined : Math.max(0, Math.min(count - 1, row));
}

/**
 * For the element around a list: focuses the list when the detail view beside it closes and would
 * leave the keyboard without a focus.
 */
export function useFocusBack(isOpen: boolean): Ref<HTMLDivElement> {
  const box = useRef<HTMLDivElement>(null);
  const before = useRef(isOpen);
  useEffect(() => {
    const hasClosed = before.current && !isOpen;
    before.current = isOpen;
    if (hasClosed && document.activeElement === document.body) {
      box.current?.querySelector<HTMLElement>(".virtual")?.focus({ preventScroll: true });
    }
  }, [isOpen]);
  return box;
}
