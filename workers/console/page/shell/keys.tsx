/**
 * Keyboard shortcuts: which keys do what, and the dialog that lists them.
 *
 * @module
 */
import type { VNode } from "preact";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { useShell } from "../kit/context.tsx";
import { Button } from "../kit/controls.tsx";
import { Key } from "../kit/icons.tsx";
import { Dialog } from "../kit/layout.tsx";
import type { ConsolePage } from "../kit/router.ts";

/** Time within which the second key of a chord follows the first. */
export const CHORD_MS = 1_200;

const GENERAL = [
  ["Ctrl K", "Find anything"],
  ["/", "Search on this page"],
  ["↑ ↓", "Move in a list (also j and k)"],
  ["Enter", "Open the row"],
  ["Esc", "Close what is open"],
  ["?", "This list"],
] as const;

/**
 * Listens to the keyboard shortcuts of the app; `openDialog` opens the palette or the list of keys.
 */
export function useKeys(
  pages: readonly ConsolePage[],
  openDialog: (dialog: "palette" | "keys") => void,
): void {
  const { router } = useShell();
  const chords = useMemo(() => {
    const places = pages.map((page) => [`g ${page.key}`, () => router.go(page.path)] as const);
    return new KeyChords({
      ...Object.fromEntries(places),
      "Ctrl+k": () => openDialog("palette"),
      "?": () => openDialog("keys"),
      "/": () => document.querySelector<HTMLInputElement>("[data-search]")?.focus(),
    });
  }, [pages, router]);
  // With the first rendering, so that no key is lost once the app is visible.
  useLayoutEffect(() => {
    const down = (event: KeyboardEvent) => {
      if (event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      const isTyping = (event.target as Element).closest("input, textarea, select") !== null;
      const isCommand = event.ctrlKey || event.metaKey;
      const press = { key: event.key, isCommand, isTyping, at_ms: event.timeStamp };
      if (chords.press(press)) event.preventDefault();
    };
    document.addEventListener("keydown", down);
    return () => document.removeEventListener("keydown", down);
  }, [chords]);
}

/** A key that was pressed. */
interface KeyPress {
  readonly key: string;
  /** With Ctrl, or Cmd on a Mac. */
  readonly isCommand: boolean;
  /** Into a field. */
  readonly isTyping: boolean;
  readonly at_ms: number;
}

/** Runs the functions that keys are bound to; a chord is a leader key followed by another. */
export class KeyChords {
  readonly #bindings: ReadonlyMap<string, () => void>;
  #leader: { readonly key: string; readonly at_ms: number } | undefined;

  /** Bindings are written `?`, `Ctrl+k` or `g w`. */
  constructor(bindings: Readonly<Record<string, () => void>>) {
    this.#bindings = new Map(Object.entries(bindings));
  }

  /** Handles a key; returns whether it is bound, so that the browser must ignore it. */
  press({ key, isCommand, isTyping, at_ms }: KeyPress): boolean {
    const leader = this.#leader;
    this.#leader = undefined;
    if (isCommand) return this.#run(`Ctrl+${key.toLowerCase()}`);
    if (isTyping) return false;
    if (leader !== undefined && at_ms - leader.at_ms <= CHORD_MS) {
      if (this.#run(`${leader.key} ${key}`)) return true;
    }
    if ([...this.#bindings.keys()].some((binding) => binding.startsWith(`${key} `))) {
      this.#leader = { key, at_ms };
      return true;
    }
    return this.#run(key);
  }

  #run(binding: string): boolean {
    const run = this.#bindings.get(binding);
    run?.();
    return run !== undefined;
  }
}

/** The list of all shortcuts. */
export function KeysDialog(
  { pages, onClose }: { pages: readonly ConsolePage[]; onClose: () => void },
): VNode {
  const places = pages.map((page) => [`g ${page.key}`, page.title] as const);
  return (
    <Dialog label="Keyboard" class="keys" onClose={onClose}>
      <header>
        <h2>Keyboard</h2>
        <Button kind="bare" icon="close" label="Close" onPress={onClose} />
      </header>
      <div class="keys-columns">
        <KeyList keys={GENERAL} />
        <KeyList keys={places} />
      </div>
    </Dialog>
  );
}

function KeyList({ keys }: { keys: readonly (readonly [string, string])[] }): VNode {
  return (
    <dl>
      {keys.map(([key, meaning]) => (
        <div key={key}>
          <dt>{key.split(" ").map((part) => <Key key={part}>{part}</Key>)}</dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}
