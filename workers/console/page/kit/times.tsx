/**
 * Times as components: how long ago, and exactly when on pointing at it.
 *
 * @module
 */
import type { VNode } from "preact";
import { formatAgo, formatDateTime, formatSpan, formatTime } from "./format.ts";
import { useNow } from "./shell.ts";

/** `12 s ago`, counting on. */
export function Ago({ ms }: { ms: number }): VNode {
  return <Stamp ms={ms} text={formatAgo(ms, useNow())} />;
}

/** How long since then: `3 h`, counting on. */
export function Since({ ms }: { ms: number }): VNode {
  return <Stamp ms={ms} text={formatSpan(useNow() - ms)} />;
}

/** The time of day; `fine` with milliseconds. */
export function Time({ ms, fine = false }: { ms: number; fine?: boolean }): VNode {
  return <Stamp ms={ms} text={formatTime(ms, fine)} />;
}

function Stamp({ ms, text }: { ms: number; text: string }): VNode {
  const at = Number.isFinite(ms) ? new Date(ms).toISOString() : "";
  return <time class="num" dateTime={at} title={formatDateTime(ms, true)}>{text}</time>;
}
