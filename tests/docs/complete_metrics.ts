/**
 * A page of metrics with every family that there is.
 *
 * @module
 */
import type { Engines, EngineView } from "../../engine/ports/directory.ts";
import type { PageSources } from "../../workers/observability/metrics/prometheus.ts";
import { FakeMetrics, metricPoint, supervisedWorker, workerView } from "../fakes/fake_metrics.ts";

/** Sources with a value for each family: a worker, its processes, a failed call, another engine. */
export async function completeMetrics(): Promise<PageSources> {
  using metrics = new FakeMetrics();
  metrics.meters.call("math::add", { ms: 3, code: "boom" });
  Object.assign(metrics.stats, { commit_ms: 20 });
  metrics.workers = [workerView("w1", { name: "math" })];
  metrics.look.record([metricPoint("engine.event_loop.lag.max", 0.25)]);
  metrics.supervised = [
    supervisedWorker("math", { restarts: 1 }, {
      worker_ids: ["w1"],
      memory_bytes: 12,
      cpu_percent: 1,
    }),
  ];
  await metrics.look.refresh(0);
  return { ...metrics.page, engines: twoEngines() };
}

function twoEngines(): Engines {
  const link = {
    rtt_ms: 1,
    calls_in: 1,
    calls_out: 1,
    bytes_in: 1,
    bytes_out: 1,
    queued_bytes: 0,
  };
  const engines = [{ name: "a", life: "1", keeper: true, link: null }, {
    name: "b",
    life: "2",
    keeper: false,
    link,
  }];
  return {
    cluster: "shop",
    life: "1",
    isConnected: true,
    problem: null,
    keeper: "1",
    log: {
      kind: "jetstream",
      copies: 3,
      require_sync: true,
      applied: 1,
      behind: 0,
      seen_ms_ago: 0,
      bytes: 1,
      problem: null,
    },
    appends: { bounds: [1], counts: [1, 0], sum: 0.5 },
    takeovers: 1,
    list: () => engines as unknown as EngineView[],
    ends: () => new Map([["closed", 1]]),
    orderOf: () => {
      throw new Error("not asked by metrics");
    },
  };
}
