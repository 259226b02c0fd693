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
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import { CONNECTIONS_MAX, LINE_CLOSE_MS, SILENCE_MS } from "../../sdk/typescript/limits.ts";
import type {
  Accept,
  Gate,
  Listen,
  Listener,
  ListenOptions,
  Upgrade,
} from "../ports/connection.ts";
import { ServeConnection } from "./serve_connection.ts";

/** Opens a port for lines, as {@linkcode Listen} says. */
export const listenServe: Listen = (options, gate) => new ServeListener(options, gate);

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

  constructor(options: ListenOptions, gate: Gate) {
    this.#options = options;
    this.#gate = gate;
    this.#silenceMs = options.silenceMs ?? SILENCE_MS;
    this.#server = serve(options, this.#abort.signal, (request, address) => {
      return this.#answer(request, address);
    });
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

  #answer(request: Request, address: string): Response {
    if (!wantsUpgrade(request.headers)) return text(426, NO_PAGE, { "upgrade": "websocket" });
    if (this.#closed) return text(503, "The engine is going down");
    if (this.#sockets.size >= CONNECTIONS_MAX) {
      this.#options.onCut?.(address, `more than ${CONNECTIONS_MAX} lines`);
      return text(503, "Too many connections");
    }
    const verdict = this.#gate(upgradeOf(request, address));
    if (typeof verdict !== "function") {
      const headers = verdict.status === 401 ? { "www-authenticate": "Bearer" } : undefined;
      return text(verdict.status, verdict.message, headers);
    }
    return this.#upgrade(request, address, verdict);
  }

  #upgrade(request: Request, address: string, accept: Accept): Response {
    if (request.headers.get("sec-websocket-version") !== "13") {
      return text(426, "Only WebSocket version 13 is spoken here", {
        "sec-websocket-version": "13",
      });
    }
    let upgraded;
    try {
      upgraded = Deno.upgradeWebSocket(request, { idleTimeout: this.#silenceMs / 1_000 });
    } catch (error) {
      return text(400, `Not a WebSocket upgrade: ${(error as Error).message}`);
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

const NO_PAGE = "This port speaks WebSocket with workers; there is no page here";

type Answer = (request: Request, address: string) => Response;

function serve(
  options: ListenOptions,
  signal: AbortSignal,
  answer: Answer,
): Deno.HttpServer<Deno.NetAddr> {
  const { hostname, port } = options;
  try {
    return Deno.serve(
      { hostname, port, signal, onListen() {}, onError: () => text(500, "Internal error") },
      (request, { remoteAddr }) => answer(request, remoteAddr.hostname),
    );
  } catch (cause) {
    throw listenError(hostname, port, cause);
  }
}

function listenError(hostname: string, port: number, cause: unknown): EngineError {
  const details = { hostname, port };
  if (cause instanceof Deno.errors.AddrInUse) {
    const message =
      `Port ${port} is taken; stop the other program or set engine.port in config.yaml`;
    return new EngineError("address_in_use", message, { details, cause });
  }
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `Cannot listen on ${hostname}:${port} (${why}); ` +
    "set engine.host and engine.port in config.yaml";
  return new EngineError("address_not_available", message, { details, cause });
}

function wantsUpgrade(headers: Headers): boolean {
  return headers.get("upgrade")?.toLowerCase().includes("websocket") ?? false;
}

function upgradeOf(request: Request, address: string): Upgrade {
  const { pathname, searchParams } = new URL(request.url);
  return { path: pathname, query: searchParams, headers: request.headers, address };
}

function text(status: number, message: string, headers?: Record<string, string>): Response {
  const all = { "content-type": "text/plain; charset=utf-8", ...headers };
  return new Response(message + "\n", { status, headers: all });
}
