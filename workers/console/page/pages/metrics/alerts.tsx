/**
 * Alerts: a number in the side bar while any fire, and a table of all rules on the Metrics page.
 *
 * @module
 */
import type { VNode } from "preact";
import type { WatchedQuery, WatchedTrigger } from "../../../wire.ts";
import {
  Ago,
  Badge,
  type Column,
  Empty,
  Failed,
  formatBytes,
  formatCount,
  formatDuration,
  formatPercent,
  formatRate,
  Panel,
  Skeleton,
  Table,
  useQuery,
} from "../../kit/mod.ts";

/** A rule and its state, an item of `engine::alerts::list`. */
export interface Alert {
  readonly name: string;
  readonly metric: string | null;
  readonly log?: Readonly<Record<string, string | number>>;
  readonly operator: string;
  readonly threshold: number;
  readonly value: number | null;
  readonly state: "ok" | "pending" | "firing";
  readonly since_ms: number;
}

/** All alerts. */
export const ALERTS: WatchedQuery = {
  function_id: "engine::alerts::list",
  items: "rules",
  key: ["name"],
};
/** What changes them. */
export const ALERT_CHANGES: readonly WatchedTrigger[] = [{ type: "alert" }];
const ON_SAMPLE: readonly WatchedTrigger[] = [
  { type: "engine::metrics-sampled", config: { interval_ms: 2_000 } },
];
const TONES = { ok: "ok", pending: "warn", firing: "bad" } as const;

/** How many alerts fire; nothing while none does. */
export function AlertsMark(): VNode | null {
  const { items } = useQuery<Alert>(ALERTS, ALERT_CHANGES);
  const firing = items.filter(({ state }) => state === "firing");
  if (firing.length === 0) return null;
  const title = `Alerts that fire: ${firing.map(({ name }) => name).join(", ")}`;
  return <Badge tone="bad" title={title}>{firing.length}</Badge>;
}

/** All rules, those that fire first. */
export function MetricsAlerts(): VNode {
  const { items, status, error, retry } = useQuery<Alert>(ALERTS, ON_SAMPLE);
  if (status === "failed") {
    return <Failed what="Alerts cannot be read" error={error} retry={retry} />;
  }
  if (status === "loading") return <Skeleton rows={4} />;
  return (
    <Panel title="Alert rules" flush>
      <div class="metrics-table" style={{ height: `${heightOf(items.length)}px` }}>
        <Table<Alert>
          label="Alert rules"
          kind="events"
          columns={COLUMNS}
          items={items}
          keyOf={({ name }) => name}
          order={{ column: "state", descending: true }}
          rowClass={({ state }) => state === "firing" ? "bad" : ""}
          empty={
            <Empty icon="metrics" title="There are no alert rules">
              Add some to config.yaml, under metrics.alerts of engine-observability.
            </Empty>
          }
        />
      </div>
    </Panel>
  );
}

const COLUMNS: readonly Column<Alert>[] = [
  {
    id: "state",
    title: "State",
    width: "84px",
    sort: ({ state }) => ["ok", "pending", "firing"].indexOf(state),
    cell: ({ state }) => <Badge tone={TONES[state]} dot>{state}</Badge>,
  },
  {
    id: "name",
    title: "Rule",
    width: "minmax(72px, 2fr)",
    sort: ({ name }) => name,
    cell: ({ name }) => <span class="cut">{name}</span>,
  },
  {
    id: "what",
    title: "Fires when",
    width: "minmax(84px, 3fr)",
    cell: (alert) => <code class="cut" title={conditionOf(alert)}>{conditionOf(alert)}</code>,
  },
  {
    id: "value",
    title: "Value",
    width: "80px",
    align: "end",
    cell: ({ metric, value }) => <span class="num">{measured(metric, value)}</span>,
  },
  {
    id: "since",
    title: "Since",
    width: "96px",
    align: "end",
    hide: "phone",
    cell: ({ since_ms }) => <Ago ms={since_ms} />,
  },
];

/** The table is as high as its rows, in pixels; without rules, as what it says instead. */
function heightOf(rows: number): number {
  return rows === 0 ? 240 : HEAD_HEIGHT + ROW_HEIGHT * rows;
}
const HEAD_HEIGHT = 32;
const ROW_HEIGHT = 36;

/** A value of a metric with the unit that the name of the metric ends with. */
export function measured(metric: string | null, value: number | null): string {
  const [unit] = /(_ms|_bytes|_percent|_per_s)$/.exec(metric ?? "") ?? [];
  const format = UNITS[unit ?? ""] ?? formatCount;
  return format(value);
}
const UNITS: Readonly<Record<string, (value: number | null) => string>> = {
  _ms: formatDuration,
  _bytes: formatBytes,
  _percent: formatPercent,
  _per_s: formatRate,
};

/** Such as `p99_ms > 500`, or `records in 60 s with text "refused" > 5`. */
function conditionOf({ metric, log, operator, threshold }: Alert): string {
  const compared = `${operator} ${threshold}`;
  if (log === undefined) return `${metric} ${compared}`;
  const { within_s, ...pattern } = log;
  const members = Object.entries(pattern).map(([name, value]) => ` ${name}=${value}`).join("");
  return `records in ${within_s} s${members} ${compared}`;
}
