/**
 * Sends one OTLP request after another over HTTP, and tries again where that may help.
 *
 * As the standard has it: 429, 502, 503, 504 and a network that fails are tried again, after
 * growing waits or what `Retry-After` says; anything else is given up at once. Each outage is said
 * once, and its end once. Headers and bodies are never logged: they hold secrets.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Log } from "../../../engine/ports/log.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { OTLP_RETRY_FIRST_MS, OTLP_RETRY_MAX_MS, OTLP_TRIES_MAX } from "../../limits.ts";
import { encodeRequest } from "./protobuf.ts";
import type { Signal, SignalSettings } from "./settings.ts";

/** How a queue sends. */
export interface QueueOptions<T> {
  readonly clock: Clock;
  /** Items that wait at most. */
  readonly most: number;
  /** Items sent together at most. */
  readonly batch: number;
  /** How long the first item of a batch waits for others. */
  readonly delayMs: number;
  /** Sends a batch; must not reject. */
  send(items: readonly T[]): Promise<unknown>;
}

/** Collects items and sends them. */
export class ExportQueue<T> {
  readonly #options: QueueOptions<T>;
  #waiting: T[] = [];
  #sending: Promise<void> | undefined;
  #cancel: (() => void) | undefined;
  #dropped = 0;

  /** Sends nothing before the first item. */
  constructor(options: QueueOptions<T>) {
    this.#options = options;
  }

  /** Items that did not fit. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Items that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Takes an item, or drops it. */
  push(item: T): void {
    const { most, batch, delayMs, clock } = this.#options;
    if (this.#waiting.length >= most) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(item);
    if (this.#waiting.length >= batch) this.#start();
    else this.#cancel ??= clock.after(delayMs, () => this.#start());
  }

  /** Sends all that waits; resolves when that has ended, well or badly. */
  async flush(): Promise<void> {
    while (this.#waiting.length > 0 || this.#sending) {
      this.#start();
      await this.#sending;
    }
  }

  /** Sends no more by itself. */
  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #start(): void {
    this.close();
    this.#sending ??= this.#run();
  }

  async #run(): Promise<void> {
    const { batch, send, delayMs, clock } = this.#options;
    do {
      await send(this.#waiting.splice(0, batch));
    } while (this.#waiting.length >= batch);
    this.#sending = undefined;
    // What came meanwhile waits for others in its turn.
    if (this.#waiting.length > 0) this.#cancel ??= clock.after(delayMs, () => this.#start());
  }
}

/** What a sender works with. */
export interface SenderParts {
  readonly signal: Signal;
  readonly settings: SignalSettings;
  readonly clock: Clock;
  readonly log: Log;
  /** The platform's; another in tests. */
  readonly fetch: typeof fetch;
}

/** What became of one try. */
type Tried =
  | { readonly state: "sent" }
  | { readonly state: "again"; readonly reason: string; readonly waitMs: number | undefined }
  | { readonly state: "refused"; readonly reason: string };

const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Sends the requests of one signal. */
export class OtlpSender {
  readonly #parts: SenderParts;
  readonly #ending = new AbortController();
  #isFailing = false;
  #sent = 0;
  #givenUp = 0;

  /** Sends nothing yet. */
  constructor(parts: SenderParts) {
    this.#parts = parts;
  }

  /** Requests that arrived, and those that were given up. */
  get counts(): { readonly sent: number; readonly given_up: number } {
    return { sent: this.#sent, given_up: this.#givenUp };
  }

  /** Sends a request; `false` when it was given up. Never rejects; every wait is bounded. */
  async send(request: JsonObject): Promise<boolean> {
    const body = await encodeBody(request, this.#parts.settings);
    let waitMs = OTLP_RETRY_FIRST_MS;
    for (let tries = 1;; tries++) {
      const tried = await this.#try(body);
      if (tried.state === "sent") return this.#note(true);
      this.#warn(tried.reason);
      const isLast = tried.state === "refused" || tries >= OTLP_TRIES_MAX;
      if (isLast || this.#ending.signal.aborted) return this.#note(false);
      await this.#wait(Math.min(tried.waitMs ?? waitMs, OTLP_RETRY_MAX_MS));
      waitMs *= 2;
    }
  }

  /** Waits no more and gives up what is on its way. */
  close(): void {
    this.#ending.abort();
  }

  async #try(body: Uint8Array<ArrayBuffer>): Promise<Tried> {
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
      return triedBy(answer);
    } catch (thrown) {
      const reason = limit.signal.aborted
        ? `no answer within ${settings.timeout_ms} ms`
        : thrown instanceof Error
        ? thrown.message
        : String(thrown);
      return { state: "again", reason, waitMs: undefined };
    } finally {
      cancel();
    }
  }

  #note(isSent: boolean): boolean {
    if (isSent) this.#sent++;
    else this.#givenUp++;
    if (isSent && this.#isFailing) {
      this.#parts.log.info("export goes on", { signal: this.#parts.signal });
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

function triedBy({ ok, status, headers }: Response): Tried {
  if (ok) return { state: "sent" };
  const reason = `HTTP ${status}`;
  if (!AGAIN.has(status)) return { state: "refused", reason };
  const seconds = Number(headers.get("retry-after") ?? NaN);
  const waitMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined;
  return { state: "again", reason, waitMs };
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

/** Without name, password and query. */
function withoutSecrets(text: string): string {
  const { origin, pathname } = new URL(text);
  return origin + pathname;
}
