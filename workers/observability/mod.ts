/**
 * `engine-observability`: traces, logs and metrics of all workers, kept, shown and told. Always on.
 *
 * This file joins the parts. Calls are recorded by the router (`host.traces`); spans and logs of
 * workers come as telemetry, and lie in rings that outlive an edit of the configuration.
 *
 * @module
 */
import type { CallTraces } from "../../engine/ports/telemetry.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { BuiltinWorker, EngineHost } from "../kit/define.ts";
import { registerBaggageFunctions, registerTraceFunctions } from "./traces/functions.ts";
import { type ObservabilityConfig, parseObservabilityConfig } from "./config.ts";
import { type LogFunctionsSetup, offerLogging, offerLogs } from "./logs/functions.ts";
import { TriggerDispatcher, WORKER_NAME, type WorkerLog, workerLog } from "./trigger_dispatcher.ts";
import { LogStore } from "./logs/store.ts";
import { startMetrics } from "./metrics/mod.ts";
import { Redactor } from "./redact.ts";
import { InternalFunctions, SpanStore } from "./traces/store.ts";
import { attributeText } from "./traces/span.ts";
import { TraceIndex } from "./traces/index.ts";
import { TelemetryIntake } from "./intake.ts";
import { type RetainedRings, ringsOf } from "./retained.ts";
import { LogTriggers } from "./logs/trigger.ts";
import { TraceTriggers } from "./traces/trigger.ts";

const MIB = 1024 * 1024;
/** Of the memory for traces: what the router's calls get; spans of workers get the rest. */
const CALLS_PART = 0.75;

/** Keeps what happens, and tells who asks. */
export const observability: BuiltinWorker<ObservabilityConfig> = {
  name: WORKER_NAME,
  summary: "Traces, logs and metrics of all workers",
  parse: parseObservabilityConfig,
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

/** What the parts share. */
export interface ObservabilityParts {
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
  const { clock, directory, traces } = host;
  configure(traces, config);
  const redactor = new Redactor(config.redact);
  const log = workerLog(host.log);
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
  });
  const index = new TraceIndex(spans, clock);
  const isOperator = (caller: string | undefined): boolean =>
    caller !== undefined && directory.worker(caller)?.operator === true;
  const isInEngine = (id: string): boolean => directory.worker(id)?.builtin === true;
  const logRing = rings.logs;
  registerTraceFunctions(worker, {
    clock,
    traces,
    store: spans,
    index,
    logs: logRing,
    isOperator,
    isInEngine,
  });
  offerTheLogs(worker, { store: logs, clock, directory, redactor, log: log.unrecorded }, traces);
  registerBaggageFunctions(worker);
  const dispatcher = new TriggerDispatcher({
    worker,
    clock,
    directory,
    log: log.tagged,
    spans: traces.spans,
  });
  offerTriggers(worker, { dispatcher, spans, logs, index }, started);
  const intake = new TelemetryIntake({ clock, log: log.tagged, spans, logs });
  return { rings, spans, logs, intake, log };
}

/** Read only where the configuration gives it room. */
async function openDisk(
  parts: ObservabilityParts,
  config: ObservabilityConfig,
  host: EngineHost,
): Promise<AsyncDisposable> {
  if (config.traces.disk_mb > 0 || config.logs.disk_mb > 0) {
    return await (await import("./disk.ts")).startDisk(parts, config, host);
  }
  parts.rings.isRestored = true; // What an engine before this one left is not read later either.
  return new AsyncDisposableStack();
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

function offerTheLogs(
  worker: Worker,
  parts: Omit<LogFunctionsSetup, "parentOf">,
  traces: CallTraces,
): void {
  const parentOf = (trace_id: string, span_id: string): string | undefined =>
    traces.find({ trace_id, span_id, running: true }, 1)[0]?.parent_span_id ?? undefined;
  const setup = { ...parts, parentOf };
  offerLogging(worker, setup);
  offerLogs(worker, setup);
}

function offerTriggers(
  worker: Worker,
  { dispatcher, spans, logs, index }: {
    dispatcher: TriggerDispatcher;
    spans: SpanStore;
    logs: LogStore;
    index: TraceIndex;
  },
  started: AsyncDisposableStack,
): void {
  const forLogs = started.adopt(new LogTriggers(dispatcher), (it) => it.stop());
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

/** Last: nothing may come before there is a place for it. */
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
