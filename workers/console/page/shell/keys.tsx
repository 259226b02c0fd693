/**
 * Which keys mean what: single ones, and a leader key followed by another.
 *
 * @module
 */
import type { VNode } from "preact";
import { Button } from "../kit/controls.tsx";
import { Key } from "../kit/icons.tsx";
import { Dialog } from "../kit/layout.tsx";
import type { ConsolePage } from "../kit/router.ts";

/** Time within which the second key of a chord follows the first. */
export const CHORD_MS = 1_200;

/** A key that went down. */
export interface KeyPress {
  readonly key: string;
  /** Ctrl, or Cmd on a Mac. */
  readonly command: boolean;
  /** The person is writing into a field. */
  readonly writing: boolean;
  readonly at_ms: number;
}

/** See the module. Bindings are written `?`, `Ctrl+k` or `g w`. */
export class KeyChords {
  readonly #bindings: ReadonlyMap<string, () => void>;
  #leader: { readonly key: string; readonly at_ms: number } | undefined;

  /** Makes one. */
  constructor(bindings: Readonly<Record<string, () => void>>) {
    this.#bindings = new Map(Object.entries(bindings));
  }

  /** Runs what a key is bound to; whether there was something, so that the browser does nothing. */
  press({ key, command, writing, at_ms }: KeyPress): boolean {
    const leader = this.#leader;
    this.#leader = undefined;
    if (command) return this.#run(`Ctrl+${key.toLowerCase()}`);
    if (writing) return false;
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

const EVERYWHERE = [
  ["Ctrl K", "Find anything"],
  ["/", "Search on this page"],
  ["↑ ↓", "Move in a list (also j and k)"],
  ["Enter", "Open the row"],
  ["Esc", "Close what is open"],
  ["?", "This list"],
] as const;

/** See the module. */
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
        <KeyList keys={EVERYWHERE} />
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
