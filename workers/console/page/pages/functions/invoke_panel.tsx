/**
 * Calling a function from the page: form or JSON, the result, and what was called before.
 *
 * @module
 */
import type { VNode } from "preact";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  Ago,
  Badge,
  Button,
  Field,
  formatDuration,
  JsonEdit,
  JsonView,
  Link,
  link,
  Segments,
  Time,
  useNow,
} from "../../kit/mod.ts";
import { readTimeout } from "./call_draft.ts";
import { placeName } from "./form_draft.ts";
import type { PastCall } from "./invoke_history.ts";
import type { Misfit } from "./schema_fit.ts";
import { briefly } from "../state/entries.ts";
import { FormFields } from "./form_fields.tsx";
import type { Invoke, InvokeRun } from "./use_invoke.ts";

const MODES = [{ value: "form", label: "Form" }, { value: "json", label: "JSON" }];

/** Everything about calling one function. */
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
        <Payload invoke={invoke} />
        <Send invoke={invoke} />
      </form>
      {invoke.run && <Outcome run={invoke.run} />}
      {invoke.past.length > 0 && <Past invoke={invoke} />}
    </div>
  );
}

function Payload({ invoke }: { invoke: Invoke }): VNode {
  const { mode, field, read, tried } = invoke;
  const elsewhere = read.problems.filter(({ path }) => mode === "json" || path.length === 0);
  const isParsed = mode === "form" || read.payload !== undefined;
  return (
    <>
      {field.kind !== "json" && (
        <div class="invoke-mode">
          <Segments
            label="How to fill in the payload"
            value={mode}
            choices={MODES}
            onChange={(mode) => invoke.noForm === null && invoke.setMode(mode as "form" | "json")}
          />
          {invoke.noForm !== null && <span class="said">{invoke.noForm}</span>}
        </div>
      )}
      {mode === "form"
        ? (
          <FormFields
            field={field}
            draft={invoke.draft}
            problems={read.problems}
            tried={tried}
            onChange={invoke.change}
            onSubmit={invoke.send}
          />
        )
        : (
          <JsonEdit
            label="Payload"
            text={invoke.text}
            rows={6}
            empty={null}
            error={isParsed && elsewhere[0] ? problemText(elsewhere[0]) : null}
            onChange={invoke.write}
            onSubmit={invoke.send}
          />
        )}
      {tried && elsewhere.length > (mode === "json" ? 1 : 0) && field.kind === "object" && (
        <ul class="problems">
          {elsewhere.map((problem) => <li key={problemText(problem)}>{problemText(problem)}</li>)}
        </ul>
      )}
    </>
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
          label="Time-out in ms"
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

/** How a call goes or went. */
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
          <pre>{stacktrace}</pre>
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
          <code>{briefly(item)}</code>
        </li>
      ))}
    </ol>
  );
}

function Past({ invoke }: { invoke: Invoke }): VNode {
  return (
    <section class="past" aria-label="Called before from this browser">
      <header>
        <h3>Called before</h3>
        <Button kind="bare" small icon="trash" onPress={invoke.forget}>Forget</Button>
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
      <code>{briefly(call.payload)}</code>
      <span class="num said">{formatDuration(call.duration_ms)}</span>
      <span class="said">{isOld ? <Ago ms={call.at_ms} /> : <Time ms={call.at_ms} />}</span>
    </>
  );
}

function problemText({ path, message }: Misfit): string {
  return `${placeName(path)} ${message}`;
}
