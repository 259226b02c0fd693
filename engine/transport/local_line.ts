/**
 * A line with no socket, for workers in the engine's own process.
 *
 * It is the WebSocket line's equal: whole messages, in order, `closed` once and last on both sides.
 * What the worker sends is handled before `send` returns; what the engine sends arrives in a
 * microtask, so that neither side ever finds the other half-way through a message.
 *
 * @module
 */
import {
  DRAINED_BYTES,
  LOCAL_LINE_BYTES_MAX,
  SEND_AHEAD_BYTES,
} from "../../sdk/typescript/wire/limits.ts";
import type { Dial, Transport, TransportEvents } from "../../sdk/typescript/wire/transport.ts";
import type { Connection, ConnectionEvents } from "../ports/connection.ts";
import { TextJoiner } from "./text_joiner.ts";

/** Who takes the engine's end of local lines; the router is one. */
export interface LocalRouter {
  /** Takes a line that has opened; `builtin` names the worker that dialled. */
  open(
    connection: Connection,
    peer: { address: null; launch_id: null; builtin: string },
  ): ConnectionEvents;
}

/**
 * A dialler whose lines end at `router` under the name of a built-in worker; the address dialled
 * and the headers play no part. A line on which more than `maxQueuedBytes` wait is cut.
 */
export function localDial(
  router: LocalRouter,
  name: string,
  maxQueuedBytes: number = LOCAL_LINE_BYTES_MAX,
): Dial {
  return (_url, events) => new LocalLine(router, name, events, maxQueuedBytes).transport;
}

/** Both ends of one line. */
class LocalLine implements Connection {
  readonly id: string = crypto.randomUUID();
  readonly isBatching = false;
  /** The worker's end. */
  readonly transport: Transport;

  readonly #worker: TransportEvents;
  readonly #maxQueuedBytes: number;
  /** `closing`: ended by the engine, and what it sent before is still on its way. */
  #state: "opening" | "open" | "closing" | "closed" = "opening";
  #engine: ConnectionEvents | undefined;
  #toWorker: (string | Uint8Array)[] = [];
  /** Characters of text count as bytes: nothing is ever encoded here. */
  #queuedBytes = 0;
  #deliveryDue = false;
  #behind = false;

  constructor(router: LocalRouter, name: string, worker: TransportEvents, maxQueuedBytes: number) {
    this.#worker = worker;
    this.#maxQueuedBytes = maxQueuedBytes;
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
    queueMicrotask(() => { // Behind the delivery of what was sent before.
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
    if (this.#deliveryDue) return;
    this.#deliveryDue = true;
    queueMicrotask(() => {
      this.#deliveryDue = false;
      this.#deliver();
    });
  }

  /** Hands over what waits, also what is sent meanwhile. */
  #deliver(): void {
    while (this.#toWorker.length > 0) {
      const batch = this.#toWorker;
      this.#toWorker = [];
      for (const message of batch) {
        if (this.#state === "closed") return;
        this.#queuedBytes -= message.length;
        if (typeof message === "string") this.#worker.text(message);
        else this.#worker.binary(message);
        if (this.#behind && this.#queuedBytes <= DRAINED_BYTES) {
          this.#behind = false;
          this.#engine!.drained();
        }
      }
    }
  }

  #drop(): void {
    this.#toWorker = [];
    this.#queuedBytes = 0;
  }
}

const joiner = new TextJoiner();
