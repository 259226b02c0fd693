/**
 * The detail view of a queue: what it does now, the jobs that run and wait, its dead letters.
 *
 * @module
 */
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import {
  Ago,
  Badge,
  briefJson,
  Button,
  Chart,
  Detail,
  Empty,
  Failed,
  formatCount,
  formatDateTime,
  formatDuration,
  formatRate,
  Pairs,
  Panel,
  Skeleton,
  Stat,
  Tabs,
  useQuery,
  useQueryMember,
} from "../../kit/mod.ts";
import { functionLink, ReadOnlyNotice } from "../references.tsx";
import { DeadLetters } from "./dead_letters.tsx";
import { type Act, JobPayload, ON, traceLink, useAct } from "./queue_act.tsx";
import {
  type QueueRow,
  type QueuesState,
  type RunningJob,
  titleOf,
  type WaitingRow,
} from "./queue_rows.ts";

/** Waiting jobs that are shown. */
const PEEKED = 20;

/** The view of one queue. */
export function QueueDetail(
  { row, state, onClose }: { row: QueueRow; state: QueuesState; onClose: () => void },
): VNode {
  const [tab, setTab] = useQueryMember("tab", "now");
  const { act, mayAct } = useAct(row.name, state.refresh);
  const tabs = [
    { id: "now", title: "Now" },
    { id: "waiting", title: "Waiting", count: row.waiting + row.delayed },
    { id: "dead", title: "Dead letters", count: row.dead },
  ];
  return (
    <Detail
      wide
      label={`Queue ${titleOf(row)}`}
      title={<code>{titleOf(row)}</code>}
      actions={<PauseButton row={row} act={act} mayAct={mayAct} />}
      onClose={onClose}
    >
      <ReadOnlyNotice wanted="see payloads, pause queues and retry jobs" />
      <Tabs label="About the queue" tabs={tabs} value={tab} onChange={setTab}>
        {tab === "waiting"
          ? <Waiting queue={row.name} />
          : tab === "dead"
          ? <DeadLetters row={row} act={act} mayAct={mayAct} />
          : <Now row={row} state={state} />}
      </Tabs>
    </Detail>
  );
}

function PauseButton({ row, act, mayAct }: { row: QueueRow; act: Act; mayAct: boolean }): VNode {
  const [busy, setBusy] = useState(false);
  const name = row.paused ? "resume" : "pause";
  const press = () => {
    setBusy(true);
    const said = row.paused ? "is resumed" : "is paused; no job begins";
    void act(name, {}, () => `${titleOf(row)} ${said}`).then(() => setBusy(false));
  };
  return (
    <Button
      small
      icon={row.paused ? "play" : "pause"}
      busy={busy}
      disabled={!mayAct}
      onPress={press}
    >
      {row.paused ? "Resume" : "Pause"}
    </Button>
  );
}

function Now({ row, state }: { row: QueueRow; state: QueuesState }): VNode {
  const { oldest_age_ms: age, config } = row;
  return (
    <div class="stack-4">
      <div class="stats">
        <Stat label="Waiting" value={formatCount(row.waiting)} />
        <Stat label="Running" value={formatCount(row.running)} />
        <Stat label="Delayed" value={formatCount(row.delayed)} />
        <Stat
          label="Dead"
          value={formatCount(row.dead)}
          {...row.dead > 0 && { tone: "bad" as const }}
        />
        <Stat label="Oldest" value={formatDuration(age)} />
      </div>
      <Charts name={row.name} state={state} />
      <h3>Running jobs</h3>
      <Running queue={row.name} />
      <h3>Settings</h3>
      <Pairs
        pairs={Object.entries(config).map(([name, value]) => [
          name,
          <code key="">{typeof value === "string" ? value : JSON.stringify(value)}</code>,
        ])}
      />
    </div>
  );
}

/** Charts show at least this time. */
const WINDOW_MS_MIN = 60_000;

function Charts(
  { name, state: { samples, version } }: { name: string; state: QueuesState },
): VNode {
  const { window } = samples;
  const at_ms = useMemo(() => window.at_ms, [version]);
  // A page that was just opened has few samples, which are not spread over the whole width.
  const window_ms = Math.max(WINDOW_MS_MIN, (at_ms.at(-1) ?? 0) - (at_ms[0] ?? 0));
  return (
    <>
      <Panel>
        <Chart
          label="Jobs per second"
          at_ms={at_ms}
          window_ms={window_ms}
          format={formatRate}
          sync="queue"
          series={[
            { label: "In", values: window.series(name, "in_per_s"), area: true },
            { label: "Out", values: window.series(name, "done_per_s"), tone: "ok" },
            { label: "Failed", values: window.series(name, "failed_per_s"), tone: "bad" },
          ]}
        />
      </Panel>
      <Panel>
        <Chart
          label="Depth"
          at_ms={at_ms}
          window_ms={window_ms}
          sync="queue"
          series={[
            { label: "Waiting", values: window.series(name, "waiting"), area: true },
            { label: "Running", values: window.series(name, "running") },
          ]}
        />
      </Panel>
    </>
  );
}

function Running({ queue }: { queue: string }): VNode {
  const jobs = useQuery<RunningJob>({
    function_id: "engine::queue::stats",
    payload: { queue },
    items: "running_jobs",
    key: ["id"],
  }, ON);
  if (jobs.status === "failed") {
    return <Failed what="The jobs cannot be read" error={jobs.error} retry={jobs.retry} />;
  }
  if (jobs.items.length === 0) return <p class="quiet">None runs now.</p>;
  return (
    <table class="plain-table" aria-label="Running jobs">
      <thead>
        <tr>
          <th>Function</th>
          <th>Enqueued</th>
          <th>Attempt</th>
          <th>Trace</th>
        </tr>
      </thead>
      <tbody>
        {jobs.items.map((job) => (
          <tr key={job.id} title={`Job ${job.id}`}>
            <td>{functionLink(job.function_id)}</td>
            <td>
              <Ago ms={job.enqueued_at_ms} />
            </td>
            <td class="num">{job.attempt}</td>
            <td>{traceLink(job.trace_id)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Waiting({ queue }: { queue: string }): VNode {
  const [open, setOpen] = useState<string | null>(null);
  const jobs = useQuery<WaitingRow>({
    function_id: "engine::queue::peek",
    payload: { queue, limit: PEEKED },
    items: "jobs",
    key: ["id"],
  }, ON);
  if (jobs.status === "failed") {
    return <Failed what="The jobs cannot be read" error={jobs.error} retry={jobs.retry} />;
  }
  if (jobs.status === "loading") return <Skeleton rows={4} />;
  const waiting = jobs.items.filter(({ state }) => state !== "running");
  if (waiting.length === 0) return <Empty icon="queues" title="No job waits" />;
  return (
    <ol class="jobs" aria-label={`The next jobs, at most ${PEEKED}`}>
      {waiting.map((job) => (
        <li key={job.id}>
          <WaitingJob
            job={job}
            open={open === job.id}
            onOpen={() => setOpen(open === job.id ? null : job.id)}
          />
        </li>
      ))}
    </ol>
  );
}

function WaitingJob(
  { job, open, onOpen }: { job: WaitingRow; open: boolean; onOpen: () => void },
): VNode {
  const { state, due_at_ms } = job;
  return (
    <div class="stack">
      <div class="row-flex">
        <Button
          small
          kind="bare"
          icon={open ? "down" : "right"}
          label={`Job ${job.id}`}
          onPress={onOpen}
        />
        {state === "delayed" && (
          <Badge tone="info" title={due_at_ms ? `until ${formatDateTime(due_at_ms)}` : undefined}>
            delayed
          </Badge>
        )}
        {functionLink(job.function_id)}
        {job.payload !== undefined && <code class="cut">{briefJson(job.payload)}</code>}
        {traceLink(job.trace_id)}
      </div>
      {open && (
        <>
          <Pairs
            pairs={[
              ["Enqueued", <Ago key="" ms={job.enqueued_at_ms} />],
              ["Due", due_at_ms === undefined ? null : formatDateTime(due_at_ms)],
              ["Failed attempts", formatCount(job.attempts)],
              ["Last error", job.error ?? null],
            ]}
          />
          <JobPayload payload={job.payload} />
        </>
      )}
    </div>
  );
}
