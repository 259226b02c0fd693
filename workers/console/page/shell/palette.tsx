/**
 * The command palette: pages, everything the pages can find, and what can be done from anywhere.
 *
 * The lists are watched only while it is open.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import { type Shell, useQuery, useShell } from "../kit/context.tsx";
import { Icon, type IconName, Key } from "../kit/icons.tsx";
import { Dialog } from "../kit/layout.tsx";
import type { ConsolePage, Finder } from "../kit/router.ts";

/** Entries that the palette shows. */
const ROWS_MAX = 50;

interface Entry {
  readonly kind: string;
  readonly icon: IconName;
  readonly text: string;
  readonly hint?: string | undefined;
  readonly run: () => void;
}

/** See the module. */
export function Palette(
  { pages, onClose, onKeys }: {
    pages: readonly ConsolePage[];
    onClose: () => void;
    onKeys: () => void;
  },
): VNode {
  const shell = useShell();
  const found = useSignal<Readonly<Record<string, readonly Entry[]>>>({});
  const finders = pages.flatMap((page) => (page.finders ?? []).map((finder) => ({ page, finder })));
  const entries = useMemo(
    () => [
      ...pageEntries(pages, shell),
      ...deeds(shell, onKeys),
      ...Object.values(found.value).flat(),
    ],
    [pages, found.value],
  );
  return (
    <Dialog label="Find anything" class="palette" onClose={onClose}>
      {finders.map(({ page, finder }) => (
        <Finding
          key={finder.kind}
          finder={finder}
          icon={page.icon}
          onFound={(list) => found.value = { ...found.value, [finder.kind]: list }}
        />
      ))}
      <Choose entries={entries} onClose={onClose} />
    </Dialog>
  );
}

/** The field and the list below it. The field keeps the focus; the arrows move in the list. */
function Choose({ entries, onClose }: { entries: readonly Entry[]; onClose: () => void }): VNode {
  const typed = useSignal("");
  const at = useSignal(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const shown = useMemo(
    () => bestFits(entries, typed.value, textOf, ROWS_MAX),
    [entries, typed.value],
  );
  const chosen = Math.min(at.value, shown.length - 1);
  useEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const run = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    onClose();
    entry.run();
  };
  const keyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) at.value = (chosen + step + shown.length) % Math.max(1, shown.length);
    else if (event.key === "Enter") run(shown[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div class="palette-field">
        <Icon name="search" />
        <input
          autofocus
          role="combobox"
          aria-label="Find anything"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={chosen < 0 ? undefined : `${id}-${chosen}`}
          placeholder="Pages, workers, functions, what to do"
          value={typed.value}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => {
            typed.value = event.currentTarget.value;
            at.value = 0;
          }}
          onKeyDown={keyDown}
        />
        <Key>Esc</Key>
      </div>
      <div class="palette-list" role="listbox" id={`${id}-list`} aria-label="Found" ref={list}>
        {shown.map((entry, index) => (
          <div
            key={`${entry.kind} ${entry.text}`}
            role="option"
            id={`${id}-${index}`}
            class="palette-row"
            aria-selected={index === chosen}
            onMouseMove={() => at.value = index}
            onClick={() => run(entry)}
          >
            <Icon name={entry.icon} />
            <span class="palette-text">{entry.text}</span>
            {entry.hint && <span class="palette-hint">{entry.hint}</span>}
            <span class="palette-kind">{entry.kind}</span>
          </div>
        ))}
      </div>
      {shown.length === 0 && <p class="palette-none">Nothing is called “{typed.value}”</p>}
    </>
  );
}

/** Watches one list and hands it on; draws nothing. */
function Finding(
  { finder, icon, onFound }: {
    finder: Finder;
    icon: IconName;
    onFound: (entries: readonly Entry[]) => void;
  },
): null {
  const { router } = useShell();
  const { items } = useQuery(finder.query, finder.on);
  useEffect(() => {
    const found = items.map(finder.find).filter((item) => item !== null);
    onFound(found.map(({ text, hint, to }) => {
      return { kind: finder.kind, icon, text, hint, run: () => router.go(to) };
    }));
  }, [items]);
  return null;
}

function pageEntries(pages: readonly ConsolePage[], { router }: Shell): Entry[] {
  return pages.map(({ title, icon, path, key }) => ({
    kind: "Page",
    icon,
    text: title,
    hint: `g ${key}`,
    run: () => router.go(path),
  }));
}

function deeds({ preferences, clipboard, toasts }: Shell, onKeys: () => void): Entry[] {
  const themes = ["light", "dark", "system"] as const;
  const icons = { light: "sun", dark: "moon", system: "screen" } as const;
  const copyLink = async () => {
    const done = await clipboard.copy(location.href);
    toasts.show(done ? "ok" : "bad", done ? "The link is copied" : "The browser does not copy");
  };
  return [
    ...themes.map((theme) => ({
      kind: "Do",
      icon: icons[theme],
      text: `Theme: ${theme}`,
      run: () => preferences.setTheme(theme),
    })),
    { kind: "Do", icon: "link", text: "Copy a link to this view", run: () => void copyLink() },
    { kind: "Do", icon: "keyboard", text: "Keyboard shortcuts", hint: "?", run: onKeys },
  ];
}

function textOf({ text }: Entry): string {
  return text;
}

/** How well it fits, the higher the better; `null`: not at all. Blank fits everything with 0. */
export function fitOf(text: string, typed: string): number | null {
  const wanted = typed.trim().toLowerCase();
  if (wanted === "") return 0;
  const lower = text.toLowerCase();
  const whole = lower.indexOf(wanted);
  if (whole >= 0) {
    const starts = whole === 0 ? 400 : isStart(lower, whole) ? 200 : 0;
    return 1_000 + starts - Math.min(300, text.length - wanted.length);
  }
  return scattered(lower, wanted);
}

/** The best of a list, the best first, at most `limit`. */
export function bestFits<T>(
  items: readonly T[],
  typed: string,
  textOf: (item: T) => string,
  limit: number,
): T[] {
  const fits: { item: T; fit: number; at: number }[] = [];
  items.forEach((item, at) => {
    const fit = fitOf(textOf(item), typed);
    if (fit !== null) fits.push({ item, fit, at });
  });
  fits.sort((a, b) => b.fit - a.fit || a.at - b.at);
  return fits.slice(0, limit).map(({ item }) => item);
}

function scattered(text: string, wanted: string): number | null {
  let at = -1, score = 0;
  for (const letter of wanted.replaceAll(/\s+/g, "")) {
    const found = text.indexOf(letter, at + 1);
    if (found < 0) return null;
    score += found === at + 1 ? 8 : isStart(text, found) ? 6 : -Math.min(6, found - at);
    at = found;
  }
  return score;
}

/** Whether a word starts there. */
function isStart(text: string, at: number): boolean {
  return at === 0 || /[^a-z0-9]/.test(text[at - 1]!);
}
