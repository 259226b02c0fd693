/**
 * One function about to be called: what was filled in, the call that runs, what came of it.
 *
 * Form and JSON are two views of one payload; changing the view takes over what was typed, as far
 * as the other can show it.
 *
 * @module
 */
import { useMemo, useRef, useState } from "preact/hooks";
import { CALL_TIMEOUT_MS, CONSOLE_PROGRESS_MAX } from "../../../../sdk/typescript/limits.ts";
import type { Json } from "../../../../sdk/typescript/protocol.ts";
import { CallFailure, type CallOutcome, parseJson, useLive, useShell } from "../kit/mod.ts";
import {
  type Draft,
  draftOf,
  fitsForm,
  type ReadDraft,
  readDraft,
  withDraft,
} from "../model/form_draft.ts";
import {
  addToHistory,
  forgetHistory,
  historyOf,
  type PastCall,
  readHistory,
} from "../model/invoke_history.ts";
import { type JsonPath, misfitsOf } from "../model/schema_fit.ts";
import { type Field, fieldOf } from "../model/schema_form.ts";

/** Which call. */
export interface InvokeTarget {
  readonly function_id: string;
  readonly namespace: string;
  /** JSON Schema of its payload; `undefined`: it says nothing. */
  readonly schema: Json | undefined;
}

/** A call on its way, or how the last one ended. */
export type InvokeRun =
  | { readonly state: "running"; readonly since_ms: number; readonly progress: readonly Json[] }
  | { readonly state: "ended"; readonly outcome: CallOutcome; readonly progress: readonly Json[] }
  | {
    readonly state: "failed";
    readonly failure: CallFailure;
    readonly progress: readonly Json[];
  };

/** See the module. */
export interface Invoke {
  readonly field: Field;
  readonly mode: "form" | "json";
  /** Why the payload cannot be shown as a form; `null`: it can. */
  readonly noForm: string | null;
  readonly draft: Draft;
  readonly text: string;
  /** What would be sent, and what is wrong with it. */
  readonly read: ReadDraft;
  readonly tried: boolean;
  readonly timeout: string;
  readonly run: InvokeRun | null;
  readonly past: readonly PastCall[];
  setMode(mode: "form" | "json"): void;
  change(path: JsonPath, draft: Draft): void;
  write(text: string): void;
  setTimeout(text: string): void;
  /** Fills in a payload from before. */
  take(payload: Json): void;
  send(): void;
  cancel(): void;
  forget(): void;
}

interface Filled {
  readonly mode: "form" | "json";
  readonly draft: Draft;
  readonly text: string;
}

/** See the module. */
export function useInvoke({ function_id, namespace, schema }: InvokeTarget): Invoke {
  const { preferences } = useShell();
  const live = useLive();
  const shape = JSON.stringify(schema);
  const field = useMemo(() => fieldOf(schema), [shape]);
  const [filled, fill] = useState<Filled>(() => first(field));
  const [tried, setTried] = useState(false);
  const [timeout, setTimeout] = useState("");
  const [run, setRun] = useState<InvokeRun | null>(null);
  const [kept, keep] = useState(() => readHistory(preferences));
  const abort = useRef<AbortController>();
  const read = useMemo(() => readFilled(filled, field, schema), [filled, field, shape]);
  const noForm = filled.mode === "json" ? formProblem(field, filled.text) : null;

  const send = () => {
    setTried(true);
    const limit = readTimeout(timeout);
    if (read.problems.length > 0 || limit === undefined || run?.state === "running") return;
    const started = new AbortController();
    abort.current = started;
    let progress: readonly Json[] = [];
    setRun({ state: "running", since_ms: Date.now(), progress });
    const ended = (next: InvokeRun, duration_ms: number, error_code: string | null) => {
      if (abort.current !== started) return;
      setRun(next);
      const payload = read.payload ?? null;
      const call = { function_id, namespace, payload, at_ms: Date.now(), duration_ms, error_code };
      keep(addToHistory(preferences, call));
    };
    live.callFully(function_id, read.payload, {
      namespace,
      timeout_ms: limit,
      signal: started.signal,
      onProgress: (data) => {
        progress = [...progress, data].slice(-CONSOLE_PROGRESS_MAX);
        setRun((run) => run?.state === "running" ? { ...run, progress } : run);
      },
    }).then(
      (outcome) => ended({ state: "ended", outcome, progress }, outcome.duration_ms, null),
      (thrown: unknown) => {
        if (!(thrown instanceof CallFailure)) throw thrown;
        ended({ state: "failed", failure: thrown, progress }, thrown.duration_ms, thrown.code);
      },
    );
  };

  return {
    field,
    ...filled,
    noForm,
    read,
    tried,
    timeout,
    run,
    past: historyOf(kept, namespace, function_id),
    setMode: (mode) => fill(inMode(mode, filled, field, read)),
    change: (path, draft) =>
      fill((now) => ({ ...now, draft: withDraft(field, now.draft, path, draft) })),
    write: (text) => fill((now) => ({ ...now, text })),
    setTimeout,
    take: (payload) => {
      fill(fitsForm(field, payload) ? asForm(field, payload) : asJson(payload));
      setTried(false);
    },
    send,
    cancel: () => abort.current?.abort(),
    forget: () => keep(forgetHistory(preferences, namespace, function_id)),
  };
}

/** A limit as typed; `undefined`: it is none. */
export function readTimeout(text: string): number | undefined {
  if (text.trim() === "") return CALL_TIMEOUT_MS;
  const ms = Number(text);
  return Number.isInteger(ms) && ms > 0 && ms <= 604_800_000 ? ms : undefined;
}

function first(field: Field): Filled {
  // A form of one JSON field is the JSON view with fewer lines.
  return field.kind === "json" ? asJson({}) : asForm(field, undefined);
}

function asForm(field: Field, payload: Json | undefined): Filled {
  return { mode: "form", draft: draftOf(field, payload), text: "" };
}

function asJson(payload: Json): Filled {
  return { mode: "json", draft: undefined, text: JSON.stringify(payload, null, 2) };
}

function inMode(mode: "form" | "json", filled: Filled, field: Field, read: ReadDraft): Filled {
  if (mode === filled.mode) return filled;
  if (mode === "json") return asJson(read.payload ?? {});
  const parsed = parseJson(filled.text, {});
  return parsed.ok ? asForm(field, parsed.value) : filled;
}

function readFilled(filled: Filled, field: Field, schema: Json | undefined): ReadDraft {
  if (filled.mode === "form") return readDraft(schema, field, filled.draft);
  if (filled.text.trim() === "") return { payload: undefined, problems: fitNull(schema) };
  const parsed = parseJson(filled.text);
  if (!parsed.ok) return { payload: undefined, problems: [{ path: [], message: parsed.message }] };
  const problems = schema === undefined ? [] : misfitsOf(schema, parsed.value);
  return { payload: parsed.value, problems };
}

/** A payload that is left out is taken as null. */
function fitNull(schema: Json | undefined): ReadDraft["problems"] {
  return schema === undefined ? [] : misfitsOf(schema, null);
}

function formProblem(field: Field, text: string): string | null {
  if (field.kind === "json") return "The function does not say what it takes";
  const parsed = parseJson(text, {});
  if (!parsed.ok) return "This is not JSON yet";
  return fitsForm(field, parsed.value) ? null : "The form cannot show all of this payload";
}
