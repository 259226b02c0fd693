/**
 * What the engine knows about a trigger beyond its configuration: the next times and last runs of
 * one of type `cron`, and the messages of one of type `subscribe`.
 *
 * @module
 */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { WatchedTrigger } from "../../../wire.ts";
import {
  Badge,
  Button,
  formatCount,
  formatDateTime,
  formatDuration,
  Pairs,
  Time,
  useLive,
  useQuery,
  useShell,
} from "../../kit/mod.ts";
import {
  type CronJob,
  type CronRun,
  isJobOf,
  isSubscriptionOf,
  type Subscription,
  toneOf,
} from "./schedule_rows.ts";
import type { TriggerItem } from "./trigger_rows.ts";

/** Nothing fires when a job has run, so the lists are asked for again now and then. */
const ON: readonly WatchedTrigger[] = [
  { type: "engine::triggers-available" },
  { type: "engine::metrics-sampled", config: { interval_ms: 2_000 } },
];

/** The part of a trigger's detail view for its type; nothing for other types. */
export function Schedule({ item }: { item: TriggerItem }): VNode | null {
  if (item.status !== undefined && item.status !== "active") return null;
  if (item.trigger_type === "cron") return <CronSchedule item={item} />;
  return item.trigger_type === "subscribe" ? <Messages item={item} /> : null;
}

function CronSchedule({ item }: { item: TriggerItem }): VNode | null {
  const { function_id } = item;
  const { items } = useQuery<CronJob>({
    function_id: "engine::cron::list",
    payload: { function_id },
    items: "jobs",
    key: ["job_id"],
  }, ON);
  const job = items.find((each) => isJobOf(each, item));
  if (job === undefined) return null;
  return (
    <>
      <h3>Next times</h3>
      <ol aria-label="Next times">
        {job.next.map((time) => <li key={time} class="num">{formatDateTime(Date.parse(time))}</li>)}
        {job.next.length === 0 && <li>None is to come</li>}
      </ol>
      <h3>Last runs</h3>
      <LastRuns runs={job.last} />
      <Pairs
        pairs={[
          ["Time zone", job.timezone],
          ["Running now", formatCount(job.running)],
          ["Skipped", formatCount(job.skipped)],
          ["Missed", formatCount(job.missed)],
        ]}
      />
      <RunNow job={job} />
    </>
  );
}

function LastRuns({ runs }: { runs: readonly CronRun[] }): VNode {
  if (runs.length === 0) return <p>It has not run yet.</p>;
  return (
    <table class="plain-table" aria-label="Last runs">
      <thead>
        <tr>
          <th>Started</th>
          <th>Result</th>
          <th>Took</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.started_time}>
            <td>
              <Time ms={Date.parse(run.started_time)} fine />
            </td>
            <td>
              <Badge tone={toneOf(run)} title={run.error}>{run.outcome}</Badge>
              {run.manual && " by hand"}
              {run.error !== undefined && <span class="quiet">{` ${run.error}`}</span>}
            </td>
            <td class="num">{formatDuration(run.duration_ms)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Runs the job besides its times. */
function RunNow({ job: { job_id, function_id } }: { job: CronJob }): VNode {
  const live = useLive();
  const { toasts } = useShell();
  const [busy, setBusy] = useState(false);
  const run = () => {
    setBusy(true);
    live.call("engine::cron::run", { job_id }).then(
      (answer: unknown) => {
        const { outcome, error = "" } = answer as CronRun;
        if (outcome === "failed") toasts.fail(`${function_id} failed`, new Error(error));
        else toasts.show("ok", `${function_id}: ${outcome}`);
      },
      (thrown: unknown) => toasts.fail(`${function_id} cannot be run`, thrown),
    ).finally(() => setBusy(false));
  };
  return (
    <p>
      <Button small icon="play" busy={busy} onPress={run}>Run now</Button>
    </p>
  );
}

function Messages({ item }: { item: TriggerItem }): VNode | null {
  const { items } = useQuery<Subscription>({
    function_id: "engine::pubsub::list",
    items: "subscriptions",
    key: ["trigger_id"],
  }, ON);
  const found = items.find((each) => isSubscriptionOf(each, item));
  if (found === undefined) return null;
  const { sent, dropped, dropped_at_ms } = found;
  return (
    <>
      <h3>Messages</h3>
      <Pairs
        pairs={[
          ["Sent", formatCount(sent)],
          ["Dropped, since it was behind", formatCount(dropped)],
          ["Last dropped", dropped_at_ms === undefined ? null : <Time key="" ms={dropped_at_ms} />],
        ]}
      />
    </>
  );
}
