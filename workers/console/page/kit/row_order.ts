/**
 * In which order a table shows its rows.
 *
 * @module
 */

/** What rows are compared by; `null` stands last either way. */
export type SortValue = string | number | null;

/** Which column decides, and which way. */
export interface RowOrder {
  readonly column: string;
  readonly descending: boolean;
}

/** The rows sorted; equal ones stay in the order they came in. */
export function ordered<T>(
  items: readonly T[],
  valueOf: (item: T) => SortValue,
  descending: boolean,
): readonly T[] {
  const sign = descending ? -1 : 1;
  const rows = items.map((item) => ({ item, value: valueOf(item) }));
  rows.sort((a, b) => {
    if (a.value === null || b.value === null) {
      return Number(a.value === null) - Number(b.value === null);
    }
    return sign * compare(a.value, b.value);
  });
  return rows.map(({ item }) => item);
}

/** The order as the address spells it: `name`, or `-name` for descending. */
export function readOrder(text: string, fallback: RowOrder): RowOrder {
  if (text === "") return fallback;
  return text.startsWith("-")
    ? { column: text.slice(1), descending: true }
    : { column: text, descending: false };
}

/** See {@linkcode readOrder}. */
export function writeOrder({ column, descending }: RowOrder): string {
  return descending ? `-${column}` : column;
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [left, right] = [String(a), String(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
