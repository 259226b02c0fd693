/**
 * The configuration of `engine-observability`: schema and defaults.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { fitConfig } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { AlertRules } from "./metrics/alerts.ts";

/** Default memory for recorded spans, those of workers included, in MiB. */
const TRACE_MEMORY_MB = 32;
/** Default memory for log records, in MiB. */
const LOG_MEMORY_MB = 16;
/** Largest memory or disk space of one kind of telemetry, in MiB. */
const TELEMETRY_MB_MAX = 65_536;
/** Default bound of recorded payloads and results, in characters. */
const TRACE_PAYLOAD_CHARS = 2_048;
/** Largest `payload_chars`. */
const TRACE_PAYLOAD_CHARS_MAX = 65_536;

const Rate = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const Megabytes = v.int(0, TELEMETRY_MB_MAX);

const Traces = v.strictObject({
  /** `false`: records no spans; meters and logs are unaffected. */
  enabled: v.optional(v.boolean(), true),
  /** Fraction of new traces that is recorded. */
  sampling: v.optional(Rate, 1),
  /** Overrides of `sampling`; the first rule that matches a trace's first function applies. */
  rules: v.optional(v.list(v.strictObject({ operation: v.text(1), rate: Rate }), 1_000), []),
  memory_mb: v.optional(v.pipe(Megabytes, v.minValue(1)), TRACE_MEMORY_MB),
  /** 0: no files. */
  disk_mb: v.optional(Megabytes, 0),
  /** Longest recorded payload and result, in characters; 0: none. */
  payload_chars: v.optional(v.int(0, TRACE_PAYLOAD_CHARS_MAX), TRACE_PAYLOAD_CHARS),
});

const Logs = v.strictObject({
  memory_mb: v.optional(v.pipe(Megabytes, v.minValue(1)), LOG_MEMORY_MB),
  /** 0: no files. */
  disk_mb: v.optional(Megabytes, 0),
  /** Less severe records are discarded. */
  level: v.optional(v.picklist(["trace", "debug", "info", "warn", "error"]), "debug"),
});

/** The `metrics` section. */
export const MetricsConfig = v.strictObject({
  /** Serves `/metrics` on the worker port. */
  prometheus: v.optional(v.boolean(), true),
  alerts: AlertRules,
});

/** The `metrics` section with its defaults applied. */
export type MetricsSettings = v.InferOutput<typeof MetricsConfig>;

/** A member name, in which `*` matches anything, or a JSON pointer such as `/card/number`. */
const Redacted = v.text(1, 200);

const Config = v.strictObject({
  traces: v.optional(Traces, {}),
  logs: v.optional(Logs, {}),
  redact: v.optional(v.list(Redacted, 1_000), []),
  metrics: v.optional(MetricsConfig, {}),
});

/** Configuration of `engine-observability`, with its defaults applied. */
export type ObservabilityConfig = v.InferOutput<typeof Config>;

/** Parses the worker's `config` in config.yaml. @throws {SchemaError} With every problem. */
export function parseObservabilityConfig(raw: unknown): ObservabilityConfig {
  return fitConfig(Config, raw);
}

/** JSON Schema of that `config`. */
export function observabilityConfigSchema(): JsonObject {
  return v.jsonSchema(Config);
}
