/**
 * The Overview page, which opens first: whether the system is well, and where to look if it is not.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { ClusterView } from "../../../../../engine/ports/directory.ts";
import type { WorkerStatus } from "../../../../../engine/ports/supervision.ts";
import {
  Ago,
  type ConsolePage,
  Dot,
  Empty,
  Failed,
  formatCount,
  formatDuration,
  formatPercent,
  formatRate,
  Icon,
  Link,
  link,
  Page,
  Panel,
  Skeleton,
  Sparkline,
  Stat,
  useOfferedQuery,
  useQuery,
} from "../../kit/mod.ts";
import { LINK_CHANGES } from "../cluster/cluster.tsx";
import { CONFIGURATION_CHANGES, CONFIGURATIONS } from "../configuration/configuration.tsx";
import type { ConfigurationRow } from "../configuration/configuration_rows.ts";
import { type Alert, ALERT_CHANGES, ALERTS } from "../metrics/alerts.tsx";
import { bucketed } from "../metrics/buckets.ts";
import { type EngineField, type EngineSamples, useSamples } from "../metrics/samples.ts";
import { type QueueRow, titleOf, useQueues } from "../queues/queue_rows.ts";
import { functionAddress, isOwnFunction } from "../references.tsx";
import type { TriggerItem } from "../triggers/trigger_rows.ts";
import {
  type ConnectedWorker,
  isUp,
  upCount,
  type WorkerRow,
  workerRows,
} from "../workers/worker_rows.ts";
import { CONNECTIONS, SUPERVISED, WORKER_CHANGES } from "../workers/workers.tsx";
import {
  type Change,
  changesOf,
  failedPercent,
  type Finding,
  findingsOf,
  type FunctionLoad,
  type OverviewInput,
  queuesInOrder,
  SHOWN_MAX,
  slowestOf,
  wellText,
} from "./overview_rows.ts";

/** The small lines show the last five minutes in points of this time. */
const LINE_MS = 10_000;
const LINE_SAMPLES = 300;
const CLUSTER = { function_id: "engine::cluster::engines" };
const TRIGGERS = {
  function_id: "engine::registered-triggers::list",
  items: "registered_triggers",
  key: ["id"],
};
const TRIGGER_CHANGES = [
  { type: "engine::triggers-available" },
  { type: "engine::functions-available" },
];

/** `/overview`. */
export const overviewPage: ConsolePage = {
  path: "/overview",
  title: "Overview",
  icon: "overview",
  group: "start",
  key: "h",
  onPhones: true,
  view: Overview,
};

function Overview(): VNode {
  const supervised = useQuery<WorkerStatus>(SUPERVISED, WORKER_CHANGES);
  const connections = useQuery<ConnectedWorker>(CONNECTIONS, WORKER_CHANGES);
  const alerts = useQuery<Alert>(ALERTS, ALERT_CHANGES);
  const triggers = useQuery<TriggerItem>(TRIGGERS, TRIGGER_CHANGES);
  const configurations = useOfferedQuery<ConfigurationRow>(CONFIGURATIONS, CONFIGURATION_CHANGES);
  const queues = useQueues();
  const cluster = useQuery<ClusterView>(CLUSTER, LINK_CHANGES);
  const { samples, version } = useSamples();
  const workers = useMemo(
    () => workerRows(supervised.items, connections.items),
    [supervised.items, connections.items],
  );
  const functions = useMemo(() => loadsOf(samples), [version]);
  const input: OverviewInput = {
    workers,
    functions,
    alerts: alerts.items,
    queues: queues.rows,
    triggers: triggers.items,
    configurations: configurations.items,
    cluster: cluster.value,
  };
  const failed = [supervised, connections].find(({ status }) => status === "failed");
  const isLoading = supervised.status === "loading" || connections.status === "loading";
  return (
    <Page title="Overview">
      {failed && workers.length === 0
        ? <Failed what="The workers cannot be listed" error={failed.error} retry={failed.retry} />
        : isLoading
        ? <Skeleton rows={10} />
        : (
          <div class="overview">
            <Health input={input} />
            <Numbers samples={samples} workers={workers} queues={queues.rows} />
            <div class="overview-columns">
              <Slowest functions={functions} />
              <Changes changes={changesOf(workers, configurations.items)} />
              <Workers workers={workers} />
              <Queues queues={queues.rows} isAbsent={queues.status === "absent"} />
            </div>
          </div>
        )}
    </Page>
  );
}

/** Functions that were called in the last minutes, without those of the engine and the console. */
function loadsOf(samples: EngineSamples): FunctionLoad[] {
  return samples.functions.keys.flatMap((key) => {
    const at = key.indexOf("/");
    const [namespace, function_id] = [key.slice(0, at), key.slice(at + 1)];
    // Calls of functions that no worker has are counted together; they are among the errors.
    if (namespace === "") return [];
    const traffic = samples.traffic(key);
    return traffic && !isOwnFunction(function_id) ? [{ namespace, function_id, ...traffic }] : [];
  });
}

/** Whether all is well, or what needs attention. */
function Health({ input }: { input: OverviewInput }): VNode {
  const findings = findingsOf(input);
  if (findings.length === 0) {
    return (
      <section class="health ok" aria-label="Health">
        <Icon name="check" size={22} />
        <div>
          <h2>All is well</h2>
          <p>{wellText(input)}</p>
        </div>
      </section>
    );
  }
  const isBad = findings.some(({ tone }) => tone === "bad");
  const more = findings.length - SHOWN_MAX;
  return (
    <section class={`health ${isBad ? "bad" : "warn"}`} aria-label="Health">
      <Icon name="warning" size={22} />
      <div>
        <h2>{findings.length === 1 ? "1 thing needs" : `${findings.length} things need`} a look</h2>
        <ul>
          {findings.slice(0, SHOWN_MAX).map((finding) => (
            <FindingLine key={finding.text} finding={finding} />
          ))}
        </ul>
        {more > 0 && <p class="quiet">and {more} more</p>}
      </div>
    </section>
  );
}

function FindingLine({ finding: { tone, text, detail, to } }: { finding: Finding }): VNode {
  return (
    <li>
      <Dot tone={tone} label={tone === "bad" ? "Broken" : "Worth a look"} />
      <Link to={to}>{text}</Link>
      {detail && <span class="cut quiet" title={detail}>{detail}</span>}
    </li>
  );
}

/** The numbers of the last minute, with those of the last five as lines. */
function Numbers({ samples, workers, queues }: {
  samples: EngineSamples;
  workers: readonly WorkerRow[];
  queues: readonly QueueRow[];
}): VNode {
  const { up, all } = upCount(workers);
  const minute = (field: EngineField) => samples.engineMinute(field);
  const [calls, errors] = [minute("calls_per_s"), minute("errors_per_s")];
  const share = calls && errors ? ` · ${formatPercent(100 * errors / calls)}` : "";
  const waiting = queues.reduce((sum, row) => sum + row.waiting + row.running, 0);
  const line = (field: EngineField, label: string, tone: "accent" | "bad" | "info") => (
    <Sparkline
      values={lineOf(samples, field)}
      label={`${label} in the last five minutes`}
      tone={tone}
      height={28}
    />
  );
  return (
    <div class="stats">
      <Stat
        label="Workers up"
        to="/workers"
        value={`${up} of ${all}`}
        {...up < all && { tone: "warn" as const }}
      />
      <Stat label="Calls, last minute" to="/metrics" value={formatRate(calls)}>
        {line("calls_per_s", "Calls", "accent")}
      </Stat>
      <Stat
        label="Errors, last minute"
        to={link("/traces", { status: "error" })}
        value={
          <>
            {formatRate(errors)}
            <small>{share}</small>
          </>
        }
        {...(errors ?? 0) > 0 && { tone: "bad" as const }}
      >
        {line("errors_per_s", "Errors", "bad")}
      </Stat>
      <Stat label="p99, last minute" to="/metrics" value={formatDuration(minute("p99_ms"))}>
        {line("p99_ms", "p99", "info")}
      </Stat>
      <Stat
        label="Calls in flight"
        to="/metrics"
        value={formatCount(samples.engineLatest("in_flight"))}
      >
        {line("in_flight", "Calls in flight", "accent")}
      </Stat>
      <Stat label="Jobs that wait or run" to="/queues" value={formatCount(waiting)} />
    </div>
  );
}

function lineOf(samples: EngineSamples, field: EngineField): readonly (number | null)[] {
  const at_ms = samples.engine.at_ms.slice(-LINE_SAMPLES);
  return bucketed(at_ms, samples.engineSeries(field).slice(-LINE_SAMPLES), LINE_MS, "mean").values;
}

/** A panel with a table, or with a sentence while there is nothing. */
function List({ title, to, more, heads, none, children }: {
  title: string;
  /** The page that has all of it. */
  to: string;
  more: string;
  heads: readonly string[];
  none: VNode | null;
  children: ComponentChildren;
}): VNode {
  return (
    <Panel title={title} flush actions={<Link class="panel-more" to={to}>{more}</Link>}>
      {none ?? (
        <table class="plain-table">
          <thead>
            <tr>
              {heads.map((head, at) => <th key={head} class={at > 0 ? "end" : "grows"}>{head}</th>)}
            </tr>
          </thead>
          <tbody>{children}</tbody>
        </table>
      )}
    </Panel>
  );
}

function Slowest({ functions }: { functions: readonly FunctionLoad[] }): VNode {
  const slowest = slowestOf(functions);
  const longest = slowest[0]?.p99_ms ?? 1;
  return (
    <List
      title="Slowest functions"
      to={link("/functions", { sort: "-p99" })}
      more="All functions"
      heads={["Function, last minute", "Calls", "Errors", "p99"]}
      none={slowest.length > 0 ? null : (
        <Empty icon="functions" title="No calls in the last minute">
          <p>The functions that take longest show here once they are called.</p>
        </Empty>
      )}
    >
      {slowest.map((load) => {
        const { function_id, namespace, calls_per_s, errors_per_s, p99_ms } = load;
        const width = `${Math.max(2, 100 * p99_ms! / longest)}%`;
        return (
          <tr key={`${namespace} ${function_id}`}>
            <td class="grows">
              <Link class="mono" to={functionAddress(function_id, namespace)}>{function_id}</Link>
            </td>
            <td class="end num">{formatRate(calls_per_s)}</td>
            <td class={`end num ${errors_per_s > 0 ? "bad-text" : "quiet"}`}>
              {errors_per_s > 0 ? formatPercent(failedPercent(load)) : "none"}
            </td>
            <td class="end num meter">
              <i style={{ width }} />
              {formatDuration(p99_ms)}
            </td>
          </tr>
        );
      })}
    </List>
  );
}

function Queues(
  { queues, isAbsent }: { queues: readonly QueueRow[]; isAbsent: boolean },
): VNode {
  const title = isAbsent ? "engine-queue does not run" : "No queues yet";
  return (
    <List
      title="Queues"
      to="/queues"
      more="All queues"
      heads={["Queue", "Waiting", "Running", "Dead"]}
      none={queues.length > 0 ? null : (
        <Empty icon="queues" title={title}>
          <p>Queues keep calls on disk and make them later, one after the other.</p>
        </Empty>
      )}
    >
      {queuesInOrder(queues).map((row) => (
        <tr key={row.name}>
          <td class="grows">
            <Link class="mono" to={link("/queues", row.name)}>{titleOf(row)}</Link>
            {row.paused && <span class="quiet">paused</span>}
          </td>
          <td class="end num">{formatCount(row.waiting)}</td>
          <td class="end num">{formatCount(row.running)}</td>
          <td class={`end num ${row.dead > 0 ? "bad-text" : "quiet"}`}>
            {row.dead > 0 ? formatCount(row.dead) : "none"}
          </td>
        </tr>
      ))}
    </List>
  );
}

/** The user's workers, those in trouble first. */
function Workers({ workers }: { workers: readonly WorkerRow[] }): VNode {
  const own = workers.filter(({ kind }) => kind !== "builtin")
    .sort((a, b) => Number(isUp(a)) - Number(isUp(b)))
    .slice(0, SHOWN_MAX);
  return (
    <List
      title="Workers"
      to="/workers"
      more="All workers"
      heads={["Worker", "Functions", "In flight", "State"]}
      none={own.length > 0 ? null : (
        <Empty icon="workers" title="No workers of yours yet">
          <p>Add a directory with a worker in it, or start a program that uses the SDK.</p>
          <pre>engine worker add ./workers/math</pre>
        </Empty>
      )}
    >
      {own.map((row) => (
        <tr key={row.key}>
          <td class="grows">
            <Link to={link("/workers", row.key)}>{row.name}</Link>
            {row.replicas > 1 && <span class="quiet">×{row.replicas}</span>}
          </td>
          <td class="end num">{formatCount(row.functions)}</td>
          <td class="end num">{formatCount(row.in_flight)}</td>
          <td class="end">
            <span class={isUp(row) ? "ok-text" : "bad-text"}>{row.state}</span>
          </td>
        </tr>
      ))}
    </List>
  );
}

function Changes({ changes }: { changes: readonly Change[] }): VNode {
  return (
    <Panel title="Last changes" flush>
      <ol class="last-changes">
        {changes.map(({ at_ms, name, what, tone, to }) => (
          <li key={`${name} ${what}`}>
            <Dot tone={tone} label={what} />
            <span class="cut">
              <Link to={to}>{name}</Link> {what}
            </span>
            <span class="quiet">
              <Ago ms={at_ms} />
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}
