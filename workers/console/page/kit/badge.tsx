/**
 * Small marks: a state in words, a coloured dot, a code.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";

/** What a colour means; the same everywhere. */
export type Tone = "neutral" | "ok" | "warn" | "bad" | "info" | "accent";

/** A word on its colour. */
export function Badge(
  { tone = "neutral", dot = false, title, children }: {
    tone?: Tone | undefined;
    /** A dot before the word. */
    dot?: boolean | undefined;
    title?: string | undefined;
    children: ComponentChildren;
  },
): VNode {
  return (
    <span class={`badge ${tone}`} title={title}>
      {dot && <i class="dot" />}
      {children}
    </span>
  );
}

/** A dot alone; `label` says what it means. `pulse`: something goes on. */
export function Dot({ tone, label, pulse }: { tone: Tone; label: string; pulse?: boolean }): VNode {
  return <i class={`dot ${tone} ${pulse ? "pulse" : ""}`} role="img" aria-label={label} />;
}

/** An id or a code, in the fixed-width face. */
export function Code({ children, title }: { children: ComponentChildren; title?: string }): VNode {
  return <code class="code" title={title}>{children}</code>;
}

/** A key of the keyboard. */
export function Key({ children }: { children: ComponentChildren }): VNode {
  return <kbd class="key">{children}</kbd>;
}
