/**
 * One other engine, as a connection of the router.
 *
 * What workers there offer is registered on it, calls go out on it as the bytes they came in, and
 * what its workers call comes in on it. So the router's promises hold between engines with the code
 * that holds them between workers. Ids of triggers get the life of their engine in front, since
 * workers of two engines may use equal ones.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import {
  type Connection,
  type ConnectionEvents,
  DRAINED_BYTES,
  SEND_AHEAD_BYTES,
} from "../ports/connection.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import { TRIGGERS_PER_ENGINE_MAX } from "../core/trigger_table.ts";
import { Incoming } from "./incoming.ts";
import { Outgoing } from "./outgoing.ts";
import { KIND, type LinkEnd, makePacket, type PacketHead, readMessage } from "./packet.ts";

/** Most bytes that are on their way on one link; NATS cuts a client that is 64 MB behind. */
export const WINDOW_BYTES = 4 * 1024 * 1024;
/** Bytes that are acknowledged at once. */
const ACKNOWLEDGED_BYTES = 256 * 1024;
/** `t` of `{"type":"triggerregistrationresult"`, the only message that begins so. */
const RESULT_LETTER = 0x74;
const LETTER_AT = 9;
/** First byte of every message; frames of streams begin otherwise. */
const BRACE = 0x7b;
/** `r` of messages that register something. */
const REGISTER_LETTER = 0x72;
const REGISTER_TRIGGER = '{"type":"registertrigger",';
/** `k` of `invokefunction`, where other messages have another letter. */
const CALL_LETTER = 0x6b;
const KIND_AFTER = 4;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const NOTHING = new Uint8Array(0);

/** Another engine. */
export interface OtherEngine {
  /** Of its start; never used again. */
  readonly life: string;
  /** As it calls itself; not unique. */
  readonly name: string;
  readonly version: string;
  /** Where it keeps state: `jetstream`, `postgres` or `none`; absent: an older engine. */
  readonly log?: string;
}

/** What a link uses. */
export interface LinkSetup {
  readonly engine: OtherEngine;
  /** Life of this engine. */
  readonly life: string;
  readonly epoch: number;
  readonly windowBytes: number;
  readonly maxMessageBytes: number;
  readonly memory: MemoryBudget;
  now(): number;
  publish(packet: Uint8Array): void;
  defer(task: () => void): void;
  /** A message between the links has come. */
  heard(message: JsonObject): void;
  /** A frame of a stream has come: `streams.ts`. */
  stream(link: Link, memory: Uint8Array, start: number, end: number): void;
  /** Ends the link. */
  over(reason: LinkEnd): void;
}

/** The connection to another engine. */
export class Link implements Connection {
  readonly id: string = crypto.randomUUID();
  readonly isBatching = false;
  readonly engine: OtherEngine;
  readonly epoch: number;
  /** When it was opened, by the clock's now(). */
  readonly openedAt: number;
  /** When something came last. */
  heardAt: number;
  /** Since when a packet was sent that no later one has confirmed; `undefined`: none is. */
  unconfirmedSince: number | undefined;
  /** Pings in a row that were not answered. */
  missedPings = 0;
  isPinging = false;
  /** When it was asked last, by the clock's now(). */
  pingedAt = -Infinity;
  /** Of the last ping, in milliseconds; `undefined` before. */
  rtt: number | undefined;
  /** The engine drains: it gets no new calls. */
  isDraining = false;
  /** Calls since the link was opened. */
  readonly calls = { out: 0, in: 0 };
  receivedBytes = 0;
  /** When triggers of the other engine were registered there, by their ids here. */
  readonly created: Map<string, number> = new Map();
  readonly #setup: LinkSetup;
  readonly #outgoing: Outgoing;
  readonly #incoming: Incoming;
  #events: ConnectionEvents | undefined;
  #isOver = false;
  #isBehind = false;
  /** Bytes of the last acknowledgement. */
  #acknowledged = 0;

  constructor(setup: LinkSetup) {
    this.#setup = setup;
    this.engine = setup.engine;
    this.epoch = setup.epoch;
    this.openedAt = this.heardAt = setup.now();
    const { epoch, memory, maxMessageBytes, defer } = setup;
    const fail = (reason: LinkEnd): void => setup.over(reason);
    this.#incoming = new Incoming({
      memory,
      maxMessageBytes,
      frame: (bytes, start, end, isPlain) => this.#receive(bytes, start, end, isPlain),
      control: (packet) => this.#hear(packet),
      fail,
    });
    this.#outgoing = new Outgoing({
      epoch,
      memory,
      defer,
      publish: (packet) => this.#publish(packet),
      received: () => this.#acknowledged = this.#incoming.handledBytes,
      fail: (reason) => defer(() => fail(reason)), // The router may be sending.
    }, setup.windowBytes);
  }

  get queuedBytes(): number {
    return this.#outgoing.queuedBytes;
  }

  /** Bytes of packets that were sent. */
  get sentBytes(): number {
    return this.#outgoing.sentBytes;
  }

  /** Number of the next packet. */
  get number(): number {
    return this.#outgoing.number;
  }

  /** Whether the link has ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Changes how many bytes may be on their way. */
  set windowBytes(bytes: number) {
    this.#outgoing.windowBytes = bytes;
  }

  /** Begins to pass frames on. */
  start(events: ConnectionEvents): void {
    this.#events = events;
  }

  send(text: string): void {
    // What concerns only the line of a worker is not for another engine.
    if (/^{"type":"(workerregistered|error|registrationrejected|ping|pong)"/.test(text)) return;
    const isOfTrigger = text.startsWith('{"type":"registertrigger"') ||
      text.startsWith('{"type":"unregistertrigger"');
    this.sendFrame(isOfTrigger ? withPrefix(text, `${this.#setup.life}:`) : text);
  }

  /** Sends a frame as it is. */
  sendFrame(text: string): void {
    const bytes = encoder.encode(text);
    this.#outgoing.send(NOTHING, 0, bytes, 0, bytes.length);
    this.#isBehind ||= this.queuedBytes > SEND_AHEAD_BYTES;
  }

  forward(
    prefix: Uint8Array,
    prefixBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    const at = LETTER_AT + KIND_AFTER;
    if ((prefixBytes > at ? prefix[at] : memory[start + at]) === CALL_LETTER) this.calls.out++;
    this.#outgoing.send(prefix, prefixBytes, memory, start, end);
    if (this.queuedBytes > SEND_AHEAD_BYTES) this.#isBehind = true;
  }

  /** Telemetry stays at the engine that received it. */
  sendBinary(): void {}

  /** Sends a message to the other engine's link, behind the frames before it. */
  tell(message: Json): void {
    this.#outgoing.sendControl(encoder.encode(JSON.stringify(message)));
  }

  /**
   * Not possible: one slow worker would hold back all calls and results between two engines, and
   * two engines that both wait would wait for ever. Bounds of calls and memory hold instead.
   */
  pause(): boolean {
    return false;
  }

  resume(): void {}

  close(): void {
    this.#setup.over("closed");
  }

  /** Ends it; the router cleans up before this returns. */
  end(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#outgoing.close();
    this.#incoming.close();
    this.#events?.closed(1006, reason);
  }

  /** Takes a packet of this link's epoch that is no request. */
  take(head: PacketHead, packet: Uint8Array): void {
    if (this.#isOver) return;
    this.heardAt = this.#setup.now();
    this.receivedBytes += packet.length;
    this.#heed(head.acknowledged);
    if (head.kind === KIND.ack) this.#incoming.checkNumber(head.number);
    else this.#incoming.take(head, packet);
    if (!this.#isOver) this.#acknowledge();
  }

  /** What was handled, for a packet without a number of its own, which confirms those before. */
  acknowledge(): number {
    return this.#acknowledged = this.#incoming.handledBytes;
  }

  /** A ping was answered that had the number of the packet that was the next one then. */
  answered(rtt: number, number: number): void {
    this.heardAt = this.#setup.now();
    this.rtt = rtt;
    this.missedPings = 0;
    if (number === this.number) this.unconfirmedSince = undefined;
  }

  /** A ping has come, with the number of the other engine's next packet. */
  pinged({ number, acknowledged }: PacketHead): boolean {
    this.heardAt = this.#setup.now();
    this.#heed(acknowledged);
    return this.#incoming.checkNumber(number);
  }

  #heed(acknowledged: number): void {
    this.#outgoing.acknowledge(acknowledged);
    if (!this.#isBehind || this.queuedBytes > DRAINED_BYTES) return;
    this.#isBehind = false;
    this.#events?.drained();
  }

  #acknowledge(): void {
    const { handledBytes } = this.#incoming;
    if (handledBytes - this.#acknowledged < ACKNOWLEDGED_BYTES) return;
    this.#acknowledged = handledBytes;
    const head = { number: this.number, acknowledged: handledBytes };
    this.#setup.publish(makePacket(KIND.ack, this.epoch, undefined, head));
    this.unconfirmedSince = undefined;
  }

  #publish(packet: Uint8Array): void {
    this.unconfirmedSince = this.#setup.now();
    this.#setup.publish(packet);
  }

  #hear(packet: Uint8Array): void {
    const message = readMessage(packet);
    if (message !== null && typeof message === "object" && !Array.isArray(message)) {
      this.#setup.heard(message);
    }
  }

  #receive(memory: Uint8Array, start: number, end: number, isPlain: boolean): void {
    if (memory[start] !== BRACE) return this.#setup.stream(this, memory, start, end);
    if (memory[start + LETTER_AT + KIND_AFTER] === CALL_LETTER) this.calls.in++;
    if (memory[start + LETTER_AT] === REGISTER_LETTER) this.#date(memory, start, end);
    if (memory[start + LETTER_AT] !== RESULT_LETTER) {
      return this.#events!.textBytes(memory, start, end, isPlain);
    }
    const text = decoder.decode(memory.subarray(start, end));
    this.#events!.text(withoutPrefix(text, `${this.#setup.life}:`));
  }

  /** Keeps when a trigger was registered, which only another engine says. */
  #date(memory: Uint8Array, start: number, end: number): void {
    const text = decoder.decode(memory.subarray(start, end));
    if (!text.startsWith(REGISTER_TRIGGER)) return;
    try {
      const { id, created_at_ms } = JSON.parse(text) as JsonObject;
      if (typeof id === "string" && typeof created_at_ms === "number") {
        if (this.created.size >= TRIGGERS_PER_ENGINE_MAX) this.created.clear();
        this.created.set(id, created_at_ms);
      }
    } catch {
      // The router says what is wrong with it.
    }
  }
}

/** A message of a trigger whose id has a prefix. */
export function withPrefix(text: string, prefix: string): string {
  const message = JSON.parse(text) as JsonObject;
  return JSON.stringify({ ...message, id: `${prefix}${message.id}` });
}

/** The same message without the prefix. */
function withoutPrefix(text: string, prefix: string): string {
  try {
    const message = JSON.parse(text) as JsonObject;
    const { id } = message;
    if (typeof id !== "string" || !id.startsWith(prefix)) return text;
    return JSON.stringify({ ...message, id: id.slice(prefix.length) });
  } catch {
    return text; // The router says what is wrong with it.
  }
}
