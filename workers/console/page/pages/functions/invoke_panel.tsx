/**
 * Calling a function from the page: the payload as form or JSON, the outcome, and earlier calls.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Ago,
  Badge,
  briefJson,
  Button,
  CallFailure,
  type CallOutcome,
  draftOfValue,
  emptyDraft,
  Field,
  fieldOf,
  type FilledIn,
  formatDuration,
  JsonView,
  Link,
  link,
  noFormReason,
  readValueDraft,
  Stack,
  switchMode,
  Time,
  useLive,
  useNow,
  useShell,
  type ValueDraft,
  ValueForm,
  withFieldDraft,
} from "../../kit/mod.ts";
import {
  addToHistory,
  forgetHistory,
  historyOf,
  type PastCall,
  readHistory,
  readTimeout,
} from "./call_draft.ts";

/** Progress messages of a call that are shown. */
const PROGRESS_MAX = 200;

/** The form of a call, its outcome, and earlier calls. */
export function InvokePanel({ invoke }: { invoke: Invoke }): VNode {
  return (
    <div class="invoke">
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          invoke.send();
        }}
      >
        <ValueForm filled={invoke} label="Payload" tried={invoke.tried} onSubmit={invoke.send} />
        <Send invoke={invoke} />
      </form>
      {invoke.run && <Outcome run={invoke.run} />}
      {invoke.past.length > 0 && <Past invoke={invoke} />}
    </div>
  );
}

function Send({ invoke }: { invoke: Invoke }): VNode {
  const { run, timeout, tried, read } = invoke;
  const isRunning = run?.state === "running";
  const wrongTimeout = readTimeout(timeout) === undefined;
  const count = read.problems.length;
  return (
    <div class="invoke-send">
      <Button kind="primary" icon="play" type="submit" busy={isRunning}>Call</Button>
      {isRunning && <Button icon="stop" onPress={invoke.cancel}>Cancel</Button>}
      {isRunning && <Elapsed since_ms={run.since_ms} />}
      {tried && count > 0 && (
        <span class="said bad" role="alert">
          {count === 1 ? "One thing has to be corrected" : `${count} things have to be corrected`}
        </span>
      )}
      <div class="invoke-timeout">
        <Field
          label="Timeout in ms"
          value={timeout}
          placeholder="30000"
          code
          error={wrongTimeout ? "must be a whole number from 1" : null}
          onChange={invoke.setTimeout}
        />
      </div>
    </div>
  );
}

function Elapsed({ since_ms }: { since_ms: number }): VNode {
  return (
    <span class="said num" role="status">
      running for {formatDuration(Math.max(0, useNow() - since_ms))}
    </span>
  );
}

/** The progress of a call, or its outcome. */
export function Outcome({ run }: { run: InvokeRun }): VNode | null {
  if (run.state === "running") return <Progress items={run.progress} />;
  const ended = run.state === "ended" ? run.outcome : run.failure;
  return (
    <section class="outcome" aria-label="Result" aria-live="polite">
      <header>
        {run.state === "ended"
          ? <Badge tone="ok" dot>done</Badge>
          : <Badge tone="bad" dot>{run.failure.code}</Badge>}
        <span class="num">{formatDuration(ended.duration_ms)}</span>
        {ended.trace_id !== null && (
          <Link to={link("/traces", ended.trace_id)} class="link">Show its trace</Link>
        )}
      </header>
      <Progress items={run.progress} />
      {run.state === "ended"
        ? <JsonView value={run.outcome.result} label="Result" depth={3} />
        : <Failure run={run} />}
    </section>
  );
}

function Failure({ run }: { run: Extract<InvokeRun, { state: "failed" }> }): VNode {
  const { details, stacktrace } = run.failure.body;
  return (
    <>
      <p class="outcome-message">{run.failure.message}</p>
      {details !== undefined && <JsonView value={details} label="Details" depth={3} />}
      {stacktrace !== undefined && (
        <details class="stack">
          <summary>Stack</summary>
          <Stack text={stacktrace} />
        </details>
      )}
    </>
  );
}

function Progress({ items }: { items: readonly Json[] }): VNode | null {
  if (items.length === 0) return null;
  return (
    <ol class="progress" aria-label="News from the call">
      {items.map((item, at) => (
        <li key={at}>
          <code>{briefJson(item)}</code>
        </li>
      ))}
    </ol>
  );
}

function Past({ invoke }: { invoke: Invoke }): VNode {
  return (
    <section class="past" aria-label="History of this browser">
      <header>
        <h3>History</h3>
        <Button kind="bare" small icon="trash" onPress={invoke.forget}>Clear</Button>
      </header>
      <ul>
        {invoke.past.map((call) => (
          <li key={`${call.at_ms} ${call.duration_ms}`}>
            <button type="button" onClick={() => invoke.take(call.payload)} title="Fill in again">
              <PastLine call={call} />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function PastLine({ call }: { call: PastCall }): VNode {
  const isOld = Date.now() - call.at_ms > 60_000;
  return (
    <>
      {call.error_code === null
        ? <Badge tone="ok">ok</Badge>
        : <Badge tone="bad">{call.error_code}</Badge>}
      <code>{briefJson(call.payload)}</code>
      <span class="num said">{formatDuration(call.duration_ms)}</span>
      <span class="said">{isOld ? <Ago ms={call.at_ms} /> : <Time ms={call.at_ms} />}</span>
    </>
  );
}

/** The function to call. */
interface InvokeTarget {
  readonly function_id: string;
  readonly namespace: string;
  /** JSON Schema of its payload, if it has one. */
  readonly schema: Json | undefined;
}

/** A running call, or the outcome of the last one. */
type InvokeRun =
  & { readonly progress: readonly Json[] }
  & (
    | { readonly state: "running"; readonly since_ms: number }
    | { readonly state: "ended"; readonly outcome: CallOutcome }
    | { readonly state: "failed"; readonly failure: CallFailure }
  );

/** A call that is being filled in, the running call, and earlier calls. */
interface Invoke extends FilledIn {
  /** Whether sending was tried. */
  readonly tried: boolean;
  readonly timeout: string;
  readonly run: InvokeRun | null;
  readonly past: readonly PastCall[];
  setTimeout(text: string): void;
  /** Fills in an earlier payload. */
  take(payload: Json): void;
  send(): void;
  cancel(): void;
  forget(): void;
}

/** The state of the form that calls a function. */
export function useInvoke({ function_id, namespace, schema }: InvokeTarget): Invoke {
  const { preferences } = useShell();
  const schemaText = JSON.stringify(schema);
  const field = useMemo(() => fieldOf(schema), [schemaText]);
  const [call, setCall] = useState<ValueDraft>(() => emptyDraft(field));
  const [tried, setTried] = useState(false);
  const [timeout, setTimeout] = useState("");
  const [history, setHistory] = useState(() => readHistory(preferences));
  const read = useMemo(() => readValueDraft(schema, field, call), [call, field, schemaText]);
  const { run, start, cancel } = useRun((past) => setHistory(addToHistory(preferences, past)));
  const send = () => {
    setTried(true);
    const timeout_ms = readTimeout(timeout);
    if (read.problems.length > 0 || timeout_ms === undefined) return;
    start({ function_id, namespace, payload: read.payload, timeout_ms });
  };
  return {
    ...call,
    field,
    noFormReason: noFormReason(field, call),
    read,
    tried,
    timeout,
    run,
    past: historyOf(history, namespace, function_id),
    setMode: (mode) => setCall(switchMode(field, call, mode, read)),
    change: (path, draft) => setCall((call) => withFieldDraft(field, call, path, draft)),
    write: (text) => setCall((call) => ({ ...call, text })),
    setTimeout,
    take: (payload) => {
      setCall(draftOfValue(field, payload));
      setTried(false);
    },
    send,
    cancel,
    forget: () => setHistory(forgetHistory(preferences, namespace, function_id)),
  };
}

/** A call to start. */
interface CallToStart {
  readonly function_id: string;
  readonly namespace: string;
  readonly payload: Json | undefined;
  readonly timeout_ms: number;
}

/** Runs one call at a time; `onEnd` is called with each outcome. */
function useRun(onEnd: (past: PastCall) => void): {
  run: InvokeRun | null;
  start: (call: CallToStart) => void;
  cancel: () => void;
} {
  const live = useLive();
  const [run, setRun] = useState<InvokeRun | null>(null);
  const abort = useRef<AbortController>();
  const start = ({ function_id, namespace, payload, timeout_ms }: CallToStart) => {
    if (run?.state === "running") return;
    const { signal } = abort.current = new AbortController();
    let progress: readonly Json[] = [];
    setRun({ state: "running", since_ms: Date.now(), progress });
    const end = (run: InvokeRun, duration_ms: number, error_code: string | null) => {
      setRun(run);
      const at_ms = Date.now();
      onEnd({ function_id, namespace, payload: payload ?? null, at_ms, duration_ms, error_code });
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
