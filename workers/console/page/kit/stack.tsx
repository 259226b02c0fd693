/**
 * A stack as a block: the error, then one line per frame, those of libraries fainter.
 *
 * @module
 */
import type { VNode } from "preact";
import { CopyButton } from "./controls.tsx";

/** Frames that are no code of the person who reads: runtimes, packages, the SDKs. */
const LIBRARIES = new RegExp(
  "node_modules|(?:^|[\\s(])(?:ext|node|jsr|npm|deno):|site-packages|engine[_-]sdk|" +
    "/sdk/typescript/|/lib/python\\d",
);
/** A line that names a place in the code, as JavaScript and Python write it. */
const FRAME = /^\s*(?:at\s|File ")/;

/** A line of a stack. */
export interface StackLine {
  readonly text: string;
  /** The error itself, a frame of the person's code, or one of a library. */
  readonly kind: "error" | "own" | "library";
}

/** The lines of a stack; the line of code below a Python frame belongs to it. */
export function stackLines(text: string): StackLine[] {
  let kind: StackLine["kind"] = "error";
  return text.replace(/\s+$/, "").split(/\r?\n/).map((line) => {
    if (FRAME.test(line)) kind = LIBRARIES.test(line) ? "library" : "own";
    else if (!/^\s/.test(line)) kind = "error";
    return { text: line, kind };
  });
}

/** The first stack among the attributes of a span or of a log line; `null`: there is none. */
export function stackOf(attributes: Readonly<Record<string, unknown>>): string | null {
  for (const name of STACK_NAMES) {
    const value = attributes[name];
    if (typeof value === "string" && value.includes("\n")) return value;
  }
  return null;
}

/** Names under which SDKs and OpenTelemetry send a stack. */
export const STACK_NAMES = ["exception.stacktrace", "stacktrace", "stack", "error.stack"] as const;

/** A stack. */
export function Stack({ text, label = "Stack" }: { text: string; label?: string }): VNode {
  return (
    <div class="stack-block">
      <CopyButton text={() => text} label="Copy the stack" />
      <pre tabIndex={0} aria-label={label}>
        {stackLines(text).map(({ text, kind }, at) => (
          <span key={at} class={`stack-line ${kind}`}>{text || " "}</span>
        ))}
      </pre>
    </div>
  );
}
