/**
 * The worker port on Deno.serve and Deno.upgradeWebSocket.
 *
 * The {@linkcode Gate} decides about paths and tokens. This listener is small because Deno does the
 * framing, and limited to what Deno offers. Observed behaviour:
 *
 * - Liveness: Deno pings a peer after half of `idleTimeout` without a message, and closes after the
 *   whole. The interval cannot be set, so pings come after 30 s of silence instead of every 20 s; a
 *   silent connection ends after 60 s, as required.
 * - A peer that does not read is cut when its queue passes its bound, or when nothing moved for
 *   60 s. Its socket stays until the peer or the system ends it, with at most `SEND_AHEAD_BYTES`
 *   and one message in memory; {@linkcode CONNECTIONS_MAX} bounds such sockets too.
 * - Too large: up to 64 MiB the peer gets close code 1009. A single frame of 64 MiB and more makes
 *   Deno drop the connection without one. A fragmented message is refused only when it is complete.
 * - Bad framing and bad UTF-8 end the connection without a close frame (RFC 6455: 1002 or 1007).
 * - Unmasked frames of clients are accepted.
 * - A stalled head of an upgrade holds its socket indefinitely: Deno has no timeout for it.
 * - Reading cannot be paused: neither `TickBudget` nor the memory budget hold back what a peer
 *   sends, so use it where all peers are trusted. Memory is counted for what is unsent only.
 * - Deno sends no ping when asked and reports none, so no peer is suspected.
 * - An error of accept, such as a process without descriptors, ends the server of Deno; it is
 *   opened again on its port as soon as that is possible. Until then dials are refused.
 * - Sockets count from their upgrade on: idle ones before it take descriptors without a bound.
 * - With TLS, a peer without it or without trust in the certificate looks like one that leaves, so
 *   nothing is logged.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { SILENCE_MS } from "../../sdk/typescript/wire/limits.ts";
import {
  type Accept,
  CLOSE_MS,
  type Connection,
  type ConnectionEvents,
  CONNECTIONS_MAX,
  DRAINED_BYTES,
  type Gate,
  type Listen,
  type Listener,
  type ListenOptions,
  SEND_AHEAD_BYTES,
  STALLED_MS,
  type Upgrade,
} from "../ports/connection.ts";
import { RateWindow } from "../core/guards.ts";
import { WARNINGS_MAX, WARNINGS_WINDOW_MS } from "../ports/events.ts";
import { ACCEPT_RETRY_MS, listenError } from "../ports/listen.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { BufferLease } from "./buffer_lease.ts";
import type { Certificate } from "./certificate.ts";
import { truncateReason } from "./frames.ts";
import {
  type Answer,
  bodyOf,
  GOING_AWAY_REASON,
  isPageRequest,
  NO_PAGE,
  OTHER_VERSION,
  pageAnswer,
  PORT_SETTINGS,
  refusalResponse,
  STOPPING,
  TOO_MANY,
  wantsUpgrade,
} from "./http.ts";
import { TextJoiner } from "./local_connection.ts";
import { AcceptErrors } from "./raw_listener.ts";

/** How often a line that is behind looks whether it may send on. */
export const SEND_RETRY_MS = 2;

/** Longest time between two checks of all connections. */
const CHECK_MS_MAX = 1_000;

/** Close reason of Deno for a peer that did not answer its ping. */
const DENO_GAVE_UP = "No response from ping frame.";

/** Options of {@linkcode ServeConnection}. */
export interface ServeConnectionOptions {
  readonly maxMessageBytes: number;
  readonly maxQueuedBytes: number;
  /** For what was not given to Deno yet. Default: unlimited. */
  readonly memory?: MemoryBudget | undefined;
  /** A peer that reads nothing of what is queued for this long is cut. */
  readonly silenceMs: number;
  /** How long the peer may take to answer a close frame. Default: {@linkcode CLOSE_MS}. */
  readonly closeMs?: number | undefined;
  /** Called when this side ends the connection because the peer broke a limit. */
  cut(reason: string): void;
  /** Called when the socket is closed. */
  ended(): void;
}

/**
 * One connection on Deno's own WebSocket, with a bounded queue.
 *
 * Deno accepts everything that is sent and cannot take it back: what a peer does not read stays in
 * memory until the socket ends, which does not happen by itself. So only {@linkcode
 * SEND_AHEAD_BYTES} are given to Deno ahead of the network; the rest waits in this queue, which can
 * be dropped when the peer stops reading. The owner calls `start` once and `checkPeer` regularly.
 */
export class ServeConnection implements Connection {
  readonly id: string = crypto.randomUUID();
  readonly isBatching = false;
  readonly #socket: WebSocket;
  readonly #options: ServeConnectionOptions;
  #events: ConnectionEvents | undefined;
  #state: "open" | "closing" | "closed" = "open";
  /** The close frame that this side sent. */
  #closing: { code: number; reason: string } | undefined;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #failure = "";

  /** Messages that were not given to Deno yet. */
  #waiting: (string | Uint8Array)[] = [];
  /** Index of the next message in {@linkcode #waiting}. */
  #next = 0;
  #waitingBytes = 0;
  readonly #lease: BufferLease;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  /** Upper bound of the bytes that Deno holds, except for text beyond ASCII. */
  #aheadAtMost = 0;

  #sends = 0;
  /** What {@linkcode checkPeer} saw last, and since when it has not changed. */
  #lastCheck = { sends: 0, buffered: 0, since: 0 };

  constructor(socket: WebSocket, options: ServeConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#lease = new BufferLease(options.memory);
  }

  /** Reports all events to `events` from now on. */
  start(events: ConnectionEvents): void {
    this.#events = events;
    const socket = this.#socket;
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onerror = (event) => this.#failure = (event as ErrorEvent).message;
    socket.onclose = ({ code, reason }) => this.#socketClosed(code, reason);
  }

  get queuedBytes(): number {
    return this.#state === "open" ? this.#socket.bufferedAmount + this.#waitingBytes : 0;
  }

  send(text: string): void {
    if (this.#state === "open") this.#send(text);
  }

  forward(
    head: Uint8Array,
    headBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (this.#state === "open") this.#send(joiner.join(head, headBytes, memory, start, end));
  }

  sendBinary(bytes: Uint8Array): void {
    if (this.#state !== "open") return;
    this.#send(this.#hasRoom() ? bytes : bytes.slice());
  }

  pause(): boolean {
    return false; // Deno keeps reading.
  }

  resume(): void {}

  close(code: number, reason: string): void {
    if (this.#state !== "open") return;
    this.#closing = { code, reason };
    this.#state = "closing";
    this.#drop();
    this.#socket.close(code, truncateReason(reason));
    // The connection also ends when the peer does not answer.
    const closeMs = this.#options.closeMs ?? CLOSE_MS;
    this.#closeTimer = setTimeout(() => this.#report(code, reason), closeMs);
  }

  /** Ends a connection whose peer does not read; `now` is in milliseconds. */
  checkPeer(now: number): void {
    if (this.#state !== "open") return;
    const buffered = this.#socket.bufferedAmount;
    const last = this.#lastCheck;
    const moved = buffered === 0 || buffered !== last.buffered || this.#sends !== last.sends;
    if (moved) {
      this.#lastCheck = { sends: this.#sends, buffered, since: now };
      return;
    }
    const { silenceMs, maxQueuedBytes } = this.#options;
    const stuckMs = now - last.since;
    if (stuckMs >= silenceMs) this.#cut("has read nothing", buffered);
    else if (stuckMs >= STALLED_MS && this.queuedBytes > maxQueuedBytes) {
      this.#cut("has stopped reading", this.queuedBytes);
    }
  }

  #receive(data: string | ArrayBuffer): void {
    if (this.#state !== "open") return;
    if (isLarger(data, this.#options.maxMessageBytes)) {
      const reason = `message larger than ${this.#options.maxMessageBytes} bytes`;
      this.#options.cut(reason);
      this.close(1009, reason);
    } else if (typeof data === "string") {
      this.#events!.text(data);
    } else {
      this.#events!.binary(new Uint8Array(data));
    }
  }

  #send(message: string | Uint8Array): void {
    if (this.#hasRoom()) {
      this.#sendNow(message);
      return;
    }
    this.#waiting.push(message);
    this.#waitingBytes += bytesOf(message);
    if (!this.#lease.fit(this.#waitingBytes)) {
      this.#cut("reads too slowly, and engine.memory_mb is used up", this.queuedBytes);
    } else this.#retryTimer ??= setTimeout(() => this.#retry(), SEND_RETRY_MS);
  }

  /** Asks Deno only when the own count says that it may hold too much. */
  #hasRoom(): boolean {
    if (this.#retryTimer !== undefined) return false;
    if (this.#aheadAtMost < SEND_AHEAD_BYTES) return true;
    this.#aheadAtMost = this.#socket.bufferedAmount;
    return this.#aheadAtMost < SEND_AHEAD_BYTES;
  }

  #sendNow(message: string | Uint8Array): void {
    this.#sends++;
    this.#aheadAtMost += message.length;
    this.#socket.send(message as string);
  }

  #retry(): void {
    this.#retryTimer = undefined;
    let buffered = this.#socket.bufferedAmount;
    while (this.#next < this.#waiting.length && buffered < SEND_AHEAD_BYTES) {
      const message = this.#waiting[this.#next++]!;
      const bytes = bytesOf(message);
      this.#waitingBytes -= bytes;
      buffered += bytes;
      this.#sendNow(message);
    }
    this.#lease.fit(this.#waitingBytes);
    if (this.#next * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    if (this.#waiting.length === 0 && buffered <= DRAINED_BYTES) this.#events!.drained();
    else this.#retryTimer = setTimeout(() => this.#retry(), SEND_RETRY_MS);
  }

  #cut(what: string, bytes: number): void {
    const reason = `peer ${what}: ${bytes} bytes unsent`;
    this.#options.cut(reason);
    this.close(1008, reason);
    // The peer will not read the close frame; its calls end now.
    queueMicrotask(() => this.#report(1008, reason));
  }

  #socketClosed(code: number, reason: string): void {
    if (code === 1001 && reason === DENO_GAVE_UP) {
      const silent = `peer silent for ${this.#options.silenceMs} ms`;
      if (this.#state === "open") this.#options.cut(silent);
      this.#report(1006, silent);
    } else if (this.#closing) {
      this.#report(this.#closing.code, this.#closing.reason);
    } else if (code === 0) {
      // Deno's code for a connection that broke off or violated the protocol.
      this.#report(1006, this.#failure || "connection lost");
    } else {
      this.#report(code, reason);
    }
    this.#options.ended();
  }

  #report(code: number, reason: string): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    clearTimeout(this.#closeTimer);
    this.#drop();
    this.#events?.closed(code, reason);
  }

  #drop(): void {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
    this.#waiting = [];
    this.#next = 0;
    this.#waitingBytes = 0;
    this.#lease.fit(0);
  }
}

const joiner = new TextJoiner();

function bytesOf(message: string | Uint8Array): number {
  return typeof message === "string" ? Buffer.byteLength(message) : message.byteLength;
}

/** Counts only where the text could be too large: no character needs more than three bytes. */
function isLarger(message: string | ArrayBuffer, bound: number): boolean {
  if (typeof message !== "string") return message.byteLength > bound;
  return message.length * 3 > bound && Buffer.byteLength(message) > bound;
}

/** Opens a worker port, as {@linkcode Listen} says. */
export const listenServe: Listen = (options, gate) => new ServeListener(options, gate, {});

/** As {@linkcode listenServe}, with TLS only. */
export function listenServeTls({ cert, key }: Certificate): Listen {
  return (options, gate) => new ServeListener(options, gate, { cert, key });
}

class ServeListener implements Listener {
  readonly hostname: string;
  readonly port: number;
  readonly #options: ListenOptions;
  readonly #gate: Gate;
  readonly #certificate: Partial<Certificate>;
  readonly #acceptErrors: AcceptErrors;
  /** Bounds the log: peers that are refused try again and again. */
  readonly #warnings = new RateWindow(WARNINGS_MAX, WARNINGS_WINDOW_MS);
  #server: Deno.HttpServer<Deno.NetAddr>;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #abort = new AbortController();
  readonly #silenceMs: number;
  readonly #watch: ReturnType<typeof setInterval>;
  /** Every open socket, also of ended connections whose peer has not closed yet. */
  readonly #sockets = new Set<ServeConnection | WebSocket>();
  #allGone: (() => void) | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ListenOptions, gate: Gate, certificate: Partial<Certificate>) {
    this.#options = options;
    this.#gate = gate;
    this.#certificate = certificate;
    this.#acceptErrors = new AcceptErrors(options);
    this.#silenceMs = options.silenceMs ?? SILENCE_MS;
    this.#server = this.#serve(options.port);
    ({ hostname: this.hostname, port: this.port } = this.#server.addr);
    const checkMs = Math.min(CHECK_MS_MAX, this.#silenceMs / 3);
    this.#watch = setInterval(() => this.#checkPeers(), checkMs);
  }

  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  #serve(port: number): Deno.HttpServer<Deno.NetAddr> {
    const served = { ...this.#options, ...this.#certificate, port, signal: this.#abort.signal };
    const server = serve(served, (request, address) => this.#respond(request, address));
    server.finished.catch((error) => this.#reopen(error));
    return server;
  }

  /** Deno ended the server for an error of accept; its open connections are not concerned. */
  #reopen(error: unknown): void {
    if (this.#closed) return;
    this.#acceptErrors.report(error);
    this.#retryTimer = setTimeout(() => {
      try {
        this.#server = this.#serve(this.port);
      } catch (thrown) {
        this.#reopen((thrown as Error).cause ?? thrown);
      }
    }, ACCEPT_RETRY_MS);
  }

  async #close(): Promise<void> {
    clearInterval(this.#watch);
    clearTimeout(this.#retryTimer);
    const gone = new Promise<void>((resolve) => this.#allGone = resolve);
    for (const socket of this.#sockets) socket.close(1001, GOING_AWAY_REASON);
    if (this.#sockets.size > 0) {
      const timer = setTimeout(() => this.#allGone!(), this.#options.closeMs ?? CLOSE_MS);
      await gone;
      clearTimeout(timer);
    }
    this.#abort.abort(); // Ends what lingers, stalled heads included.
    await this.#server.finished.catch(() => {}); // It had ended for an error of accept.
  }

  #respond(request: Request, address: string): Response | Promise<Response> {
    if (!wantsUpgrade(request.headers)) return this.#servePage(request, address);
    if (this.#closed) return toResponse(STOPPING);
    const max = Math.min(CONNECTIONS_MAX, this.#options.maxSockets ?? CONNECTIONS_MAX);
    if (this.#sockets.size >= max) {
      if (this.#warnings.allow(performance.now())) {
        this.#options.onCut?.(address, `more than ${max} connections`);
      }
      return toResponse(TOO_MANY);
    }
    const verdict = this.#gate(upgradeOf(request, address));
    if (typeof verdict !== "function") return toResponse(refusalResponse(verdict));
    return this.#upgrade(request, address, verdict);
  }

  #servePage(request: Request, address: string): Response | Promise<Response> {
    const page = isPageRequest(request.method)
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
    // A client that leaves before the connection opens causes one of these events only.
    socket.onerror = socket.onclose = () => this.#remove(socket);
    socket.onopen = () => this.#opened(socket, address, accept);
    return response;
  }

  #opened(socket: WebSocket, address: string, accept: Accept): void {
    const connection = new ServeConnection(socket, {
      maxMessageBytes: this.#options.maxMessageBytes,
      maxQueuedBytes: this.#options.maxQueuedBytes,
      memory: this.#options.memory,
      silenceMs: this.#silenceMs,
      closeMs: this.#options.closeMs,
      cut: (reason) => this.#options.onCut?.(address, reason),
      ended: () => this.#remove(connection),
    });
    this.#sockets.delete(socket);
    this.#sockets.add(connection);
    connection.start(accept(connection));
    if (this.#closed) connection.close(1001, GOING_AWAY_REASON);
  }

  #remove(socket: ServeConnection | WebSocket): void {
    this.#sockets.delete(socket);
    if (this.#sockets.size === 0) this.#allGone?.();
  }

  #checkPeers(): void {
    const now = performance.now();
    for (const socket of this.#sockets) {
      if (socket instanceof ServeConnection) socket.checkPeer(now);
    }
  }
}

const BROKEN: Answer = { status: 500, message: "Internal error" };

type Handler = (request: Request, address: string) => Response | Promise<Response>;

type Served = ListenOptions & Partial<Certificate> & { readonly signal: AbortSignal };

function serve(options: Served, answer: Handler): Deno.HttpServer<Deno.NetAddr> {
  const { hostname, port, signal, cert, key, settings = PORT_SETTINGS } = options;
  const certificate = cert === undefined || key === undefined ? {} : { cert, key };
  const onError = (): Response => toResponse(BROKEN);
  try {
    return Deno.serve(
      { hostname, port, signal, onListen() {}, onError, ...certificate },
      (request, { remoteAddr }) => answer(request, remoteAddr.hostname),
    );
  } catch (cause) {
    throw listenError(cause, { host: hostname, port }, settings);
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
