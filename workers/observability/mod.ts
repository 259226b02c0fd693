/**
 * `engine-observability`: records traces, logs and metrics of all workers and offers them as
 * functions, triggers, `/metrics` and OTLP export. Always running.
 *
 * | where | what |
 * | --- | --- |
 * | `intake.ts` | telemetry frames from workers: parsing, bounds, time budget |
 * | `traces/` | spans: store, index, queries and functions |
 * | `logs/` | log records: store and functions |
 * | `metrics/` | sampling, history, alerts, Prometheus, functions and trigger |
 * | `health/` | readiness, health checks, explanation of a call |
 * | `export/` | OTLP over HTTP; loaded only if configured |
 * | `disk.ts` | traces and logs on disk; loaded only if configured |
 * | `worker_clocks.ts` | the clocks of workers, as far as they differ from the engine's |
 * | `triggers.ts` | the trigger types `log` and `trace`, without feedback |
 *
 * The router records calls (`host.traces`); workers send spans and logs as telemetry.
 *
 * @module
 */
import type { CallTraces } from "../../engine/ports/telemetry.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { BuiltinWorker, EngineHost } from "../kit/define.ts";
import { askEngines } from "../kit/engines.ts";
import {
  type ObservabilityConfig,
  observabilityConfigSchema,
  parseObservabilityConfig,
} from "./config.ts";
import { TelemetryIntake } from "./intake.ts";
import { registerLogFunctions } from "./logs/functions.ts";
import { LogStore } from "./logs/store.ts";
import {
  LogTriggers,
  TraceTriggers,
  TriggerDispatcher,
  WORKER_NAME,
  type WorkerLog,
  workerLog,
} from "./triggers.ts";
import { startMetrics } from "./metrics/mod.ts";
import { Redactor } from "./redact.ts";
import { type RetainedRings, ringsOf } from "./retained.ts";
import { registerBaggageFunctions, registerTraceFunctions } from "./traces/functions.ts";
import { TraceIndex } from "./traces/index.ts";
import { attributeText } from "./traces/span.ts";
import { InternalFunctions, SpanStore } from "./traces/store.ts";
import { SearchTurns } from "./turns.ts";

const MIB = 1024 * 1024;
/** Share of the trace memory for the router's calls; the rest is for spans of workers. */
const CALLS_PART = 0.75;

/** Records traces, logs and metrics. */
export const observability: BuiltinWorker<ObservabilityConfig> = {
  name: WORKER_NAME,
  runsAlways: true,
  summary: "Traces, logs and metrics of all workers",
  parse: parseObservabilityConfig,
  configSchema: observabilityConfigSchema,
  async start(worker, config, host) {
    const started = new AsyncDisposableStack();
    try {
      const parts = assemble(worker, config, host, started);
      started.use(await openDisk(parts, config, host));
      const { spans, logs } = parts;
      const logUsage = () => ({ records: logs.ring.size, bytes: logs.ring.bytes });
      started.use(
        await startMetrics({ worker, host, config: config.metrics, spans, logs, logUsage }),
      );
      listen(parts, host, started);
      return started;
    } catch (thrown) {
      await started.disposeAsync();
      throw thrown;
    }
  },
};

interface ObservabilityParts {
  readonly rings: RetainedRings;
  readonly spans: SpanStore;
  readonly logs: LogStore;
  readonly intake: TelemetryIntake;
  readonly log: WorkerLog;
}

function assemble(
  worker: Worker,
  config: ObservabilityConfig,
  host: EngineHost,
  started: AsyncDisposableStack,
): ObservabilityParts {
  const { clock, directory, engines, traces } = host;
  configure(traces, config);
  const redactor = new Redactor(config.redact);
  const log = workerLog(host.log);
  started.defer(takeRings(config, host));
  const rings = ringsOf(traces, {
    spans: config.traces.memory_mb * MIB * (1 - CALLS_PART),
    logs: config.logs.memory_mb * MIB,
  });
  const internal = started.use(new InternalFunctions(host));
  const isInternal = (namespace: string, id: string): boolean => internal.has(namespace, id);
  const spans = started.use(
    new SpanStore({ clock, traces, ring: rings.spans, redactor, isInternal }),
  );
  const logs = new LogStore({
    clock,
    ring: rings.logs,
    redactor,
    least: config.logs.level,
    functionOf: (trace_id, span_id, since_ms) => functionOf(spans, trace_id, span_id, since_ms),
    ahead: (worker_id) => spans.clocks.ahead(worker_id),
  });
  const index = new TraceIndex(spans, clock);
  const turns = new SearchTurns(clock);
  const isOperator = (caller?: string) =>
    caller !== undefined && directory.worker(caller)?.operator === true;
  const ask = engines &&
    ((function_id: string, payload: Json) => askEngines(worker, engines, function_id, payload));
  registerTraceFunctions(worker, {
    clock,
    traces,
    store: spans,
    index,
    logs: rings.logs,
    turns,
    isOperator,
    directory,
    ask,
  });
  registerLogFunctions(worker, {
    store: logs,
    clock,
    turns,
    directory,
    redactor,
    log: log.unrecorded,
    isOperator,
    ask,
    parentOf: (trace_id, span_id) => parentOf(traces, trace_id, span_id),
  });
  registerBaggageFunctions(worker);
  const shared = { worker, clock, directory, log: log.tagged };
  const dispatcher = new TriggerDispatcher({ ...shared, spans: traces.spans });
  started.adopt(dispatcher, (it) => it.stop());
  registerTriggers(worker, { dispatcher, spans, logs, index, engines }, started);
  const intake = new TelemetryIntake({ clock, log: log.tagged, spans, logs });
  return { rings, spans, logs, intake, log };
}

/** Uses the disk only if the configuration reserves room for it. */
async function openDisk(
  parts: ObservabilityParts,
  config: ObservabilityConfig,
  host: EngineHost,
): Promise<AsyncDisposable> {
  if (config.traces.disk_mb > 0 || config.logs.disk_mb > 0) {
    return await (await import("./disk.ts")).startDisk(parts, config, host);
  }
  parts.rings.isRestored = true; // A later configuration must not restore files of a previous run.
  return new AsyncDisposableStack();
}

/**
 * Takes the memory that the rings may come to fill; the result returns it. It is taken at once, so
 * that a full ring never competes with messages.
 */
function takeRings({ traces, logs }: ObservabilityConfig, { memory, log }: EngineHost): () => void {
  const bytes = (traces.memory_mb + logs.memory_mb) * MIB;
  if (memory.take("rings", bytes)) return () => memory.release("rings", bytes);
  log.warn("traces and logs exceed the memory budget: lower their memory_mb or raise it", {
    settings: "traces.memory_mb, logs.memory_mb, engine.memory_mb",
    missing_bytes: memory.usedBytes + bytes - memory.limitBytes,
  });
  return () => {};
}

function configure(traces: CallTraces, { traces: config }: ObservabilityConfig): void {
  traces.configure({
    enabled: config.enabled,
    ratio: config.sampling,
    rules: config.rules,
    memory_bytes: Math.floor(config.memory_mb * MIB * CALLS_PART),
    payload_chars: config.payload_chars,
  });
}

function registerTriggers(
  worker: Worker,
  { dispatcher, spans, logs, index, engines }: {
    dispatcher: TriggerDispatcher;
    spans: SpanStore;
    logs: LogStore;
    index: TraceIndex;
    engines: EngineHost["engines"];
  },
  started: AsyncDisposableStack,
): void {
  const forLogs = started.adopt(new LogTriggers(dispatcher, engines), (it) => it.stop());
  forLogs.register(worker);
  started.defer(logs.listen((record) => forLogs.onRecord(record)));
  const forTraces = new TraceTriggers({
    dispatcher,
    spans,
    index,
    isInternal: (span) => spans.isInternal(span),
  });
  started.adopt(forTraces, (it) => it.stop()).register(worker);
}

/** Called last, when the stores are ready to receive. */
function listen(
  { intake, logs, log }: ObservabilityParts,
  host: EngineHost,
  started: AsyncDisposableStack,
): void {
  started.defer(host.onTelemetry((frame) => intake.receive(frame)));
  started.defer(host.onPrint((line) => logs.addPrint(line)));
  started.defer(host.onEngineLog((line) => {
    if (!log.isUnrecorded()) logs.addEngineLine(line);
  }));
}

/** The function that a span belongs to, if the span is known. */
function functionOf(
  spans: SpanStore,
  trace_id: string | null,
  span_id: string,
  since_ms: number,
): string | undefined {
  const known = spans.ofTrace(trace_id, span_id);
  if (known) return attributeText(known, "engine.function_id");
  return spans.calls({ span_id, since_ms }, 1)[0]?.function_id;
}

/** The parent span of a running call. */
function parentOf(traces: CallTraces, trace_id: string, span_id: string): string | undefined {
  return traces.find({ trace_id, span_id, running: true }, 1)[0]?.parent_span_id ?? undefined;
}
