/**
 * A button that copies a text and says so.
 *
 * @module
 */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./controls.tsx";
import { useShell } from "./shell.ts";

/** How long the button shows that it has copied. */
const COPIED_MS = 1_500;

/** Copies what `text` gives when it is pressed. Without `children` it is an icon. */
export function CopyButton(
  { text, label = "Copy", children }: { text: () => string; label?: string; children?: string },
): VNode {
  const { clipboard, toasts } = useShell();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    if (!await clipboard.copy(text())) {
      toasts.show("bad", "The browser does not let the page copy");
      return;
    }
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <Button
      kind="bare"
      small
      icon={copied ? "check" : "copy"}
      label={copied ? "Copied" : label}
      onPress={() => void copy()}
    >
      {children}
    </Button>
  );
}
