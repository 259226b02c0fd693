/**
 * `/metrics`: every counter, gauge and histogram of the engine in Prometheus text (version 0.0.4).
 *
 * Text from workers appears in labels only, escaped. Counters include all calls since the engine
 * started, those of `engine::*` too, which the label `function` distinguishes.
 *
 * @module
 */
import type { Channels, ChannelStats } from "../../../engine/ports/channels.ts";
import type { EngineLinkView, Engines } from "../../../engine/ports/directory.ts";
import type { MemoryBudget, MemoryUse } from "../../../engine/ports/memory.ts";
import type { Store } from "../../../engine/ports/store.ts";
import type { EngineInfo } from "../../../engine/ports/supervision.ts";
import type { CallTraces, FunctionMeter, Meters } from "../../../engine/ports/telemetry.ts";
import { addCounts, usedMeters } from "./meters.ts";
import type { ProcessUsage, Sampler } from "./sampler.ts";
import type { WorkerMonitor } from "./workers.ts";

/** Functions with lines of their own in `/metrics`; the others share one. */
export const PROMETHEUS_FUNCTIONS_MAX = 1_000;
/** Workers with lines of their own in `/metrics`. */
const PROMETHEUS_WORKERS_MAX = 1_000;

/** Content type of the text. */
export const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Labels of a sample. */
export type Labels = Readonly<Record<string, string>>;

/** Writes metric families in the text format. */
export class PrometheusText {
  readonly #parts: string[] = [];

  /** Adds a counter or gauge; skips `null` values, and the family if none is left. */
  add(
    name: string,
    kind: "counter" | "gauge",
    help: string,
    samples: Iterable<readonly [labels: Labels, value: number | null]>,
  ): void {
    let isFirst = true;
    for (const [labels, value] of samples) {
      if (value === null) continue;
      if (isFirst) this.#head(name, kind, help);
      isFirst = false;
      this.#parts.push(`${name}${labelText(labels)} ${numberText(value)}\n`);
    }
  }

  /** Adds a histogram family. */
  addHistograms(name: string, help: string, histograms: Iterable<Histogram>): void {
    let isFirst = true;
    for (const { labels, bounds, counts, sum } of histograms) {
      if (isFirst) this.#head(name, "histogram", help);
      isFirst = false;
      const inner = labelText(labels).slice(1, -1);
      const prefix = `${name}_bucket{${inner === "" ? "" : `${inner},`}le="`;
      let below = 0;
      for (const [i, bound] of bounds.entries()) {
        below += counts[i]!;
        this.#parts.push(`${prefix}${numberText(bound)}"} ${below}\n`);
      }
      below += counts[bounds.length]!;
      this.#parts.push(`${prefix}+Inf"} ${below}\n`);
      this.#parts.push(`${name}_sum${labelText(labels)} ${numberText(sum)}\n`);
      this.#parts.push(`${name}_count${labelText(labels)} ${below}\n`);
    }
  }

  /** The complete text. */
  get text(): string {
    return this.#parts.join("");
  }

  #head(name: string, kind: string, help: string): void {
    const line = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
    this.#parts.push(`# HELP ${name} ${line}\n# TYPE ${name} ${kind}\n`);
  }
}

/** One histogram. */
export interface Histogram {
  readonly labels: Labels;
  /** Upper bounds in the unit of the family, ascending. */
  readonly bounds: readonly number[];
  readonly counts: ArrayLike<number>;
  readonly sum: number;
}

/**
 * Reduces a histogram to bounds that are at least twice the previous one.
 *
 * Only whole buckets are merged, so the counts stay exact.
 */
export class CoarseBuckets {
  /** Remaining bounds, in seconds. */
  readonly bounds: readonly number[];
  /** Target bucket of each original bucket. */
  readonly #to: readonly number[];

  /** `bounds_ms`: the original bounds. */
  constructor(bounds_ms: readonly number[]) {
    const remaining: number[] = [];
    // From above, so that the last bound remains.
    for (const bound of [...bounds_ms].reverse()) {
      const above = remaining.at(-1);
      if (above === undefined || bound * 1.99 <= above) remaining.push(bound);
    }
    remaining.reverse();
    this.bounds = remaining.map((bound) => Number((bound / 1_000).toPrecision(6)));
    this.#to = [...bounds_ms, Infinity].map((bound) => {
      const at = remaining.findIndex((upper) => bound <= upper);
      return at < 0 ? remaining.length : at;
    });
  }

  /** Converts counts: one per {@linkcode CoarseBuckets.bounds}, and one for larger values. */
  countsOf(counts: ArrayLike<number>): Float64Array {
    const coarse = new Float64Array(this.bounds.length + 1);
    for (let i = 0; i < counts.length; i++) coarse[this.#to[i]!]! += counts[i]!;
    return coarse;
  }
}

function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

/** Escapes a label value; lone surrogates become U+FFFD. */
function escaped(value: string): string {
  return value.toWellFormed().replaceAll("\\", "\\\\").replaceAll('"', '\\"')
    .replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return String(value);
}

/** Sources of the metrics page. */
export interface PageSources {
  readonly meters: Meters;
  readonly sampler: Sampler;
  readonly workers: WorkerMonitor;
  readonly store: Pick<Store, "stats">;
  readonly traces: Pick<CallTraces, "usage">;
  readonly memory: MemoryBudget;
  readonly channels: Pick<Channels, "stats">;
  /** The engines of the cluster; `undefined`: this engine is alone. */
  readonly engines?: Engines | undefined;
  /** File descriptors of the process, and their bounds. */
  descriptors(): EngineInfo["descriptors"];
  /** Such as `0.1.0`. */
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly started_at_ms: number;
  process(): ProcessUsage;
}

/** Samples of a family. */
type Rows = (readonly [labels: Labels, value: number | null])[];

/** The page `/metrics`. */
export function metricsPage(sources: PageSources): string {
  const text = new PrometheusText();
  addCalls(text, sources.meters);
  addEngine(text, sources);
  addWorkers(text, sources);
  addStore(text, sources);
  addProcess(text, sources);
  addBounds(text, sources);
  if (sources.engines) addCluster(text, sources.engines);
  return text.text;
}

function addCluster(text: PrometheusText, engines: Engines): void {
  const all = engines.list();
  const links = all.filter(({ link }) => link !== null);
  const rows = (of: (link: EngineLinkView) => number | null, more: Labels = {}): Rows =>
    links.map(({ name, life, link }) => [{ engine: name, life, ...more }, of(link!)]);
  const prefix = "engine_cluster";
  const isKeeper = all[0]!.keeper ? 1 : 0;
  text.add(`${prefix}_engines`, "gauge", "Engines, this one included", [[{}, all.length]]);
  text.add(`${prefix}_connected`, "gauge", "1 while the engine is connected to NATS", [
    [{}, engines.isConnected ? 1 : 0],
  ]);
  text.add(`${prefix}_keeper`, "gauge", "1 while this engine keeps the state", [[{}, isKeeper]]);
  text.add(`${prefix}_takeovers_total`, "counter", "Times that this engine became the keeper", [
    [{}, engines.takeovers],
  ]);
  text.add(
    `${prefix}_link_rtt_seconds`,
    "gauge",
    "Time there and back",
    rows(({ rtt_ms }) => rtt_ms === null ? null : rtt_ms / 1_000),
  );
  text.add(`${prefix}_link_calls_total`, "counter", "Calls over the link", [
    ...rows(({ calls_out }) => calls_out, { direction: "out" }),
    ...rows(({ calls_in }) => calls_in, { direction: "in" }),
  ]);
  text.add(`${prefix}_link_bytes_total`, "counter", "Bytes over the link", [
    ...rows(({ bytes_out }) => bytes_out, { direction: "out" }),
    ...rows(({ bytes_in }) => bytes_in, { direction: "in" }),
  ]);
  const queued = rows(({ queued_bytes }) => queued_bytes);
  text.add(`${prefix}_link_queued_bytes`, "gauge", "Bytes that wait for the link", queued);
  const ends = Array.from(engines.ends(), ([reason, count]) => [{ reason }, count] as const);
  text.add(`${prefix}_link_ends_total`, "counter", "Links that have ended, by reason", ends);
  addLog(text, engines);
}

function addLog(text: PrometheusText, { log, appends }: Engines): void {
  const prefix = "engine_cluster";
  const times = appends ? [{ labels: {}, ...appends }] : [];
  text.addHistograms(
    `${prefix}_log_append_seconds`,
    "Time until the log of the state acknowledged a message of this engine",
    times,
  );
  text.add(`${prefix}_log_bytes`, "gauge", "Bytes of the log that no snapshot has replaced yet", [
    [{}, log?.bytes ?? null],
  ]);
  text.add(`${prefix}_log_behind`, "gauge", "Messages of the log that this engine lacks", [
    [{}, log?.behind ?? null],
  ]);
}

/** A meter, or the sum of several. */
export type ShownMeter = Omit<FunctionMeter, "errors"> & {
  readonly errors: ReadonlyMap<string, number>;
};

/** The first meters in stable order; all further ones summed as `(other)`. */
export function shownMeters(meters: Meters): ShownMeter[] {
  const used = usedMeters(meters).map((meter) => ({
    ...pick(meter),
    errors: new Map(meter.errors),
  }));
  const own = used.filter(({ function_id }) => function_id !== meters.other.function_id);
  const shown = own.slice(0, PROMETHEUS_FUNCTIONS_MAX);
  const rest = [
    ...own.slice(PROMETHEUS_FUNCTIONS_MAX),
    ...used.filter(({ function_id }) => function_id === meters.other.function_id),
  ];
  return rest.length === 0 ? shown : [...shown, merge(meters, rest)];
}

function pick(meter: FunctionMeter): Omit<ShownMeter, "errors"> {
  const { function_id, namespace, calls, in_flight, duration_sum_ms, durations } = meter;
  return { function_id, namespace, calls, in_flight, duration_sum_ms, durations };
}

function merge(meters: Meters, rest: readonly ShownMeter[]): ShownMeter {
  const errors = new Map<string, number>();
  const durations = new Float64Array(meters.bounds_ms.length + 1);
  const sum = { calls: 0, in_flight: 0, duration_sum_ms: 0 };
  for (const meter of rest) {
    sum.calls += meter.calls;
    sum.in_flight += meter.in_flight;
    sum.duration_sum_ms += meter.duration_sum_ms;
    addCounts(durations, meter.durations);
    for (const [code, count] of meter.errors) errors.set(code, (errors.get(code) ?? 0) + count);
  }
  const { function_id, namespace } = meters.other;
  return { ...sum, function_id, namespace, durations, errors };
}

function addCalls(text: PrometheusText, meters: Meters): void {
  const shown = shownMeters(meters);
  const rows = (value: (meter: ShownMeter) => number): Rows =>
    shown.map((meter) => [labelsOf(meter), value(meter)]);
  text.add("engine_calls_total", "counter", "Calls received.", rows(({ calls }) => calls));
  text.add(
    "engine_call_errors_total",
    "counter",
    "Calls that ended with an error, by error code.",
    shown.flatMap((meter) =>
      [...meter.errors].map(([code, count]) => [{ ...labelsOf(meter), code }, count] as const)
    ),
  );
  text.add(
    "engine_calls_in_flight",
    "gauge",
    "Calls that are running.",
    rows(({ in_flight }) => in_flight),
  );
  const buckets = new CoarseBuckets(meters.bounds_ms);
  text.addHistograms(
    "engine_call_duration_seconds",
    "Duration of calls that ended, from the arrival of the call to its result.",
    shown.map((meter): Histogram => ({
      labels: labelsOf(meter),
      bounds: buckets.bounds,
      counts: buckets.countsOf(meter.durations),
      sum: meter.duration_sum_ms / 1_000,
    })),
  );
}

function labelsOf({ function_id, namespace }: ShownMeter): Labels {
  return { function: function_id, namespace };
}

function addEngine(
  text: PrometheusText,
  { meters, sampler, traces, workers }: PageSources,
): void {
  const { running, parked, connections, queued_bytes } = meters.load();
  const { engine } = sampler.latest;
  const gauge = (name: string, help: string, value: number | null): void =>
    text.add(name, "gauge", help, [[{}, value]]);
  gauge("engine_in_flight_calls", "Calls that run or wait to start.", running);
  gauge("engine_held_calls", "Calls that wait for a worker that is being restarted.", parked);
  gauge("engine_lines", "Connections of workers, including built-in ones.", connections);
  gauge("engine_queued_bytes", "Bytes queued to workers.", queued_bytes);
  gauge("engine_suspect_workers", "Connections that do not answer pings.", workers.suspects);
  text.add("engine_event_loop_lag_seconds", "gauge", "Lag of the event loop in the last second.", [
    [{ quantile: "0.99" }, engine.event_loop_lag_p99_ms / 1_000],
    [{ quantile: "1" }, engine.event_loop_lag_ms / 1_000],
  ]);
  const { usage } = traces;
  gauge("engine_trace_spans", "Calls stored as spans.", usage.spans);
  gauge("engine_trace_bytes", "Memory of these spans.", usage.bytes);
  text.add("engine_trace_spans_recorded_total", "counter", "Calls recorded as spans.", [
    [{}, usage.recorded],
  ]);
}

function addWorkers(text: PrometheusText, { workers }: PageSources): void {
  const samples = workers.samples().slice(0, PROMETHEUS_WORKERS_MAX);
  const rows = (value: (sample: typeof samples[number]) => number | null): Rows =>
    samples.map((sample) => [{ worker: sample.name, worker_id: sample.worker_id }, value(sample)]);
  const gauge = (name: string, help: string, values: Rows): void =>
    text.add(name, "gauge", help, values);
  gauge(
    "engine_worker_in_flight_calls",
    "Calls that the worker is running.",
    rows(({ in_flight }) => in_flight),
  );
  gauge(
    "engine_worker_queued_bytes",
    "Bytes queued to the worker.",
    rows(({ queued_bytes }) => queued_bytes),
  );
  gauge(
    "engine_worker_memory_bytes",
    "Resident memory of a worker's processes.",
    rows(({ memory_bytes }) => memory_bytes),
  );
  gauge(
    "engine_worker_cpu_ratio",
    "CPU usage of the worker; 1 is one CPU.",
    rows(({ cpu_percent }) => cpu_percent === null ? null : cpu_percent / 100),
  );
  gauge(
    "engine_worker_event_loop_lag_seconds",
    "Largest recent lag of the worker's event loop.",
    rows(({ event_loop_lag_ms: lag }) => lag === null ? null : lag / 1_000),
  );
  text.add(
    "engine_worker_restarts_total",
    "counter",
    "Unexpected exits of a supervised worker.",
    [...workers.restartsByName].map(([worker, count]) => [{ worker }, count]),
  );
}

const MEMORY_USES: readonly MemoryUse[] = [
  "buffers",
  "bodies",
  "queues",
  "registrations",
  "rings",
  "caches",
];

function addBounds(text: PrometheusText, { memory, channels, descriptors }: PageSources): void {
  const uses = MEMORY_USES.map((use) => [{ use }, memory.used(use)] as const);
  text.add("engine_memory_used_bytes", "gauge", "Bytes taken from engine.memory_mb, by use.", uses);
  text.add("engine_memory_limit_bytes", "gauge", "The memory that all uses share.", [
    [{}, memory.limitBytes],
  ]);
  addChannels(text, channels.stats);
  const { open, limit } = descriptors();
  text.add("process_open_fds", "gauge", "Open file descriptors of the engine.", [[{}, open]]);
  text.add("process_max_fds", "gauge", "File descriptors that may be open.", [[{}, limit]]);
}

function addChannels(text: PrometheusText, { open, created, bytes }: ChannelStats): void {
  text.add("engine_channels_open", "gauge", "Channels that are open.", [[{}, open]]);
  text.add("engine_channels_created_total", "counter", "Channels created.", [[{}, created]]);
  text.add("engine_channel_bytes_total", "counter", "Payload bytes of channels.", [[{}, bytes]]);
}

function addStore(text: PrometheusText, { store: { stats } }: PageSources): void {
  const counter = (name: string, help: string, value: number): void =>
    text.add(name, "counter", help, [[{}, value]]);
  counter("engine_state_commits_total", "Commits written to disk.", stats.commits);
  counter("engine_state_changes_total", "Entries set or removed.", stats.changes);
  counter(
    "engine_state_failed_commits_total",
    "Commits that the disk failed to write.",
    stats.failed,
  );
  counter("engine_state_written_bytes_total", "Bytes of the values written.", stats.bytes);
  text.add(
    "engine_state_last_commit_seconds",
    "gauge",
    "Duration of the last commit until it was on disk.",
    [[{}, stats.commit_ms === null ? null : stats.commit_ms / 1_000]],
  );
}

function addProcess(text: PrometheusText, sources: PageSources): void {
  const { memory_bytes, heap_bytes, cpu_seconds } = sources.process();
  const gauge = (name: string, help: string, value: number, labels: Labels = {}): void =>
    text.add(name, "gauge", help, [[labels, value]]);
  gauge("process_resident_memory_bytes", "Resident memory of the engine.", memory_bytes);
  gauge("engine_heap_bytes", "Memory of the engine's JavaScript objects.", heap_bytes);
  text.add("process_cpu_seconds_total", "counter", "CPU time of the engine.", [
    [{}, cpu_seconds],
  ]);
  gauge(
    "process_start_time_seconds",
    "Start time of the engine, in seconds since 1970.",
    sources.started_at_ms / 1_000,
  );
  gauge("engine_build_info", "Version of the engine.", 1, { version: sources.version });
}
