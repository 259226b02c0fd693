/**
 * The worker port on plain TCP with the engine's own RFC 6455.
 *
 * The {@linkcode Gate} decides about paths and tokens. The listener limits the time for the head of
 * an upgrade, checks all connections with one timer, and flushes at the end of each tick of the
 * event loop, so that the messages of a tick leave in one or two writes per connection.
 *
 * @module
 */
import { PING_INTERVAL_MS, SILENCE_MS } from "../../sdk/typescript/wire/limits.ts";
import { WARNINGS_MAX, WARNINGS_WINDOW_MS } from "../ports/events.ts";
import { PAGE_TIMEOUT_MS } from "./pages.ts";
import {
  type Answer,
  checkUpgrade,
  GOING_AWAY_REASON,
  isPageRequest,
  pageAnswer,
  pageRequestOf,
  PORT_SETTINGS,
  readHead,
  refusalResponse,
  type RequestHead,
  responseBytes,
  STOPPING,
  TLS_HERE,
  TOO_MANY,
  TOO_SLOW,
  UPGRADE_HEAD_BYTES_MAX,
  wantsUpgrade,
} from "./http.ts";
import {
  CLOSE_MS,
  type ConnectionEvents,
  CONNECTIONS_MAX,
  type Gate,
  type Listen,
  type Listener,
  type ListenOptions,
} from "../ports/connection.ts";
import { RateWindow } from "../core/guards.ts";
import { ACCEPT_RETRY_MS, FullPortPauses, listenError } from "../ports/listen.ts";
import type { Certificate } from "./certificate.ts";
import { RawConnection, type RawConnectionOptions } from "./raw_connection.ts";
import { RawSocket, TLS_FIRST_BYTE, TlsServer } from "./socket.ts";
import { TickBudget } from "./tick_budget.ts";
import { UnfinishedMessages } from "./unfinished_messages.ts";
import { BlockPool } from "./write_queue.ts";

/** The head of an upgrade has to be there by then. */
export const UPGRADE_HEAD_MS = 10_000;
/** No batch has more; an engine that allows no message of that size takes no batches. */
export const BATCH_BYTES_MAX = 1024 * 1024;

/** Opens a worker port, as {@linkcode Listen} says. */
export const listenRaw: Listen = (options, gate) => {
  return listenRawWith(new TickBudget())(options, gate);
};

/** As {@linkcode listenRaw}, with TLS only: a peer without it gets a 426 response. */
export function listenRawTls(certificate: Certificate): Listen {
  return listenRawWith(new TickBudget(), certificate);
}

/** Ports that share the time of the thread with all other users of `ticks`. */
export function listenRawWith(ticks: TickBudget, certificate?: Certificate): Listen {
  const tls = certificate && new TlsServer(certificate);
  return (options, gate) => new RawListener(options, gate, { ticks, tls });
}

/** Sockets beyond the maximum of connections, so that refused peers receive the reason. */
const SPARE_SOCKETS = 256;
/** Checks of all connections within the time of one silence. */
const CHECKS = 60;
const CHECK_MS_MAX = 1_000;
/** The part of the sockets that is for requests without an upgrade: one of so many. */
const SPARE_SHARE = 8;
/** Time between two reports of that. */
const ACCEPT_REPORT_MS = 10_000;

/** An open connection and the receiver of its events. */
interface OpenedConnection {
  readonly connection: RawConnection;
  readonly events: ConnectionEvents;
}

/** How many connections a port may serve that has so many sockets. */
export function connectionsOf(maxSockets: number): number {
  const spare = Math.min(SPARE_SOCKETS, Math.ceil(maxSockets / SPARE_SHARE));
  return Math.min(CONNECTIONS_MAX, maxSockets - spare);
}

/** Reports that a port cannot accept: no descriptors are left, or no memory of the kernel. */
export class AcceptErrors {
  readonly #options: Pick<ListenOptions, "onAcceptError">;
  #reportedAt = -Infinity;

  constructor(options: Pick<ListenOptions, "onAcceptError">) {
    this.#options = options;
  }

  /** Reports an error, unless one was reported within {@linkcode ACCEPT_REPORT_MS}. */
  report(error: unknown): void {
    const now = performance.now();
    if (now - this.#reportedAt < ACCEPT_REPORT_MS) return;
    this.#reportedAt = now;
    this.#options.onAcceptError?.(error instanceof Error ? error.message : String(error));
  }
}

class RawListener implements Listener {
  readonly hostname: string;
  readonly port: number;
  readonly #options: ListenOptions;
  readonly #gate: Gate;
  readonly #ticks: TickBudget;
  readonly #tls: TlsServer | undefined;
  /** Bounds the log: peers that are refused try again and again. */
  readonly #warnings = new RateWindow(WARNINGS_MAX, WARNINGS_WINDOW_MS);
  readonly #tcp: Deno.TcpListener;
  readonly #silenceMs: number;
  readonly #upgradeHeadMs: number;
  readonly #closeMs: number;
  readonly #watch: ReturnType<typeof setInterval>;
  readonly #connectionOptions: RawConnectionOptions;
  /** Every open socket, also of ended connections whose peer has not closed yet. */
  readonly #sockets = new Set<RawRequest | RawConnection>();
  readonly #maxSockets: number;
  readonly #maxConnections: number;
  /** Requests without an upgrade, in the order they came; as many as their share at most. */
  readonly #requests = new Set<RawRequest>();
  readonly #requestCounts = new Map<string, number>();
  readonly #unfinished = new UnfinishedMessages();
  readonly #acceptErrors: AcceptErrors;
  readonly #flushDue: RawConnection[] = [];
  #connections = 0;
  #allGone: (() => void) | undefined;
  readonly #accepting: Promise<void>;
  #closed: Promise<void> | undefined;

  constructor(
    options: ListenOptions,
    gate: Gate,
    { ticks, tls }: { ticks: TickBudget; tls: TlsServer | undefined },
  ) {
    this.#options = options;
    this.#acceptErrors = new AcceptErrors(options);
    this.#gate = gate;
    this.#ticks = ticks;
    this.#tls = tls;
    this.#maxSockets = Math.min(
      options.maxSockets ?? Infinity,
      CONNECTIONS_MAX + SPARE_SOCKETS,
    );
    this.#maxConnections = connectionsOf(this.#maxSockets);
    this.#silenceMs = options.silenceMs ?? SILENCE_MS;
    this.#upgradeHeadMs = options.upgradeHeadMs ?? UPGRADE_HEAD_MS;
    this.#closeMs = options.closeMs ?? CLOSE_MS;
    this.#connectionOptions = {
      pool: new BlockPool(),
      ticks,
      memory: options.memory,
      maxMessageBytes: options.maxMessageBytes,
      maxQueuedBytes: options.maxQueuedBytes,
      silenceMs: this.#silenceMs,
      pingMs: Math.min(options.heartbeatMs ?? PING_INTERVAL_MS, this.#silenceMs / 3),
      closeMs: this.#closeMs,
      flushDue: (connection) => this.#scheduleFlush(connection),
      cut: (address, reason) => options.onCut?.(address, reason),
      ended: (connection) => {
        this.#connections--;
        this.#remove(connection);
      },
    };
    this.#tcp = listenTcp(options);
    ({ hostname: this.hostname, port: this.port } = this.#tcp.addr);
    const checkMs = Math.min(CHECK_MS_MAX, this.#silenceMs / CHECKS, this.#closeMs);
    this.#watch = setInterval(() => this.#checkPeers(), checkMs);
    this.#accepting = this.#accept();
  }

  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  async #close(): Promise<void> {
    this.#tcp.close();
    const gone = new Promise<void>((resolve) => this.#allGone = resolve);
    for (const socket of this.#sockets) socket.close(1001, GOING_AWAY_REASON);
    if (this.#sockets.size > 0) {
      const timer = setTimeout(() => {
        for (const socket of this.#sockets) socket.destroy();
      }, this.#closeMs);
      await gone;
      clearTimeout(timer);
    }
    clearInterval(this.#watch);
    await this.#accepting;
  }

  async #accept(): Promise<void> {
    const pauses = new FullPortPauses();
    for (;;) {
      try {
        const tcp = await this.#tcp.accept();
        const isFull = this.#sockets.size >= this.#maxSockets;
        if (this.#closed || !this.#hasRoom()) tcp.close();
        else void this.#serve(tcp);
        if (isFull) await pauses.accepted();
      } catch (error) {
        if (this.#closed || error instanceof Deno.errors.BadResource) return;
        if (error instanceof Deno.errors.ConnectionAborted) continue; // Only this peer left.
        this.#acceptErrors.report(error);
        await new Promise((resolve) => setTimeout(resolve, ACCEPT_RETRY_MS));
      }
    }
  }

  /**
   * Whether another socket fits. A full port gives the socket of a request to the new peer: the
   * oldest of the address that has most, so that peers which never finish their request do not
   * keep others out, wherever they come from.
   */
  #hasRoom(): boolean {
    if (this.#sockets.size < this.#maxSockets) return true;
    let most = 0;
    for (const count of this.#requestCounts.values()) most = Math.max(most, count);
    for (const request of this.#requests) {
      if (this.#requestCounts.get(request.address) !== most) continue;
      request.destroy();
      this.#remove(request);
      return true;
    }
    return false;
  }

  /** Serves one TCP connection from its first byte on; never rejects. */
  async #serve(tcp: Deno.TcpConn): Promise<void> {
    const address = tcp.remoteAddr.hostname;
    const socket = new RawSocket(tcp);
    const request = new RawRequest(socket, address, this.#upgradeHeadMs);
    this.#sockets.add(request);
    this.#requests.add(request);
    this.#requestCounts.set(address, (this.#requestCounts.get(address) ?? 0) + 1);
    try {
      const isReady = !this.#tls || await request.secure(this.#tls);
      const asked = isReady ? await request.read() : undefined;
      const opened = asked && await this.#respond(request, socket, asked, address);
      // Not awaited: the request and its buffers would stay alive, 4 KB per connection.
      if (opened) return void opened.connection.run(opened.events);
      if (!asked) this.#reportTlsMismatch(request, socket, address);
    } catch (error) {
      // The gate or the receiver of its connections threw: this connection ends, the engine goes
      // on.
      this.#options.onCut?.(address, `an upgrade could not be handled: ${error}`);
    }
    socket.destroy();
    this.#remove(request);
  }

  /** Logs a peer that speaks TLS where the port does not, or the reverse. */
  #reportTlsMismatch(
    { tlsMismatch }: RawRequest,
    { handshakeFailure }: RawSocket,
    address: string,
  ): void {
    const reason = handshakeFailure ? `TLS handshake failed: ${handshakeFailure}` : tlsMismatch;
    if (reason === undefined || !this.#warnings.allow(performance.now())) return;
    this.#options.onCut?.(address, reason);
  }

  async #respond(
    request: RawRequest,
    socket: RawSocket,
    { head, rest }: ReadRequest,
    address: string,
  ): Promise<OpenedConnection | void> {
    if (await this.#servePage(request, head, address)) return;
    // Peers do not know the limit: with a small one, a batch of calls that fit would exceed it.
    const mayBatch = this.#options.maxMessageBytes >= BATCH_BYTES_MAX;
    const wanted = checkUpgrade(head, address, mayBatch);
    if ("status" in wanted) return await request.refuse(wanted);
    if (this.#closed) return await request.refuse(STOPPING);
    if (this.#connections >= this.#maxConnections) {
      this.#reportFull(address);
      return await request.refuse(TOO_MANY);
    }
    const verdict = this.#gate(wanted.upgrade);
    if (typeof verdict !== "function") return await request.refuse(refusalResponse(verdict));

    const connection = new RawConnection(socket, address, wanted, this.#connectionOptions);
    const events = verdict(connection);
    this.#sockets.add(connection);
    this.#sockets.delete(request);
    this.#removeRequest(request);
    this.#connections++;
    if (rest.length > 0) socket.unread(rest);
    return { connection, events };
  }

  #reportFull(address: string): void {
    if (!this.#warnings.allow(performance.now())) return;
    this.#options.onCut?.(address, `more than ${this.#maxConnections} connections`);
  }

  /** Responds to a request for a page; `false` when it is none or the page does not exist. */
  async #servePage(request: RawRequest, head: RequestHead, address: string): Promise<boolean> {
    const { method, headers } = head;
    if (!isPageRequest(method) || wantsUpgrade(headers)) return false;
    const asked = pageRequestOf(head, address);
    const page = asked && this.#options.answerPage?.(asked);
    if (!page) return false;
    request.extend();
    await request.refuse(pageAnswer(await page), method);
    return true;
  }

  /** Flushes after everything that is still sent in this tick of the event loop. */
  #scheduleFlush(connection: RawConnection): void {
    if (this.#flushDue.push(connection) === 1) this.#ticks.atTickEnd(this.#flush);
  }

  readonly #flush = (): void => {
    for (const connection of this.#flushDue) connection.flush();
    this.#flushDue.length = 0;
  };

  #remove(socket: RawRequest | RawConnection): void {
    this.#sockets.delete(socket);
    if (socket instanceof RawRequest) this.#removeRequest(socket);
    if (this.#sockets.size === 0) this.#allGone?.();
  }

  #removeRequest(request: RawRequest): void {
    if (!this.#requests.delete(request)) return;
    const left = this.#requestCounts.get(request.address)! - 1;
    if (left > 0) this.#requestCounts.set(request.address, left);
    else this.#requestCounts.delete(request.address);
  }

  #checkPeers(): void {
    const now = performance.now();
    const connections: RawConnection[] = [];
    for (const socket of this.#sockets) {
      socket.checkPeer(now);
      if (socket instanceof RawConnection) connections.push(socket);
    }
    this.#unfinished.check(connections, now);
  }
}

function listenTcp({ hostname, port, settings = PORT_SETTINGS }: ListenOptions): Deno.TcpListener {
  try {
    return Deno.listen({ hostname, port });
  } catch (cause) {
    throw listenError(cause, { host: hostname, port }, settings);
  }
}

const FIRST_BYTES = 1_024;

/** The head of a request, and the bytes behind it. */
export interface ReadRequest {
  readonly head: RequestHead;
  readonly rest: Uint8Array;
}

/** A TCP connection before its upgrade: its request is read, and refused or handed on. */
export class RawRequest {
  readonly address: string;
  readonly #socket: RawSocket;
  /** Deadline of the current step, on the clock of `performance`. */
  #endAt: number;
  #hasBegun = false;
  #hasResponse = false;
  #tlsMismatch: string | undefined;
  #late: Promise<void> | undefined;

  constructor(socket: RawSocket, address: string, headMs: number = UPGRADE_HEAD_MS) {
    this.address = address;
    this.#socket = socket;
    this.#endAt = performance.now() + headMs;
  }

  /** How the peer and the port disagree about TLS, if they do. */
  get tlsMismatch(): string | undefined {
    return this.#tlsMismatch;
  }

  /**
   * Starts TLS if the peer does, else refuses the request; `false` when there is nothing to read.
   * Never rejects.
   */
  async secure(tls: TlsServer): Promise<boolean> {
    const first = new Uint8Array(FIRST_BYTES);
    const count = await this.#socket.read(first).catch(() => null);
    if (count === null || this.#hasResponse) {
      await this.#late;
      return false;
    }
    if (first[0] !== TLS_FIRST_BYTE) {
      this.#tlsMismatch = "plain ws:// on a port with TLS: the peer has to dial wss://";
      await this.refuse(TLS_HERE);
      return false;
    }
    this.#socket.secure(tls, first.subarray(0, count));
    return true;
  }

  /**
   * Reads the request; `undefined` when it was refused or none will come. Never rejects.
   */
  async read(): Promise<ReadRequest | undefined> {
    let bytes = new Uint8Array(FIRST_BYTES);
    for (let end = 0;;) {
      const count = await this.#socket.read(bytes.subarray(end)).catch(() => null);
      if (count === null || this.#hasResponse) return void await this.#late;
      end += count;
      this.#hasBegun = true;
      const found = readHead(bytes.subarray(0, end));
      if (found.state === "whole") {
        return { head: found.head, rest: bytes.subarray(found.head.bytes, end) };
      }
      if (found.state === "refused") {
        if (bytes[0] === TLS_FIRST_BYTE) {
          this.#tlsMismatch =
            "TLS on a port without it: the peer has to dial ws://, or set engine.tls";
        }
        await this.refuse(found.answer);
        return undefined;
      }
      if (end === bytes.length) bytes = enlarged(bytes);
    }
  }

  /** Sets the deadline for making a page, after the head was read. */
  extend(): void {
    this.#endAt = performance.now() + PAGE_TIMEOUT_MS + CLOSE_MS;
  }

  /** Responds; resolves when the peer has the response or its time is over. Never rejects. */
  async refuse(answer: Answer, method = "GET"): Promise<void> {
    this.#hasResponse = true;
    const takeMs = answer.body === undefined ? CLOSE_MS : PAGE_TIMEOUT_MS;
    this.#endAt = performance.now() + takeMs;
    const bytes = responseBytes(answer, method);
    try {
      for (let at = 0; at < bytes.length;) at += await this.#socket.write(bytes.subarray(at));
    } catch {
      return; // The peer is gone.
    }
    await this.#socket.finish();
  }

  /** Ends a request that takes too long; `now` is that of `performance`. */
  checkPeer(now: number): void {
    if (now < this.#endAt) return;
    if (this.#hasResponse) this.#socket.destroy();
    else this.#late = this.refuse(TOO_SLOW);
  }

  /** The port closes: a request that has begun gets that as its response. */
  close(): void {
    if (this.#hasResponse) return;
    if (this.#hasBegun) this.#late = this.refuse(STOPPING);
    else this.destroy();
  }

  /** Closes the socket at once. */
  destroy(): void {
    this.#socket.destroy();
  }
}

function enlarged(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(Math.min(bytes.length * 4, UPGRADE_HEAD_BYTES_MAX));
  larger.set(bytes);
  return larger;
}
