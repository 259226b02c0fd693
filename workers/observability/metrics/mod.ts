/**
 * Metrics of the engine: sampled each second, kept, told, served, watched and exported.
 *
 * This file only puts the parts together; `mod.ts` calls {@linkcode offerMetrics} once.
 *
 * @module
 */
import { TriggerAction } from "../../../sdk/typescript/options.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import type { EngineHost } from "../../kit/define.ts";
import { historyOf, type MetricsHistory } from "../retained.ts";
import * as v from "../../kit/schema.ts";
import { fit } from "../../kit/fit.ts";
import { HEALTH_MEASURE_MS } from "../../limits.ts";
import { Alerts } from "./alerts.ts";
import type { startExport } from "../export/mod.ts";
import { readExportSettings } from "../export/settings.ts";
import { type Component, ReadyCheck } from "../health/health.ts";
import type { HealthCheck, HealthParts } from "../health/checks.ts";
import type { LogFeed } from "../logs/record.ts";
import type { SpanFeed } from "../traces/span.ts";
import type { MetricsSettings } from "../config.ts";
import { offerMetricsFunctions } from "./functions.ts";
import type { PageSources } from "./prometheus.ts";
import { readProcess, Sampler } from "./sampler.ts";
import { MetricsTriggers } from "./triggers.ts";
import type { WorkerLook } from "./workers.ts";

/** What metrics are made of; spans and logs come from the other half of the worker. */
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

const Nothing = v.object({});

/** Starts everything about metrics; the result ends it. */
export async function offerMetrics(given: MetricsParts): Promise<AsyncDisposable> {
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
  const alerts = watchAlerts(worker, config, host);
  stack.defer(sampler.listen((second, sample) => {
    history.series.add(second, sample);
    history.rollups.add(second, sample);
    history.recent.add(second);
    alerts.evaluate(sample.engine, sample.at_ms);
  }));
  stack.use(new MetricsTriggers(worker, sampler)).offer(worker);
  listen(host, history, stack);
  offerMetricsFunctions(worker, { clock, meters, directory, sampler, alerts, ...history });
  const page = pageOf(host, sampler, workers);
  servePages(host, config, page, stack);
  const { spans, logs, env } = given;
  const sdkPoints = () => history.sdk.points();
  const exporting = startExport &&
    stack.use(startExport(host, { spans, logs, env, page, sdkPoints }));
  const otel = (): Component =>
    exporting?.component() ?? { status: "disabled", details: { problems: 0 } };
  offerHealth(worker, host, history, () => componentsOf(given, history, otel()));
  return stack;
}

/** What exports telemetry; seven files, for those only whose environment asks for it. */
async function loadExport(
  env: Readonly<Record<string, string>>,
): Promise<typeof startExport | undefined> {
  const { signals, problems } = readExportSettings(env);
  if (Object.keys(signals).length === 0 && problems.length === 0) return undefined;
  return (await import("../export/mod.ts")).startExport;
}

function pageOf(host: EngineHost, sampler: Sampler, workers: WorkerLook): PageSources {
  const { meters, store, traces } = host;
  return {
    meters,
    sampler,
    workers,
    store,
    traces,
    process: readProcess,
    get version() {
      return host.supervision.info().version;
    },
    get started_at_ms() {
      return host.supervision.info().started_at_ms;
    },
  };
}

/** The parts of `engine::health::check`. */
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

/** Hears what SDKs measure and who comes and leaves. */
function listen(
  host: EngineHost,
  { workers, sdk, comings }: MetricsHistory,
  stack: AsyncDisposableStack,
): void {
  stack.defer(host.onTelemetry((frame) => workers.hear(sdk.hear(frame))));
  stack.defer(host.onEvent((event) => {
    if (event.type === "worker_connected") comings.spawns++;
    if (event.type !== "worker_disconnected") return;
    comings.deaths++;
    workers.leave(event.worker_id);
  }));
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
    stack.defer(host.servePage("/metrics", async () => {
      page.sampler.noteReader();
      const { metricsPage } = await import("./prometheus.ts");
      const { PROMETHEUS_TYPE } = await import("./prometheus.ts");
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
  { clock, supervision, directory, store, meters }: EngineHost,
  { workers, series, recent }: MetricsHistory,
  components: () => Readonly<Record<string, Component>>,
): void {
  worker.registerFunction("engine::health::check", (payload) => {
    fit("engine::health::check", Nothing, payload ?? {});
    const { version } = supervision.info();
    return { status: "healthy", components: components(), timestamp: clock.wall(), version };
  }, { description: "Which parts of observability are on" });

  const parts: HealthParts = {
    clock,
    directory,
    store,
    workers,
    bounds_ms: meters.bounds_ms,
    engine: (seconds) => series.engine(seconds),
    recent: () => recent.read(),
  };
  let last: Promise<HealthCheck[]> | undefined;
  let lastMs = -Infinity;
  worker.registerFunction("engine::health::measure", async (payload) => {
    fit("engine::health::measure", Nothing, payload ?? {});
    if (!last || clock.now() - lastMs >= HEALTH_MEASURE_MS) {
      lastMs = clock.now();
      last = import("../health/checks.ts").then(({ measureHealth }) => measureHealth(parts));
    }
    return { checks: await last, timestamp: clock.wall() };
  }, { description: "Measures what may be wrong and says what to do about it" });
}
