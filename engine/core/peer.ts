/**
 * A connected worker, as the tables see it: how to reach it, what it said of itself, and how busy
 * it is.
 *
 * Holds no rules. Whoever keeps a peer in a table takes it out when the router says it left.
 *
 * @module
 */
import { encodeMessage } from "../../sdk/typescript/wire/codec.ts";
import {
  SEND_AHEAD_BYTES,
  WARNINGS_MAX,
  WARNINGS_WINDOW_MS,
} from "../../sdk/typescript/wire/limits.ts";
import type { Announcement, EngineMessage } from "../../sdk/typescript/wire/protocol.ts";
import type { ObservedCall, ObservedEndpoint, ObservedFunction } from "../ports/call_observer.ts";
import type { Connection } from "../ports/connection.ts";
import type { Due } from "./deadlines.ts";
import { RateWindow } from "./guards.ts";
import { bytesOf, NO_BYTES, viewOf } from "./wire/bytes.ts";
import { SlotIndex } from "./wire/bytes_index.ts";

/** What is known of a line before its worker says anything. */
export interface PeerInfo {
  /** Address of the other end; `null` on a line inside this process. */
  readonly address: string | null;
  /** Which start of the engine's own this is, if it is one. */
  readonly launch_id: string | null;
  /**
   * Name such as `engine-state` when the line belongs to the engine itself: it may offer
   * `engine::*`, what it offers cannot be taken over, and calls to it carry `caller`.
   */
  readonly builtin: string | null;
  /** Belongs to the command line of the engine's own user on this machine; left out: no. */
  readonly operator?: boolean;
}

/** Who a peer is. */
export interface PeerIdentity {
  /** Id of the worker on this connection; a fresh UUID. */
  readonly id: string;
  /** What a later connection must know to end this one. */
  readonly reattach_token: string;
  readonly info: PeerInfo;
  /** Milliseconds since 1970. */
  readonly connected_at_ms: number;
}

/** One connected worker. */
export class Peer {
  readonly id: string;
  readonly reattach_token: string;
  readonly info: PeerInfo;
  readonly connected_at_ms: number;
  readonly connection: Connection;
  /** `false` from the moment its clean-up begins. */
  isLive = true;
  /** Gets no new calls, until its end; what it runs goes on. */
  isDraining = false;
  /** What it said of itself; `undefined` before. */
  announcement: Announcement | undefined;
  /** How an observer knows it. */
  endpoint: ObservedEndpoint;
  wantsCancel = false;
  wantsProgress = false;
  /** How many calls it executes. */
  inflightCalls = 0;
  /** The one of them that it got first; the others follow it in a ring. */
  firstCall: Invocation | undefined;
  /** Slots of the calls it waits for, by hash of its own ids. */
  readonly waiting: SlotIndex = new SlotIndex();
  /** Bytes of the frames of the calls it executes. */
  inflightBytes = 0;
  // Made for those who need them: most of many thousand peers may be idle.
  #idBytes: Uint8Array | undefined;
  #warningLimit: RateWindow | undefined;
  #parkedTriggerLimit: RateWindow | undefined;
  /** Reasons for which nothing is read from it. */
  #pauses = 0;
  /** One of them: it does not take its answers. */
  #isPausedByReplies = false;

  /** Makes the peer of a line that has just opened. */
  constructor(connection: Connection, identity: PeerIdentity) {
    this.connection = connection;
    this.id = identity.id;
    this.reattach_token = identity.reattach_token;
    this.info = identity.info;
    this.connected_at_ms = identity.connected_at_ms;
    this.endpoint = { worker_id: identity.id };
  }

  /** Whether the line belongs to the engine itself. */
  get isBuiltin(): boolean {
    return this.info.builtin !== null;
  }

  /** Its id as UTF-8. */
  get idBytes(): Uint8Array {
    return this.#idBytes ??= bytesOf(this.id);
  }

  /** Says no when it gave rise to so many warnings that nobody wants more. */
  get warningLimit(): RateWindow {
    return this.#warningLimit ??= new RateWindow(WARNINGS_MAX, WARNINGS_WINDOW_MS);
  }

  /** The same for triggers of its that wait for their types. */
  get parkedTriggerLimit(): RateWindow {
    return this.#parkedTriggerLimit ??= new RateWindow(WARNINGS_MAX, WARNINGS_WINDOW_MS);
  }

  /** How listings call it, for something it registered under this id. */
  nameFor(id: string): string {
    return this.info.builtin ?? this.announcement?.name ?? id.split("::", 1)[0]!;
  }

  /** Sends a message; nothing happens when the line is over. */
  send(message: EngineMessage): void {
    if (this.isLive) this.connection.send(encodeMessage(message));
  }

  /** Tells it that nobody waits for a call that it runs any more, if it wants to know. */
  sendCancel(invocation_id: string, reason: string | undefined): void {
    if (!this.wantsCancel) return;
    const why = reason === undefined ? {} : { reason };
    this.send({ type: "cancelinvocation", invocation_id, ...why });
  }

  /**
   * Sends what a call of its own came to, in two parts as `Connection.forward()` takes them.
   * When it does not take such answers, nothing more is read from it until it does, where its
   * carrier can do that.
   */
  reply(
    head: Uint8Array,
    headBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (!this.isLive) return;
    this.connection.forward(head, headBytes, memory, start, end);
    this.#applyBackPressure();
  }

  /** The same with all of it as one text. */
  replyText(text: string): void {
    if (!this.isLive) return;
    this.connection.send(text);
    this.#applyBackPressure();
  }

  /** Its line has room again. */
  drained(): void {
    if (!this.#isPausedByReplies) return;
    this.#isPausedByReplies = false;
    this.resumeReading();
  }

  /** Nothing more is read from it until {@linkcode release}; `false`: its carrier cannot stop. */
  pauseReading(): boolean {
    if (!this.connection.pause()) return false;
    this.#pauses++;
    return true;
  }

  /** One reason not to read from it is gone. */
  resumeReading(): void {
    if (--this.#pauses === 0) this.connection.resume();
  }

  #applyBackPressure(): void {
    if (this.#isPausedByReplies || this.connection.queuedBytes <= SEND_AHEAD_BYTES) return;
    this.#isPausedByReplies = this.pauseReading();
  }
}

const NO_VIEW = viewOf(NO_BYTES);
/** What a free record is about. */
const NO_FUNCTION: ObservedFunction = { function_id: "", namespace: "" };

/** One running call. */
export class Invocation implements Due, ObservedCall {
  due = 0;
  place = -1;
  /** The engine's id of it, or of the last call that it served. */
  readonly id: Uint8Array;
  readonly idView: DataView;
  isOpen = false;
  /** Who waits for the result; `undefined`: nobody. */
  caller: Peer | undefined;
  /** The caller's id of it, as it stands between quotes in JSON: its first bytes. */
  callerId: Uint8Array = NO_BYTES;
  callerIdView: DataView = NO_VIEW;
  /** So many; 0 without a caller. */
  callerIdBytes = 0;
  /** Who executes it; `undefined`: the engine itself, or nobody yet. */
  callee: Peer | undefined;
  function_id = "";
  /** How long it may take in all. */
  timeout_ms = 0;
  /** Bytes of the frame that went to the callee. */
  bytes = 0;
  /** Of the caller's id. */
  hash = 0;
  /** Neighbours in the ring of its callee's calls; itself while it is in none. */
  before: Invocation = this;
  after: Invocation = this;
  uses = 0;
  /** Its place among all calls that were ever opened: many begin at the same time. */
  order = 0;
  /** When it was opened, on the clock's now(). */
  since = 0;
  /** The function, as an observer counts it. */
  subject: ObservedFunction = NO_FUNCTION;
  readonly slot: number;

  /** Makes the record of a slot; `id` is written anew for each call. */
  constructor(slot: number, id: Uint8Array) {
    this.slot = slot;
    this.id = id;
    this.idView = viewOf(id);
  }
}
