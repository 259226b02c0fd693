/**
 * Metrics of the engine: sampled each second, kept, told, served, watched and exported.
 *
 * This file only puts the parts together; `mod.ts` calls {@linkcode offerMetrics} once.
 *
 * @module
 */
import { z } from "zod";
import { HEALTH_MEASURE_MS } from "../../sdk/typescript/limits.ts";
import { TriggerAction } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { EngineHost } from "../define.ts";
import { fit } from "../shapes.ts";
import { Alerts } from "./alerts.ts";
import { startExport } from "./export.ts";
import { type Component, ReadyCheck } from "./health.ts";
import { type HealthCheck, type HealthParts, measureHealth } from "./health_checks.ts";
import type { LogFeed } from "./logs_record.ts";
import type { MetricsSettings } from "./metrics_config.ts";
import { SdkMetrics } from "./metrics_frames.ts";
import { offerMetricsFunctions } from "./metrics_functions.ts";
import { MetricsTriggers } from "./metrics_triggers.ts";
import { PROMETHEUS_TYPE } from "./prometheus.ts";
import { metricsPage, type PageSources } from "./prometheus_page.ts";
import { Rollups } from "./rollups.ts";
import { Sampler } from "./samples.ts";
import { readProcess } from "./samples_process.ts";
import { RecentDeltas } from "./samples_recent.ts";
import { SeriesBook } from "./samples_series.ts";
import { WorkerLook } from "./samples_workers.ts";
import type { SpanFeed } from "./spans_stored.ts";

/** What metrics are made of. */
export interface MetricsParts {
  readonly worker: Worker;
  readonly host: EngineHost;
  readonly config: MetricsSettings;
  /** Spans that ended, to be exported. */
  readonly spans: SpanFeed;
  /** Log records, to be exported. */
  readonly logs: LogFeed;
  /** How full the ring of log records is, for `engine::health::check`. */
  logUsage?(): Component["details"];
  /** Variables of the environment; left out: those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

const Nothing = z.object({});

/** Starts everything about metrics; the result ends it. */
export function offerMetrics(given: MetricsParts): AsyncDisposable {
  const { worker, host, config } = given;
  const stack = new AsyncDisposableStack();
  const { clock, meters, directory, store } = host;
  const workers = new WorkerLook(directory, host.supervision, clock);
  const process = readProcess;
  const sampler = stack.use(
    new Sampler({ clock, meters, directory, stats: store.stats, workers, process }),
  );
  const series = new SeriesBook(meters);
  const rollups = new Rollups(meters);
  const recent = new RecentDeltas();
  const alerts = watchAlerts(worker, config, host);
  const sdk = new SdkMetrics(clock);
  stack.defer(sampler.listen((second, sample) => {
    series.add(second, sample);
    rollups.add(second, sample);
    recent.add(second);
    alerts.evaluate(sample.engine, sample.at_ms);
  }));
  stack.use(new MetricsTriggers(worker, sampler)).offer(worker);
  stack.defer(host.onTelemetry((frame) => workers.hear(sdk.hear(frame))));
  const comings = countWorkers(host, workers, stack);
  offerMetricsFunctions(worker, {
    clock,
    meters,
    directory,
    sampler,
    series,
    rollups,
    alerts,
    sdk,
    comings,
  });
  const page: PageSources = {
    meters,
    sampler,
    workers,
    store,
    traces: host.traces,
    get version() {
      return host.supervision.info().version;
    },
    get started_at_ms() {
      return host.supervision.info().started_at_ms;
    },
    process,
  };
  servePages(host, config, page, stack);
  const exporting = stack.use(startExport(host, {
    spans: given.spans,
    logs: given.logs,
    env: given.env,
    page,
    sdkPoints: () => sdk.points(),
  }));
  offerHealth(worker, host, {
    parts: {
      clock,
      directory,
      store,
      workers,
      bounds_ms: meters.bounds_ms,
      engine: (seconds) => series.engine(seconds),
      recent: () => recent.read(),
    },
    components: () => ({
      otel: exporting.component(),
      metrics: { status: "healthy", details: { sdk_metrics: sdk.points().length } },
      logs: { status: "healthy", details: given.logUsage?.() ?? {} },
      spans: {
        status: host.traces.settings.enabled ? "healthy" : "disabled",
        details: { ...host.traces.usage },
      },
    }),
  });
  return stack;
}

function watchAlerts(
  worker: Pick<Worker, "trigger">,
  { alerts }: MetricsSettings,
  { clock, log }: EngineHost,
): Alerts {
  return new Alerts(alerts, clock.wall(), log, (function_id, alert) => {
    const payload = alert as unknown as Json;
    worker.trigger({ function_id, payload, action: TriggerAction.Void() })
      .catch(() => {}); // The engine is stopping; nobody is left to hear of it.
  });
}

/** Workers that came and left; forgets what those said that left. */
function countWorkers(
  host: EngineHost,
  workers: WorkerLook,
  stack: AsyncDisposableStack,
): { spawns: number; deaths: number } {
  const comings = { spawns: 0, deaths: 0 };
  stack.defer(host.onEvent((event) => {
    if (event.type === "worker_connected") comings.spawns++;
    if (event.type !== "worker_disconnected") return;
    comings.deaths++;
    workers.leave(event.worker_id);
  }));
  return comings;
}

function servePages(
  host: EngineHost,
  { prometheus }: MetricsSettings,
  page: PageSources,
  stack: AsyncDisposableStack,
): void {
  const ready = new ReadyCheck(host);
  const json = (status: number, value: unknown) => ({
    status,
    contentType: "application/json; charset=utf-8",
    body: `${JSON.stringify(value)}\n`,
  });
  if (prometheus) {
    stack.defer(host.servePage("/metrics", () => {
      page.sampler.noteReader();
      return { status: 200, contentType: PROMETHEUS_TYPE, body: metricsPage(page) };
    }));
  }
  stack.defer(host.servePage("/healthz", () => json(200, { status: "ok" }), { open: true }));
  stack.defer(host.servePage("/readyz", async () => {
    const answer = await ready.read();
    return json(answer.ready ? 200 : 503, answer);
  }, { open: true }));
}

function offerHealth(
  worker: Pick<Worker, "registerFunction">,
  { clock, supervision }: EngineHost,
  { parts, components }: {
    readonly parts: HealthParts;
    components(): Readonly<Record<string, Component>>;
  },
): void {
  worker.registerFunction("engine::health::check", (payload) => {
    fit("engine::health::check", Nothing, payload ?? {});
    const { version } = supervision.info();
    return { status: "healthy", components: components(), timestamp: clock.wall(), version };
  }, { description: "Which parts of observability are on" });

  let last: Promise<HealthCheck[]> | undefined;
  let lastMs = -Infinity;
  worker.registerFunction("engine::health::measure", async (payload) => {
    fit("engine::health::measure", Nothing, payload ?? {});
    if (!last || clock.now() - lastMs >= HEALTH_MEASURE_MS) {
      lastMs = clock.now();
      last = measureHealth(parts);
    }
    return { checks: await last, timestamp: clock.wall() };
  }, { description: "Measures what may be wrong and says what to do about it" });
}
