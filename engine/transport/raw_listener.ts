/**
 * A port for worker lines, on plain TCP with the engine's own RFC 6455.
 *
 * It knows no path and no token: the {@linkcode Gate} does. What it adds to one line's own rules:
 * the head of an upgrade has to come in time, one timer looks after all lines, and what was sent
 * in a turn is written at its end, one or two writes for each line however many messages it was.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import {
  BATCH_BYTES_MAX,
  CONNECTIONS_MAX,
  LINE_CLOSE_MS,
  PING_INTERVAL_MS,
  SILENCE_MS,
  WARNINGS_MAX,
  WARNINGS_WINDOW_MS,
} from "../../sdk/typescript/wire/limits.ts";
import { RateWindow } from "../core/guards.ts";
import type {
  ConnectionEvents,
  Gate,
  Listen,
  Listener,
  ListenOptions,
} from "../ports/connection.ts";
import {
  asksForPage,
  GOING_DOWN,
  listenError,
  pageAnswer,
  refusalAnswer,
  TOO_MANY,
  wantsUpgrade,
} from "./answers.ts";
import type { Certificate } from "./certificate.ts";
import { RawConnection, type RawConnectionOptions } from "./raw_connection.ts";
import { type AskedUpgrade, RawRequest } from "./raw_request.ts";
import { RawSocket } from "./raw_socket.ts";
import { TlsServer } from "./tls_stream.ts";
import { askedPage, judgeHead, type RequestHead } from "./upgrade.ts";
import { BlockPool } from "./write_queue.ts";

/** Opens a port for lines, as {@linkcode Listen} says. */
export const listenRaw: Listen = (options, gate) => new RawListener(options, gate, undefined);

/** As {@linkcode listenRaw}, and only in TLS: who begins without is told so and sent away. */
export function listenRawTls(certificate: Certificate): Listen {
  const tls = new TlsServer(certificate);
  return (options, gate) => new RawListener(options, gate, tls);
}

/** Sockets beyond the lines there may be, so that the last ones hear why they are refused. */
const SPARE_SOCKETS = 256;
/** Looks at all lines within the time of one silence. */
const LOOKS = 60;
const LOOK_MS_MAX = 1_000;
/** Between attempts to take a connection when the system has no more to give. */
const ACCEPT_RETRY_MS = 50;
const GOODBYE = "engine is going down";

/** A line that is open, and who hears of it. */
interface OpenedLine {
  readonly line: RawConnection;
  readonly events: ConnectionEvents;
}

class RawListener implements Listener {
  readonly hostname: string;
  readonly port: number;
  readonly #options: ListenOptions;
  readonly #gate: Gate;
  readonly #tls: TlsServer | undefined;
  /** Peers that cannot come in come again and again; the log is spared most of it. */
  readonly #warnings = new RateWindow(WARNINGS_MAX, WARNINGS_WINDOW_MS);
  readonly #tcp: Deno.TcpListener;
  readonly #silenceMs: number;
  readonly #watch: ReturnType<typeof setInterval>;
  readonly #lineOptions: RawConnectionOptions;
  /** Every socket there is, also those that are over for the engine and linger. */
  readonly #sockets = new Set<RawRequest | RawConnection>();
  readonly #due: RawConnection[] = [];
  #lines = 0;
  #allGone: (() => void) | undefined;
  readonly #accepting: Promise<void>;
  #closed: Promise<void> | undefined;

  constructor(options: ListenOptions, gate: Gate, tls: TlsServer | undefined) {
    this.#options = options;
    this.#gate = gate;
    this.#tls = tls;
    this.#silenceMs = options.silenceMs ?? SILENCE_MS;
    this.#lineOptions = {
      pool: new BlockPool(),
      maxMessageBytes: options.maxMessageBytes,
      maxQueuedBytes: options.maxQueuedBytes,
      silenceMs: this.#silenceMs,
      pingMs: Math.min(PING_INTERVAL_MS, this.#silenceMs / 3),
      due: (line) => this.#flushSoon(line),
      cut: (address, reason) => options.onCut?.(address, reason),
      over: (line) => {
        this.#lines--;
        this.#gone(line);
      },
    };
    this.#tcp = listenTcp(options);
    ({ hostname: this.hostname, port: this.port } = this.#tcp.addr);
    const lookMs = Math.min(LOOK_MS_MAX, this.#silenceMs / LOOKS);
    this.#watch = setInterval(() => this.#look(), lookMs);
    this.#accepting = this.#accept();
  }

  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  async #close(): Promise<void> {
    this.#tcp.close();
    const gone = new Promise<void>((resolve) => this.#allGone = resolve);
    for (const socket of this.#sockets) socket.close(1001, GOODBYE);
    if (this.#sockets.size > 0) {
      const timer = setTimeout(() => {
        for (const socket of this.#sockets) socket.destroy();
      }, LINE_CLOSE_MS);
      await gone;
      clearTimeout(timer);
    }
    clearInterval(this.#watch);
    await this.#accepting;
  }

  async #accept(): Promise<void> {
    for (;;) {
      try {
        const tcp = await this.#tcp.accept();
        const isFull = this.#sockets.size >= CONNECTIONS_MAX + SPARE_SOCKETS;
        if (isFull || this.#closed) tcp.close();
        else void this.#serve(tcp);
      } catch (error) {
        if (this.#closed || error instanceof Deno.errors.BadResource) return;
        // No descriptors left, or a peer that left before it was taken: others may be luckier.
        await new Promise((resolve) => setTimeout(resolve, ACCEPT_RETRY_MS));
      }
    }
  }

  /** One connection from its first byte to its last; never rejects. */
  async #serve(tcp: Deno.TcpConn): Promise<void> {
    const address = tcp.remoteAddr.hostname;
    const socket = new RawSocket(tcp);
    const request = new RawRequest(socket);
    this.#sockets.add(request);
    try {
      const isReady = !this.#tls || await request.secure(this.#tls);
      const asked = isReady ? await request.read() : undefined;
      const opened = asked && await this.#answer(request, socket, asked, address);
      // Not awaited: what has led to a line (its request, the bytes it came in) would wait with
      // it, which is 4 KB for each.
      if (opened) return void opened.line.run(opened.events);
      if (!asked) this.#tellMisfit(request, socket, address);
    } catch (error) {
      // A mistake of the gate or of who takes its lines: one line is lost, not the engine.
      this.#options.onCut?.(address, `an upgrade could not be handled: ${error}`);
    }
    socket.destroy();
    this.#gone(request);
  }

  /** Says when a peer and this port do not agree on whether or how TLS is spoken. */
  #tellMisfit({ misfit }: RawRequest, { handshakeFailure }: RawSocket, address: string): void {
    const reason = handshakeFailure ? `TLS handshake failed: ${handshakeFailure}` : misfit;
    if (reason === undefined || !this.#warnings.allow(performance.now())) return;
    this.#options.onCut?.(address, reason);
  }

  async #answer(
    request: RawRequest,
    socket: RawSocket,
    { head, rest }: AskedUpgrade,
    address: string,
  ): Promise<OpenedLine | void> {
    if (await this.#answerPage(request, head, address)) return;
    // Peers do not know the bound: with a small one, calls that fit would end their line together.
    const mayBatch = this.#options.maxMessageBytes >= BATCH_BYTES_MAX;
    const wanted = judgeHead(head, address, mayBatch);
    if ("status" in wanted) return await request.refuse(wanted);
    if (this.#closed) return await request.refuse(GOING_DOWN);
    if (this.#lines >= CONNECTIONS_MAX) {
      this.#options.onCut?.(address, `more than ${CONNECTIONS_MAX} lines`);
      return await request.refuse(TOO_MANY);
    }
    const verdict = this.#gate(wanted.upgrade);
    if (typeof verdict !== "function") return await request.refuse(refusalAnswer(verdict));

    const line = new RawConnection(socket, address, wanted, this.#lineOptions);
    const events = verdict(line);
    this.#sockets.add(line);
    this.#sockets.delete(request);
    this.#lines++;
    if (rest.length > 0) socket.unread(rest);
    return { line, events };
  }

  /** Answers a request for a page; `false` when it is none, or asks for nothing that is there. */
  async #answerPage(request: RawRequest, head: RequestHead, address: string): Promise<boolean> {
    const { method, headers } = head;
    if (!asksForPage(method) || wantsUpgrade(headers)) return false;
    const asked = askedPage(head, address);
    const page = asked && this.#options.answerPage?.(asked);
    if (!page) return false;
    request.extend();
    await request.refuse(pageAnswer(await page), method);
    return true;
  }

  /** Behind everything that this turn of the event loop still sends, whoever sends it. */
  #flushSoon(line: RawConnection): void {
    if (this.#due.push(line) === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    for (const line of this.#due) line.flush();
    this.#due.length = 0;
  }

  #gone(socket: RawRequest | RawConnection): void {
    this.#sockets.delete(socket);
    if (this.#sockets.size === 0) this.#allGone?.();
  }

  #look(): void {
    const now = performance.now();
    for (const socket of this.#sockets) socket.look(now);
  }
}

function listenTcp({ hostname, port }: ListenOptions): Deno.TcpListener {
  try {
    return Deno.listen({ hostname, port });
  } catch (cause) {
    throw listenError(hostname, port, cause);
  }
}
