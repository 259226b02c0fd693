/**
 * The telemetry of a worker: its log lines, the spans of its handlers, its use of resources.
 *
 * Records are queued in memory up to a limit and sent in batches, over a connection of their own,
 * so that no call waits behind them. Nothing here waits, throws or reports: telemetry must not
 * affect handlers. Records that cannot be sent are dropped; a log line contains their number.
 *
 * @module
 */
import { type Connection, ReconnectingConnection } from "./connection.ts";
import { dialPlatform } from "./dial.ts";
import { SDK_VERSION } from "./identity.ts";
import type { LogEntry, LogSink } from "./logger.ts";
import type { WorkerOptions } from "./options.ts";
import {
  encodeFrame,
  encodeGauge,
  encodeLog,
  encodeSpan,
  type Gauge,
  parseShown,
  type Resource,
  type Signal,
} from "./otlp.ts";
import {
  attempt,
  environment,
  platformClock,
  processGlobal,
  wallTime,
  type WorkerClock,
} from "./platform.ts";
import { ProcessGauges } from "./process_gauges.ts";
import { looksSampled, readTraceparent, runningTraceparent } from "./trace_context.ts";
import type { Announcement, ErrorBody, InvokeFunction } from "./wire/protocol.ts";
import type { Dial } from "./wire/transport.ts";

/** How long logs and spans are collected before they are sent. */
const BATCH_MS = 100;
/** Most characters of queued logs, and of queued spans; further ones are dropped. */
const QUEUE_CHARS_MAX = 1024 * 1024;
/** Most characters of logs or spans in one frame. */
const FRAME_CHARS_MAX = 256 * 1024;
/** Bytes that were sent but have not left the process, above which no more are sent. */
const AHEAD_BYTES_MAX = 1024 * 1024;
/** Longest delay before telemetry reconnects: it can wait, so the engine has less to do. */
const RECONNECT_MAX_MS = 30_000;
/** Spans of handlers that a worker records per second. */
const SPANS_PER_SECOND = 100;
/** When gauges are first sent, so that an open page shows them soon. */
const FIRST_GAUGES_MS = 1_000;
/** Interval of gauges, unless OTEL_METRIC_EXPORT_INTERVAL sets another. */
const GAUGES_MS = 5_000;
/** Shortest interval of gauges. */
const GAUGES_MS_MIN = 500;
/** Longest interval of gauges. */
const GAUGES_MS_MAX = 3_600_000;

/** What {@linkcode Telemetry} works with. */
export interface TelemetrySetup {
  readonly clock: WorkerClock;
  readonly dial: Dial;
  /** Address of the engine, without the telemetry route. */
  readonly url: string;
  /** Headers of the upgrade. */
  readonly headers: Readonly<Record<string, string>>;
  /** Name of the worker. */
  readonly service: string;
  /** Such as `deno`. */
  readonly runtime: string;
  readonly pid: number;
}

/** The telemetry of a worker; `undefined` if its options or OTEL_ENABLED disable it. */
export function createTelemetry(
  url: string,
  options: WorkerOptions,
  { name, runtime, pid }: Announcement,
): Telemetry | undefined {
  if (!sendsTelemetry(options)) return undefined;
  const { clock = platformClock, dial = dialPlatform } = options;
  const headers = telemetryHeaders(options);
  return new Telemetry({ clock, dial, url, headers, service: name, runtime, pid });
}

/**
 * Whether a worker sends telemetry. OTEL_ENABLED `false` disables it for all; a worker with its own
 * `dial` is part of another program and has to enable it.
 */
export function sendsTelemetry({ telemetry, dial }: WorkerOptions): boolean {
  const isOff = /^(false|0)$/i.test(environment("OTEL_ENABLED") ?? "");
  return !isOff && (telemetry ?? dial === undefined);
}

/** The address of the telemetry route, `<path>/otel`; keeps the query. */
export function telemetryUrl(url: string): string {
  const address = attempt(() => new URL(url));
  if (!address) return url;
  address.pathname = `${address.pathname.replace(/\/+$/, "")}/otel`;
  return address.href;
}

/** The headers of the telemetry route: the authorization of the worker only. */
export function telemetryHeaders({ token, headers = {} }: WorkerOptions): Record<string, string> {
  if (token) return { Authorization: `Bearer ${token}` };
  const own = Object.entries(headers).filter(([name]) => name.toLowerCase() === "authorization");
  return Object.fromEntries(own);
}

/** Ends a span, with the error of the handler if it failed. */
export type EndSpan = (error: ErrorBody | undefined) => void;

/** The telemetry of one worker. */
export class Telemetry implements LogSink {
  /** Id of the worker's main connection, once the engine has sent it. */
  workerId: string | undefined;
  /** Measures the handlers. */
  load: () => readonly Gauge[] = () => [];
  readonly #setup: TelemetrySetup;
  readonly #connection: ReconnectingConnection;
  readonly #logs = new TelemetryQueue();
  readonly #spans = new TelemetryQueue();
  readonly #spanTokens: TokenBucket;
  readonly #gauges: ProcessGauges;
  #state: "new" | "open" | "over" = "new";
  #cancelFlush: (() => void) | undefined;
  #cancelGauges: () => void = () => {};

  /** Collects records at once; {@linkcode Telemetry.open} connects. */
  constructor(setup: TelemetrySetup) {
    const { clock, dial, url, headers } = setup;
    this.#setup = setup;
    this.#gauges = new ProcessGauges(clock);
    this.#spanTokens = new TokenBucket(SPANS_PER_SECOND, () => clock.now());
    this.#connection = new ReconnectingConnection({
      url: telemetryUrl(url),
      dial,
      dialOptions: { headers },
      clock,
      reconnect: { maxMs: RECONNECT_MAX_MS },
      random: Math.random,
    }, {
      opened: (connection) => this.#flush(connection),
      text() {},
      lost() {},
      failed() {}, // The worker's main connection reports errors.
      state() {},
    });
  }

  /** Connects when the worker has connected for the first time; later calls have no effect. */
  open(): void {
    if (this.#state !== "new") return;
    this.#state = "open";
    this.#connection.start();
    this.#gauges.start();
    this.#readGauges(FIRST_GAUGES_MS);
  }

  /** Records a log line of the running handler; `false` if it is dropped. */
  takeLog({ level, message, data, shown, service }: LogEntry): boolean {
    if (this.#state === "over") return false;
    const text = attempt(() =>
      encodeLog({
        level,
        message,
        ...data !== undefined && { data: shown === undefined ? null : parseShown(shown) },
        at_ms: this.#wall(),
        trace: readTraceparent(runningTraceparent()),
      })
    );
    const isTaken = text !== undefined && this.#logs.add(service ?? this.#setup.service, text);
    this.#flushSoon();
    return isTaken;
  }

  /** Starts the span of a handler; `undefined` if it is not recorded. */
  startSpan(call: InvokeFunction, now: number = this.#setup.clock.now()): EndSpan | undefined {
    if (call.traceparent === undefined || this.#state === "over") return undefined;
    // In this order, since a busy worker is mostly out of tokens.
    if (!looksSampled(call.traceparent) || !this.#spanTokens.take(now)) return undefined;
    const ids = readTraceparent(call.traceparent);
    if (!ids) return undefined;
    const { function_id, invocation_id } = call;
    const start_ms = this.#wall();
    return (error) => {
      this.#spans.add(
        this.#setup.service,
        encodeSpan({
          trace_id: ids.trace_id,
          span_id: randomSpanId(),
          parent_span_id: ids.span_id,
          name: `execute ${function_id}`,
          start_ms,
          end_ms: start_ms + this.#setup.clock.now() - now,
          attributes: {
            "engine.function.id": function_id,
            "engine.invocation.id": invocation_id,
            "engine.error_code": error?.code,
          },
          error: error?.message,
        }),
      );
      this.#flushSoon();
    };
  }

  /**
   * Sends the queued records, on `main` if there is no other connection, and disconnects. Resolves
   * when the connection is closed; has no effect the second time.
   */
  stop(main: Connection | undefined): Promise<void> {
    const isFirst = this.#state !== "over";
    this.#state = "over";
    this.#cancelFlush?.();
    this.#cancelGauges();
    this.#gauges.stop();
    const connection = this.#connection.current ?? main;
    while (isFirst && connection && !this.#isEmpty) this.#send(connection);
    return this.#connection.stop("disconnected");
  }

  get #isEmpty(): boolean {
    return this.#logs.isEmpty && this.#spans.isEmpty;
  }

  #flushSoon(): void {
    // Without a connection, the next one flushes when it opens.
    if (this.#cancelFlush || !this.#connection.current) return;
    this.#cancelFlush = this.#setup.clock.after(BATCH_MS, () => {
      this.#cancelFlush = undefined;
      const { current } = this.#connection;
      if (current) this.#flush(current);
    });
  }

  #flush(connection: Connection): void {
    if ((connection.queuedBytes ?? 0) < AHEAD_BYTES_MAX) this.#send(connection);
    if (!this.#isEmpty) this.#flushSoon();
  }

  /** Sends at most one frame of logs and one of spans. */
  #send(connection: Connection): void {
    const dropped = this.#logs.takeDropped();
    const logs = this.#logs.takeFrame();
    if (dropped > 0) logs.push({ service: this.#setup.service, records: [this.#dropped(dropped)] });
    if (logs.length > 0) connection.send(this.#frame("LOGS", logs));
    if (!this.#spans.isEmpty) connection.send(this.#frame("OTLP", this.#spans.takeFrame()));
  }

  #dropped(lines: number): string {
    const message = "Log lines were left out, since there were more than can be sent";
    return encodeLog({ level: "warn", message, data: { lines }, at_ms: this.#wall() });
  }

  #readGauges(ms: number): void {
    this.#cancelGauges = this.#setup.clock.after(ms, () => {
      this.#readGauges(gaugesMs());
      const { current } = this.#connection;
      if (!current || (current.queuedBytes ?? 0) >= AHEAD_BYTES_MAX) return;
      const at_ms = this.#wall();
      const gauges = [...this.#gauges.read(), ...this.load()];
      const records = gauges.map((gauge) => encodeGauge(gauge, at_ms));
      const { service } = this.#setup;
      if (records.length > 0) current.send(this.#frame("MTRC", [{ service, records }]));
    });
  }

  #frame(signal: Signal, groups: readonly RecordGroup[]): Uint8Array {
    const own = groups.map(({ service, records }) => ({
      resource: this.#resource(service),
      records,
    }));
    return encodeFrame(signal, own, SDK_VERSION);
  }

  #resource(service: string): Resource {
    const { runtime, pid } = this.#setup;
    return {
      "service.name": service,
      "service.instance.id": this.workerId,
      "telemetry.sdk.name": "engine-sdk",
      "telemetry.sdk.language": runtime === "browser" ? "webjs" : "nodejs",
      "telemetry.sdk.version": SDK_VERSION,
      "process.pid": pid,
      "process.runtime.name": runtime,
      "process.runtime.version": attempt(() => processGlobal()?.versions?.[runtime]),
    };
  }

  #wall(): number {
    const { clock } = this.#setup;
    return clock.wall ? clock.wall() : wallTime();
  }
}

/** Interval of gauges, in milliseconds. */
function gaugesMs(): number {
  const set = Number(environment("OTEL_METRIC_EXPORT_INTERVAL") ?? GAUGES_MS);
  if (!Number.isFinite(set)) return GAUGES_MS;
  return Math.min(GAUGES_MS_MAX, Math.max(GAUGES_MS_MIN, set));
}

/** 16 hexadecimal digits. */
function randomSpanId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Records of one service in a frame. */
export interface RecordGroup {
  readonly service: string;
  readonly records: string[];
}

/** The queued records of one signal, limited in characters; removed a frame at a time. */
export class TelemetryQueue {
  readonly #charsMax: number;
  #records: { readonly service: string; readonly text: string }[] = [];
  #chars = 0;
  #dropped = 0;

  constructor(charsMax: number = QUEUE_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  get isEmpty(): boolean {
    return this.#records.length === 0;
  }

  /** Adds a record; `false` if the limit is reached and the record is dropped. */
  add(service: string, text: string): boolean {
    if (this.#chars + text.length > this.#charsMax) {
      this.#dropped++;
      return false;
    }
    this.#records.push({ service, text });
    this.#chars += text.length;
    return true;
  }

  /** Number of records that were dropped since the last call. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** Removes the oldest records, at least one and at most a frame of them, grouped by service. */
  takeFrame(): RecordGroup[] {
    const groups = new Map<string, string[]>();
    let count = 0;
    let chars = 0;
    for (const { service, text } of this.#records) {
      if (count > 0 && chars + text.length > FRAME_CHARS_MAX) break;
      count++;
      chars += text.length;
      const records = groups.get(service);
      if (records) records.push(text);
      else groups.set(service, [text]);
    }
    this.#records = this.#records.slice(count);
    this.#chars -= chars;
    return [...groups].map(([service, records]) => ({ service, records }));
  }
}

/** Limits a rate: `perSecond` tokens, which refill over a second. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #now: () => number;
  #tokens: number;
  #at: number;

  /** `now` returns milliseconds. */
  constructor(perSecond: number, now: () => number) {
    this.#perSecond = perSecond;
    this.#now = now;
    this.#tokens = perSecond;
    this.#at = now();
  }

  /** Takes a token if there is one; `now` saves reading the clock. */
  take(now?: number): boolean {
    if (this.#tokens < 1) this.#fill(now ?? this.#now());
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  #fill(now: number): void {
    const gained = Math.max(0, now - this.#at) * this.#perSecond / 1_000;
    this.#tokens = Math.min(this.#perSecond, this.#tokens + gained);
    this.#at = now;
  }
}
