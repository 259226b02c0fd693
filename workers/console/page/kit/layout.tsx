/**
 * The building blocks of a page: header, panels, detail view, tabs, dialogs, lists of names and
 * values, and what is shown while there is no content.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Link, useMediaQuery } from "./context.tsx";
import { Button } from "./controls.tsx";
import { Icon, type IconName, type Tone } from "./icons.tsx";
import type { CallFailure } from "./live.ts";

/** A whole page: header, filters, content. `fill`: the content scrolls by itself. */
export function Page(
  { title, count, actions, filters, moreFilters, fill, children }: {
    title: ComponentChildren;
    /** Shown beside the title, such as `12 of 40`. */
    count?: ComponentChildren | undefined;
    actions?: ComponentChildren | undefined;
    /** A row below the header. */
    filters?: ComponentChildren | undefined;
    /** Filters beside those; on phones behind a button. */
    moreFilters?: ComponentChildren | undefined;
    fill?: boolean | undefined;
    children: ComponentChildren;
  },
): VNode {
  const [isOpen, setOpen] = useState(false);
  const isNarrow = useIsNarrow();
  return (
    <div class={`page ${fill ? "fill" : ""}`}>
      <header class="page-head">
        <h1>{title}</h1>
        {count !== undefined && <span class="count">{count}</span>}
        {actions && <div class="actions">{actions}</div>}
      </header>
      {(filters || moreFilters) && (
        <div class="filters">
          {filters}
          {moreFilters && isNarrow && (
            <span class="filter-toggle">
              <Button
                icon="filter"
                label={isOpen ? "Fewer filters" : "More filters"}
                pressed={isOpen}
                onPress={() => setOpen(!isOpen)}
              />
            </span>
          )}
          {(!isNarrow || isOpen) && moreFilters}
        </div>
      )}
      <div class="page-body">{children}</div>
    </div>
  );
}

/** A framed part of a page. `flush`: without padding. */
export function Panel(
  { title, actions, flush, children }: {
    title?: ComponentChildren | undefined;
    actions?: ComponentChildren | undefined;
    flush?: boolean | undefined;
    children: ComponentChildren;
  },
): VNode {
  const id = useId();
  return (
    <section class={`panel ${flush ? "flush" : ""}`} aria-labelledby={title ? id : undefined}>
      {(title || actions) && (
        <header>
          <h2 id={id}>{title}</h2>
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      <div class="panel-body">{children}</div>
    </section>
  );
}

/** The detail view of a selected row, beside the list, on phones over it. Escape closes it. */
export function Detail(
  { title, label, wide, actions, onClose, children }: {
    title: ComponentChildren;
    /** Read by screen readers, such as `Worker shop`. */
    label: string;
    wide?: boolean | undefined;
    actions?: ComponentChildren | undefined;
    onClose: () => void;
    children: ComponentChildren;
  },
): VNode {
  const box = useRef<HTMLElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => {
    const down = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      const inside = event.target as Element;
      if (document.querySelector("dialog[open]") || inside.closest("input, textarea, select")) {
        return;
      }
      close.current();
    };
    document.addEventListener("keydown", down);
    return () => document.removeEventListener("keydown", down);
  }, []);
  useEffect(() => {
    // On phones the list is hidden now, and must not keep the focus.
    if (matchMedia("(max-width: 760px)").matches) box.current?.focus();
  }, [label]);
  return (
    <aside
      ref={box}
      tabIndex={-1}
      class={`detail ${wide ? "wide" : ""}`}
      aria-label={label}
    >
      <header>
        <h2>{title}</h2>
        <div class="actions">
          {actions}
          <Button kind="bare" icon="close" label="Close" onPress={onClose} />
        </div>
      </header>
      <div class="detail-body">{children}</div>
    </aside>
  );
}

/** A list and its {@linkcode Detail}, side by side. */
export function Split(
  { children, detail }: { children: ComponentChildren; detail?: ComponentChildren },
): VNode {
  return (
    <div class={`split ${detail ? "open" : ""}`}>
      <div class="split-main">{children}</div>
      {detail}
    </div>
  );
}

/** One of {@linkcode Tabs}. */
interface Tab {
  readonly id: string;
  readonly title: ComponentChildren;
  readonly count?: number | undefined;
}

/** Several views of one thing, one at a time. The arrow keys switch between them. */
export function Tabs(
  { label, tabs, value, onChange, children }: {
    label: string;
    tabs: readonly Tab[];
    value: string;
    onChange: (id: string) => void;
    /** The content of the selected tab. */
    children: ComponentChildren;
  },
): VNode {
  const id = useId();
  const step = (by: number) => {
    const at = tabs.findIndex((tab) => tab.id === value);
    const next = tabs[(at + by + tabs.length) % tabs.length];
    if (next === undefined) return;
    onChange(next.id);
    document.getElementById(`${id}-${next.id}`)?.focus();
  };
  return (
    <div class="tabs">
      <div
        role="tablist"
        aria-label={label}
        onKeyDown={({ key }) => {
          if (key === "ArrowRight") step(1);
          if (key === "ArrowLeft") step(-1);
        }}
      >
        {tabs.map((tab) => (
          <button
            type="button"
            role="tab"
            key={tab.id}
            id={`${id}-${tab.id}`}
            aria-selected={tab.id === value}
            aria-controls={`${id}-panel`}
            tabIndex={tab.id === value ? 0 : -1}
            onClick={() => onChange(tab.id)}
          >
            {tab.title}
            {tab.count !== undefined && <span class="count">{tab.count}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} class="tab-body" aria-labelledby={`${id}-${value}`}>
        {children}
      </div>
    </div>
  );
}

/** Shown in place of missing content: what would be here, and what to do next. */
export function Empty(
  { icon = "info", title, action, children }: {
    icon?: IconName | undefined;
    title: string;
    action?: ComponentChildren | undefined;
    children?: ComponentChildren | undefined;
  },
): VNode {
  return (
    <div class="empty">
      <Icon name={icon} size={28} />
      <h3>{title}</h3>
      {children && <div class="empty-text">{children}</div>}
      {action}
    </div>
  );
}

/** Why a query failed, and a button that retries it. */
export function Failed(
  { what, error, retry }: { what: string; error: CallFailure | null; retry?: () => void },
): VNode {
  return (
    <Empty
      icon="warning"
      title={what}
      action={retry && <Button icon="restart" onPress={retry}>Try again</Button>}
    >
      {error && (
        <p>
          <code class="code">{error.code}</code> {error.message}
        </p>
      )}
    </Empty>
  );
}

/** Grey bars in place of content that is loading. */
export function Skeleton({ rows = 6 }: { rows?: number }): VNode {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => <i key={row} />)}
    </div>
  );
}

/** Names and values, one pair per line. `null` values are left out. */
export function Pairs(
  { pairs }: { pairs: readonly (readonly [name: string, value: ComponentChildren])[] },
): VNode {
  return (
    <dl class="pairs">
      {pairs.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** An important number with its name. */
export function Stat(
  { label, value, tone, to, children }: {
    label: string;
    value: ComponentChildren;
    tone?: Tone | undefined;
    /** The address of the page that shows more of it. */
    to?: string | undefined;
    /** Such as a sparkline. */
    children?: ComponentChildren | undefined;
  },
): VNode {
  const content = (
    <>
      <span class="stat-label">{label}</span>
      <span class="stat-value">{value}</span>
      {children}
    </>
  );
  const name = `stat ${tone ?? ""}`;
  return to === undefined
    ? <div class={name}>{content}</div>
    : <Link class={name} to={to}>{content}</Link>;
}

/** A modal dialog. Escape and a click beside it close it. */
export function Dialog(
  { label, class: name, onClose, children }: {
    /** Read by screen readers. */
    label: string;
    class: string;
    onClose: () => void;
    children: ComponentChildren;
  },
): VNode {
  const box = useRef<HTMLDialogElement>(null);
  // Before the next key, which may be typed into the dialog already.
  useLayoutEffect(() => {
    box.current!.showModal();
    return () => box.current?.close();
  }, []);
  return (
    <dialog
      ref={box}
      class={name}
      aria-label={label}
      onClose={onClose}
      onClick={(event) => event.target === event.currentTarget && onClose()}
    >
      {children}
    </dialog>
  );
}

/** Whether the page is laid out for phones, as in the style sheet. */
export function useIsNarrow(): boolean {
  return useMediaQuery("(max-width: 760px)");
}
