/**
 * Transports without a socket: the test takes the part of the engine, message by message.
 *
 * @module
 */
import type { EngineMessage, Json } from "../../sdk/typescript/wire/protocol.ts";
import type {
  Dial,
  DialOptions,
  Transport,
  TransportEvents,
} from "../../sdk/typescript/wire/transport.ts";

/** One attempt of a worker to connect, as the engine sees it. */
export class FakeTransport implements Transport {
  /** Text messages that the worker sent. */
  readonly texts: string[] = [];
  /** Binary messages that the worker sent. */
  readonly binaries: Uint8Array[] = [];
  /** As the worker reads it. */
  queuedBytes = 0;
  readonly url: string;
  readonly options: DialOptions;
  readonly #events: TransportEvents;
  #isClosed = false;

  constructor(url: string, events: TransportEvents, options: DialOptions) {
    this.url = url;
    this.#events = events;
    this.options = options;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** What the worker sent, parsed. */
  get messages(): Record<string, Json>[] {
    return this.texts.map((text) => JSON.parse(text));
  }

  /** Accepts the connection; with `workerId` it also delivers `workerregistered`. */
  open(workerId?: string, capabilities: string[] = ["cancel", "timeout", "progress"]): this {
    this.#events.opened();
    if (workerId !== undefined) {
      const reattach_token = `token of ${workerId}`;
      this.deliver({ type: "workerregistered", worker_id: workerId, reattach_token, capabilities });
    }
    return this;
  }

  /** Delivers a message to the worker. */
  deliver(message: EngineMessage): void {
    this.deliverText(JSON.stringify(message));
  }

  /** Delivers any text to the worker. */
  deliverText(text: string): void {
    this.#events.text(text);
  }

  /** Delivers bytes to the worker. */
  deliverBinary(bytes: Uint8Array): void {
    this.#events.binary(bytes);
  }

  /** Closes the connection as the engine, or fails it before it opened. */
  drop(code = 1006, reason = ""): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#events.closed(code, reason);
  }

  send(message: string | Uint8Array): void {
    if (this.#isClosed) return;
    if (typeof message === "string") this.texts.push(message);
    else this.binaries.push(message);
  }

  close(code = 1000, reason = ""): void {
    this.drop(code, reason);
  }

  /** The messages sent since the last call of take(), parsed. */
  take(): Record<string, Json>[] {
    return this.texts.splice(0).map((text) => JSON.parse(text));
  }
}

/** A {@linkcode Dial} that keeps every transport that it made. */
export class FakeDial {
  readonly transports: FakeTransport[] = [];

  /** Passed to the worker under test. */
  readonly dial: Dial = (url, events, options) => {
    const transport = new FakeTransport(url, events, options);
    this.transports.push(transport);
    return transport;
  };

  /** The newest transport. */
  get transport(): FakeTransport {
    return this.transports.at(-1)!;
  }
}
