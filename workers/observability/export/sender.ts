/**
 * Delivery of OTLP over HTTP: a queue that batches items, and a sender that retries requests.
 *
 * As the standard requires, network failures and 429, 502, 503 and 504 are retried with growing
 * delays or after `Retry-After`; other failures are given up at once. The start and the end of an
 * outage are logged once each. Headers and bodies are never logged, since they contain secrets.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Log } from "../../../engine/ports/log.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { encodeRequest } from "./protobuf.ts";
import type { Signal, SignalSettings } from "./settings.ts";

/** Delay before the first retry of an export, in milliseconds; it doubles with each retry. */
const OTLP_RETRY_FIRST_MS = 1_000;
/** Longest delay before a retry, in milliseconds. */
const OTLP_RETRY_MAX_MS = 30_000;
/** Tries of one export, after which it is dropped. */
export const OTLP_TRIES_MAX = 6;

/** Options of {@linkcode ExportQueue}. */
export interface QueueOptions<T> {
  readonly clock: Clock;
  /** Bound of waiting items. */
  readonly itemsMax: number;
  /** Items per batch at most. */
  readonly batchMax: number;
  /** How long the first item of a batch waits for others. */
  readonly delayMs: number;
  /** Sends a batch; must not reject. */
  send(items: readonly T[]): Promise<unknown>;
}

/** A bounded queue that sends batches, one at a time; drops items beyond its bound. */
export class ExportQueue<T> {
  readonly #options: QueueOptions<T>;
  #waiting: T[] = [];
  #sending: Promise<void> | undefined;
  #cancel: (() => void) | undefined;
  #dropped = 0;

  constructor(options: QueueOptions<T>) {
    this.#options = options;
  }

  /** Number of dropped items. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Number of waiting items. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Adds an item, or drops it if the queue is full. */
  push(item: T): void {
    const { itemsMax, batchMax, delayMs, clock } = this.#options;
    if (this.#waiting.length >= itemsMax) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(item);
    if (this.#waiting.length >= batchMax) this.#start();
    else this.#cancel ??= clock.after(delayMs, () => this.#start());
  }

  /** Sends all waiting items; resolves when every attempt has ended. */
  async flush(): Promise<void> {
    while (this.#waiting.length > 0 || this.#sending) {
      this.#start();
      await this.#sending;
    }
  }

  /** Stops sending, except by {@linkcode flush}. */
  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #start(): void {
    this.close();
    this.#sending ??= this.#run();
  }

  async #run(): Promise<void> {
    const { batchMax, send, delayMs, clock } = this.#options;
    do {
      await send(this.#waiting.splice(0, batchMax));
    } while (this.#waiting.length >= batchMax);
    this.#sending = undefined;
    // Items that arrived meanwhile wait for a batch.
    if (this.#waiting.length > 0) this.#cancel ??= clock.after(delayMs, () => this.#start());
  }
}

/** Dependencies of {@linkcode OtlpSender}. */
export interface SenderParts {
  readonly signal: Signal;
  readonly settings: SignalSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** The platform's, or a fake in tests. */
  readonly fetch: typeof fetch;
}

/** Outcome of one attempt. */
type Attempt =
  | { readonly state: "sent" }
  | { readonly state: "retry"; readonly reason: string; readonly waitMs: number | undefined }
  | { readonly state: "refused"; readonly reason: string };

const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Sends the requests of one signal. */
export class OtlpSender {
  readonly #parts: SenderParts;
  readonly #ending = new AbortController();
  #isFailing = false;
  #sent = 0;
  #givenUp = 0;

  constructor(parts: SenderParts) {
    this.#parts = parts;
  }

  /** Requests delivered, and requests given up. */
  get counts(): { readonly sent: number; readonly given_up: number } {
    return { sent: this.#sent, given_up: this.#givenUp };
  }

  /** Sends a request; `false` if given up. Never rejects; every wait is bounded. */
  async send(request: JsonObject): Promise<boolean> {
    const body = await encodeBody(request, this.#parts.settings);
    let waitMs = OTLP_RETRY_FIRST_MS;
    for (let tries = 1;; tries++) {
      const attempt = await this.#try(body);
      if (attempt.state === "sent") return this.#count(true);
      this.#warn(attempt.reason);
      const isLast = attempt.state === "refused" || tries >= OTLP_TRIES_MAX;
      if (isLast || this.#ending.signal.aborted) return this.#count(false);
      await this.#wait(Math.min(attempt.waitMs ?? waitMs, OTLP_RETRY_MAX_MS));
      waitMs *= 2;
    }
  }

  /** Aborts waits and gives up the request being sent. */
  close(): void {
    this.#ending.abort();
  }

  async #try(body: Uint8Array<ArrayBuffer>): Promise<Attempt> {
    const { settings, clock, fetch } = this.#parts;
    const limit = new AbortController();
    const cancel = clock.after(settings.timeout_ms, () => limit.abort());
    try {
      const answer = await fetch(settings.url, {
        method: "POST",
        body,
        headers: headersOf(settings),
        redirect: "error",
        signal: AbortSignal.any([limit.signal, this.#ending.signal]),
      });
      await answer.body?.cancel();
      return attemptOf(answer);
    } catch (thrown) {
      const reason = limit.signal.aborted
        ? `no answer within ${settings.timeout_ms} ms`
        : thrown instanceof Error
        ? thrown.message
        : String(thrown);
      return { state: "retry", reason, waitMs: undefined };
    } finally {
      cancel();
    }
  }

  #count(isSent: boolean): boolean {
    if (isSent) this.#sent++;
    else this.#givenUp++;
    if (isSent && this.#isFailing) {
      this.#parts.log.info("export recovered", { signal: this.#parts.signal });
      this.#isFailing = false;
    }
    return isSent;
  }

  #warn(reason: string): void {
    if (this.#isFailing || this.#ending.signal.aborted) return;
    this.#isFailing = true;
    const { signal, settings, log } = this.#parts;
    log.warn("export fails", { signal, url: withoutSecrets(settings.url), reason });
  }

  #wait(ms: number): Promise<void> {
    const { signal } = this.#ending;
    if (signal.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(ms, resolve);
    const stop = (): void => resolve();
    signal.addEventListener("abort", stop);
    return promise.finally(() => {
      cancel();
      signal.removeEventListener("abort", stop);
    });
  }
}

function attemptOf({ ok, status, headers }: Response): Attempt {
  if (ok) return { state: "sent" };
  const reason = `HTTP ${status}`;
  if (!RETRYABLE.has(status)) return { state: "refused", reason };
  const seconds = Number(headers.get("retry-after") ?? NaN);
  const waitMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined;
  return { state: "retry", reason, waitMs };
}

function headersOf({ headers, protocol, gzip }: SignalSettings): Headers {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) all.set(name, value);
  all.set("content-type", protocol === "http/json" ? "application/json" : "application/x-protobuf");
  if (gzip) all.set("content-encoding", "gzip");
  return all;
}

async function encodeBody(
  request: JsonObject,
  { protocol, gzip }: SignalSettings,
): Promise<Uint8Array<ArrayBuffer>> {
  const body = protocol === "http/json"
    ? new TextEncoder().encode(JSON.stringify(request))
    : encodeRequest(request);
  if (!gzip) return body;
  const packed = new Blob([body]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

/** The URL without user, password and query. */
function withoutSecrets(text: string): string {
  const { origin, pathname } = new URL(text);
  return origin + pathname;
}
