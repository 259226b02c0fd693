/**
 * One function about to be called: what was filled in, the call that runs, what came of it.
 *
 * @module
 */
import { useMemo, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { CallFailure, type CallOutcome, useLive, useShell } from "../../kit/mod.ts";
import {
  type CallDraft,
  callOf,
  emptyCall,
  inMode,
  noFormBecause,
  readCall,
  readTimeout,
  withField,
} from "./call_draft.ts";
import type { Draft, ReadDraft } from "./form_draft.ts";
import {
  addToHistory,
  forgetHistory,
  historyOf,
  type PastCall,
  readHistory,
} from "./invoke_history.ts";
import type { JsonPath } from "./schema_fit.ts";
import { type Field, fieldOf } from "./schema_form.ts";

/** Progress messages of a call that are shown. */
const PROGRESS_MAX = 200;

/** Which function. */
export interface InvokeTarget {
  readonly function_id: string;
  readonly namespace: string;
  /** JSON Schema of its payload; `undefined`: it says nothing. */
  readonly schema: Json | undefined;
}

/** A call on its way, or how the last one ended. */
export type InvokeRun =
  & { readonly progress: readonly Json[] }
  & (
    | { readonly state: "running"; readonly since_ms: number }
    | { readonly state: "ended"; readonly outcome: CallOutcome }
    | { readonly state: "failed"; readonly failure: CallFailure }
  );

/** See the module. */
export interface Invoke extends CallDraft {
  readonly field: Field;
  /** Why the payload cannot be shown as a form; `null`: it can. */
  readonly noForm: string | null;
  /** What would be sent, and what is wrong with it. */
  readonly read: ReadDraft;
  /** The person tried to send. */
  readonly tried: boolean;
  readonly timeout: string;
  readonly run: InvokeRun | null;
  readonly past: readonly PastCall[];
  setMode(mode: CallDraft["mode"]): void;
  change(path: JsonPath, draft: Draft): void;
  write(text: string): void;
  setTimeout(text: string): void;
  /** Fills in a payload from before. */
  take(payload: Json): void;
  send(): void;
  cancel(): void;
  forget(): void;
}

/** See the module. */
export function useInvoke({ function_id, namespace, schema }: InvokeTarget): Invoke {
  const { preferences } = useShell();
  const shape = JSON.stringify(schema);
  const field = useMemo(() => fieldOf(schema), [shape]);
  const [call, fill] = useState<CallDraft>(() => emptyCall(field));
  const [tried, setTried] = useState(false);
  const [timeout, setTimeout] = useState("");
  const [kept, keep] = useState(() => readHistory(preferences));
  const read = useMemo(() => readCall(schema, field, call), [call, field, shape]);
  const { run, start, cancel } = useRun((past) => keep(addToHistory(preferences, past)));
  const send = () => {
    setTried(true);
    const timeout_ms = readTimeout(timeout);
    if (read.problems.length > 0 || timeout_ms === undefined) return;
    start({ function_id, namespace, payload: read.payload, timeout_ms });
  };
  return {
    ...call,
    field,
    noForm: noFormBecause(field, call),
    read,
    tried,
    timeout,
    run,
    past: historyOf(kept, namespace, function_id),
    setMode: (mode) => fill(inMode(field, call, mode, read)),
    change: (path, draft) => fill((call) => withField(field, call, path, draft)),
    write: (text) => fill((call) => ({ ...call, text })),
    setTimeout,
    take: (payload) => {
      fill(callOf(field, payload));
      setTried(false);
    },
    send,
    cancel,
    forget: () => keep(forgetHistory(preferences, namespace, function_id)),
  };
}

/** A call to make. */
interface Started {
  readonly function_id: string;
  readonly namespace: string;
  readonly payload: Json | undefined;
  readonly timeout_ms: number;
}

/** Makes one call at a time; `over` hears how each ended. */
function useRun(over: (past: PastCall) => void): {
  run: InvokeRun | null;
  start: (call: Started) => void;
  cancel: () => void;
} {
  const live = useLive();
  const [run, setRun] = useState<InvokeRun | null>(null);
  const abort = useRef<AbortController>();
  const start = ({ function_id, namespace, payload, timeout_ms }: Started) => {
    if (run?.state === "running") return;
    const { signal } = abort.current = new AbortController();
    let progress: readonly Json[] = [];
    setRun({ state: "running", since_ms: Date.now(), progress });
    const end = (run: InvokeRun, duration_ms: number, error_code: string | null) => {
      setRun(run);
      const at_ms = Date.now();
      over({ function_id, namespace, payload: payload ?? null, at_ms, duration_ms, error_code });
    };
    const onProgress = (data: Json) => {
      progress = [...progress, data].slice(-PROGRESS_MAX);
      setRun((run) => run?.state === "running" ? { ...run, progress } : run);
    };
    live.callFully(function_id, payload, { namespace, timeout_ms, signal, onProgress }).then(
      (outcome) => end({ state: "ended", outcome, progress }, outcome.duration_ms, null),
      (thrown: unknown) => {
        if (!(thrown instanceof CallFailure)) throw thrown;
        end({ state: "failed", failure: thrown, progress }, thrown.duration_ms, thrown.code);
      },
    );
  };
  return { run, start, cancel: () => abort.current?.abort() };
}
