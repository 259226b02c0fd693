/**
 * `engine-observability`: what workers log, written to the engine's own log. Always on.
 *
 * Nothing is stored yet; each line names the worker that said it.
 *
 * @module
 */
import { z } from "zod";
import type { Directory } from "../../engine/ports/directory.ts";
import type { Log, LogFields } from "../../engine/ports/log.ts";
import { LOG_VALUE_CHARS_MAX } from "../../sdk/typescript/limits.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { BuiltinWorker } from "../define.ts";
import { fit } from "../shapes.ts";
import { type ObservabilityConfig, parseObservabilityConfig } from "./config.ts";

const Line = z.object({
  message: z.string(),
  data: z.unknown().optional(),
  trace_id: z.string().nullish(),
  span_id: z.string().nullish(),
  service_name: z.string().nullish(),
});

/** The level of a function's name, and the one of the engine's log it is written at. */
const LEVELS = [
  ["trace", "debug"],
  ["debug", "debug"],
  ["info", "info"],
  ["warn", "warn"],
  ["error", "error"],
] as const;

/** Writes what workers log. */
export const observability: BuiltinWorker<ObservabilityConfig> = {
  name: "engine-observability",
  summary: "Traces, logs and metrics of all workers",
  parse: parseObservabilityConfig,
  start(worker, _config, host) {
    const started = new AsyncDisposableStack();
    offerLogging(worker, host.log, host.directory);
    // Place of `started.use(offerMetrics({ worker, host, config: config.metrics, spans, logs }))`;
    // `spans` is a SpanFeed (spans_stored.ts), `logs` a LogFeed (logs_record.ts).
    return Promise.resolve(started);
  },
};

/** Registers `engine::log::*`; each answers with nothing. */
export function offerLogging(
  worker: Pick<Worker, "registerFunction">,
  log: Log,
  directory: Directory,
): void {
  for (const [name, level] of LEVELS) {
    const id = `engine::log::${name}`;
    worker.registerFunction(id, (payload, _metadata, { caller }) => {
      const line = fit(id, Line, payload);
      log[level](line.message, fieldsOf(line, nameOf(caller, directory)));
    }, { description: `Writes a line of level ${name} to the engine's log` });
  }
}

/** Announced, else what can be known of the connection. */
function nameOf(caller: string | undefined, directory: Directory): string | undefined {
  return caller === undefined ? undefined : directory.worker(caller)?.name ?? caller;
}

function fieldsOf(line: z.infer<typeof Line>, worker: string | undefined): LogFields {
  const { data, trace_id, span_id, service_name } = line;
  return {
    worker,
    service: service_name === worker ? undefined : service_name ?? undefined,
    data: data === undefined || data === null ? undefined : trim(JSON.stringify(data)),
    trace_id: trace_id ?? undefined,
    span_id: span_id ?? undefined,
  };
}

function trim(text: string): string {
  return text.length <= LOG_VALUE_CHARS_MAX ? text : `${text.slice(0, LOG_VALUE_CHARS_MAX)}…`;
}
