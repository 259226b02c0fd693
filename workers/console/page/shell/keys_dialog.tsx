/**
 * Lists the keys of the keyboard and what they do.
 *
 * @module
 */
import type { VNode } from "preact";
import { Key } from "../kit/badge.tsx";
import { Button } from "../kit/controls.tsx";
import type { ConsolePage } from "../kit/page_list.ts";
import { Dialog } from "./dialog.tsx";

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
