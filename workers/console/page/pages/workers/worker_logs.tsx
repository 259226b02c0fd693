/**
 * The live log of one worker.
 *
 * @module
 */
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  type CallFailure,
  Empty,
  Failed,
  Link,
  link,
  type Query,
  Skeleton,
  Time,
  useLive,
  useTrigger,
  VirtualList,
} from "../../kit/mod.ts";
import { fieldsText, type LogLine, LogTail, readLogLine } from "../logs/log_lines.ts";
import { LogFields } from "../logs/log_table.tsx";

/** Lines fetched at first. */
const LOG_LINES = 500;

/** The log of a worker, following new lines. */
export function WorkerLogs({ name }: { name: string }): VNode {
  const { lines, status, error, retry } = useWorkerLog(name);
  const [atEnd, setAtEnd] = useState(true);
  if (status === "failed") {
    return <Failed what="The log cannot be read" error={error} retry={retry} />;
  }
  if (status === "loading") return <Skeleton rows={8} />;
  if (lines.length === 0) {
    return (
      <Empty icon="logs" title="It has said nothing yet">
        <p>What the worker prints and what its Logger says shows here at once.</p>
      </Empty>
    );
  }
  return (
    <div class="bleed log-box">
      <VirtualList
        label={`Log of ${name}`}
        items={lines}
        rowHeight={22}
        keyOf={({ seq }) => seq}
        follow
        onAtEnd={setAtEnd}
        row={(line) => <Line line={line} />}
      />
      <div class="log-foot">
        <span class="quiet">{atEnd ? "Following" : "Not following: scroll to the end"}</span>
        <Link to={link("/logs", { worker: name })}>Open in Logs</Link>
      </div>
    </div>
  );
}

function Line({ line }: { line: LogLine }): VNode {
  return (
    <div role="listitem" class={`log-line ${line.level}`}>
      <Time ms={line.atMs} fine />
      <b>{line.level}</b>
      <span class="cut mono" title={[line.text, fieldsText(line)].join("\n").trim()}>
        {line.text}
        <LogFields line={line} />
      </span>
      {line.traceId && <Link to={link("/traces", line.traceId)} label="Open the trace">trace</Link>}
    </div>
  );
}

/** Earlier lines, then each batch as it arrives. */
function useWorkerLog(name: string): Pick<Query<never>, "status" | "error" | "retry"> & {
  readonly lines: readonly LogLine[];
} {
  const live = useLive();
  const tail = useRef(new LogTail());
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [state, setState] = useState<CallFailure | "loading" | "ready">("loading");
  const [asked, setAsked] = useState(0);
  const take = (records: readonly Json[]) => {
    // Another engine may have a worker of that name.
    const own = records.map(readLogLine).filter(({ engine }) => engine === null);
    if (tail.current.add(own) > 0) setLines(tail.current.lines);
  };
  useEffect(() => {
    let isOver = false;
    const payload = { worker: name, limit: LOG_LINES, local: true };
    live.call("engine::logs::list", payload).then((found) => {
      if (isOver) return;
      take((found as { logs: Json[] }).logs);
      setState("ready");
    }, (thrown) => !isOver && setState(thrown));
    return () => {
      isOver = true;
    };
  }, [live, name, asked]);
  const trigger = { type: "log", config: { worker: name, batch_ms: 200 } };
  useTrigger<{ logs: Json[]; dropped: number }>(trigger, ({ logs }) => take(logs));
  const failed = typeof state === "object";
  return {
    lines,
    status: failed ? "failed" : state,
    error: failed ? state : null,
    retry: () => setAsked(asked + 1),
  };
}
