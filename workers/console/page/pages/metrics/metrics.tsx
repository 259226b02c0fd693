/**
 * The Metrics page: the engine, its functions and its workers over the last minutes, as charts.
 *
 * @module
 */
import type { VNode } from "preact";
import {
  type ConsolePage,
  Empty,
  Failed,
  Page,
  Segments,
  Skeleton,
  Tabs,
  useQueryMember,
} from "../../kit/mod.ts";
import { MetricsEngine } from "./metrics_engine.tsx";
import { MetricsFunctions } from "./metrics_functions.tsx";
import { MetricsWorkers } from "./metrics_workers.tsx";
import { useSamples } from "./use_samples.ts";

const SPANS = [
  { value: "60", label: "1 min" },
  { value: "", label: "5 min" },
  { value: "900", label: "15 min" },
];
const TABS = [
  { id: "engine", title: "Engine" },
  { id: "functions", title: "Functions" },
  { id: "workers", title: "Workers" },
];

/** `/metrics`. */
export const metricsPage: ConsolePage = {
  path: "/metrics",
  title: "Metrics",
  icon: "metrics",
  group: "watch",
  key: "m",
  view: Metrics,
};

function Metrics(): VNode {
  const state = useSamples();
  const [span, setSpan] = useQueryMember("span");
  const [tab, setTab] = useQueryMember("tab", "engine");
  const { samples, status } = state;
  const newest = span === "60" || span === "900" ? Number(span) : 300;
  const isEmpty = samples.engine.at_ms.length === 0;
  return (
    <Page
      title="Metrics"
      actions={tab === "engine" && (
        <Segments label="How far back" value={span} choices={SPANS} onChange={setSpan} />
      )}
    >
      {status === "failed" && isEmpty
        ? <Failed what="There are no metrics" error={state.error} retry={state.retry} />
        : isEmpty
        ? (status === "loading" ? <Skeleton rows={10} /> : <NothingYet />)
        : (
          <div class="metrics">
            <Tabs label="What is measured" tabs={TABS} value={tab} onChange={setTab}>
              {tab === "functions"
                ? <MetricsFunctions state={state} />
                : tab === "workers"
                ? <MetricsWorkers state={state} />
                : <MetricsEngine state={state} newest={newest} />}
            </Tabs>
          </div>
        )}
    </Page>
  );
}

function NothingYet(): VNode {
  return (
    <Empty icon="metrics" title="The first second is being measured">
      Charts show up here by themselves.
    </Empty>
  );
}
