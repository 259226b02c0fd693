/**
 * JSON values: a tree that shows one, and a field that edits one as text.
 *
 * Values come from any worker, so they are rendered as text only, never as markup.
 *
 * @module
 */
import type { JSX, VNode } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import { Button, CopyButton } from "./controls.tsx";
import { type ParsedJson, parseJson, visibleJson } from "./json.ts";

/** Members of an object or array that are shown at first. */
const MEMBERS_SHOWN = 100;
/** Characters of a text that are shown at first. */
const CHARS_SHOWN = 2_000;

/** A value as a tree. `depth`: how many levels are open at first. */
export function JsonView(
  { value, depth = 2, label, copy = true }: {
    value: Json;
    depth?: number | undefined;
    /** Read by screen readers. */
    label: string;
    copy?: boolean | undefined;
  },
): VNode {
  return (
    <div class="json" role="group" aria-label={label} tabIndex={0}>
      {copy && <CopyButton text={() => JSON.stringify(value, null, 2)} />}
      <Node value={value} depth={depth} />
    </div>
  );
}

function Node({ name, value, depth }: { name?: string; value: Json; depth: number }): VNode {
  if (value === null || typeof value !== "object" || sizeOf(value) === 0) {
    return (
      <div class="json-line">
        {nameOf(name)}
        <Leaf value={value} />
      </div>
    );
  }
  return <Branch value={value} depth={depth} {...name !== undefined && { name }} />;
}

function Branch(
  { name, value, depth }: { name?: string; value: Exclude<Json, null>; depth: number },
): VNode {
  const [open, setOpen] = useState(depth > 0);
  const [shown, setShown] = useState(MEMBERS_SHOWN);
  const members = open ? Object.entries(value).slice(0, shown) : [];
  const size = sizeOf(value);
  const isList = Array.isArray(value);
  return (
    <div class="json-branch">
      <button type="button" class="json-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <i class={open ? "twist open" : "twist"} />
        {nameOf(name)}
        <span class="json-mark">{isList ? `[${size}]` : `{${size}}`}</span>
        {!open && <span class="json-hint">{preview(value)}</span>}
      </button>
      {open && (
        <div class="json-members">
          {members.map(([key, member]) => (
            <Node key={key} name={key} value={member as Json} depth={depth - 1} />
          ))}
          {size > shown && (
            <button
              type="button"
              class="json-more"
              onClick={() => setShown(shown * 4)}
            >
              {size - shown} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Leaf({ value }: { value: Json }): VNode {
  const [whole, setWhole] = useState(false);
  if (typeof value !== "string") {
    const kind = value === null ? "null" : typeof value;
    return <span class={`json-${kind}`}>{visibleJson(value)}</span>;
  }
  const cut = !whole && value.length > CHARS_SHOWN;
  return (
    <span class="json-string">
      {visibleJson(cut ? value.slice(0, CHARS_SHOWN) : value)}
      {cut && (
        <button type="button" class="json-more" onClick={() => setWhole(true)}>
          {value.length - CHARS_SHOWN} characters more
        </button>
      )}
    </span>
  );
}

function nameOf(name: string | undefined): VNode | null {
  return name === undefined
    ? null
    : <span class="json-name">{visibleJson(name).slice(1, -1)}</span>;
}

/** The first members, each cut to a few characters. */
function preview(value: Exclude<Json, null>): string {
  const parts = Object.entries(value).slice(0, 4).map(([name, member]) => {
    const text = typeof member === "object" && member !== null ? "…" : visibleJson(member);
    return Array.isArray(value) ? text.slice(0, 24) : `${name}: ${text.slice(0, 24)}`;
  });
  return parts.join(", ");
}

function sizeOf(value: Exclude<Json, null>): number {
  return Object.keys(value).length;
}

/** A text area for JSON that shows at once where the text is invalid. */
export function JsonEdit(
  { label, text, onChange, rows = 8, error, onSubmit, empty }: {
    label: string;
    text: string;
    onChange: (text: string, parsed: ParsedJson) => void;
    rows?: number | undefined;
    /** An error of the valid value, such as from a schema. */
    error?: string | null | undefined;
    /** Ctrl-Enter. */
    onSubmit?: (() => void) | undefined;
    /** What an empty field means; left out: an error. */
    empty?: Json | undefined;
  },
): VNode {
  const id = useId();
  const parsed = useMemo(() => parseJson(text, empty), [text]);
  const wrong = parsed.ok ? error : parsed.message;
  const change = (fresh: string) => onChange(fresh, parseJson(fresh, empty));
  const keyDown = (event: JSX.TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onSubmit?.();
    }
  };
  return (
    <div class="field json-edit">
      <div class="json-edit-head">
        <label for={id}>{label}</label>
        <Button
          kind="bare"
          small
          disabled={!parsed.ok || text.trim() === ""}
          onPress={() => parsed.ok && change(JSON.stringify(parsed.value, null, 2))}
        >
          Format
        </Button>
      </div>
      <textarea
        id={id}
        class="input mono"
        rows={rows}
        value={text}
        spellcheck={false}
        aria-invalid={wrong ? true : undefined}
        aria-describedby={`${id}-said`}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={keyDown}
      />
      <p id={`${id}-said`} class={wrong ? "said bad" : "said"} aria-live="polite">
        {wrong ?? "Valid JSON"}
      </p>
    </div>
  );
}
