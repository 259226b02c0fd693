/**
 * The metrics of `engine-observability`: sampling each second, history, functions, triggers,
 * alerts, `/metrics`, and the export and health checks that are built on them.
 *
 * Composition only; the parts are in the files beside this one. Counters and history survive an
 * edit of the configuration, see `retained.ts`.
 *
 * @module
 */
import { TriggerAction } from "../../../sdk/typescript/options.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import type { EngineHost } from "../../kit/define.ts";
import type { MetricsSettings } from "../config.ts";
import type { startExport } from "../export/mod.ts";
import { readExportSettings } from "../export/settings.ts";
import { type Component, startHealth } from "../health/mod.ts";
import type { LogFeed } from "../logs/record.ts";
import { historyOf, type MetricsHistory } from "../retained.ts";
import type { SpanFeed } from "../traces/span.ts";
import { workerLog } from "../triggers.ts";
import { Alerts, AlertTriggers } from "./alerts.ts";
import { registerMetricsFunctions } from "./functions.ts";
import type { PageSources } from "./prometheus.ts";
import { readProcess, Sampler } from "./sampler.ts";
import { MetricsTriggers } from "./triggers.ts";
import type { WorkerMonitor } from "./workers.ts";

/** Dependencies of {@linkcode startMetrics}. */
export interface MetricsParts {
  readonly worker: Worker;
  readonly host: EngineHost;
  readonly config: MetricsSettings;
  /** Ended spans, for the export. */
  readonly spans: SpanFeed;
  /** Log records, for the export. */
  readonly logs: LogFeed;
  /** Fill level of the log store, for `engine::health::check`. */
  logUsage?(): Component["details"];
  /** Environment variables; default: those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts everything about metrics; disposing of the result stops it. */
export async function startMetrics(given: MetricsParts): Promise<AsyncDisposable> {
  const startExport = await loadExport(given.env ?? Deno.env.toObject());
  const { worker, host, config } = given;
  const { clock, meters, directory, store } = host;
  const stack = new AsyncDisposableStack();
  const history = historyOf(host);
  const { workers } = history;
  const process = readProcess;
  const sampler = stack.use(
    new Sampler({ clock, meters, directory, stats: store.stats, workers, process }),
  );
  const alerts = watchAlerts(given, stack);
  stack.defer(sampler.listen((interval, sample) => {
    history.series.add(interval, sample);
    history.rollups.add(interval, sample);
    history.recent.add(interval);
    alerts.evaluate(sample.engine, sample.at_ms);
  }));
  stack.use(new MetricsTriggers({ worker, sampler, clock, directory })).register(worker);
  listen(host, history, stack);
  registerMetricsFunctions(worker, { clock, meters, directory, sampler, alerts, ...history });
  const page = pageOf(host, sampler, workers);
  if (config.prometheus) stack.defer(servePrometheus(host, page));
  const { spans, logs, env } = given;
  const sdkPoints = () => history.sdk.points();
  const otel = (): Component =>
    exporting?.component() ?? { status: "disabled", details: { problems: 0 } };
  const components = () => componentsOf(given, history, otel());
  stack.use(startHealth(worker, host, { history, components, alerts: () => alerts.list() }));
  const exporting = startExport &&
    stack.use(startExport(host, { spans, logs, env, page, sdkPoints }));
  return stack;
}

/** Loads the exporter only when the environment configures it. */
async function loadExport(
  env: Readonly<Record<string, string>>,
): Promise<typeof startExport | undefined> {
  const { signals, problems } = readExportSettings(env);
  if (Object.keys(signals).length === 0 && problems.length === 0) return undefined;
  return (await import("../export/mod.ts")).startExport;
}

function pageOf(host: EngineHost, sampler: Sampler, workers: WorkerMonitor): PageSources {
  const { meters, store, traces, memory, channels, engines } = host;
  return {
    engines,
    meters,
    sampler,
    workers,
    store,
    traces,
    memory,
    channels,
    descriptors: () => host.supervision.info().descriptors,
    process: readProcess,
    get version() {
      return host.supervision.info().version;
    },
    get started_at_ms() {
      return host.supervision.info().started_at_ms;
    },
  };
}

function servePrometheus(host: EngineHost, page: PageSources): () => void {
  return host.servePage("/metrics", async () => {
    page.sampler.markRead();
    const { metricsPage, PROMETHEUS_TYPE } = await import("./prometheus.ts");
    return { status: 200, contentType: PROMETHEUS_TYPE, body: metricsPage(page) };
  });
}

/** The components of `engine::health::check`. */
function componentsOf(
  { host: { traces }, logUsage }: MetricsParts,
  { sdk }: MetricsHistory,
  otel: Component,
): Readonly<Record<string, Component>> {
  return {
    otel,
    metrics: {
      status: "healthy",
      details: { sdk_metrics: sdk.points().length, broken_frames: sdk.dropped },
    },
    logs: { status: "healthy", details: logUsage?.() ?? {} },
    spans: {
      status: traces.settings.enabled ? "healthy" : "disabled",
      details: { ...traces.usage },
    },
  };
}

function watchAlerts(
  { worker, config, host: { clock, log, directory }, logs }: MetricsParts,
  stack: AsyncDisposableStack,
): Alerts {
  const triggers = new AlertTriggers(worker, config.alerts, directory);
  triggers.register(worker);
  const alerts = new Alerts(
    config.alerts,
    clock.wall(),
    workerLog(log).tagged,
    (alert, function_id) => {
      triggers.fire(alert);
      if (function_id === undefined) return;
      const payload = alert as unknown as Json;
      worker.trigger({ function_id, payload, action: TriggerAction.Void() })
        .catch(() => {}); // Fails only while the engine is stopping.
    },
  );
  if (config.alerts.some((rule) => rule.log)) {
    stack.defer(logs.listen((record) => alerts.count(record, clock.wall())));
  }
  return alerts;
}

/** Records the metrics of SDKs and counts workers that connect and disconnect. */
function listen(
  host: EngineHost,
  { workers, sdk, workerCounts }: MetricsHistory,
  stack: AsyncDisposableStack,
): void {
  stack.defer(host.onTelemetry((frame) => workers.record(sdk.receive(frame))));
  stack.defer(host.onEvent((event) => {
    if (event.type === "worker_connected") workerCounts.spawns++;
    if (event.type !== "worker_disconnected") return;
    workerCounts.deaths++;
    workers.leave(event.worker_id);
  }));
}
