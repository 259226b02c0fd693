/**
 * Reads the export settings from the standard `OTEL_*` environment variables.
 *
 * A signal is exported if an endpoint is set for it or for all signals, or if its exporter is set
 * (`OTEL_TRACES_EXPORTER=otlp`). Unlike the standard, the engine exports nothing by default.
 *
 * @module
 */

/** Endpoint of an exporter that is named without one. */
const OTLP_ENDPOINT_DEFAULT = "http://localhost:4318";
/** Deadline of one export request, in milliseconds. */
const OTLP_TIMEOUT_MS = 10_000;
/** Interval of exports of spans, in milliseconds. */
const OTLP_SPAN_DELAY_MS = 5_000;
/** Interval of exports of log records, in milliseconds. */
const OTLP_LOG_DELAY_MS = 1_000;
/** Interval of exports of metrics, in milliseconds. */
const OTLP_METRIC_INTERVAL_MS = 60_000;
/** Spans or log records that wait for an export. */
const OTLP_QUEUE_MAX = 2_048;
/** Spans or log records in one export. */
const OTLP_BATCH_MAX = 512;

/** The signals of OTLP. */
export const SIGNALS = ["traces", "metrics", "logs"] as const;

/** One of {@linkcode SIGNALS}. */
export type Signal = typeof SIGNALS[number];

/** Export settings of one signal. */
export interface SignalSettings {
  /** The complete URL, such as `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocol: "http/json" | "http/protobuf";
  readonly gzip: boolean;
  /** Timeout of a request. */
  readonly timeout_ms: number;
  /** Delay between requests; for metrics, between readings. */
  readonly delay_ms: number;
  /** Bound of waiting spans or records; further ones are dropped. */
  readonly queue_max: number;
  /** Spans or records per request. */
  readonly batch_max: number;
}

/** Export settings; an absent signal is not exported. */
export interface ExportSettings {
  readonly signals: Readonly<Partial<Record<Signal, SignalSettings>>>;
  /** `service.name` of the engine. */
  readonly service_name: string;
  /** Additional attributes of the engine's resource. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Invalid or unsupported settings, one sentence each. */
  readonly problems: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** Prefix of a signal's batch variables, and the default delay. */
const BATCHES: Readonly<Record<Signal, { prefix: string; delayMs: number }>> = {
  traces: { prefix: "OTEL_BSP", delayMs: OTLP_SPAN_DELAY_MS },
  logs: { prefix: "OTEL_BLRP", delayMs: OTLP_LOG_DELAY_MS },
  metrics: { prefix: "OTEL_METRIC", delayMs: OTLP_METRIC_INTERVAL_MS },
};

/** Reads the variables; an invalid one is reported in `problems` and treated as unset. */
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
    problems.push(`OTEL_${upper}_EXPORTER: ${name} is not supported; use otlp or none`);
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
    problems.push(`${protocolName}: ${protocol} is not supported; use http/protobuf or http/json`);
    return undefined;
  }
  const [compressionName, compression = "none"] = of("COMPRESSION");
  if (compression !== "gzip" && compression !== "none") {
    problems.push(`${compressionName}: ${compression} is not supported; nothing is compressed`);
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

/** As the standard requires, an empty variable counts as unset. */
function textOf(env: Env, name: string): string | undefined {
  const text = env[name]?.trim();
  return text === "" ? undefined : text;
}

/** A whole number from 1 to 999,999. */
function readNumber(name: string, env: Env, fallback: number, problems: string[]): number {
  const text = textOf(env, name);
  if (text === undefined) return fallback;
  if (/^\d{1,6}$/.test(text) && Number(text) > 0) return Number(text);
  problems.push(`${name}: expected a whole number from 1 to 999999; ${fallback} is used`);
  return fallback;
}

/** Parses `key=value,key=value` as W3C baggage; values may be secret and appear in no problem. */
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
      problems.push(`${name}: expected key=value pairs separated by commas`);
    }
  }
  return Object.fromEntries(pairs);
}
