/**
 * The detail view of a worker: its state, gauges, functions, log and replicas, and buttons that
 * manage it.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import {
  Badge,
  Button,
  Chart,
  Code,
  Detail,
  Dot,
  Empty,
  Failed,
  formatBytes,
  formatCount,
  formatDuration,
  formatPercent,
  Link,
  link,
  NONE,
  Pairs,
  Panel,
  Since,
  Skeleton,
  Table,
  Tabs,
  Time,
  useQuery,
  useQueryMember,
  useShell,
} from "../../kit/mod.ts";
import { plainText } from "../logs/log_lines.ts";
import { ReadOnlyNotice } from "../references.tsx";
import { type Gauge, GAUGE_SAMPLES_MAX, type GaugesState } from "./worker_gauges.ts";
import { WorkerLogs } from "./worker_logs.tsx";
import { gaugeIds, isolationText, stateTone, type WorkerRow } from "./worker_rows.ts";

/** Time for a restart: its drain takes up to 10 s, an installation longer. */
const ACTION_TIMEOUT_MS = 70_000;
/** Time between two samples. */
const SAMPLE_MS = 1_000;

/** The detail view of a worker. */
export function WorkerDetail(
  { name, row, gauges, onClose }: {
    /** The name in the address. */
    name: string;
    /** `undefined`: it does not exist. */
    row: WorkerRow | undefined;
    gauges: GaugesState;
    onClose: () => void;
  },
): VNode {
  const [tab, setTab] = useQueryMember("tab", "overview");
  if (row === undefined) return <MissingWorker name={name} onClose={onClose} />;
  const tabs = [
    { id: "overview", title: "Overview" },
    { id: "functions", title: "Functions", count: row.functions },
    { id: "logs", title: "Logs" },
  ];
  return (
    <Detail
      label={`Worker ${row.name}`}
      onClose={onClose}
      actions={row.status?.path && <Actions row={row} />}
      title={
        <>
          <Dot tone={stateTone(row.state)} label={row.state} />
          <span class="cut">{row.name}</span>
        </>
      }
    >
      <Tabs label={`Worker ${row.name}`} tabs={tabs} value={tab} onChange={setTab}>
        {tab === "functions"
          ? <WorkerFunctions name={row.name} />
          : tab === "logs"
          ? <WorkerLogs key={row.key} name={row.name} />
          : <Overview row={row} gauges={gauges} />}
      </Tabs>
    </Detail>
  );
}

function MissingWorker({ name, onClose }: { name: string; onClose: () => void }): VNode {
  return (
    <Detail label={`Worker ${name}`} title={<span class="cut">{name}</span>} onClose={onClose}>
      <Empty icon="workers" title="There is no such worker now">
        <p>It was removed or has left. When it comes back, it shows here by itself.</p>
      </Empty>
    </Detail>
  );
}

/** Buttons that restart, stop and start the worker. */
function Actions({ row }: { row: WorkerRow }): VNode {
  const { live, toasts } = useShell();
  const { operator } = live.status.value;
  const busy = useSignal<string | null>(null);
  const run = async (action: "restart" | "stop" | "start", outcome: string) => {
    busy.value = action;
    try {
      const options = { timeout_ms: ACTION_TIMEOUT_MS };
      await live.call(`engine::supervisor::${action}`, { name: row.name }, options);
      toasts.show("ok", `${row.name} ${outcome}`);
    } catch (thrown) {
      toasts.fail(`${row.name} did not ${action}`, thrown);
    } finally {
      busy.value = null;
    }
  };
  const isDown = row.state === "stopped" || row.state === "failed";
  return (
    <>
      {!isDown && (
        <Button
          small
          icon="restart"
          busy={busy.value === "restart"}
          disabled={busy.value !== null || !operator}
          onPress={() => void run("restart", "is restarted")}
        >
          Restart
        </Button>
      )}
      <Button
        small
        kind={isDown ? "primary" : "plain"}
        icon={isDown ? "play" : "stop"}
        busy={busy.value === "stop" || busy.value === "start"}
        disabled={busy.value !== null || !operator}
        onPress={() => void (isDown ? run("start", "is started") : run("stop", "is stopped"))}
      >
        {isDown ? "Start" : "Stop"}
      </Button>
    </>
  );
}

function Overview({ row, gauges }: { row: WorkerRow; gauges: GaugesState }): VNode {
  return (
    <>
      <Failure row={row} />
      {row.status?.path && <ReadOnlyNotice wanted="restart and stop workers" />}
      <Usage row={row} gauges={gauges} />
      <Properties row={row} />
      {row.replicas > 1 && <WorkerReplicas row={row} />}
    </>
  );
}

/** Why it is not running, with its last output. */
function Failure({ row: { status, state, reason } }: { row: WorkerRow }): VNode | null {
  const why = state === "ready" ? null : reason;
  const before = status?.last_error ?? null;
  if (status === null || (why === null && before === null)) return null;
  if (status.kind === "builtin" && state === "ready") return null;
  const isBad = state === "failed" || state === "waiting";
  return (
    <div class={`remark ${isBad ? "bad" : "warn"}`}>
      <b>{why ?? `It failed before: ${before}`}</b>
      {status.tail.length > 0 && (
        <pre tabIndex={0} aria-label="Last output">{plainText(status.tail.join("\n"))}</pre>
      )}
    </div>
  );
}

const CHARTS = [
  { gauge: "in_flight", label: "Calls in flight", max: 4, tone: "accent", format: formatCount },
  { gauge: "memory_bytes", label: "Memory", max: 0, tone: "info", format: formatBytes },
  { gauge: "cpu_percent", label: "CPU", max: 10, tone: "series-3", format: formatPercent },
  {
    gauge: "event_loop_lag_ms",
    label: "Event loop delay",
    max: 10,
    tone: "series-6",
    format: formatDuration,
  },
] as const satisfies readonly { readonly gauge: Gauge; readonly [name: string]: unknown }[];

/** Charts of the last minutes; gauges without samples are left out. */
function Usage(
  { row, gauges: { gauges, loadPast } }: { row: WorkerRow; gauges: GaugesState },
): VNode {
  const ids = gaugeIds(row);
  useEffect(() => loadPast(ids), [ids.join()]);
  return (
    <div class="usage">
      {CHARTS.filter(({ gauge }) => gauges.now(ids, gauge) !== null).map((chart) => (
        <Chart
          key={chart.gauge}
          label={chart.label}
          at_ms={gauges.at_ms}
          sync="worker"
          height={96}
          max={chart.max}
          window_ms={GAUGE_SAMPLES_MAX * SAMPLE_MS}
          format={chart.format}
          series={[{
            label: "",
            values: gauges.history(ids, chart.gauge),
            tone: chart.tone,
            area: true,
          }]}
        />
      ))}
    </div>
  );
}

function Properties({ row }: { row: WorkerRow }): VNode {
  const { status } = row;
  const connection = row.connections[0];
  const resources = status?.resources ?? null;
  return (
    <Pairs
      pairs={[
        ["State", <Badge tone={stateTone(row.state)}>{row.state}</Badge>],
        ["Since", <Time ms={row.since_ms} />],
        ["Up for", row.started_at_ms === null ? null : <Since ms={row.started_at_ms} />],
        [
          "Ready after",
          status?.ready_after_ms == null ? null : formatDuration(status.ready_after_ms),
        ],
        [
          "Isolation",
          isolationText(row) + (status?.accelerator ? ` (${status.accelerator})` : ""),
        ],
        ["Resources", resources && `${resources.cpus} CPU, ${resources.memory_mb} MiB`],
        ["Network", status?.network ?? null],
        ["Runtime", row.runtime],
        ["SDK version", row.version],
        ["System", connection?.os ?? null],
        ["Pid", row.pid],
        ["Replicas", row.replicas > 1 ? row.replicas : null],
        ["Restarts", status === null ? null : formatCount(row.restarts)],
        ["Last exit", status?.last_exit ?? null],
        ["Dependencies", status?.dependencies ?? null],
        ["Namespace", connection?.namespace ?? null],
        ["Address", connection?.ip_address ?? null],
        ["Summary", connection?.description ?? (row.kind === "builtin" ? row.reason : null)],
        ["Directory", status?.path && <Code>{status.path}</Code>],
        ["Log file", status?.log_path && <Code>{status.log_path}</Code>],
        ["Line", row.ids.length === 1 ? <Code>{row.ids[0]}</Code> : null],
        ["More", <Links name={row.name} />],
      ]}
    />
  );
}

function Links({ name }: { name: string }): VNode {
  return (
    <span class="row-flex">
      <Link to={link("/traces", { worker: name })}>Traces</Link>
      <Link to={link("/logs", { worker: name })}>Logs</Link>
      <Link to={link("/flow", { at: name })}>Flow</Link>
    </span>
  );
}

interface Offered {
  readonly function_id: string;
  readonly namespace: string;
  readonly description?: string;
}

/** The functions of a worker. */
function WorkerFunctions({ name }: { name: string }): VNode {
  const { router } = useShell();
  const { status, items, error, retry } = useQuery<Offered>({
    function_id: "engine::functions::list",
    payload: { worker: name, include_internal: true },
    items: "functions",
    key: ["namespace", "function_id"],
  }, [{ type: "engine::functions-available" }]);
  if (status === "loading") return <Skeleton rows={5} />;
  if (status === "failed") {
    return <Failed what="The functions cannot be listed" error={error} retry={retry} />;
  }
  const address = ({ namespace, function_id }: Offered) =>
    link("/functions", namespace, function_id);
  return (
    <div class="bleed">
      <Table
        label={`Functions of ${name}`}
        orderName="by"
        order={{ column: "id", descending: false }}
        items={items}
        keyOf={({ namespace, function_id }) => `${namespace} ${function_id}`}
        onOpen={(item) => router.go(address(item))}
        empty={
          <Empty icon="functions" title="It offers no functions now">
            <p>Functions show here as soon as the worker registers them.</p>
          </Empty>
        }
        columns={[
          {
            id: "id",
            title: "Function",
            width: "minmax(160px, 1fr)",
            sort: ({ function_id }) => function_id,
            cell: (item) => <Link to={address(item)} class="cut mono">{item.function_id}</Link>,
          },
          {
            id: "description",
            title: "Description",
            width: "minmax(120px, 1fr)",
            hide: "phone",
            cell: ({ description }) => <span class="cut quiet">{description}</span>,
          },
        ]}
      />
    </div>
  );
}

/** The replicas of a worker, or of one that is not supervised, its connections. */
function WorkerReplicas({ row }: { row: WorkerRow }): VNode {
  const replicas = row.status?.replicas ?? [];
  return (
    <Panel title="Replicas" flush>
      <table class="plain-table">
        <thead>
          <tr>
            <th>Number</th>
            <th>State</th>
            <th class="end">Pid</th>
            <th class="end">Up</th>
            <th class="end">Memory</th>
            <th class="end">CPU</th>
            <th class="end">Restarts</th>
          </tr>
        </thead>
        <tbody>
          {replicas.map((replica) => (
            <tr key={replica.number}>
              <td>{replica.number}</td>
              <td>
                <Badge tone={stateTone(replica.state)}>{replica.state}</Badge>
              </td>
              <td class="end">{replica.pid ?? NONE}</td>
              <td class="end">
                {replica.started_at_ms === null ? NONE : <Since ms={replica.started_at_ms} />}
              </td>
              <td class="end">{formatBytes(replica.memory_bytes)}</td>
              <td class="end">{formatPercent(replica.cpu_percent)}</td>
              <td class="end">{replica.restarts}</td>
            </tr>
          ))}
          {replicas.length === 0 && row.connections.map((line, index) => (
            <tr key={line.id}>
              <td>{index + 1}</td>
              <td>
                <Dot tone={stateTone(line.status)} label={line.status} /> {line.status}
              </td>
              <td class="end">{NONE}</td>
              <td class="end">
                <Since ms={line.connected_at_ms} />
              </td>
              <td class="end">{NONE}</td>
              <td class="end">{NONE}</td>
              <td class="end">{NONE}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}
