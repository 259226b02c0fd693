/**
 * HTTP requests that a page makes, forwarded to the engine's own HTTP port and nowhere else.
 *
 * The page cannot make them itself: its Content-Security-Policy allows no other address, and
 * `engine-http` need not allow its origin.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError, thrownText } from "../../sdk/typescript/wire/errors.ts";
import { beginTrace, traceIdOf } from "./engine_client.ts";
import type { BrowserMessage, ConsoleMessage } from "./wire.ts";

/** Time for a whole request, response included. */
export const REQUEST_MS = 60_000;
/** Largest response that a page gets. */
export const RESPONSE_BYTES_MAX = 8 * 1024 * 1024;

/** A request as the page sends it. */
export type PageHttpRequest = Extract<BrowserMessage, { type: "http" }>;

/** The response as the page gets it. */
export type PageHttpResponse = Omit<
  Extract<ConsoleMessage, { type: "http_answer" }>,
  "type" | "id" | "duration_ms"
>;

/** Headers that belong to one connection or that the HTTP client must set itself. */
const NOT_FORWARDED = /^(host|connection|content-length|transfer-encoding|upgrade|te|trailer)$/i;

/** Forwards requests. Disposing of it closes its connections. */
export class HttpProxy implements Disposable {
  readonly #clock: Clock;
  readonly #findUrl: () => Promise<string | undefined>;
  // A pool of its own, so that its connections end with the console.
  readonly #client = Deno.createHttpClient({ poolMaxIdlePerHost: 4 });

  /** `findUrl` looks up where `engine-http` listens now; `undefined`: nowhere. */
  constructor(clock: Clock, findUrl: () => Promise<string | undefined>) {
    this.#clock = clock;
    this.#findUrl = findUrl;
  }

  /**
   * Makes a request. Redirects are shown, not followed.
   *
   * @throws {EngineError} `NOT_FOUND` without `engine-http`; `INVALID_ARGUMENTS` for a request that
   * cannot be made; `body_too_large`, `timeout`, `engine_unreachable`.
   */
  async send(request: PageHttpRequest, signal: AbortSignal): Promise<PageHttpResponse> {
    const base = await this.#findUrl();
    if (base === undefined) {
      const message =
        "The engine serves no HTTP; add engine-http with: engine worker add engine-http";
      throw new EngineError("NOT_FOUND", message);
    }
    const prepared = requestOf(request, base);
    const timeout = new EngineError("timeout", `No complete response within ${REQUEST_MS} ms`);
    const timer = new AbortController();
    const cancel = this.#clock.after(REQUEST_MS, () => timer.abort(timeout));
    const either = AbortSignal.any([signal, timer.signal]);
    try {
      return await readResponse(await fetch(prepared, { signal: either, client: this.#client }));
    } catch (thrown) {
      if (either.aborted && either.reason === timeout) throw timeout;
      if (thrown instanceof EngineError) throw thrown;
      const { origin } = new URL(prepared.url);
      const message = `The request to ${origin} failed: ${thrownText(thrown)}`;
      throw new EngineError("engine_unreachable", message);
    } finally {
      cancel();
    }
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for a path that leads to another server. */
function urlOf(path: string, base: string): URL {
  const { origin } = new URL(base);
  // Appended as text: resolved as a reference, `//other/` would name another server.
  const url = URL.canParse(origin + path) ? new URL(origin + path) : undefined;
  if (url?.origin === origin && url.username === "" && path.startsWith("/")) return url;
  throw new EngineError("INVALID_ARGUMENTS", "The path must begin with / and stay on this server");
}

/** @throws {EngineError} `INVALID_ARGUMENTS` when it makes no valid request. */
function requestOf({ method, path, headers, body }: PageHttpRequest, base: string): Request {
  const url = urlOf(path, base);
  try {
    const sent = new Headers();
    for (const [name, value] of Object.entries(headers)) {
      if (!NOT_FORWARDED.test(name)) sent.append(name, value);
    }
    if (!sent.has("traceparent")) sent.set("traceparent", beginTrace(true).traceparent);
    const hasBody = body !== undefined && body !== "";
    const init = { method, headers: sent, redirect: "manual" } as const;
    return new Request(url, { ...init, ...hasBody && { body } });
  } catch (thrown) {
    throw new EngineError("INVALID_ARGUMENTS", `This cannot be sent: ${thrownText(thrown)}`);
  }
}

async function readResponse(response: Response): Promise<PageHttpResponse> {
  const bytes = await readBody(response);
  const text = decodeText(bytes);
  return {
    status: response.status,
    headers: [...response.headers],
    body: text ?? bytes.toBase64(),
    binary: text === undefined,
    trace_id: traceIdOf(response.headers.get("traceparent")),
  };
}

/** @throws {EngineError} `body_too_large`. */
async function readBody(response: Response): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > RESPONSE_BYTES_MAX) {
      const message = `The answer has more than ${RESPONSE_BYTES_MAX} bytes; ask with curl`;
      throw new EngineError("body_too_large", message);
    }
    parts.push(part);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The bytes as text; `undefined` when they are not UTF-8 text. */
function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // Not UTF-8.
  }
}
