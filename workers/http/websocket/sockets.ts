/**
 * All WebSockets of a port: which there are, the groups they are in, and what is sent to many.
 *
 * A message to many goes out in parts, with the rest of the engine between them, and each client
 * gets what is sent in the order in which it was sent: while one message is under way, the next
 * ones wait. A client that is behind costs no other anything: it is skipped and closed.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { MemoryBudget } from "../../../engine/ports/memory.ts";
import type { Turns } from "../../../engine/ports/turns.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { HeldMemory } from "../../kit/held_memory.ts";
import type { Client } from "../../kit/http/clients.ts";
import { ClientSocket, type SocketIdentity, type SocketServices } from "./client_socket.ts";
import type { Frame } from "./frame.ts";

/** Groups that one connection may be in. */
export const GROUPS_MAX = 100;
/** Longest name of a group, in characters. */
export const GROUP_CHARS_MAX = 256;
/** Clients that a message goes to at once, and their bytes, before others have their turn. */
const SLICE_CLIENTS = 256;
const SLICE_BYTES: number = 4 * 1024 * 1024;
/** How often idle connections are looked for. */
export const IDLE_CHECK_MS = 1_000;
/** One client has all connections but this share, which is for the others. */
const SHARE_OF_OTHERS = 1 / 8;
/** What a membership takes beside its name. */
const MEMBERSHIP_BYTES = 128;

/** What {@linkcode Sockets} works with. */
export type SocketsOptions =
  & Omit<SocketServices, "closed" | "ended" | "isDraining">
  & { readonly memory: MemoryBudget; readonly clock: Clock; readonly max: number }
  /** Where what goes to many has its turns. */
  & { readonly turns: Turns };

/** How a message to many went. */
export interface Reached {
  /** Clients that it was sent to. */
  reached: number;
  /** Clients that were closed, since they read too slowly. */
  closed: number;
}

/** See the module. */
export class Sockets {
  readonly #options: SocketsOptions;
  readonly #services: SocketServices;
  readonly #byId = new Map<string, ClientSocket>();
  readonly #groups = new Map<string, Set<ClientSocket>>();
  /** Accepted connections whose close was not delivered, and requests that may become one. */
  readonly #live = new Set<ClientSocket>();
  #reserved = 0;
  /** Connections whose close handshake is not over. */
  #wires = 0;
  readonly #perClient = new Map<string, number>();
  #seq = 0;
  #isDraining = false;
  #sending: Promise<unknown> | undefined;
  #cancelCheck: (() => void) | undefined;
  #whenEmpty: (() => void)[] = [];

  constructor(options: SocketsOptions) {
    this.#options = options;
    const isDraining = (): boolean => this.#isDraining;
    this.#services = {
      ...options,
      get isDraining() {
        return isDraining();
      },
      closed: (socket) => this.#closed(socket),
      ended: (socket) => this.#ended(socket),
    };
  }

  /** Open connections. */
  get size(): number {
    return this.#byId.size;
  }

  /** Groups with a member. */
  get groupCount(): number {
    return this.#groups.size;
  }

  /** Whether no connection is accepted any more. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Takes one of the places; `false` when there is none for this client. */
  reserve({ name }: Client): boolean {
    const { max } = this.#options;
    const own = this.#perClient.get(name) ?? 0;
    const share = max - Math.floor(max * SHARE_OF_OTHERS);
    if (this.#isDraining || this.#live.size + this.#reserved >= max || own >= share) return false;
    this.#reserved++;
    this.#perClient.set(name, own + 1);
    return true;
  }

  /** Returns a place that no connection came of. */
  cancel(client: Client): void {
    this.#reserved--;
    this.#leave(client);
  }

  /** Memory for one connection. */
  hold(): HeldMemory {
    return new HeldMemory(this.#options.memory, this.#options.clock);
  }

  /**
   * Adds a connection in a place that was taken, in these groups, for which it holds
   * {@linkcode groupBytes}.
   */
  add(identity: SocketIdentity, groups: readonly string[]): ClientSocket {
    const socket = new ClientSocket(identity, ++this.#seq, this.#services);
    this.#reserved--;
    this.#live.add(socket);
    this.#byId.set(identity.id, socket);
    identity.route.sockets.add(socket);
    for (const group of groups) this.#addMember(socket, group);
    this.#cancelCheck ??= this.#options.clock.after(IDLE_CHECK_MS, () => this.#check());
    return socket;
  }

  /** Waits for an upgraded connection, which ends after its {@linkcode ClientSocket}. */
  async carry(connection: Promise<void>): Promise<void> {
    this.#wires++;
    await connection;
    this.#wires--;
    this.#tellEmpty();
  }

  /** @throws {EngineError} `connection_not_found` */
  get(id: string): ClientSocket {
    const socket = this.#byId.get(id);
    if (socket) return socket;
    const message = `WebSocket ${id} is not open`;
    throw new EngineError("connection_not_found", message, { details: { connection_id: id } });
  }

  /** The open connection with this id, if there is one. */
  find(id: string): ClientSocket | undefined {
    return this.#byId.get(id);
  }

  /** All open connections, the oldest first. */
  all(): IterableIterator<ClientSocket> {
    return this.#byId.values();
  }

  /** Members of a group, in any order. */
  membersOf(group: string): ReadonlySet<ClientSocket> {
    return this.#groups.get(group) ?? new Set();
  }

  /**
   * Adds a connection to a group; `false` when it was in it.
   *
   * @throws {EngineError} `overloaded` when it is in too many, or there is no memory.
   */
  join(socket: ClientSocket, group: string): boolean {
    if (socket.groups.has(group)) return false;
    if (socket.groups.size >= GROUPS_MAX) {
      throw new EngineError("overloaded", `A WebSocket may be in at most ${GROUPS_MAX} groups`, {
        retryable: false,
      });
    }
    if (!socket.identity.held.take(groupBytes([group]))) {
      throw new EngineError("overloaded", "The memory of the engine has no room for the group");
    }
    this.#addMember(socket, group);
    return true;
  }

  /** Removes a connection from a group; `false` when it was not in it. */
  leave(socket: ClientSocket, group: string): boolean {
    if (!socket.groups.delete(group)) return false;
    socket.identity.held.give(groupBytes([group]));
    this.#removeMember(socket, group);
    return true;
  }

  /**
   * Sends a message to these clients; those that are behind are closed. The bytes of the frame are
   * held until it was sent to all.
   *
   * @throws {EngineError} `overloaded`
   */
  send(targets: readonly ClientSocket[], frame: Frame): Reached | Promise<Reached> {
    const outcome: Reached = { reached: 0, closed: 0 };
    if (!this.#sending && targets.length <= sliceOf(frame)) {
      for (const socket of targets) sendTo(socket, frame, outcome);
      return outcome;
    }
    const { memory } = this.#options;
    const bytes = frame.bytes.length;
    if (!memory.take("queues", bytes)) {
      throw new EngineError("overloaded", "The memory of the engine has no room for the message");
    }
    const before = this.#sending ?? Promise.resolve();
    const sending = before.then(() => this.#sendInTurns(targets, frame, outcome))
      .finally(() => {
        memory.release("queues", bytes);
        if (this.#sending === sending) this.#sending = undefined;
      });
    this.#sending = sending;
    return sending.then(() => outcome);
  }

  /** Runs a task when what is being sent has gone out. */
  inOrder<T>(task: () => T): T | Promise<T> {
    return this.#sending ? this.#sending.then(task) : task();
  }

  /**
   * Closes all connections with 1001 and accepts no more. Resolves when the close of each was
   * delivered and each client has answered it, or had its time to.
   */
  drain(): Promise<void> {
    this.#isDraining = true;
    for (const socket of [...this.#byId.values()]) socket.close(1001, "the engine is stopping");
    return new Promise((resolve) => {
      this.#whenEmpty.push(resolve);
      this.#tellEmpty();
    });
  }

  /** Ends what still runs. */
  stop(): void {
    this.#isDraining = true;
    this.#cancelCheck?.();
    for (const socket of [...this.#live]) socket.stop();
  }

  #sendInTurns(
    targets: readonly ClientSocket[],
    frame: Frame,
    outcome: Reached,
  ): Promise<void> {
    const { turns } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const size = sliceOf(frame);
    let at = 0;
    const work = (): boolean => {
      const end = Math.min(at + size, targets.length);
      while (at < end) {
        sendTo(targets[at++]!, frame, outcome);
        if (turns.isSpent()) break;
      }
      if (at < targets.length) return true;
      resolve();
      return false;
    };
    turns.queue({ work });
    return promise;
  }

  #check(): void {
    const { clock } = this.#options;
    this.#cancelCheck = undefined;
    const now = clock.now();
    for (const socket of this.#byId.values()) {
      const { idle_timeout_ms } = socket.identity.route.last.config;
      if (idle_timeout_ms === undefined || now - socket.activeAt < idle_timeout_ms) continue;
      socket.close(1001, `no message for ${idle_timeout_ms} ms`);
    }
    if (this.#live.size === 0) return;
    this.#cancelCheck = clock.after(IDLE_CHECK_MS, () => this.#check());
  }

  #closed(socket: ClientSocket): void {
    const { id, route } = socket.identity;
    this.#byId.delete(id);
    route.sockets.delete(socket);
    for (const group of socket.groups) this.#removeMember(socket, group);
  }

  #ended(socket: ClientSocket): void {
    this.#live.delete(socket);
    this.#leave(socket.identity.client);
    if (this.#live.size > 0) return;
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
    this.#tellEmpty();
  }

  #tellEmpty(): void {
    if (this.#live.size > 0 || this.#wires > 0) return;
    for (const tell of this.#whenEmpty.splice(0)) tell();
  }

  #addMember(socket: ClientSocket, group: string): void {
    socket.groups.add(group);
    const members = this.#groups.get(group);
    if (members) members.add(socket);
    else this.#groups.set(group, new Set([socket]));
  }

  #removeMember(socket: ClientSocket, group: string): void {
    const members = this.#groups.get(group);
    if (!members?.delete(socket)) return;
    if (members.size === 0) this.#groups.delete(group);
  }

  #leave({ name }: Client): void {
    const left = (this.#perClient.get(name) ?? 1) - 1;
    if (left > 0) this.#perClient.set(name, left);
    else this.#perClient.delete(name);
  }
}

function sendTo(socket: ClientSocket, frame: Frame, outcome: Reached): void {
  if (!socket.isOpen) return;
  if (socket.sendOrClose(frame)) outcome.reached++;
  else outcome.closed++;
}

function sliceOf({ bytes }: Frame): number {
  return Math.max(1, Math.min(SLICE_CLIENTS, Math.floor(SLICE_BYTES / Math.max(1, bytes.length))));
}

/** What a connection holds for its groups. */
export function groupBytes(groups: readonly string[]): number {
  return groups.reduce((sum, { length }) => sum + 2 * length + MEMBERSHIP_BYTES, 0);
}
