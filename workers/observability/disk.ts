/**
 * Traces and logs on disk, so that they outlive the engine: `<data>/telemetry/*.jsonl`.
 *
 * One JSON object per line, without secrets, as spans and records lie in the rings. Off unless the
 * configuration gives it room.
 *
 * @module
 */
import * as shape from "../kit/mod.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { EngineHost } from "../kit/define.ts";
import type { ObservabilityConfig } from "./config.ts";
import { LineFiles } from "./disk_files.ts";
import { DiskWriter } from "./disk_writer.ts";
import type { OwnLog } from "./logs/own.ts";
import { type LogRecord, type NewLog, SEVERITIES } from "./logs/record.ts";
import type { LogStore } from "./logs/store.ts";
import type { SpanStore } from "./traces/spans_store.ts";
import type { StoredSpan } from "./traces/spans_stored.ts";
import type { KeptRings } from "./traces/kept.ts";

const MIB = 1024 * 1024;
/** A line on disk is about as long as what it needs in memory. */
const READ_FACTOR = 2;

/** What goes to disk, and where it comes back to. */
export interface DiskParts {
  readonly rings: KeptRings;
  readonly spans: SpanStore;
  readonly logs: LogStore;
  readonly own: OwnLog;
}

const Value = shape.unknown().transform((value) => value as Json);
const Id = shape.string().nullable();

const SpanLine = shape.object({
  trace_id: shape.string(),
  span_id: shape.string(),
  parent_span_id: Id,
  name: shape.string(),
  service_name: shape.string(),
  start_ms: shape.number(),
  end_ms: shape.number().nullable(),
  status: shape.oneOf(["ok", "error", "unset"]),
  status_description: shape.string().nullable(),
  attributes: shape.array(shape.tuple([shape.string(), Value])),
  events: shape.array(Value),
  links: shape.array(Value),
  scope_name: shape.string().nullable(),
  scope_version: shape.string().nullable(),
});

const LogLine = shape.object({
  at_ms: shape.number(),
  observed_ms: shape.number(),
  severity: shape.oneOf(SEVERITIES),
  body: shape.string(),
  attributes: shape.record(Value),
  trace_id: Id,
  span_id: Id,
  service_name: shape.string(),
  worker: shape.string().nullable(),
  replica: shape.number().nullable(),
  source: shape.oneOf(["logger", "output", "engine", "function"]),
  function_id: shape.string().nullable(),
  scope_name: shape.string().nullable(),
});

/**
 * Reads what an engine before this one left, and writes from now on what the configuration has room
 * for. A disk that fails costs the telemetry, not the engine: the log says so.
 */
export async function startDisk(
  parts: DiskParts,
  config: ObservabilityConfig,
  host: EngineHost,
): Promise<AsyncDisposable> {
  const started = new AsyncDisposableStack();
  const { rings, spans, logs } = parts;
  const isFirst = !rings.isRestored;
  rings.isRestored = true;
  const begin = async (
    name: string,
    megabytes: number,
    memoryBytes: number,
    restore: (line: unknown) => void,
  ): Promise<DiskWriter | undefined> => {
    if (megabytes === 0) return undefined;
    const folder = `${host.supervision.info().data_directory}/telemetry`;
    const files = new LineFiles(folder, name, megabytes * MIB);
    try {
      await files.find();
      if (isFirst) await readBack(files, memoryBytes * READ_FACTOR, restore);
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      parts.own.own.warn("telemetry on disk cannot be used", { kind: name, reason });
      return undefined;
    }
    return started.use(new DiskWriter({ clock: host.clock, log: parts.own.own, files, name }));
  };
  const { traces, logs: logConfig } = config;
  const spanLines = await begin("traces", traces.disk_mb, traces.memory_mb * MIB / 4, (line) => {
    rings.spans.add(SpanLine.parse(line));
  });
  const logLines = await begin("logs", logConfig.disk_mb, logConfig.memory_mb * MIB, (line) => {
    rings.logs.add(LogLine.parse(line));
  });
  if (spanLines) {
    started.defer(spans.listen((ended) => writeSpans(spanLines, ended), true));
    started.defer(spans.onClear(() => spanLines.clear()));
    started.defer(() => spans.flush());
  }
  if (logLines) {
    started.defer(logs.listen((record) => writeLog(logLines, record)));
    started.defer(logs.onClear(() => logLines.clear()));
  }
  return started;
}

/** Lines that were cut or changed are left out. */
async function readBack(
  files: LineFiles,
  bytes: number,
  restore: (line: unknown) => void,
): Promise<void> {
  for await (const line of files.lines(bytes)) {
    try {
      restore(JSON.parse(line));
    } catch {
      continue; // Cut off by a crash, or not ours.
    }
  }
}

function writeSpans(lines: DiskWriter, spans: readonly StoredSpan[]): void {
  for (const span of spans) lines.add(JSON.stringify(span));
}

function writeLog(lines: DiskWriter, { seq: _seq, ...log }: LogRecord): void {
  const line: NewLog = log;
  lines.add(JSON.stringify(line));
}
