/**
 * The command palette: finds pages, what the finders of pages list, and general commands.
 *
 * The lists are watched only while the palette is open.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import { type Shell, useOfferedQuery, useQuery, useShell } from "../kit/context.tsx";
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

/** The palette; `onKeys` opens the list of keyboard shortcuts. */
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
      ...commands(shell, onKeys),
      ...Object.values(found.value).flat(),
    ],
    [pages, found.value],
  );
  return (
    <Dialog label="Find anything" class="palette" onClose={onClose}>
      {finders.map(({ page, finder }) => (
        <FinderQuery
          key={finder.kind}
          finder={finder}
          icon={page.icon}
          onFound={(list) => found.value = { ...found.value, [finder.kind]: list }}
        />
      ))}
      <EntryList entries={entries} onClose={onClose} />
    </Dialog>
  );
}

/** Watches the list of a finder while the palette is open; renders nothing. */
function FinderQuery(
  { finder, icon, onFound }: {
    finder: Finder;
    icon: IconName;
    onFound: (entries: readonly Entry[]) => void;
  },
): null {
  const { router } = useShell();
  // Core functions are always there; those of built-in workers need not be.
  const useFinder = finder.query.function_id.startsWith("engine::") ? useQuery : useOfferedQuery;
  const { items } = useFinder(finder.query, finder.on);
  useEffect(() => {
    const found = items.map(finder.find).filter((item) => item !== null);
    onFound(found.map(({ text, hint, to }) => {
      return { kind: finder.kind, icon, text, hint, run: () => router.go(to) };
    }));
  }, [items]);
  return null;
}

/** The field and the entries that match it. The field keeps the focus; the arrow keys select. */
function EntryList(
  { entries, onClose }: { entries: readonly Entry[]; onClose: () => void },
): VNode {
  const typed = useSignal("");
  const at = useSignal(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const shown = useMemo(
    () => bestMatches(entries, typed.value, textOf, ROWS_MAX),
    [entries, typed.value],
  );
  const selected = Math.min(at.value, shown.length - 1);
  useEffect(() => {
    list.current?.children[selected]?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  const run = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    onClose();
    entry.run();
  };
  const keyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) at.value = (selected + step + shown.length) % Math.max(1, shown.length);
    else if (event.key === "Enter") run(shown[selected]);
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
          aria-activedescendant={selected < 0 ? undefined : `${id}-${selected}`}
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
            aria-selected={index === selected}
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

function pageEntries(pages: readonly ConsolePage[], { router }: Shell): Entry[] {
  return pages.map(({ title, icon, path, key }) => ({
    kind: "Page",
    icon,
    text: title,
    hint: `g ${key}`,
    run: () => router.go(path),
  }));
}

function commands({ preferences, clipboard, toasts }: Shell, onKeys: () => void): Entry[] {
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

/** The items whose text matches, the best match first, at most `limit`. */
export function bestMatches<T>(
  items: readonly T[],
  typed: string,
  textOf: (item: T) => string,
  limit: number,
): T[] {
  const matches: { item: T; score: number; at: number }[] = [];
  items.forEach((item, at) => {
    const score = matchScore(textOf(item), typed);
    if (score !== null) matches.push({ item, score, at });
  });
  matches.sort((a, b) => b.score - a.score || a.at - b.at);
  return matches.slice(0, limit).map(({ item }) => item);
}

/**
 * How well a text matches what was typed; `null`: not at all. Its letters must occur in order; the
 * closer together they are, the higher the score. A blank matches everything with 0.
 */
export function matchScore(text: string, typed: string): number | null {
  const wanted = typed.trim().toLowerCase();
  if (wanted === "") return 0;
  const lower = text.toLowerCase();
  const whole = lower.indexOf(wanted);
  if (whole >= 0) {
    const start = whole === 0 ? 400 : isWordStart(lower, whole) ? 200 : 0;
    return 1_000 + start - Math.min(300, text.length - wanted.length);
  }
  return scatteredScore(lower, wanted);
}

function scatteredScore(text: string, wanted: string): number | null {
  let at = -1, score = 0;
  for (const letter of wanted.replaceAll(/\s+/g, "")) {
    const found = text.indexOf(letter, at + 1);
    if (found < 0) return null;
    score += found === at + 1 ? 8 : isWordStart(text, found) ? 6 : -Math.min(6, found - at);
    at = found;
  }
  return score;
}

function isWordStart(text: string, at: number): boolean {
  return at === 0 || /[^a-z0-9]/.test(text[at - 1]!);
}
