/**
 * Where telemetry is exported to: the standard `OTEL_*` variables, read and checked.
 *
 * A signal is exported when an endpoint is named for it or for all, or when its exporter is named
 * (`OTEL_TRACES_EXPORTER=otlp`). Nothing leaves this machine unasked, so the standard's default of
 * exporting to localhost does not hold. What cannot be done is said and not exported.
 *
 * @module
 */
import {
  OTLP_BATCH_MAX,
  OTLP_ENDPOINT_DEFAULT,
  OTLP_LOG_DELAY_MS,
  OTLP_METRIC_INTERVAL_MS,
  OTLP_QUEUE_MAX,
  OTLP_SPAN_DELAY_MS,
  OTLP_TIMEOUT_MS,
} from "../../limits.ts";

/** What is exported. */
export const SIGNALS = ["traces", "metrics", "logs"] as const;

/** One of {@linkcode SIGNALS}. */
export type Signal = typeof SIGNALS[number];

/** How one signal is exported. */
export interface SignalSettings {
  /** The whole address, such as `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocol: "http/json" | "http/protobuf";
  readonly gzip: boolean;
  /** Of one request. */
  readonly timeout_ms: number;
  /** Between two requests; of metrics: between two readings. */
  readonly delay_ms: number;
  /** Spans or records that wait at most; beyond, new ones are dropped. */
  readonly queue_max: number;
  /** Spans or records in one request. */
  readonly batch_max: number;
}

/** All that is exported; a signal that is left out is not. */
export interface ExportSettings {
  readonly signals: Readonly<Partial<Record<Signal, SignalSettings>>>;
  /** `service.name` of the engine. */
  readonly service_name: string;
  /** Further attributes of the engine's resource. */
  readonly attributes: Readonly<Record<string, string>>;
  /** What was asked for and cannot be done, one sentence each. */
  readonly problems: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** Names of the variables about a signal's batches, and their defaults. */
const BATCHES: Readonly<Record<Signal, { prefix: string; delayMs: number }>> = {
  traces: { prefix: "OTEL_BSP", delayMs: OTLP_SPAN_DELAY_MS },
  logs: { prefix: "OTEL_BLRP", delayMs: OTLP_LOG_DELAY_MS },
  metrics: { prefix: "OTEL_METRIC", delayMs: OTLP_METRIC_INTERVAL_MS },
};

/** Reads the variables; what does not fit is a problem and counts as not set. */
export function readExportSettings(env: Env): ExportSettings {
  const problems: string[] = [];
  const attributes = readPairs("OTEL_RESOURCE_ATTRIBUTES", env, problems);
  const { "service.name": named, ...rest } = attributes;
  const service_name = textOf(env, "OTEL_SERVICE_NAME") ?? named ?? "engine";
  const settings = { service_name, attributes: rest, problems };
  if (textOf(env, "OTEL_SDK_DISABLED")?.toLowerCase() === "true") {
    return { ...settings, signals: {} };
  }
  const found = SIGNALS.flatMap((signal) => {
    const read = readSignal(signal, env, problems);
    return read ? [[signal, read] as const] : [];
  });
  return { ...settings, signals: Object.fromEntries(found) };
}

function readSignal(signal: Signal, env: Env, problems: string[]): SignalSettings | undefined {
  const upper = signal.toUpperCase();
  const exporters = (textOf(env, `OTEL_${upper}_EXPORTER`) ?? "").split(",")
    .map((name) => name.trim()).filter((name) => name !== "");
  for (const name of exporters.filter((name) => name !== "otlp" && name !== "none")) {
    problems.push(`OTEL_${upper}_EXPORTER: ${name} is not offered; use otlp or none`);
  }
  if (exporters.length > 0 && !exporters.includes("otlp")) return undefined;
  const url = readUrl(signal, env, exporters.includes("otlp"), problems);
  if (url === undefined) return undefined;
  const of = (name: string): [name: string, value: string | undefined] => {
    const own = `OTEL_EXPORTER_OTLP_${upper}_${name}`;
    const value = textOf(env, own);
    return value !== undefined ? [own, value] : [
      `OTEL_EXPORTER_OTLP_${name}`,
      textOf(env, `OTEL_EXPORTER_OTLP_${name}`),
    ];
  };
  const [protocolName, protocol = "http/protobuf"] = of("PROTOCOL");
  if (protocol !== "http/json" && protocol !== "http/protobuf") {
    problems.push(`${protocolName}: ${protocol} is not offered; use http/protobuf or http/json`);
    return undefined;
  }
  const [compressionName, compression = "none"] = of("COMPRESSION");
  if (compression !== "gzip" && compression !== "none") {
    problems.push(`${compressionName}: ${compression} is not offered; nothing is compressed`);
  }
  const [certificate, path] = of("CERTIFICATE");
  if (path !== undefined) {
    problems.push(`${certificate} is not read; name the file in DENO_CERT instead`);
  }
  const [timeoutName] = of("TIMEOUT");
  const [headersName] = of("HEADERS");
  return {
    url,
    headers: readPairs(headersName, env, problems),
    protocol,
    gzip: compression === "gzip",
    timeout_ms: readNumber(timeoutName, env, OTLP_TIMEOUT_MS, problems),
    ...readBatch(signal, env, problems),
  };
}

function readUrl(
  signal: Signal,
  env: Env,
  isNamed: boolean,
  problems: string[],
): string | undefined {
  const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`;
  const exact = textOf(env, own);
  const base = textOf(env, "OTEL_EXPORTER_OTLP_ENDPOINT") ??
    (isNamed ? OTLP_ENDPOINT_DEFAULT : undefined);
  const name = exact === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : own;
  const text = exact ??
    (base === undefined ? undefined : `${base.replace(/\/+$/, "")}/v1/${signal}`);
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url.href;
  problems.push(`${name}: expected an address such as ${OTLP_ENDPOINT_DEFAULT}`);
  return undefined;
}

function readBatch(
  signal: Signal,
  env: Env,
  problems: string[],
): Pick<SignalSettings, "delay_ms" | "queue_max" | "batch_max"> {
  const { prefix, delayMs } = BATCHES[signal];
  const delay = signal === "metrics" ? `${prefix}_EXPORT_INTERVAL` : `${prefix}_SCHEDULE_DELAY`;
  const queue_max = readNumber(`${prefix}_MAX_QUEUE_SIZE`, env, OTLP_QUEUE_MAX, problems);
  const batch = readNumber(`${prefix}_MAX_EXPORT_BATCH_SIZE`, env, OTLP_BATCH_MAX, problems);
  return {
    delay_ms: readNumber(delay, env, delayMs, problems),
    queue_max,
    batch_max: Math.min(batch, queue_max),
  };
}

/** Empty counts as not set, as the standard has it. */
function textOf(env: Env, name: string): string | undefined {
  const text = env[name]?.trim();
  return text === "" ? undefined : text;
}

/** A whole number of at least 1 and below a million. */
function readNumber(name: string, env: Env, fallback: number, problems: string[]): number {
  const text = textOf(env, name);
  if (text === undefined) return fallback;
  if (/^\d{1,6}$/.test(text) && Number(text) > 0) return Number(text);
  problems.push(`${name}: expected a whole number from 1 to 999999; ${fallback} is used`);
  return fallback;
}

/** `key=value,key=value`, values percent-encoded, as W3C baggage. The value is never shown. */
function readPairs(name: string, env: Env, problems: string[]): Record<string, string> {
  const pairs: [string, string][] = [];
  for (const part of (textOf(env, name) ?? "").split(",")) {
    if (part.trim() === "") continue;
    const at = part.indexOf("=");
    const key = part.slice(0, at).trim();
    try {
      if (at < 0 || !/^[^\s"\\,;=]+$/.test(key)) throw new Error("no key");
      pairs.push([key, decodeURIComponent(part.slice(at + 1).trim())]);
    } catch {
      problems.push(`${name}: expected key=value pairs between commas; one of them is none`);
    }
  }
  return Object.fromEntries(pairs);
}
