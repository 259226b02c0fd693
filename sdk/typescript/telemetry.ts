/**
 * What a worker tells about itself: its log lines, the spans of its handlers, what it uses.
 *
 * Everything is queued, bounded, and sent by the way; nothing here waits, throws or reports, since
 * no handler is to suffer from being watched. What cannot be sent is left out, and the logs say how
 * many lines that were.
 *
 * @module
 */
import {
  attempt,
  environment,
  platformClock,
  processGlobal,
  wallTime,
  type WorkerClock,
} from "./platform.ts";
import { type Line, ReconnectingLine } from "./connection.ts";
import { dialPlatform } from "./dial.ts";
import { SDK_VERSION } from "./identity.ts";
import type { LogLine, LogSink } from "./logger.ts";
import type { WorkerOptions } from "./options.ts";
import {
  encodeFrame,
  encodeGauge,
  encodeLog,
  encodeSpan,
  parseShown,
  type Resource,
  type Signal,
} from "./otlp.ts";
import { ProcessGauges } from "./process_gauges.ts";
import { looksSampled, readTraceparent, runningTraceparent } from "./trace_context.ts";
import {
  TELEMETRY_AHEAD_BYTES,
  TELEMETRY_BATCH_MS,
  TELEMETRY_FRAME_CHARS_MAX,
  TELEMETRY_QUEUE_CHARS_MAX,
  WORKER_GAUGES_MS,
  WORKER_GAUGES_MS_MAX,
  WORKER_GAUGES_MS_MIN,
  WORKER_SPANS_PER_SECOND,
} from "./wire/limits.ts";
import type { Announcement, ErrorBody, InvokeFunction } from "./wire/protocol.ts";
import type { Dial } from "./wire/transport.ts";

/** What {@linkcode Telemetry} works with. */
export interface TelemetrySetup {
  readonly clock: WorkerClock;
  readonly dial: Dial;
  /** Address of the engine, without the telemetry route. */
  readonly url: string;
  /** Sent with every attempt to connect. */
  readonly headers: Readonly<Record<string, string>>;
  /** The worker, by name. */
  readonly service: string;
  /** Such as `deno`. */
  readonly runtime: string;
  readonly pid: number;
}

/** The telemetry of a worker with these options; `undefined` when it is to send none. */
export function makeTelemetry(
  url: string,
  options: WorkerOptions,
  { name, runtime, pid }: Announcement,
): Telemetry | undefined {
  if (!sendsTelemetry(options)) return undefined;
  const { clock = platformClock, dial = dialPlatform } = options;
  const headers = telemetryHeaders(options);
  return new Telemetry({ clock, dial, url, headers, service: name, runtime, pid });
}

/** Tells that a handler has ended, and with which failure. */
export type EndSpan = (error: ErrorBody | undefined) => void;

/** First look at what the process uses, so that a page that is open shows something soon. */
const FIRST_GAUGES_MS = 1_000;

/** The telemetry of one worker. */
export class Telemetry implements LogSink {
  /** Id of the worker's own line, once the engine has said it. */
  workerId: string | undefined;
  readonly #setup: TelemetrySetup;
  readonly #line: ReconnectingLine;
  readonly #logs = new TelemetryQueue();
  readonly #spans = new TelemetryQueue();
  readonly #spanTokens: TokenBucket;
  readonly #gauges: ProcessGauges;
  #state: "new" | "open" | "over" = "new";
  #cancelFlush: (() => void) | undefined;
  #cancelGauges: () => void = () => {};

  /** Collects from now on; {@linkcode Telemetry.open} dials. */
  constructor(setup: TelemetrySetup) {
    const { clock, dial, url, headers } = setup;
    this.#setup = setup;
    this.#gauges = new ProcessGauges(clock);
    this.#spanTokens = new TokenBucket(WORKER_SPANS_PER_SECOND, () => clock.now());
    this.#line = new ReconnectingLine({
      url: telemetryUrl(url),
      dial,
      dialOptions: { headers },
      clock,
      reconnect: {},
      random: Math.random,
    }, {
      opened: (line) => this.#flush(line),
      text() {},
      lost() {},
      failed() {}, // Quietly: the worker's own line says what is wrong.
      state() {},
    });
  }

  /** Dials, when the engine has been reached for the first time; later calls do nothing. */
  open(): void {
    if (this.#state !== "new") return;
    this.#state = "open";
    this.#line.start();
    this.#gauges.start();
    this.#readGauges(FIRST_GAUGES_MS);
  }

  /** Takes a log line, for the call in whose handler it is said; `false` when it is left out. */
  takeLog({ level, message, data, shown, service }: LogLine): boolean {
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

  /** A handler begins now; call the result when it ends. `undefined`: nobody wants to know. */
  begin(call: InvokeFunction, now: number = this.#setup.clock.now()): EndSpan | undefined {
    if (call.traceparent === undefined || this.#state === "over") return undefined;
    // In this order, since a busy worker is out of tokens nearly always.
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
   * Sends what waits, if need be on the worker's own line, and ends. Resolves when the line is
   * closed; a second time does nothing more.
   */
  stop(own: Line | undefined): Promise<void> {
    const isFirst = this.#state !== "over";
    this.#state = "over";
    this.#cancelFlush?.();
    this.#cancelGauges();
    this.#gauges.stop();
    const line = this.#line.line ?? own;
    while (isFirst && line && !(this.#logs.isEmpty && this.#spans.isEmpty)) this.#send(line);
    return this.#line.stop("disconnected");
  }

  #flushSoon(): void {
    if (this.#cancelFlush || !this.#line.line) return; // A line that opens sends what waits.
    const { clock } = this.#setup;
    this.#cancelFlush = clock.after(TELEMETRY_BATCH_MS, () => {
      this.#cancelFlush = undefined;
      if (this.#line.line) this.#flush(this.#line.line);
    });
  }

  #flush(line: Line): void {
    if ((line.queuedBytes ?? 0) < TELEMETRY_AHEAD_BYTES) this.#send(line);
    if (!this.#logs.isEmpty || !this.#spans.isEmpty) this.#flushSoon();
  }

  /** Sends one frame of each kind that there is something of. */
  #send(line: Line): void {
    const dropped = this.#logs.takeDropped();
    const logs = this.#logs.takeFrame();
    if (dropped > 0) logs.push({ service: this.#setup.service, records: [this.#missing(dropped)] });
    if (logs.length > 0) line.send(this.#frame("LOGS", logs));
    if (!this.#spans.isEmpty) line.send(this.#frame("OTLP", this.#spans.takeFrame()));
  }

  #missing(lines: number): string {
    const message = "Log lines were left out, since there were more than can be sent";
    return encodeLog({ level: "warn", message, data: { lines }, at_ms: this.#wall() });
  }

  #readGauges(ms: number): void {
    this.#cancelGauges = this.#setup.clock.after(ms, () => {
      this.#readGauges(gaugesMs());
      const { line } = this.#line;
      if (!line || (line.queuedBytes ?? 0) >= TELEMETRY_AHEAD_BYTES) return;
      const at_ms = this.#wall();
      const records = this.#gauges.read().map((gauge) => encodeGauge(gauge, at_ms));
      const { service } = this.#setup;
      if (records.length > 0) line.send(this.#frame("MTRC", [{ service, records }]));
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

/** How often to tell what the process uses: in milliseconds, as OTEL's own variable says. */
function gaugesMs(): number {
  const asked = Number(environment("OTEL_METRIC_EXPORT_INTERVAL") ?? WORKER_GAUGES_MS);
  if (!Number.isFinite(asked)) return WORKER_GAUGES_MS;
  return Math.min(WORKER_GAUGES_MS_MAX, Math.max(WORKER_GAUGES_MS_MIN, asked));
}

/** 16 hexadecimal digits. */
function randomSpanId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Whether a worker sends telemetry: OTEL_ENABLED does not say `false`, and neither do its options.
 * A worker with a line of its own lives inside another program, so it has to be told to.
 */
export function sendsTelemetry({ telemetry, dial }: WorkerOptions): boolean {
  const isOff = /^(false|0)$/i.test(environment("OTEL_ENABLED") ?? "");
  return !isOff && (telemetry ?? dial === undefined);
}

/** The address of the telemetry route: behind the path, before the query. */
export function telemetryUrl(url: string): string {
  const address = attempt(() => new URL(url));
  if (!address) return url;
  address.pathname = `${address.pathname.replace(/\/+$/, "")}/otel`;
  return address.href;
}

/** The headers of that route: the proof that this worker may connect, and nothing else. */
export function telemetryHeaders({ token, headers = {} }: WorkerOptions): Record<string, string> {
  if (token) return { Authorization: `Bearer ${token}` };
  const own = Object.entries(headers).filter(([name]) => name.toLowerCase() === "authorization");
  return Object.fromEntries(own);
}

/** Records of one service that leave together. */
export interface RecordGroup {
  readonly service: string;
  readonly records: string[];
}

/** The records of one signal. */
export class TelemetryQueue {
  readonly #charsMax: number;
  #waiting: { readonly service: string; readonly text: string }[] = [];
  #chars = 0;
  #dropped = 0;

  /** Empty; holds `charsMax` characters. */
  constructor(charsMax: number = TELEMETRY_QUEUE_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  /** Whether nothing waits. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Takes a record in; `false` when there is no room, which is counted. */
  add(service: string, text: string): boolean {
    if (this.#chars + text.length > this.#charsMax) {
      this.#dropped++;
      return false;
    }
    this.#waiting.push({ service, text });
    this.#chars += text.length;
    return true;
  }

  /** How many found no room since this was asked last. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** Takes out the oldest, at least one and about as many as a frame should hold, by service. */
  takeFrame(): RecordGroup[] {
    const groups = new Map<string, string[]>();
    let count = 0;
    let chars = 0;
    for (const { service, text } of this.#waiting) {
      if (count > 0 && chars + text.length > TELEMETRY_FRAME_CHARS_MAX) break;
      count++;
      chars += text.length;
      const records = groups.get(service);
      if (records) records.push(text);
      else groups.set(service, [text]);
    }
    this.#waiting = this.#waiting.slice(count);
    this.#chars -= chars;
    return [...groups].map(([service, records]) => ({ service, records }));
  }
}

/** Says whether one more is allowed. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #now: () => number;
  #tokens: number;
  #at: number;

  /** Full; `now` gives milliseconds. */
  constructor(perSecond: number, now: () => number) {
    this.#perSecond = perSecond;
    this.#now = now;
    this.#tokens = perSecond;
    this.#at = now();
  }

  /** Takes one, if there is one; `now` is for those who have just looked at the clock. */
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
