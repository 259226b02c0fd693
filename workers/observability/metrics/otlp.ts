/**
 * Metrics that SDKs send in OTLP/JSON: parsing, and the last value of each metric.
 *
 * The input is untrusted: frames that are too large or malformed are dropped and counted, surplus
 * points and long text are cut.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { TelemetryFrame } from "../../../engine/ports/telemetry.ts";
import { isTooDeepBytes } from "../../../sdk/typescript/wire/json_depth.ts";
import { cut as copyOf, IntakeBudget, listIn, member } from "../intake.ts";

/** Values that an SDK reported of its process expire after this time, in milliseconds. */
export const SDK_METRICS_STALE_MS = 150_000;
/** Metrics of SDKs that are stored. */
export const SDK_METRICS_MAX = 5_000;
/** Largest frame of metrics, in bytes. */
export const METRICS_FRAME_BYTES_MAX = 1024 * 1024;
/** Values taken from one frame of metrics. */
export const METRICS_FRAME_POINTS_MAX = 1_000;
/** Attributes of one value of an SDK's metric. */
const METRICS_ATTRIBUTES_MAX = 16;

/** The value of a metric. */
export interface MetricPoint {
  readonly name: string;
  /** Such as `By`; empty if absent. */
  readonly unit: string;
  readonly kind: "gauge" | "sum" | "histogram";
  /** Of a histogram: the sum of its values. */
  readonly value: number;
  /** Of a histogram: the number of its values. */
  readonly count: number | null;
  readonly attributes: Readonly<Record<string, string>>;
  /** Milliseconds since 1970 by the clock of the process. */
  readonly time_ms: number;
  /** `service.instance.id`, or else the id of the connection; `null`: unknown. */
  readonly worker_id: string | null;
  /** `service.name`; empty if absent. */
  readonly service_name: string;
}

/** Longest name, unit or attribute value, in characters; longer ones are cut. */
const TEXT_CHARS_MAX = 200;

/** Receives frames and stores the last value of each metric of each process. */
export class SdkMetrics {
  readonly #clock: Clock;
  readonly #budget: IntakeBudget;
  /** By worker, name and attributes, the oldest value first. */
  readonly #points = new Map<string, { readonly point: MetricPoint; readonly atMs: number }>();
  #dropped = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#budget = new IntakeBudget(clock);
  }

  /** Frames that were malformed, too large or over budget. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Stores and returns the points of a frame; ignores frames of other signals. */
  receive(frame: TelemetryFrame): MetricPoint[] {
    if (frame.kind !== "MTRC") return [];
    const { length } = frame.bytes;
    let points: MetricPoint[] | undefined;
    if (length <= METRICS_FRAME_BYTES_MAX) {
      this.#budget.spend(length, () => points = readMetrics(frame));
    }
    if (!points) {
      this.#dropped++;
      return [];
    }
    this.#expire();
    for (const point of points) this.#store(point);
    return points;
  }

  /** The last value of each metric. */
  points(): MetricPoint[] {
    this.#expire();
    return [...this.#points.values()].map(({ point }) => point);
  }

  #store(point: MetricPoint): void {
    const key = JSON.stringify([
      point.worker_id ?? point.service_name,
      point.name,
      point.attributes,
    ]);
    this.#points.delete(key); // Moves the key to the end.
    if (this.#points.size >= SDK_METRICS_MAX) {
      this.#points.delete(this.#points.keys().next().value!);
    }
    this.#points.set(key, { point, atMs: this.#clock.now() });
  }

  #expire(): void {
    const before = this.#clock.now() - SDK_METRICS_STALE_MS;
    for (const [key, { atMs }] of this.#points) {
      if (atMs >= before) return;
      this.#points.delete(key);
    }
  }
}

/** Up to {@linkcode METRICS_FRAME_POINTS_MAX} values of a frame; `undefined`: malformed. */
export function readMetrics(
  { bytes, worker_id }: Pick<TelemetryFrame, "bytes" | "worker_id">,
): MetricPoint[] | undefined {
  let root: unknown;
  if (isTooDeepBytes(bytes, 0, bytes.length)) return undefined;
  try {
    root = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined; // Not JSON, or not UTF-8.
  }
  if (!Array.isArray(member(root, "resourceMetrics"))) return undefined;
  const points: MetricPoint[] = [];
  for (const group of listIn(root, "resourceMetrics")) {
    const resource = attributesOf(member(group, "resource"));
    const origin = {
      worker_id: resource["service.instance.id"] ?? worker_id,
      service_name: resource["service.name"] ?? "",
    };
    for (const scope of listIn(group, "scopeMetrics")) {
      for (const metric of listIn(scope, "metrics")) points.push(...pointsOf(metric, origin));
      if (points.length >= METRICS_FRAME_POINTS_MAX) {
        return points.slice(0, METRICS_FRAME_POINTS_MAX);
      }
    }
  }
  return points;
}

function pointsOf(
  metric: unknown,
  origin: Pick<MetricPoint, "worker_id" | "service_name">,
): MetricPoint[] {
  const name = member(metric, "name");
  const unit = member(metric, "unit");
  if (typeof name !== "string" || name === "") return [];
  return (["gauge", "sum", "histogram"] as const).flatMap((kind) =>
    listIn(member(metric, kind), "dataPoints").flatMap((point) => {
      const value = kind === "histogram" ? number(member(point, "sum")) ?? 0 : valueOf(point);
      const nanos = number(member(point, "timeUnixNano"));
      if (value === undefined || nanos === undefined) return [];
      const count = kind === "histogram" ? number(member(point, "count")) ?? 0 : null;
      return [{
        name: cut(name),
        unit: typeof unit === "string" ? cut(unit) : "",
        kind,
        value,
        count,
        attributes: attributesOf(point),
        time_ms: nanos / 1_000_000,
        ...origin,
      }];
    })
  );
}

function valueOf(point: unknown): number | undefined {
  return number(member(point, "asDouble")) ?? number(member(point, "asInt"));
}

/** OTLP/JSON writes 64-bit integers as text. */
function number(value: unknown): number | undefined {
  const read = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof read === "number" && Number.isFinite(read) ? read : undefined;
}

/** A bounded number of attributes as text. */
function attributesOf(owner: unknown): Record<string, string> {
  const pairs = listIn(owner, "attributes").slice(0, METRICS_ATTRIBUTES_MAX).flatMap((each) => {
    const key = member(each, "key");
    const value = member(each, "value");
    const plain = member(value, "stringValue") ?? member(value, "intValue") ??
      member(value, "doubleValue") ?? member(value, "boolValue");
    const isPlain = ["string", "number", "boolean"].includes(typeof plain);
    return typeof key === "string" && isPlain ? [[cut(key), cut(String(plain))] as const] : [];
  });
  return Object.fromEntries(pairs);
}

function cut(text: string): string {
  return copyOf(text, TEXT_CHARS_MAX);
}
