/**
 * A connection without a socket, for workers in the engine's own process.
 *
 * It behaves as a WebSocket does: whole messages, in order, `closed` once and last on both sides.
 * The engine handles what the worker sends before `send` returns; what the engine sends arrives in
 * a microtask, so that neither side is called while it handles a message. Of many messages at once,
 * such as the ends of all triggers of a worker, the first arrive there and the others in turns.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import {
  type Connection,
  type ConnectionEvents,
  DRAINED_BYTES,
  SEND_AHEAD_BYTES,
} from "../ports/connection.ts";
import type { Work } from "../ports/turns.ts";
import type { TickBudget } from "./tick_budget.ts";
import type { Dial, Transport, TransportEvents } from "../../sdk/typescript/wire/transport.ts";

/** Bytes that may wait on a line inside the engine. */
export const LOCAL_QUEUE_BYTES_MAX = 512 * 1024 * 1024;

/** Messages that arrive in one microtask, and between two looks at the clock in a turn. */
const AT_ONCE_MAX = 256;
const LOOK_EVERY = 16;

/** Accepts local connections; implemented by the router. */
export interface LocalRouter {
  /** Accepts an open connection; `builtin` is the name of the worker that dialled. */
  open(
    connection: Connection,
    peer: { address: null; launch_id: null; builtin: string },
  ): ConnectionEvents;
}

/** Limits of a local connection. */
export interface LocalOptions {
  /** A connection with more bytes queued is closed. Default: {@linkcode LOCAL_QUEUE_BYTES_MAX}. */
  readonly maxQueuedBytes?: number;
  /** Counts what the worker handles behind the messages of other connections. Default: none. */
  readonly ticks?: TickBudget;
}

/**
 * Makes a dialler whose connections go to `router` under the name of a built-in worker; it ignores
 * address and headers. A connection with more than `maxQueuedBytes` queued is closed with 1008.
 */
export function localDial(router: LocalRouter, name: string, options: LocalOptions = {}): Dial {
  return (_url, events) => new LocalConnection(router, name, events, options).transport;
}

/** Both ends of one connection. */
class LocalConnection implements Connection, Work {
  readonly id: string = crypto.randomUUID();
  readonly isBatching = false;
  /** The worker's end. */
  readonly transport: Transport;

  readonly #worker: TransportEvents;
  readonly #maxQueuedBytes: number;
  readonly #ticks: TickBudget | undefined;
  /** `closing`: closed by the engine, with messages still on their way to the worker. */
  #state: "opening" | "open" | "closing" | "closed" = "opening";
  #engine: ConnectionEvents | undefined;
  #toWorker: (string | Uint8Array)[] = [];
  /** Index of the message that is delivered next. */
  #next = 0;
  /** Characters of text count as bytes, because nothing is encoded. */
  #queuedBytes = 0;
  #deliveryDue = false;
  #behind = false;

  constructor(
    router: LocalRouter,
    name: string,
    worker: TransportEvents,
    { maxQueuedBytes = LOCAL_QUEUE_BYTES_MAX, ticks }: LocalOptions,
  ) {
    this.#worker = worker;
    this.#maxQueuedBytes = maxQueuedBytes;
    this.#ticks = ticks;
    this.transport = {
      send: (message) => this.#fromWorker(message),
      close: (code = 1000, reason = "") => this.#closeByWorker(code, reason),
    };
    queueMicrotask(() => this.#open(router, name));
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  send(text: string): void {
    this.#queue(text);
  }

  forward(
    head: Uint8Array,
    headBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    this.#queue(joiner.join(head, headBytes, memory, start, end));
  }

  sendBinary(bytes: Uint8Array): void {
    this.#queue(bytes.slice());
  }

  pause(): boolean {
    return false;
  }

  resume(): void {}

  close(code: number, reason: string): void {
    if (this.#state === "closing" || this.#state === "closed") return;
    this.#state = "closing";
    queueMicrotask(() => { // After the delivery of earlier messages.
      this.#deliver(Infinity);
      this.#state = "closed";
      this.#engine?.closed(code, reason);
      this.#worker.closed(code, reason);
    });
  }

  #open(router: LocalRouter, name: string): void {
    if (this.#state !== "opening") return;
    this.#state = "open";
    this.#engine = router.open(this, { address: null, launch_id: null, builtin: name });
    this.#worker.opened();
  }

  #fromWorker(message: string | Uint8Array): void {
    if (this.#state !== "open") return;
    if (typeof message === "string") this.#engine!.text(message);
    else this.#engine!.binary(message);
  }

  #closeByWorker(code: number, reason: string): void {
    if (this.#state === "closing" || this.#state === "closed") return;
    this.#state = "closed";
    this.#drop();
    this.#engine?.closed(code, reason);
    queueMicrotask(() => this.#worker.closed(code, reason));
  }

  #queue(message: string | Uint8Array): void {
    if (this.#state === "closing" || this.#state === "closed") return;
    this.#queuedBytes += message.length;
    if (this.#queuedBytes > this.#maxQueuedBytes) {
      const reason = `cut: ${this.#queuedBytes} bytes wait for a worker in this process`;
      this.#drop();
      this.close(1008, reason);
      return;
    }
    if (this.#queuedBytes > SEND_AHEAD_BYTES) this.#behind = true;
    this.#toWorker.push(message);
    this.#ticks?.defer();
    if (this.#deliveryDue) return;
    this.#deliveryDue = true;
    queueMicrotask(() => {
      this.#deliver(this.#ticks ? AT_ONCE_MAX : Infinity);
      this.#deliveryDue = this.#toWorker.length > 0;
      if (this.#deliveryDue) this.#ticks!.queue(this);
    });
  }

  /** Goes on with the delivery, in its turn. */
  work(): boolean {
    do this.#deliver(LOOK_EVERY); while (this.#toWorker.length > 0 && !this.#ticks!.isSpent());
    return this.#deliveryDue = this.#toWorker.length > 0;
  }

  /** Delivers up to `max` queued messages, also those that are queued meanwhile. */
  #deliver(max: number): void {
    for (let left = max; left > 0 && this.#next < this.#toWorker.length; left--) {
      const message = this.#toWorker[this.#next++]!;
      this.#queuedBytes -= message.length;
      if (typeof message === "string") this.#worker.text(message);
      else this.#worker.binary(message);
      if (this.#behind && this.#queuedBytes <= DRAINED_BYTES) {
        this.#behind = false;
        this.#engine!.drained();
      }
    }
    if (this.#next * 2 < this.#toWorker.length) return;
    this.#toWorker = this.#toWorker.slice(this.#next);
    this.#next = 0;
  }

  #drop(): void {
    this.#toWorker = [];
    this.#next = 0;
    this.#queuedBytes = 0;
  }
}

/** Size of the buffer that is kept; a longer message gets one of its own. */
const KEPT_BYTES = 64 * 1024;

/** Decodes a message that lies in two parts of memory, for connections that take strings. */
export class TextJoiner {
  #memory: Buffer = Buffer.alloc(KEPT_BYTES);

  /**
   * The text of `headBytes` bytes of `head` followed by `memory` from `start` to `end`, in UTF-8.
   */
  join(
    head: Uint8Array,
    headBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): string {
    const bytes = headBytes + end - start;
    const into = bytes > KEPT_BYTES ? Buffer.alloc(bytes) : this.#memory;
    let seen = 0;
    for (let at = 0; at < headBytes; at++) seen |= into[at] = head[at]!;
    for (let at = start, to = headBytes; at < end; at++, to++) seen |= into[to] = memory[at]!;
    // Latin-1 takes half the time where all bytes are ASCII.
    return into.toString(seen < 0x80 ? "latin1" : "utf8", 0, bytes);
  }
}

const joiner = new TextJoiner();
