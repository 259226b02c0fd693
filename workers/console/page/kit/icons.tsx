/**
 * Small marks: icons, badges, dots, codes, keys.
 *
 * Icons are strokes on a grid of 16 pixels, in the colour of the text around them.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";

const STROKES = {
  overview: "M2.5 9.5a5.5 5.5 0 0 1 11 0M8 9.5 10.8 6.2M2.5 12.5h11M4.6 9.5h.01M11.4 9.5h.01",
  workers: "M2.5 3.5h11v3.5h-11zM2.5 9h11v3.5h-11zM4.8 5.25h.01M4.8 10.75h.01",
  functions:
    "M6.5 13c-2 0-1.2-2.8-1.2-4S4 8 3.5 8c.5 0 1.8 0 1.8-1s-.8-4 1.2-4M9.5 3c2 0 1.2 2.8 " +
    "1.2 4S12 8 12.5 8c-.5 0-1.8 0-1.8 1s.8 4-1.2 4",
  triggers: "M8.8 2 3.5 9h4l-.8 5 5.8-7.5H8.3z",
  flow: "M3 3.5h3.5v3H3zM9.5 9.5H13v3H9.5zM4.75 6.5V11h4.75M6.5 5h4.75v4.5",
  traces: "M2.5 4h6M5 8h6M8.5 12h5",
  logs: "M3 3.5h10M3 6.5h7M3 9.5h10M3 12.5h5",
  metrics: "M2.5 12.5 6 8l2.5 2.5 5-6.5M2.5 2.5v11h11",
  state: "M3 4.2c0-1 2.2-1.7 5-1.7s5 .7 5 1.7-2.2 1.7-5 1.7-5-.7-5-1.7zM3 " +
    "4.2v7.6c0 1 2.2 1.7 5 1.7s5-.7 5-1.7V4.2M3 8c0 1 2.2 1.7 5 1.7S13 9 13 8",
  configuration: "M3 4.5h5M11 4.5h2M3 11.5h2M8 11.5h5M9.5 3v3M6.5 10v3M3 8h8M13 8h.01",
  settings: "M8 10.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM8 2v2M8 12v2M2 8h2M12 8h2M3.8 3.8l" +
    "1.4 1.4M10.8 10.8l1.4 1.4M12.2 3.8l-1.4 1.4M5.2 10.8l-1.4 1.4",
  streams: "M2 4.5c2 0 2 1.5 4 1.5s2-1.5 4-1.5 2 1.5 4 1.5M2 8c2 0 2 1.5 4 1.5S8 8 10 8s2 1.5 4 " +
    "1.5M2 11.5c2 0 2 1.5 4 1.5s2-1.5 4-1.5 2 1.5 4 1.5",
  queues: "M2.5 3.5h11v3h-11zM2.5 9.5h4.5v3h-4.5zM9.5 11h4M11.5 9l2 2-2 2",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 13.5 13.5",
  restart: "M13 8a5 5 0 1 1-1.7-3.75M13 2.5v3h-3",
  stop: "M4.5 4.5h7v7h-7z",
  play: "M5 3.5v9l7-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  close: "m4 4 8 8M12 4l-8 8",
  check: "m3 8.5 3.5 3.5L13 4.5",
  copy: "M5.5 5.5h7.5v7.5H5.5zM10.5 5.5V3H3v7.5h2.5",
  right: "m6 3.5 4.5 4.5L6 12.5",
  down: "m3.5 6 4.5 4.5L12.5 6",
  up: "m3.5 10 4.5-4.5 4.5 4.5",
  left: "M10 3.5 5.5 8l4.5 4.5",
  external: "M9 3h4v4M13 3 7.5 8.5M11 9.5V13H3V5h3.5",
  more: "M2.8 8a.7.7 0 1 0 1.4 0 .7.7 0 1 0-1.4 0zM7.3 8a.7.7 0 1 0 1.4 0 .7.7 0 1 0-1.4 0z" +
    "M11.8 8a.7.7 0 1 0 1.4 0 .7.7 0 1 0-1.4 0z",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2" +
    "M13.3 8h1.2M3.4 3.4l.85.85M11.75 11.75l.85.85M12.6 3.4l-.85.85M4.25 11.75l-.85.85",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  screen: "M2.5 3.5h11v7.5h-11zM6 13.5h4M8 11v2.5",
  warning: "M8 2.5 14 13H2zM8 6.5v3M8 11.3h.01",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5v3.5M8 5.2h.01",
  filter: "M2.5 3.5h11L9.5 8.5v4l-3-1.5V8.5z",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5 5 13h6l.5-8.5",
  edit: "M3 13v-2.5l7.5-7.5L13 5.5 5.5 13z",
  plus: "M8 3v10M3 8h10",
  send: "M13.5 2.5 7 9M13.5 2.5 9.5 13.5 7 9 2.5 6.5z",
  link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7",
  fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  keyboard: "M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5.5 9.3h5",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof STROKES;

/** An icon. Screen readers skip it, so there must be a text or a label beside it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }): VNode {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={STROKES[name]} />
    </svg>
  );
}

/** The meaning of a colour. */
export type Tone = "neutral" | "ok" | "warn" | "bad" | "info" | "accent";

/** A word on a coloured ground. */
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

/** A dot; `label` is its meaning. `pulse`: animated, for something that is running. */
export function Dot({ tone, label, pulse }: { tone: Tone; label: string; pulse?: boolean }): VNode {
  return <i class={`dot ${tone} ${pulse ? "pulse" : ""}`} role="img" aria-label={label} />;
}

/** An id or a code, in the monospace font. */
export function Code({ children, title }: { children: ComponentChildren; title?: string }): VNode {
  return <code class="code" title={title}>{children}</code>;
}

/** A key of the keyboard. */
export function Key({ children }: { children: ComponentChildren }): VNode {
  return <kbd class="key">{children}</kbd>;
}
