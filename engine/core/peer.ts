/**
 * A connected worker as the tables of the core see it, and the record of one call.
 *
 * The two refer to each other: a peer lists the calls that it executes and waits for, a call names
 * its caller and callee. Neither holds rules. A table that stores a peer removes it when the router
 * reports its disconnect.
 *
 * @module
 */
import { encodeMessage } from "../../sdk/typescript/wire/codec.ts";
import { WARNINGS_MAX, WARNINGS_WINDOW_MS } from "../ports/events.ts";
import { type Connection, SEND_AHEAD_BYTES } from "../ports/connection.ts";
import type { Announcement, EngineMessage } from "../../sdk/typescript/wire/protocol.ts";
import type { ObservedCall, ObservedEndpoint, ObservedFunction } from "../ports/call_observer.ts";
import type { Access } from "./access/access.ts";
import type { Due } from "./deadlines.ts";
import type { Holding } from "./registrations.ts";
import { RateWindow } from "./guards.ts";
import { bytesOf } from "./wire/bytes.ts";
import { UUID_BYTES } from "./wire/frame_parts.ts";
import { SlotIndex } from "./wire/bytes_index.ts";

/** Shortest time between two pings for overdue calls. */
export const PROBE_INTERVAL_MS = 1_000;

/** What the engine knows about a connection before its worker sends anything. */
export interface PeerInfo {
  /** Address of the remote end; `null` for a connection inside this process. */
  readonly address: string | null;
  /** Id of the launch, if the engine started this worker. */
  readonly launch_id: string | null;
  /**
   * Name such as `engine-state` for a built-in worker: it may register `engine::*`, no other worker
   * can replace its functions, and calls to it carry `caller`.
   */
  readonly builtin: string | null;
  /** A command line of the engine's own user on this machine. Default: false. */
  readonly operator?: boolean;
  /** Name of the engine of the cluster at the other end. Default: a worker is there. */
  readonly engine?: string;
  /** What it may do. Default: everything. */
  readonly access?: Access | undefined;
  /** Id of the token by which it came, if that was created by `engine token`. */
  readonly token?: string | undefined;
}

/** Identity of a peer. */
export interface PeerIdentity {
  /** Worker id of this connection; a fresh UUID. */
  readonly id: string;
  /** Secret with which a later connection may end this one. */
  readonly reattach_token: string;
  readonly info: PeerInfo;
  /** Milliseconds since 1970. */
  readonly connected_at_ms: number;
}

/** A connected worker. */
export class Peer {
  readonly id: string;
  readonly reattach_token: string;
  readonly info: PeerInfo;
  readonly connected_at_ms: number;
  readonly connection: Connection;
  /** `false` from the start of its clean-up. */
  isLive = true;
  /** Gets no new calls until it disconnects; its running calls go on. */
  isDraining = false;
  /** It has left a ping unanswered, and may be frozen. */
  isSuspect = false;
  /** Bytes of the messages with which it registered what it offers now. */
  registeredBytes = 0;
  /** Metadata of the worker; `undefined` before it announced itself. */
  announcement: Announcement | undefined;
  /** Whether it is a built-in worker. */
  readonly isBuiltin: boolean;
  /** Whether another engine is at the other end. */
  readonly isEngine: boolean;
  /** What it may do; `undefined`: everything. */
  readonly access: Access | undefined;
  /** Executes its functions whose implementation is a URL; `undefined` while it has none. */
  server: Peer | undefined;
  /** What its announcement takes. */
  announcementHolding: Holding | undefined;
  /** See {@linkcode Peer.ownerName}. */
  #announcedName: string | undefined;
  /** The observer's handle for it. */
  endpoint: ObservedEndpoint;
  wantsCancel: boolean;
  wantsProgress: boolean;
  /** Number of calls that it executes. */
  inflightCalls = 0;
  /** The oldest call that it executes; the others follow in a ring. */
  firstCall: Invocation | undefined;
  /** Slots of the calls that it waits for, by hash of its own ids. */
  readonly waiting: SlotIndex = new SlotIndex();
  /** Bytes of the frames of the calls that it executes. */
  inflightBytes = 0;
  // Created on first use: most of many thousand peers may be idle.
  #idBytes: Uint8Array | undefined;
  #warningLimit: RateWindow | undefined;
  #parkedTriggerLimit: RateWindow | undefined;
  /** When it was last probed, by the clock's now(). */
  #probedAt = -Infinity;
  /** Reasons for which the engine does not read from it. */
  #pauses = 0;
  /** One of them: it does not read its results. */
  #isPausedByReplies = false;

  constructor(connection: Connection, identity: PeerIdentity) {
    this.connection = connection;
    this.id = identity.id;
    this.reattach_token = identity.reattach_token;
    this.info = identity.info;
    this.connected_at_ms = identity.connected_at_ms;
    this.isBuiltin = identity.info.builtin !== null;
    this.isEngine = identity.info.engine !== undefined;
    // An engine announces nothing: it is no worker.
    this.wantsCancel = this.wantsProgress = this.isEngine;
    this.access = identity.info.access;
    this.endpoint = { worker_id: identity.id };
  }

  /** Its id as UTF-8. */
  get idBytes(): Uint8Array {
    return this.#idBytes ??= bytesOf(this.id);
  }

  /** Limits the warnings that it may cause. */
  get warningLimit(): RateWindow {
    return this.#warningLimit ??= new RateWindow(WARNINGS_MAX, WARNINGS_WINDOW_MS);
  }

  /** Limits the reports of its parked triggers. */
  get parkedTriggerLimit(): RateWindow {
    return this.#parkedTriggerLimit ??= new RateWindow(WARNINGS_MAX, WARNINGS_WINDOW_MS);
  }

  /** Number of calls that it, or its server, executes. */
  get runningCalls(): number {
    return this.inflightCalls + (this.server?.inflightCalls ?? 0);
  }

  /** Display name, for something that it registered under this id. */
  nameFor(id: string): string {
    return this.info.builtin ?? this.info.engine ?? this.announcement?.name ??
      id.split("::", 1)[0]!;
  }

  /** Stores what the worker announced. */
  announce(announcement: Announcement): void {
    this.announcement = announcement;
    this.#announcedName = announcement.name;
    this.wantsCancel = announcement.capabilities?.includes("cancel") ?? false;
    this.wantsProgress = announcement.capabilities?.includes("progress") ?? false;
  }

  /**
   * The name that its trigger ids belong to, also after its disconnect; `undefined` for a worker
   * that has not announced itself, whose ids belong to its connection.
   */
  get ownerName(): string | undefined {
    return this.info.builtin ?? this.#announcedName;
  }

  /** Whether another connection is one of the same worker, or of a replica of it. */
  hasNameOf(other: Peer): boolean {
    return this.isBuiltin === other.isBuiltin && this.ownerName !== undefined &&
      this.ownerName === other.ownerName;
  }

  /** Whether access rules limit its calls, so that it learns of no worker beside its own. */
  get isLimited(): boolean {
    return this.access !== undefined && !this.access.mayCallAll;
  }

  /** Sends a message, unless it has disconnected. */
  send(message: EngineMessage): void {
    if (!this.isLive) return;
    this.connection.send(encodeMessage(this.access ? this.access.outgoing(message) : message));
  }

  /** Tells it that a call was cancelled, if it announced the capability. */
  sendCancel(invocation_id: string, reason: string | undefined): void {
    if (!this.wantsCancel) return;
    const why = reason === undefined ? {} : { reason };
    this.send({ type: "cancelinvocation", invocation_id, ...why });
  }

  /**
   * Sends the result of one of its calls, in two parts as `Connection.forward()` takes them. If it
   * does not read its results, the engine stops reading from it where the transport allows that.
   */
  reply(
    prefix: Uint8Array,
    prefixBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (!this.isLive) return;
    this.connection.forward(prefix, prefixBytes, memory, start, end);
    this.#applyBackPressure();
  }

  /** The same for a whole frame as text. */
  replyText(text: string): void {
    if (!this.isLive) return;
    this.connection.send(text);
    this.#applyBackPressure();
  }

  /** A call of it is overdue: pings it, at most once in {@linkcode PROBE_INTERVAL_MS}. */
  probe(now: number): void {
    if (!this.isLive || this.isSuspect || now - this.#probedAt < PROBE_INTERVAL_MS) return;
    this.#probedAt = now;
    this.connection.probe?.();
  }

  /** Its connection accepts data again. */
  drained(): void {
    if (!this.#isPausedByReplies) return;
    this.#isPausedByReplies = false;
    this.resumeReading();
  }

  /** Stops reading from it until {@linkcode resumeReading}; `false` if the transport cannot. */
  pauseReading(): boolean {
    if (!this.connection.pause()) return false;
    this.#pauses++;
    return true;
  }

  /** Removes one reason not to read from it. */
  resumeReading(): void {
    if (--this.#pauses === 0) this.connection.resume();
  }

  #applyBackPressure(): void {
    if (this.#isPausedByReplies || this.connection.queuedBytes <= SEND_AHEAD_BYTES) return;
    this.#isPausedByReplies = this.pauseReading();
  }
}

/** The function of a free record. */
const NO_FUNCTION: ObservedFunction = { function_id: "", namespace: "" };

/** Is called when the record of a call is closed. */
export interface EndListener {
  ended(invocation: Invocation): void;
}

/** The record of one call, reused by later calls. */
export class Invocation implements Due, ObservedCall {
  due = 0;
  place = -1;
  /** Has the engine's id of the current or the last call, and room for that of the caller. */
  readonly ids: Uint8Array;
  readonly idsView: DataView;
  /** Where the ids start: records share memory, so that few places of it are in use. */
  readonly idAt: number;
  isOpen = false;
  /** Waits for the result; `undefined` for a void call. */
  caller: Peer | undefined;
  /** Has the caller's id as JSON text without quotes: behind the engine's, if it is no longer. */
  callerId: Uint8Array;
  callerIdView: DataView;
  callerIdAt: number;
  /** Length of the caller's id; 0 without a caller. */
  callerIdBytes = 0;
  /** Executes the call; `undefined` for the engine itself and while the call is parked. */
  callee: Peer | undefined;
  function_id = "";
  /** The whole time limit. */
  timeout_ms = 0;
  /** Bytes of the frame sent to the callee. */
  bytes = 0;
  /** Hash of the caller's id. */
  hash = 0;
  /** Neighbours in the ring of its callee's calls; itself outside of a ring. */
  before: Invocation = this;
  after: Invocation = this;
  uses = 0;
  /** Number of the call since the engine's start: several calls may start at the same time. */
  order = 0;
  /** When it was opened, by the clock's now(). */
  since = 0;
  /** What else has to know of its end: the parked calls, or the engine that executes it. */
  onEnd: EndListener | undefined;
  /** The observer's handle for the function. */
  subject: ObservedFunction = NO_FUNCTION;
  readonly slot: number;

  /** The ids are overwritten for each call. */
  constructor(slot: number, ids: Uint8Array, idsView: DataView, idAt: number) {
    this.slot = slot;
    this.ids = this.callerId = ids;
    this.idsView = this.callerIdView = idsView;
    this.idAt = idAt;
    this.callerIdAt = idAt + UUID_BYTES;
  }
}
