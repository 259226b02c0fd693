/**
 * A list of any length of which only what is seen is in the document.
 *
 * Rows are of one height, so the place of any of them is known without measuring.
 *
 * @module
 */
import type { ComponentChildren, JSX, Ref, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows drawn beyond the visible ones, on each side. */
const OVERSCAN_ROWS = 8;

/** What a {@linkcode VirtualList} takes. */
export interface VirtualListProps<T> {
  readonly items: readonly T[];
  /** In pixels, the same for all. */
  readonly rowHeight: number;
  readonly keyOf: (item: T, index: number) => string | number;
  /** Draws a row; it must be as high as `rowHeight`. */
  readonly row: (item: T, index: number) => ComponentChildren;
  /** Said by screen readers; left out when the list is part of a table. */
  readonly label?: string | undefined;
  /** @default "list" */
  readonly role?: JSX.AriaRole | undefined;
  readonly class?: string | undefined;
  /** Stays at the top while the rows scroll, such as the heads of a table. */
  readonly head?: { readonly content: ComponentChildren; readonly height: number } | undefined;
  /** More of the box that scrolls, such as the role and keys of a grid. */
  readonly box?: JSX.HTMLAttributes<HTMLDivElement> | undefined;
  /** Brings a row into view whenever it is another. */
  readonly reach?: number | null | undefined;
  /** Stays at the end while new rows come, as long as the person is there. */
  readonly follow?: boolean | undefined;
  /** Whether the person is at the end now. */
  readonly onAtEnd?: ((atEnd: boolean) => void) | undefined;
  /** The person is near the end: more may be fetched. */
  readonly onNearEnd?: (() => void) | undefined;
}

/** See the module. */
export function VirtualList<T>(props: VirtualListProps<T>): VNode {
  const { items, rowHeight, keyOf, row, reach, follow, head } = props;
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const told = useRef(props); // What is heard later hears the newest functions.
  told.current = props;
  const [view, setView] = useState({ top: 0, height: 600 });
  const read = () => {
    if (box.current === null) return; // It is gone, and the browser tells of its scrolling still.
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    setView((was) =>
      was.top === scrollTop && was.height === clientHeight
        ? was
        : { top: scrollTop, height: clientHeight }
    );
    const left = scrollHeight - scrollTop - clientHeight;
    if (left < clientHeight) told.current.onNearEnd?.();
    if (atEnd.current === left < rowHeight) return;
    atEnd.current = left < rowHeight;
    told.current.onAtEnd?.(atEnd.current);
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

/** Carries the key; draws nothing of its own. */
function RowSlot({ children }: { children: ComponentChildren }): VNode {
  return <>{children}</>;
}

/** The rows from `first` up to, not including, `last`. */
export interface RowRange {
  readonly first: number;
  readonly last: number;
}

/** What a box shows, with some rows more on both sides. Heights are pixels. */
export function rowsInView(
  count: number,
  rowHeight: number,
  view: { readonly top: number; readonly height: number },
  overscan: number,
): RowRange {
  // A list that became shorter is still scrolled to where it was for a moment.
  const top = Math.max(0, Math.min(view.top, count * rowHeight - view.height));
  const first = Math.max(0, Math.floor(top / rowHeight) - overscan);
  const last = Math.min(count, Math.ceil((top + view.height) / rowHeight) + overscan);
  return { first: Math.min(first, last), last };
}

/** Where to scroll so that a row is seen; where the box is already, if it is. */
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

/** The list within has the focus again when what was open has taken the focus with it. */
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
