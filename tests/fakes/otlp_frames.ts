/**
 * Telemetry frames of a worker, read back: letters, resources and records.
 *
 * @module
 */

/** An attribute as OTLP writes it: one member whose name says the kind of value. */
export interface OtlpAttribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** The members of log records, spans and metrics that tests look at. */
export interface OtlpRecord {
  readonly attributes?: OtlpAttribute[];
  readonly body?: { readonly stringValue: string };
  readonly severityText?: string;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly parentSpanId?: string;
  readonly name?: string;
  readonly unit?: string;
  readonly startTimeUnixNano?: string;
  readonly endTimeUnixNano?: string;
  readonly status?: { readonly code: number; readonly message?: string };
  readonly gauge?: { readonly dataPoints: readonly { readonly asDouble: number }[] };
}

/** A frame, taken apart. */
export interface OtlpFrame {
  readonly signal: string;
  /** Attributes of each resource, by name. */
  readonly resources: Record<string, unknown>[];
  /** Records of all resources. */
  readonly records: OtlpRecord[];
}

/** One resource with what it says. */
interface Group {
  readonly resource: { readonly attributes: OtlpAttribute[] };
  readonly scopeLogs?: { readonly logRecords: OtlpRecord[] }[];
  readonly scopeSpans?: { readonly spans: OtlpRecord[] }[];
  readonly scopeMetrics?: { readonly metrics: OtlpRecord[] }[];
}

/** Takes a frame apart; throws when it is none. */
export function readOtlpFrame(bytes: Uint8Array): OtlpFrame {
  const text = new TextDecoder().decode(bytes);
  const groups = Object.values(JSON.parse(text.slice(4)))[0] as Group[];
  return {
    signal: text.slice(0, 4),
    resources: groups.map(({ resource }) => valuesOf(resource.attributes)),
    records: groups.flatMap(({ scopeLogs, scopeSpans, scopeMetrics }) =>
      scopeLogs?.at(0)?.logRecords ?? scopeSpans?.at(0)?.spans ?? scopeMetrics![0]!.metrics
    ),
  };
}

/** Attributes by name, whatever their kind. */
export function valuesOf(attributes: readonly OtlpAttribute[] = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
