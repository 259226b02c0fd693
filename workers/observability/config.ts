/**
 * What `engine-observability` may be told, checked, with all defaults in place.
 *
 * @module
 */
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import {
  LOG_MEMORY_MB,
  TELEMETRY_MB_MAX,
  TRACE_MEMORY_MB,
  TRACE_PAYLOAD_CHARS,
  TRACE_PAYLOAD_CHARS_MAX,
} from "../limits.ts";
import { AlertRules } from "./metrics/alerts.ts";

const Rate = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const Megabytes = v.int(0, TELEMETRY_MB_MAX);

const Traces = v.strictObject({
  /** `false`: no spans at all; meters and logs go on. */
  enabled: v.optional(v.boolean(), true),
  /** Part of new traces that is recorded. */
  sampling: v.optional(Rate, 1),
  /** Exceptions; the first that fits a trace's first function wins. */
  rules: v.optional(v.list(v.strictObject({ operation: v.text(1), rate: Rate }), 1_000), []),
  memory_mb: v.optional(v.pipe(Megabytes, v.minValue(1)), TRACE_MEMORY_MB),
  /** 0: nothing is written. */
  disk_mb: v.optional(Megabytes, 0),
  /** Longest payload and result that is kept, in characters; 0: none is. */
  payload_chars: v.optional(v.int(0, TRACE_PAYLOAD_CHARS_MAX), TRACE_PAYLOAD_CHARS),
});

const Logs = v.strictObject({
  memory_mb: v.optional(v.pipe(Megabytes, v.minValue(1)), LOG_MEMORY_MB),
  /** 0: nothing is written. */
  disk_mb: v.optional(Megabytes, 0),
  /** What is less is not kept. */
  level: v.optional(v.picklist(["trace", "debug", "info", "warn", "error"]), "debug"),
});

/** Checked, with all defaults in place. */
export const MetricsConfig = v.strictObject({
  /** Serves `/metrics` on the worker port. */
  prometheus: v.optional(v.boolean(), true),
  alerts: AlertRules,
});

/** What metrics may be told. */
export type MetricsSettings = v.InferOutput<typeof MetricsConfig>;

/** A member's name, in which `*` stands for anything, or a JSON pointer such as `/card/number`. */
const Redacted = v.text(1, 200);

const Config = v.strictObject({
  traces: v.optional(Traces, {}),
  logs: v.optional(Logs, {}),
  redact: v.optional(v.list(Redacted, 1_000), []),
  metrics: v.optional(MetricsConfig, {}),
});

/** Configuration of `engine-observability`. */
export type ObservabilityConfig = v.InferOutput<typeof Config>;

/** Checks the `config` of the entry in config.yaml. @throws {SchemaError} With every problem. */
export function parseObservabilityConfig(raw: unknown): ObservabilityConfig {
  return fitConfig(Config, raw);
}
