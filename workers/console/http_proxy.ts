/**
 * HTTP requests that a page makes, to the engine's own HTTP port and nowhere else.
 *
 * A page cannot do it by itself: its policy allows no other address, and `engine-http` need not
 * allow its origin.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { EngineError, thrownText } from "../../sdk/typescript/wire/errors.ts";
import { CONSOLE_HTTP_BYTES_MAX, CONSOLE_HTTP_MS } from "./limits.ts";
import { beginTrace, traceIdOf } from "./engine_client.ts";
import type { BrowserMessage, ConsoleMessage } from "./wire.ts";

/** A request as the page gives it. */
export type PageHttpRequest = Extract<BrowserMessage, { type: "http" }>;

/** The answer as the page gets it. */
export type PageHttpAnswer = Omit<
  Extract<ConsoleMessage, { type: "http_answer" }>,
  "type" | "id" | "duration_ms"
>;

/** Headers that belong to one line, or that only the one who sends can know. */
const NOT_HANDED_ON = /^(host|connection|content-length|transfer-encoding|upgrade|te|trailer)$/i;

/** See the top of this file. */
export class HttpDoor implements Disposable {
  readonly #clock: Clock;
  readonly #findUrl: () => Promise<string | undefined>;
  // A pool of its own, so that its lines end with the console.
  readonly #client = Deno.createHttpClient({ poolMaxIdlePerHost: 4 });

  /** `findUrl` says where `engine-http` listens now, if it does. */
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
  async send(request: PageHttpRequest, signal: AbortSignal): Promise<PageHttpAnswer> {
    const base = await this.#findUrl();
    if (base === undefined) {
      const message =
        "The engine serves no HTTP; add engine-http with: engine worker add engine-http";
      throw new EngineError("NOT_FOUND", message);
    }
    const prepared = requestOf(request, base);
    const ending = new AbortController();
    const late = new EngineError("timeout", `No whole answer came in ${CONSOLE_HTTP_MS} ms`);
    const cancel = this.#clock.after(CONSOLE_HTTP_MS, () => ending.abort(late));
    const both = AbortSignal.any([signal, ending.signal]);
    try {
      return await readAnswer(await fetch(prepared, { signal: both, client: this.#client }));
    } catch (thrown) {
      if (both.aborted && both.reason === late) throw late;
      if (thrown instanceof EngineError) throw thrown;
      const message = `The request to ${new URL(prepared.url).origin} failed: ${
        thrownText(thrown)
      }`;
      throw new EngineError("engine_unreachable", message);
    } finally {
      cancel();
    }
  }

  /** Ends its lines. */
  [Symbol.dispose](): void {
    this.#client.close();
  }
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for a path that leads to another server. */
function urlOf(path: string, base: string): URL {
  const { origin } = new URL(base);
  // Put behind the origin as text: as a reference `//other/` would name another server.
  const url = URL.canParse(origin + path) ? new URL(origin + path) : undefined;
  if (url?.origin === origin && url.username === "" && path.startsWith("/")) return url;
  throw new EngineError("INVALID_ARGUMENTS", "The path must begin with / and stay on this server");
}

/** @throws {EngineError} `INVALID_ARGUMENTS` for what no request can be made of. */
function requestOf({ method, path, headers, body }: PageHttpRequest, base: string): Request {
  const url = urlOf(path, base);
  try {
    const sent = new Headers();
    for (const [name, value] of Object.entries(headers)) {
      if (!NOT_HANDED_ON.test(name)) sent.append(name, value);
    }
    if (!sent.has("traceparent")) sent.set("traceparent", beginTrace(true).traceparent);
    const has = body !== undefined && body !== "";
    return new Request(url, { method, headers: sent, redirect: "manual", ...has && { body } });
  } catch (thrown) {
    throw new EngineError("INVALID_ARGUMENTS", `This cannot be sent: ${thrownText(thrown)}`);
  }
}

async function readAnswer(response: Response): Promise<PageHttpAnswer> {
  const bytes = await readBounded(response);
  const text = asText(bytes);
  return {
    status: response.status,
    headers: [...response.headers],
    body: text ?? bytes.toBase64(),
    binary: text === undefined,
    trace_id: traceIdOf(response.headers.get("traceparent")),
  };
}

/** @throws {EngineError} `body_too_large`. */
async function readBounded(response: Response): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > CONSOLE_HTTP_BYTES_MAX) {
      const message = `The answer has more than ${CONSOLE_HTTP_BYTES_MAX} bytes; ask with curl`;
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

/** The bytes as text; `undefined` when they are none. */
function asText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // Not UTF-8.
  }
}
