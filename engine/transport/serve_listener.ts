/**
 * A port for worker lines, on Deno.serve and Deno.upgradeWebSocket.
 *
 * It knows no path and no token: the {@linkcode Gate} does. It is small because Deno does the
 * framing, and it can do what Deno lets it. What holds, found out by trying it:
 *
 * - Liveness: Deno pings a peer after half of `idleTimeout` without a word, and gives it up after
 *   the whole. It cannot ping by another rhythm, so the engine's ping comes after 30 s of silence
 *   instead of every 20 s, and the end of a silent line after 60 s, as it has to be.
 * - A peer that does not read is cut when its queue passes its bound, or when nothing moved for
 *   60 s. Its socket stays until the peer or the system ends it, with at most `SEND_AHEAD_BYTES`
 *   and one message in memory; {@linkcode CONNECTIONS_MAX} bounds such sockets too.
 * - Too large: up to 64 MiB the peer is told 1009. A single frame of 64 MiB and more makes Deno
 *   drop the line without a word. A message in fragments is refused only once it is whole.
 * - Broken framing and bad UTF-8 end the line without a close frame (1002 or 1007 by the book).
 * - Frames of a client that are not masked are accepted.
 * - The head of an upgrade that stalls holds its socket for as long as the client likes: Deno has
 *   no setting for it.
 * - Reading cannot be paused.
 * - With TLS, a peer that begins without it or does not trust the certificate is not told apart
 *   from one that leaves, so nothing is logged.
 *
 * @module
 */
import { CONNECTIONS_MAX, LINE_CLOSE_MS, SILENCE_MS } from "../../sdk/typescript/wire/limits.ts";
import type {
  Accept,
  Gate,
  Listen,
  Listener,
  ListenOptions,
  Upgrade,
} from "../ports/connection.ts";
import {
  type Answer,
  asksForPage,
  bodyOf,
  GOING_DOWN,
  listenError,
  NO_PAGE,
  OTHER_VERSION,
  pageAnswer,
  refusalAnswer,
  TOO_MANY,
  wantsUpgrade,
} from "./answers.ts";
import type { Certificate } from "./certificate.ts";
import { ServeConnection } from "./serve_connection.ts";

/** Opens a port for lines, as {@linkcode Listen} says. */
export const listenServe: Listen = (options, gate) => new ServeListener(options, gate, {});

/** As {@linkcode listenServe}, and only in TLS. */
export function listenServeTls({ cert, key }: Certificate): Listen {
  return (options, gate) => new ServeListener(options, gate, { cert, key });
}

class ServeListener implements Listener {
  readonly hostname: string;
  readonly port: number;
  readonly #options: ListenOptions;
  readonly #gate: Gate;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #abort = new AbortController();
  readonly #silenceMs: number;
  readonly #watch: ReturnType<typeof setInterval>;
  /** Every socket there is, also those that are over for the engine and linger. */
  readonly #sockets = new Set<ServeConnection | WebSocket>();
  #allGone: (() => void) | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ListenOptions, gate: Gate, certificate: Partial<Certificate>) {
    this.#options = options;
    this.#gate = gate;
    this.#silenceMs = options.silenceMs ?? SILENCE_MS;
    const served = { ...options, ...certificate, signal: this.#abort.signal };
    this.#server = serve(served, (request, address) => this.#answer(request, address));
    ({ hostname: this.hostname, port: this.port } = this.#server.addr);
    this.#watch = setInterval(() => this.#look(), this.#silenceMs / 3);
  }

  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  async #close(): Promise<void> {
    clearInterval(this.#watch);
    const gone = new Promise<void>((resolve) => this.#allGone = resolve);
    for (const line of this.#sockets) line.close(1001, "engine is going down");
    if (this.#sockets.size > 0) {
      const timer = setTimeout(() => this.#allGone!(), LINE_CLOSE_MS);
      await gone;
      clearTimeout(timer);
    }
    this.#abort.abort(); // Ends what lingers, stalled heads included.
    await this.#server.finished;
  }

  #answer(request: Request, address: string): Response | Promise<Response> {
    if (!wantsUpgrade(request.headers)) return this.#page(request, address);
    if (this.#closed) return toResponse(GOING_DOWN);
    if (this.#sockets.size >= CONNECTIONS_MAX) {
      this.#options.onCut?.(address, `more than ${CONNECTIONS_MAX} lines`);
      return toResponse(TOO_MANY);
    }
    const verdict = this.#gate(upgradeOf(request, address));
    if (typeof verdict !== "function") return toResponse(refusalAnswer(verdict));
    return this.#upgrade(request, address, verdict);
  }

  #page(request: Request, address: string): Response | Promise<Response> {
    const page = asksForPage(request.method)
      ? this.#options.answerPage?.(upgradeOf(request, address))
      : undefined;
    return page ? page.then((made) => toResponse(pageAnswer(made))) : toResponse(NO_PAGE);
  }

  #upgrade(request: Request, address: string, accept: Accept): Response {
    if (request.headers.get("sec-websocket-version") !== "13") {
      return toResponse(OTHER_VERSION);
    }
    let upgraded;
    try {
      upgraded = Deno.upgradeWebSocket(request, { idleTimeout: this.#silenceMs / 1_000 });
    } catch (error) {
      const message = `Not a WebSocket upgrade: ${(error as Error).message}`;
      return toResponse({ status: 400, message });
    }
    const { socket, response } = upgraded;
    socket.binaryType = "arraybuffer";
    this.#sockets.add(socket);
    // A client that goes away before the line is open leaves an error and nothing else.
    socket.onerror = socket.onclose = () => this.#gone(socket);
    socket.onopen = () => this.#opened(socket, address, accept);
    return response;
  }

  #opened(socket: WebSocket, address: string, accept: Accept): void {
    const line = new ServeConnection(socket, {
      maxMessageBytes: this.#options.maxMessageBytes,
      maxQueuedBytes: this.#options.maxQueuedBytes,
      silenceMs: this.#silenceMs,
      cut: (reason) => this.#options.onCut?.(address, reason),
      gone: () => this.#gone(line),
    });
    this.#sockets.delete(socket);
    this.#sockets.add(line);
    line.start(accept(line));
    if (this.#closed) line.close(1001, "engine is going down");
  }

  #gone(line: ServeConnection | WebSocket): void {
    this.#sockets.delete(line);
    if (this.#sockets.size === 0) this.#allGone?.();
  }

  #look(): void {
    const now = performance.now();
    for (const line of this.#sockets) if (line instanceof ServeConnection) line.look(now);
  }
}

const BROKEN: Answer = { status: 500, message: "Internal error" };

type Handler = (request: Request, address: string) => Response | Promise<Response>;

type Served = ListenOptions & Partial<Certificate> & { readonly signal: AbortSignal };

function serve(options: Served, answer: Handler): Deno.HttpServer<Deno.NetAddr> {
  const { hostname, port, signal, cert, key } = options;
  const certificate = cert === undefined || key === undefined ? {} : { cert, key };
  const onError = (): Response => toResponse(BROKEN);
  try {
    return Deno.serve(
      { hostname, port, signal, onListen() {}, onError, ...certificate },
      (request, { remoteAddr }) => answer(request, remoteAddr.hostname),
    );
  } catch (cause) {
    throw listenError(hostname, port, cause);
  }
}

function upgradeOf(request: Request, address: string): Upgrade {
  const { pathname, searchParams } = new URL(request.url);
  return { path: pathname, query: searchParams, headers: request.headers, address };
}

function toResponse(answer: Answer): Response {
  const headers = { "content-type": "text/plain; charset=utf-8", ...answer.headers };
  return new Response(bodyOf(answer), { status: answer.status, headers });
}
