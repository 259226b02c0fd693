/**
 * An HTTP/1.1 port whose work no client can take for itself.
 *
 * It has so many sockets and no more. When all are in use, a new client gets the place of the
 * connection that is worth least: one that ends, then an idle one, then the one whose head or body
 * has waited longest, and of several the one whose client has most. Connections with a running
 * request are never given up; if there are only such, the new one is refused. So slow clients keep
 * no client out, whether they have one address or many.
 *
 * `Deno.serve` can limit neither sockets nor the time of a head; `node:http` can, for 1.6 times the
 * CPU of a request.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import {
  ACCEPT_RETRY_MS,
  FullPortPauses,
  type ListenAddress,
  listenError,
  type ListenSettings,
} from "../../../engine/ports/listen.ts";
import type { Log } from "../../../engine/ports/log.ts";
import type { MemoryBudget } from "../../../engine/ports/memory.ts";
import { thrownText } from "../../../sdk/typescript/wire/errors.ts";
import { HeldMemory } from "../held_memory.ts";
import { authorityOf } from "../listen.ts";
import {
  type ConnectionServices,
  type HeldResponse,
  HttpConnection,
  PHASES,
} from "./connection.ts";
import { Clients } from "./clients.ts";
import { BodyReadTurns } from "./input.ts";
import {
  bytesOfBody,
  piecesOf,
  problemResponse,
  type ServedRequest,
  type ServedResponse,
  WriteMemory,
} from "./response.ts";

/** How often connections are looked at. */
export const CHECK_MS = 500;
/** A full port is logged at most this often. */
const WARN_EVERY_MS = 60_000;

/** What {@linkcode HttpPort} works with. */
export interface HttpPortOptions extends ListenAddress {
  /** For the log, such as `engine-http`. */
  readonly name: string;
  readonly settings: ListenSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly memory: MemoryBudget;
  /** Sockets that may be open at once. */
  readonly socketsMax: number;
  /** Responds; never rejects. */
  handle(request: ServedRequest): ServedResponse | Promise<ServedResponse>;
}

/** See the module. */
export class HttpPort {
  /** Such as `http://127.0.0.1:3111`. */
  readonly url: string;
  /** As it is bound, such as `127.0.0.1`. */
  readonly hostname: string;
  readonly #options: HttpPortOptions;
  readonly #listener: Deno.TcpListener;
  readonly #connections = new Set<HttpConnection>();
  readonly #clients = new Clients();
  #isDraining = false;
  #isClosed = false;
  #cancelCheck: (() => void) | undefined;
  #warnedAt = -Infinity;
  #date = "";
  #dateSecond = 0;
  #whenQuiet: (() => void)[] = [];
  readonly #services: ConnectionServices;
  readonly #accepting: Promise<void>;

  /**
   * Opens the port; 0 is any free one.
   *
   * @throws {EngineError} `address_in_use` or `address_not_available`, with what to do.
   */
  constructor(options: HttpPortOptions) {
    const { host, port, settings } = options;
    this.#options = options;
    try {
      this.#listener = Deno.listen({ hostname: host, port });
    } catch (cause) {
      throw listenError(cause, { host, port }, settings);
    }
    const { addr } = this.#listener;
    this.hostname = addr.hostname;
    this.url = `http://${authorityOf(addr)}`;
    this.#services = this.#makeServices();
    this.#accepting = this.#accept();
  }

  /** Sockets that are open. */
  get openSockets(): number {
    return this.#connections.size;
  }

  /** From now on each connection ends with the request it has, or with its next one. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Resolves when no connection has a request that waits for its response. */
  quiet(): Promise<void> {
    if (!this.#isBusy) return Promise.resolve();
    return new Promise((resolve) => this.#whenQuiet.push(resolve));
  }

  /** Closes the port and all connections that have no running request; those end with it. */
  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isDraining = true;
      this.#isClosed = true;
      this.#listener.close();
    }
    let isLast = true;
    for (const connection of this.#connections) {
      if (connection.isBusy || connection.phase === "ending") isLast = false;
      else connection.destroy();
    }
    if (isLast) this.#stopChecks();
    await this.#accepting;
  }

  /** Closes all connections, whatever they do. */
  destroy(): void {
    this.#stopChecks();
    for (const connection of this.#connections) connection.destroy();
  }

  #stopChecks(): void {
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
  }

  get #isBusy(): boolean {
    for (const connection of this.#connections) if (connection.isBusy) return true;
    return false;
  }

  async #accept(): Promise<void> {
    const { clock, socketsMax } = this.#options;
    const pauses = new FullPortPauses();
    for (;;) {
      try {
        const stream = await this.#listener.accept();
        const isFull = this.#connections.size >= socketsMax;
        if (this.#isClosed) stream.close();
        else this.#take(stream);
        if (isFull) await pauses.accepted();
      } catch (error) {
        if (this.#isClosed || error instanceof Deno.errors.BadResource) return;
        // No descriptors are left, or the client closed before it was accepted.
        if (!(error instanceof Deno.errors.ConnectionAborted)) this.#warn("cannot accept", error);
        this.#giveUpOne(0);
        await new Promise<void>((resolve) => clock.after(ACCEPT_RETRY_MS, resolve));
      }
    }
  }

  #take(stream: Deno.TcpConn): void {
    const client = this.#clients.enter(stream.remoteAddr.hostname);
    if (this.#connections.size >= this.#options.socketsMax && !this.#giveUpOne(client.sockets)) {
      this.#warn("every socket has a running request", undefined);
      this.#clients.leave(client);
      return this.#turnAway(stream);
    }
    try {
      stream.setNoDelay(true);
    } catch {
      // It is gone already, which the first read says, too.
    }
    const connection = new HttpConnection(stream, client, this.#services);
    this.#connections.add(connection);
    this.#cancelCheck ??= this.#options.clock.after(CHECK_MS, () => this.#check());
    void connection.run().then(() => {
      this.#connections.delete(connection);
      this.#clients.leave(client);
      if (this.#connections.size === 0) this.#stopChecks();
      this.#tellQuiet();
    });
  }

  /** Ends the connection that is worth least for a client with so many sockets, if there is one. */
  #giveUpOne(sockets: number): boolean {
    const least = this.#leastFor(sockets);
    if (!least) return false;
    least.cut("The connection was closed to make room for others; send the request again", 503);
    this.#connections.delete(least); // Its socket closes in this tick or the next one.
    return true;
  }

  #leastFor(own: number): HttpConnection | undefined {
    let least: HttpConnection | undefined;
    let leastRank = PHASES.indexOf("response");
    let leastCount = 0;
    for (const connection of this.#connections) {
      const rank = PHASES.indexOf(connection.phase);
      if (rank >= PHASES.indexOf("response")) continue;
      const count = connection.client.sockets;
      // No client loses a request to a client that has more sockets.
      if (rank > PHASES.indexOf("idle") && count < own) continue;
      if (count < leastCount) continue;
      const isLess = count > leastCount || rank < leastRank ||
        (rank === leastRank && connection.since < least!.since);
      if (isLess) [least, leastRank, leastCount] = [connection, rank, count];
    }
    return least;
  }

  /** Says why there is no room, and closes. */
  #turnAway(stream: Deno.TcpConn): void {
    const problem = "Every socket of this port has a running request; try again";
    const [piece] = piecesOf(problemResponse({ status: 503, problem }), {
      isHead: false,
      date: this.#dateText(),
      connection: "close",
    });
    stream.write(piece!).catch(() => {}).finally(() => stream.close());
  }

  #makeServices(): ConnectionServices {
    const { clock, memory, handle } = this.#options;
    const isDraining = (): boolean => this.#isDraining;
    return {
      clock,
      turns: new BodyReadTurns(clock),
      writeMemory: new WriteMemory(),
      handle,
      date: () => this.#dateText(),
      holdResponse: (response) => this.#hold(response),
      responded: () => this.#tellQuiet(),
      get isDraining() {
        return isDraining();
      },
      get isMemoryTight() {
        return memory.isTight;
      },
    };
  }

  #check(): void {
    const { clock } = this.#options;
    const now = clock.now();
    for (const connection of this.#connections) connection.check(now);
    this.#cancelCheck = clock.after(CHECK_MS, () => this.#check());
  }

  /** Takes the memory of a large response, after a wait if need be. */
  async #hold(response: ServedResponse): Promise<HeldResponse> {
    const { memory, clock } = this.#options;
    const bytes = bytesOfBody(response);
    const held = new HeldMemory(memory, clock);
    if (await held.takeSoon(bytes)) return { response, release: () => held.release() };
    const problem = "The response does not fit into the memory of the engine now; try again";
    return { response: problemResponse({ status: 503, problem }), release() {} };
  }

  #dateText(): string {
    const wall = this.#options.clock.wall();
    const second = Math.floor(wall / 1_000);
    if (second !== this.#dateSecond) {
      this.#dateSecond = second;
      this.#date = new Date(wall).toUTCString();
    }
    return this.#date;
  }

  #tellQuiet(): void {
    if (this.#whenQuiet.length === 0 || this.#isBusy) return;
    for (const tell of this.#whenQuiet.splice(0)) tell();
  }

  #warn(reason: string, error: unknown): void {
    const { log, clock, name, socketsMax } = this.#options;
    if (clock.now() - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = clock.now();
    log.warn("a port cannot take all connections", {
      worker: name,
      reason,
      ...error !== undefined && { problem: thrownText(error) },
      sockets: this.#connections.size,
      sockets_max: socketsMax,
    });
  }
}
