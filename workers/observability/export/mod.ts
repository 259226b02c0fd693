/**
 * Exports traces, metrics and logs by OTLP over HTTP, as configured by the `OTEL_*` variables.
 *
 * Loaded only if a variable asks for it. Each signal has a pipeline with its own queue and sender.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { EngineHost } from "../../kit/define.ts";
import type { Component } from "../health/mod.ts";
import type { LogFeed, LogRecord } from "../logs/record.ts";
import type { MetricPoint } from "../metrics/otlp.ts";
import type { PageSources } from "../metrics/prometheus.ts";
import type { SpanFeed, StoredSpan } from "../traces/span.ts";
import { allMetrics, type Exporter, logsRequest, spansRequest } from "./requests.ts";
import { ExportQueue, OtlpSender } from "./sender.ts";
import {
  type ExportSettings,
  readExportSettings,
  type Signal,
  type SignalSettings,
} from "./settings.ts";

/** Deadline of the last export when the engine stops, in milliseconds. */
const OTLP_FLUSH_MS = 2_000;

/** Sources of exported telemetry. */
export interface ExportSources {
  readonly spans: SpanFeed;
  readonly logs: LogFeed;
  readonly page: PageSources;
  /** The latest metrics of SDKs. */
  sdkPoints(): readonly MetricPoint[];
  /** Environment variables; default: those of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** A running export; disposing of it flushes and stops it. */
export interface Export extends AsyncDisposable {
  /** Its status, for `engine::health::check`. */
  component(): Component;
}

/** The export of one signal. */
interface Pipeline {
  readonly signal: Signal;
  readonly sender: OtlpSender;
  /** Sends pending items. */
  flush(): Promise<unknown>;
  /** Stops collecting. */
  stop(): void;
  dropped(): number;
}

/** Starts the configured pipelines; logs configuration problems. */
export function startExport(
  host: Pick<EngineHost, "clock" | "log">,
  sources: ExportSources,
): Export {
  const settings = readExportSettings(sources.env ?? Deno.env.toObject());
  for (const problem of settings.problems) {
    host.log.warn("a setting of the telemetry export cannot be used", { problem });
  }
  const pipelines = (Object.entries(settings.signals) as [Signal, SignalSettings][])
    .map(([signal, each]) => openPipeline(signal, each, settings, host, sources));
  return {
    component: () => componentOf(pipelines, settings),
    [Symbol.asyncDispose]: () => closePipelines(pipelines, host.clock),
  };
}

function openPipeline(
  signal: Signal,
  settings: SignalSettings,
  all: ExportSettings,
  { clock, log }: Pick<EngineHost, "clock" | "log">,
  sources: ExportSources,
): Pipeline {
  const sender = new OtlpSender({ signal, settings, clock, log, fetch: globalThis.fetch });
  const exporter = (): Exporter => ({
    service_name: all.service_name,
    attributes: all.attributes,
    version: sources.page.version,
  });
  log.info("exporting telemetry", { signal, to: new URL(settings.url).host });
  const parts = { signal, sender, clock, settings };
  switch (signal) {
    case "traces":
      return queuePipeline<StoredSpan>(
        parts,
        (push) => sources.spans.listen((spans) => spans.forEach(push)),
        (spans) => sender.send(spansRequest(spans, exporter())),
      );
    case "logs":
      return queuePipeline<LogRecord>(
        parts,
        (push) => sources.logs.listen(push),
        (records) => sender.send(logsRequest(records, exporter())),
      );
    case "metrics":
      return metricsPipeline(
        parts,
        () => allMetrics(sources.page, sources.sdkPoints(), exporter(), clock.wall()),
      );
  }
}

interface PipelineParts {
  readonly signal: Signal;
  readonly sender: OtlpSender;
  readonly clock: Clock;
  readonly settings: SignalSettings;
}

function queuePipeline<T>(
  { signal, sender, clock, settings }: PipelineParts,
  listen: (push: (item: T) => void) => () => void,
  send: (items: readonly T[]) => Promise<unknown>,
): Pipeline {
  const queue = new ExportQueue<T>({
    clock,
    itemsMax: settings.queue_max,
    batchMax: settings.batch_max,
    delayMs: settings.delay_ms,
    send,
  });
  const stop = listen((item) => queue.push(item));
  return {
    signal,
    sender,
    flush: () => queue.flush(),
    stop: () => {
      stop();
      queue.close();
    },
    dropped: () => queue.dropped,
  };
}

/** Skips a reading while the previous one is being sent: the next one supersedes it. */
function metricsPipeline(
  { signal, sender, clock, settings }: PipelineParts,
  read: () => ReturnType<typeof allMetrics>,
): Pipeline {
  let sending: Promise<unknown> | undefined;
  const send = (): Promise<unknown> =>
    sending ??= sender.send(read()).finally(() => sending = undefined);
  let cancel = clock.after(settings.delay_ms, function again(): void {
    cancel = clock.after(settings.delay_ms, again);
    void send();
  });
  return { signal, sender, flush: send, stop: () => cancel(), dropped: () => 0 };
}

/** Flushes all pipelines within {@linkcode OTLP_FLUSH_MS}, then aborts. */
async function closePipelines(pipelines: readonly Pipeline[], clock: Clock): Promise<void> {
  for (const pipeline of pipelines) pipeline.stop();
  if (pipelines.length === 0) return;
  const late = Promise.withResolvers<void>();
  const cancel = clock.after(OTLP_FLUSH_MS, () => late.resolve());
  const flushed = Promise.all(pipelines.map((pipeline) => pipeline.flush()));
  await Promise.race([flushed, late.promise]);
  cancel();
  for (const { sender } of pipelines) sender.close();
  await flushed;
}

function componentOf(pipelines: readonly Pipeline[], { problems }: ExportSettings): Component {
  const details = pipelines.flatMap(({ signal, sender, dropped }) => [
    [`${signal}_sent`, sender.counts.sent] as const,
    [`${signal}_given_up`, sender.counts.given_up] as const,
    [`${signal}_dropped`, dropped()] as const,
  ]);
  return {
    status: pipelines.length === 0 ? "disabled" : "healthy",
    details: { ...Object.fromEntries(details), problems: problems.length },
  };
}
