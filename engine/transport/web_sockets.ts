/**
 * See `engine/ports/web_sockets.ts`: the connections are {@linkcode RawConnection}s, as those of
 * the worker port, which are watched and flushed together.
 *
 * @module
 */
import { PING_INTERVAL_MS, SILENCE_MS } from "../../sdk/typescript/wire/limits.ts";
import type { Accept } from "../ports/connection.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import {
  SOCKET_FREE_BYTES,
  type SocketProblem,
  type SocketRequest,
  type SocketStart,
  type WebSockets,
} from "../ports/web_sockets.ts";
import { acceptanceOf, upgradeProblem } from "./http.ts";
import { RawConnection } from "./raw_connection.ts";
import { RawSocket } from "./socket.ts";
import type { TickBudget } from "./tick_budget.ts";
import { UnfinishedMessages } from "./unfinished_messages.ts";
import { BlockPool } from "./write_queue.ts";

/** How often connections are looked at, unless their silence is shorter. */
const CHECK_MS = 1_000;

/** What {@linkcode RawWebSockets} works with. */
export interface RawWebSocketsOptions {
  readonly ticks: TickBudget;
  readonly memory: MemoryBudget;
  /** Called when this side ends a connection because the peer broke a limit or a rule. */
  readonly onCut?: (address: string, reason: string) => void;
  /** A connection is closed when nothing arrives for this long. Default: `SILENCE_MS`. */
  readonly silenceMs?: number;
}

/** WebSockets whose frames are read and written by the engine itself. */
export class RawWebSockets implements WebSockets {
  readonly #options: RawWebSocketsOptions;
  readonly #pool = new BlockPool();
  readonly #connections = new Set<RawConnection>();
  readonly #unfinished = new UnfinishedMessages();
  readonly #flushDue: RawConnection[] = [];
  /** Runs while there are connections. */
  #watch: ReturnType<typeof setInterval> | undefined;

  constructor(options: RawWebSocketsOptions) {
    this.#options = options;
  }

  /** Connections whose socket is open. */
  get size(): number {
    return this.#connections.size;
  }

  problemOf({ method, headers }: SocketRequest): SocketProblem | undefined {
    return upgradeProblem({ method, version: "HTTP/1.1", headers: new Headers(headers) });
  }

  /** Not async: the frame of a function that waits would keep the request. */
  accept(start: SocketStart, accept: Accept): Promise<void> {
    const { ticks, memory, onCut, silenceMs = SILENCE_MS } = this.#options;
    const { stream, rest, address, request, protocol, maxMessageBytes, maxQueuedBytes } = start;
    const socket = new RawSocket(stream);
    if (rest.length > 0) socket.unread(rest);
    const acceptance = acceptanceOf(new Headers(request.headers), protocol);
    const connection = new RawConnection(socket, address, acceptance, {
      pool: this.#pool,
      ticks,
      memory,
      freeBytes: SOCKET_FREE_BYTES,
      maxMessageBytes,
      maxQueuedBytes,
      silenceMs,
      pingMs: Math.min(PING_INTERVAL_MS, silenceMs / 3),
      flushDue: (due) => this.#scheduleFlush(due),
      cut: (peer, reason) => onCut?.(peer, reason),
      ended: (ended) => this.#remove(ended),
    });
    this.#connections.add(connection);
    this.#watch ??= setInterval(() => this.#check(), Math.min(CHECK_MS, silenceMs / 3));
    return connection.run(accept(connection));
  }

  /** Flushes after everything that is still sent in this tick of the event loop. */
  #scheduleFlush(connection: RawConnection): void {
    if (this.#flushDue.push(connection) === 1) this.#options.ticks.atTickEnd(this.#flush);
  }

  readonly #flush = (): void => {
    for (const connection of this.#flushDue) connection.flush();
    this.#flushDue.length = 0;
  };

  #remove(connection: RawConnection): void {
    this.#connections.delete(connection);
    if (this.#connections.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  #check(): void {
    const now = performance.now();
    for (const connection of this.#connections) connection.checkPeer(now);
    this.#unfinished.check([...this.#connections], now);
  }
}
