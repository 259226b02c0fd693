/**
 * Which rows of a long list are seen, and where to scroll to see one.
 *
 * @module
 */

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
