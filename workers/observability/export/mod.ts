/**
 * Exports traces, metrics and logs to where the `OTEL_*` variables say.
 *
 * Without such a variable nothing is listened to and nothing costs anything.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import { OTLP_FLUSH_MS } from "../../limits.ts";
import type { EngineHost } from "../../kit/define.ts";
import type { Component } from "../health/mod.ts";
import type { LogFeed, LogRecord } from "../logs/record.ts";
import type { MetricPoint } from "../metrics/otlp.ts";
import { allMetrics, type Exporter, logsRequest, spansRequest } from "./requests.ts";
import { ExportQueue, OtlpSender } from "./sender.ts";
import {
  type ExportSettings,
  readExportSettings,
  type Signal,
  type SignalSettings,
} from "./settings.ts";
import type { PageSources } from "../metrics/prometheus.ts";
import type { SpanFeed, StoredSpan } from "../traces/span.ts";

/** What is exported. */
export interface ExportSources {
  readonly spans: SpanFeed;
  readonly logs: LogFeed;
  readonly page: PageSources;
  /** What SDKs measured of late. */
  sdkPoints(): readonly MetricPoint[];
  /** Variables of the environment; left out: those of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** An export that goes on until it is disposed of. */
export interface Export extends AsyncDisposable {
  /** How it fares, for `engine::health::check`. */
  component(): Component;
}

/** One signal on its way. */
interface Lane {
  readonly signal: Signal;
  readonly sender: OtlpSender;
  /** Sends what waits. */
  flush(): Promise<unknown>;
  /** Collects no more. */
  stop(): void;
  dropped(): number;
}

/** Starts what the variables ask for; warns of what cannot be done. */
export function startExport(
  host: Pick<EngineHost, "clock" | "log">,
  sources: ExportSources,
): Export {
  const settings = readExportSettings(sources.env ?? Deno.env.toObject());
  for (const problem of settings.problems) host.log.warn("export of telemetry", { problem });
  const lanes = (Object.entries(settings.signals) as [Signal, SignalSettings][])
    .map(([signal, each]) => openLane(signal, each, settings, host, sources));
  return {
    component: () => componentOf(lanes, settings),
    [Symbol.asyncDispose]: () => endLanes(lanes, host.clock),
  };
}

function openLane(
  signal: Signal,
  settings: SignalSettings,
  all: ExportSettings,
  { clock, log }: Pick<EngineHost, "clock" | "log">,
  sources: ExportSources,
): Lane {
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
      return queueLane<StoredSpan>(
        parts,
        (push) => sources.spans.listen((spans) => spans.forEach(push)),
        (spans) => sender.send(spansRequest(spans, exporter())),
      );
    case "logs":
      return queueLane<LogRecord>(
        parts,
        (push) => sources.logs.listen(push),
        (records) => sender.send(logsRequest(records, exporter())),
      );
    case "metrics":
      return metricsLane(
        parts,
        () => allMetrics(sources.page, sources.sdkPoints(), exporter(), clock.wall()),
      );
  }
}

interface LaneParts {
  readonly signal: Signal;
  readonly sender: OtlpSender;
  readonly clock: Clock;
  readonly settings: SignalSettings;
}

function queueLane<T>(
  { signal, sender, clock, settings }: LaneParts,
  listen: (push: (item: T) => void) => () => void,
  send: (items: readonly T[]) => Promise<unknown>,
): Lane {
  const queue = new ExportQueue<T>({
    clock,
    most: settings.queue_max,
    batch: settings.batch_max,
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

/** A reading that falls due while one is still on its way is left out: the next says more. */
function metricsLane(
  { signal, sender, clock, settings }: LaneParts,
  read: () => ReturnType<typeof allMetrics>,
): Lane {
  let sending: Promise<unknown> | undefined;
  const send = (): Promise<unknown> =>
    sending ??= sender.send(read()).finally(() => sending = undefined);
  let cancel = clock.after(settings.delay_ms, function again(): void {
    cancel = clock.after(settings.delay_ms, again);
    void send();
  });
  return { signal, sender, flush: send, stop: () => cancel(), dropped: () => 0 };
}

/** Sends what waits, for a moment; then gives up. */
async function endLanes(lanes: readonly Lane[], clock: Clock): Promise<void> {
  for (const lane of lanes) lane.stop();
  if (lanes.length === 0) return;
  const late = Promise.withResolvers<void>();
  const cancel = clock.after(OTLP_FLUSH_MS, () => late.resolve());
  const flushed = Promise.all(lanes.map((lane) => lane.flush()));
  await Promise.race([flushed, late.promise]);
  cancel();
  for (const { sender } of lanes) sender.close();
  await flushed;
}

function componentOf(lanes: readonly Lane[], { problems }: ExportSettings): Component {
  const details = lanes.flatMap(({ signal, sender, dropped }) => [
    [`${signal}_sent`, sender.counts.sent] as const,
    [`${signal}_given_up`, sender.counts.given_up] as const,
    [`${signal}_dropped`, dropped()] as const,
  ]);
  return {
    status: lanes.length === 0 ? "disabled" : "healthy",
    details: { ...Object.fromEntries(details), problems: problems.length },
  };
}
