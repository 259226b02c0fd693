/**
 * Metrics that SDKs send: OTLP/JSON read into points, and the last value of each.
 *
 * What a worker sends is never trusted: a frame that is too large, broken or too rich is dropped
 * whole or cut, and counted.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { TelemetryFrame } from "../../../engine/ports/telemetry.ts";
import {
  METRICS_ATTRIBUTES_MAX,
  METRICS_FRAME_BYTES_MAX,
  METRICS_FRAME_POINTS_MAX,
  SDK_METRICS_MAX,
  SDK_METRICS_STALE_MS,
} from "../../limits.ts";
import { IntakeBudget } from "../intake.ts";

/** One value that a process measured. */
export interface MetricPoint {
  readonly name: string;
  /** Such as `By`; empty when nothing was said. */
  readonly unit: string;
  readonly kind: "gauge" | "sum" | "histogram";
  /** Of a histogram: the sum of what was counted. */
  readonly value: number;
  /** Of a histogram: how many values were counted. */
  readonly count: number | null;
  readonly attributes: Readonly<Record<string, string>>;
  /** Milliseconds since 1970, as the process says. */
  readonly time_ms: number;
  /** Worker that measured it: `service.instance.id`, else the line it came on; `null`: unknown. */
  readonly worker_id: string | null;
  /** `service.name`; empty when nothing was said. */
  readonly service_name: string;
}

/** Longest name, unit or value of an attribute that is kept, in characters. */
const TEXT_CHARS_MAX = 200;

/** Hears of frames and keeps the last value of every metric of every process. */
export class SdkMetrics {
  readonly #clock: Clock;
  readonly #budget: IntakeBudget;
  /** By worker, name and attributes, the oldest value first. */
  readonly #points = new Map<string, { readonly point: MetricPoint; readonly atMs: number }>();
  #dropped = 0;

  /** Keeps nothing yet. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#budget = new IntakeBudget(clock);
  }

  /** Frames that could not be read, or were too many. */
  get dropped(): number {
    return this.#dropped;
  }

  /** The points of a frame, which are kept; none of other frames and of broken ones. */
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
    for (const point of points) this.#keep(point);
    return points;
  }

  /** The last value of each metric. */
  points(): MetricPoint[] {
    this.#expire();
    return [...this.#points.values()].map(({ point }) => point);
  }

  #keep(point: MetricPoint): void {
    const key = JSON.stringify([
      point.worker_id ?? point.service_name,
      point.name,
      point.attributes,
    ]);
    this.#points.delete(key); // So that it is the newest again.
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

/** The values of a frame, at most {@linkcode METRICS_FRAME_POINTS_MAX}; `undefined`: broken. */
export function readMetrics(
  { bytes, worker_id }: Pick<TelemetryFrame, "bytes" | "worker_id">,
): MetricPoint[] | undefined {
  let root: unknown;
  try {
    root = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined; // No JSON, or no UTF-8.
  }
  if (!Array.isArray(member(root, "resourceMetrics"))) return undefined;
  const points: MetricPoint[] = [];
  for (const group of list(root, "resourceMetrics")) {
    const resource = attributesOf(member(group, "resource"));
    const origin = {
      worker_id: resource["service.instance.id"] ?? worker_id,
      service_name: resource["service.name"] ?? "",
    };
    for (const scope of list(group, "scopeMetrics")) {
      for (const metric of list(scope, "metrics")) points.push(...pointsOf(metric, origin));
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
    list(member(metric, kind), "dataPoints").flatMap((point) => {
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

/** OTLP writes 64-bit numbers as texts. */
function number(value: unknown): number | undefined {
  const read = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof read === "number" && Number.isFinite(read) ? read : undefined;
}

/** The first attributes as texts. */
function attributesOf(owner: unknown): Record<string, string> {
  const pairs = list(owner, "attributes").slice(0, METRICS_ATTRIBUTES_MAX).flatMap((each) => {
    const key = member(each, "key");
    const value = member(each, "value");
    const plain = member(value, "stringValue") ?? member(value, "intValue") ??
      member(value, "doubleValue") ?? member(value, "boolValue");
    const isPlain = ["string", "number", "boolean"].includes(typeof plain);
    return typeof key === "string" && isPlain ? [[cut(key), cut(String(plain))] as const] : [];
  });
  return Object.fromEntries(pairs);
}

function list(owner: unknown, key: string): unknown[] {
  const found = member(owner, key);
  return Array.isArray(found) ? found : [];
}

function member(owner: unknown, key: string): unknown {
  return owner !== null && typeof owner === "object" && Object.hasOwn(owner, key)
    ? (owner as Record<string, unknown>)[key]
    : undefined;
}

function cut(text: string): string {
  return text.length <= TEXT_CHARS_MAX ? text : text.slice(0, TEXT_CHARS_MAX);
}
