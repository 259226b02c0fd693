/**
 * A table of any length, sorted by its column heads, with mouse and keyboard.
 *
 * The box has the focus, not a row, so that rows may come and go. Up, Down, Home, End, Page keys
 * and `j`/`k` move; Enter opens.
 *
 * @module
 */
import type { ComponentChildren, JSX, VNode } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import { Icon } from "./icons.tsx";
import { useQueryMember } from "./context.tsx";
import { rowAfterKey, useFocusBack, VirtualList } from "./virtual_list.tsx";

/** Rows that PageUp and PageDown move by. */
const PAGE_ROWS = 15;
/** In pixels, as in the style sheet. */
const HEAD_HEIGHT = 32;
/** In pixels. */
const ROW_HEIGHTS = { plain: 36, things: 52, figures: 32, events: 36 } as const;

/** A column of a {@linkcode Table}. */
export interface Column<T> {
  readonly id: string;
  readonly title: ComponentChildren;
  /** A track of a CSS grid, such as `minmax(160px, 2fr)` or `88px`. */
  readonly width: string;
  /** @default "start" */
  readonly align?: "start" | "end" | "center" | undefined;
  readonly cell: (item: T) => ComponentChildren;
  /** Makes the head a button that sorts. */
  readonly sort?: ((item: T) => SortValue) | undefined;
  /** Hidden in a table narrower than 640 pixels (`phone`) or 980 pixels (`tablet`). */
  readonly hide?: "phone" | "tablet" | undefined;
}

/** Properties of a {@linkcode Table}. */
interface TableProps<T> {
  /** Read by screen readers. */
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  /** The initial order; another one is in the address as `sort`. Left out: as the items come. */
  readonly order?: RowOrder | undefined;
  /** Member of the address's query that holds the order. @default "sort" */
  readonly orderName?: string | undefined;
  /** Key of the row that is open. */
  readonly open?: string | null | undefined;
  readonly onOpen?: ((item: T) => void) | undefined;
  /**
   * What the rows are: `things` with a name and what there is to say of it, `figures` to compare,
   * `events` in time.
   */
  readonly kind?: "things" | "figures" | "events" | undefined;
  /** @default by the kind of the rows */
  readonly rowHeight?: number | undefined;
  /** A class for a row, such as `bad`. */
  readonly rowClass?: ((item: T) => string) | undefined;
  /** Stays at the end while rows are added. */
  readonly follow?: boolean | undefined;
  readonly onNearEnd?: (() => void) | undefined;
  /** Shown when there are no rows. */
  readonly empty?: ComponentChildren | undefined;
}

/** A table of any length. */
export function Table<T>(props: TableProps<T>): VNode {
  const { columns, items, keyOf, onOpen, open = null, kind } = props;
  const { rowHeight = ROW_HEIGHTS[kind ?? "plain"] } = props;
  const id = useId();
  const box = useFocusBack(open !== null);
  const [written, write] = useQueryMember(props.orderName ?? "sort");
  const order = readOrder(written, props.order ?? { column: "", descending: false });
  const rows = useRows(columns, items, order);
  const [active, setActive] = useState<string | null>(null);
  const at = active ?? open;
  const index = useMemo(
    () => at === null ? -1 : rows.findIndex((item) => keyOf(item) === at),
    [rows, at],
  );
  const keyDown = (event: JSX.TargetedKeyboardEvent<HTMLDivElement>) => {
    if (event.target !== event.currentTarget) return;
    const to = rowAfterKey(event.key, index, rows.length, PAGE_ROWS);
    if (to !== undefined) {
      event.preventDefault();
      if (rows[to] !== undefined) setActive(keyOf(rows[to]));
    } else if (event.key === "Enter" && rows[index] !== undefined) {
      onOpen?.(rows[index]!);
    }
  };
  const row = (item: T, at: number) => {
    const key = keyOf(item);
    const marks = `${key === open ? "open" : ""} ${at === index ? "active" : ""}`;
    return (
      <div
        role="row"
        id={`${id}-${at}`}
        class={`row ${onOpen ? "opens" : ""} ${marks} ${props.rowClass?.(item) ?? ""}`}
        style={{ height: `${rowHeight}px` }}
        aria-rowindex={at + 2}
        aria-selected={onOpen ? key === open : undefined}
        onClick={onOpen && (() => (setActive(key), onOpen(item)))}
      >
        <Cells columns={columns} item={item} />
      </div>
    );
  };
  return (
    <div ref={box} class={`table ${kind ?? ""}`} style={tracksOf(columns)}>
      {rows.length === 0 && <div class="table-empty">{props.empty}</div>}
      <VirtualList
        items={rows}
        rowHeight={rowHeight}
        keyOf={keyOf}
        row={row}
        role="rowgroup"
        reach={index}
        follow={props.follow}
        onNearEnd={props.onNearEnd}
        head={{
          height: HEAD_HEIGHT,
          content: <Heads columns={columns} order={order} write={write} />,
        }}
        box={{
          role: "grid",
          tabIndex: 0,
          "aria-label": props.label,
          "aria-rowcount": rows.length + 1,
          "aria-activedescendant": index < 0 ? undefined : `${id}-${index}`,
          onKeyDown: keyDown,
        }}
      />
    </div>
  );
}

function Cells<T>({ columns, item }: { columns: readonly Column<T>[]; item: T }): VNode {
  return (
    <>
      {columns.map((column) => (
        <div key={column.id} role="gridcell" class={cellClass(column)}>{column.cell(item)}</div>
      ))}
    </>
  );
}

function Heads<T>(
  { columns, order, write }: {
    columns: readonly Column<T>[];
    order: RowOrder;
    write: (order: string) => void;
  },
): VNode {
  const press = (column: Column<T>) => {
    const descending = order.column === column.id && !order.descending;
    write(writeOrder({ column: column.id, descending }));
  };
  return (
    <div role="rowgroup" class="heads">
      <div role="row" class="row" aria-rowindex={1}>
        {columns.map((column) => {
          const mine = order.column === column.id;
          const sorted = order.descending ? "descending" : "ascending";
          return (
            <div
              key={column.id}
              role="columnheader"
              class={cellClass(column)}
              aria-sort={column.sort && (mine ? sorted : "none")}
            >
              {column.sort
                ? (
                  <button type="button" class={mine ? "mine" : ""} onClick={() => press(column)}>
                    {column.title}
                    {mine && <Icon name={order.descending ? "down" : "up"} size={10} />}
                  </button>
                )
                : column.title}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function useRows<T>(
  columns: readonly Column<T>[],
  items: readonly T[],
  order: RowOrder,
): readonly T[] {
  return useMemo(() => {
    const column = columns.find(({ id }) => id === order.column);
    return column?.sort ? sortRows(items, column.sort, order.descending) : items;
  }, [items, order.column, order.descending]);
}

function cellClass<T>({ align, hide }: Column<T>): string {
  return `cell ${align ?? "start"} ${hide ? `hide-${hide}` : ""}`;
}

/** The grid tracks for each width of the table, as CSS variables. */
function tracksOf<T>(columns: readonly Column<T>[]): Record<string, string> {
  const tracks = (...hidden: readonly string[]) =>
    columns.filter(({ hide }) => !hidden.includes(hide ?? "")).map(({ width }) => width).join(" ");
  return {
    "--columns": tracks(),
    "--columns-middle": tracks("tablet"),
    "--columns-narrow": tracks("tablet", "phone"),
  };
}

/** A value that rows are sorted by; `null` comes last in both directions. */
export type SortValue = string | number | null;

/** The column and direction of a sort. */
interface RowOrder {
  readonly column: string;
  readonly descending: boolean;
}

/** The sorted rows; equal ones keep their order. */
export function sortRows<T>(
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

/** Parses an order as the address has it: `name`, or `-name` for descending. */
export function readOrder(text: string, fallback: RowOrder): RowOrder {
  if (text === "") return fallback;
  return text.startsWith("-")
    ? { column: text.slice(1), descending: true }
    : { column: text, descending: false };
}

/** Reverses {@linkcode readOrder}. */
export function writeOrder({ column, descending }: RowOrder): string {
  return descending ? `-${column}` : column;
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const [left, right] = [String(a), String(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
