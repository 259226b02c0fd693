/**
 * OTLP read back: a receiver of OTLP over HTTP, and the telemetry frames of a worker.
 *
 * @module
 */
import { PATIENCE_MS } from "./until.ts";

/** One request as it came. */
export interface Received {
  /** Such as `/v1/traces`. */
  readonly path: string;
  readonly headers: Headers;
  /** Unpacked. */
  readonly body: Uint8Array;
}

export class OtlpReceiver implements AsyncDisposable {
  readonly received: Received[] = [];
  /** Answers with these statuses first; then all is well. */
  readonly statuses: number[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #waiting = new Set<() => void>();

  constructor() {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      (request) => this.#take(request),
    );
  }

  /** Such as `http://127.0.0.1:40000`. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** The first request for a path that fits; waits for it. */
  async next(path: string, fits: (text: string) => boolean = () => true): Promise<Received> {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = this.received.find((each) =>
        each.path === path && fits(new TextDecoder().decode(each.body))
      );
      if (found) return found;
      if (performance.now() > end) throw new Error(`nothing fitting came for ${path}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      const timer = setTimeout(resolve, 1_000);
      await promise;
      clearTimeout(timer);
      this.#waiting.delete(resolve);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #take(request: Request): Promise<Response> {
    const isPacked = request.headers.get("content-encoding") === "gzip";
    const stream = isPacked
      ? request.body!.pipeThrough(new DecompressionStream("gzip"))
      : request.body!;
    const body = new Uint8Array(await new Response(stream).arrayBuffer());
    const status = this.statuses.shift() ?? 200;
    if (status === 200) {
      const { pathname } = new URL(request.url);
      this.received.push({ path: pathname, headers: request.headers, body });
      for (const wake of this.#waiting) wake();
    }
    return new Response("{}", { status });
  }
}

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
