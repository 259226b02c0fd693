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
      <div class="metrics-table">
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
    cell: ({ value }) => <span class="num">{value ?? "–"}</span>,
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

/** Such as `p99_ms > 500`, or `records in 60 s with text "refused" > 5`. */
function conditionOf({ metric, log, operator, threshold }: Alert): string {
  const compared = `${operator} ${threshold}`;
  if (log === undefined) return `${metric} ${compared}`;
  const { within_s, ...pattern } = log;
  const members = Object.entries(pattern).map(([name, value]) => ` ${name}=${value}`).join("");
  return `records in ${within_s} s${members} ${compared}`;
}
