/**
 * What `engine-observability` may be told, checked, with all defaults in place.
 *
 * @module
 */
import * as shape from "../kit/mod.ts";
import {
  LOG_MEMORY_MB,
  TELEMETRY_MB_MAX,
  TRACE_MEMORY_MB,
  TRACE_PAYLOAD_CHARS,
  TRACE_PAYLOAD_CHARS_MAX,
} from "../limits.ts";
import { AlertRules } from "./metrics/alerts.ts";

const Rate = shape.number().min(0).max(1);
const Megabytes = shape.int().min(0).max(TELEMETRY_MB_MAX);

const Traces = shape.strictObject({
  /** `false`: no spans at all; meters and logs go on. */
  enabled: shape.boolean().default(true),
  /** Part of new traces that is recorded. */
  sampling: Rate.default(1),
  /** Exceptions; the first that fits a trace's first function wins. */
  rules: shape.array(shape.strictObject({ operation: shape.string().min(1), rate: Rate })).max(
    1_000,
  )
    .default([]),
  memory_mb: Megabytes.min(1).default(TRACE_MEMORY_MB),
  /** 0: nothing is written. */
  disk_mb: Megabytes.default(0),
  /** Longest payload and result that is kept, in characters; 0: none is. */
  payload_chars: shape.int().min(0).max(TRACE_PAYLOAD_CHARS_MAX).default(TRACE_PAYLOAD_CHARS),
});

const Logs = shape.strictObject({
  memory_mb: Megabytes.min(1).default(LOG_MEMORY_MB),
  /** 0: nothing is written. */
  disk_mb: Megabytes.default(0),
  /** What is less is not kept. */
  level: shape.oneOf(["trace", "debug", "info", "warn", "error"]).default("debug"),
});

/** Checked, with all defaults in place. */
export const MetricsConfig = shape.strictObject({
  /** Serves `/metrics` on the worker port. */
  prometheus: shape.boolean().default(true),
  alerts: AlertRules,
});

/** What metrics may be told. */
export type MetricsSettings = shape.Output<typeof MetricsConfig>;

/** A member's name, in which `*` stands for anything, or a JSON pointer such as `/card/number`. */
const Redacted = shape.string().min(1).max(200);

const Config = shape.strictObject({
  traces: Traces.prefault({}),
  logs: Logs.prefault({}),
  redact: shape.array(Redacted).max(1_000).default([]),
  metrics: MetricsConfig.prefault({}),
});

/** Configuration of `engine-observability`. */
export type ObservabilityConfig = shape.Output<typeof Config>;

/** Checks the `config` of the entry in config.yaml. @throws {ShapeError} With every problem. */
export function parseObservabilityConfig(raw: unknown): ObservabilityConfig {
  return Config.parse(raw ?? {});
}
