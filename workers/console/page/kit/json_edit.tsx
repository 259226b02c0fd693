/**
 * A field for JSON that says at once where it is none.
 *
 * @module
 */
import type { JSX, VNode } from "preact";
import { useId, useMemo } from "preact/hooks";
import type { Json } from "../../../../sdk/typescript/wire/protocol.ts";
import { Button } from "./controls.tsx";
import { type ParsedJson, parseJson } from "./parse_json.ts";

/** Edits JSON text. What it parses to is told with every change. */
export function JsonEdit(
  { label, text, onChange, rows = 8, error, onSubmit, empty }: {
    label: string;
    text: string;
    onChange: (text: string, parsed: ParsedJson) => void;
    rows?: number | undefined;
    /** What is wrong with the value beyond its syntax, such as from a schema. */
    error?: string | null | undefined;
    /** Ctrl-Enter. */
    onSubmit?: (() => void) | undefined;
    /** What an empty field means; left out: it is wrong. */
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
