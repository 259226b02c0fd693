/**
 * Lines without a socket: a test plays the engine by hand, message by message.
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

/** One attempt of a worker to open a line, seen from the engine. */
export class FakeTransport implements Transport {
  /** What the worker sent, as text. */
  readonly texts: string[] = [];
  /** What the worker sent, as bytes. */
  readonly binaries: Uint8Array[] = [];
  /** As the worker sees it. */
  queuedBytes = 0;
  readonly url: string;
  readonly options: DialOptions;
  readonly #events: TransportEvents;
  #isOver = false;

  constructor(url: string, events: TransportEvents, options: DialOptions) {
    this.url = url;
    this.#events = events;
    this.options = options;
  }

  /** Whether the line is closed. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What the worker sent, parsed. */
  get messages(): Record<string, Json>[] {
    return this.texts.map((text) => JSON.parse(text));
  }

  /** Accepts the line; with `workerId` it says `workerregistered` at once. */
  open(workerId?: string, capabilities: string[] = ["cancel", "timeout", "progress"]): this {
    this.#events.opened();
    if (workerId !== undefined) {
      const reattach_token = `token of ${workerId}`;
      this.say({ type: "workerregistered", worker_id: workerId, reattach_token, capabilities });
    }
    return this;
  }

  /** Sends a message to the worker. */
  say(message: EngineMessage): void {
    this.sayText(JSON.stringify(message));
  }

  /** Sends any text to the worker. */
  sayText(text: string): void {
    this.#events.text(text);
  }

  /** Sends bytes to the worker. */
  sayBinary(bytes: Uint8Array): void {
    this.#events.binary(bytes);
  }

  /** Ends the line from the engine's side, or says that it never opened. */
  drop(code = 1006, reason = ""): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#events.closed(code, reason);
  }

  send(message: string | Uint8Array): void {
    if (this.#isOver) return;
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

/** A {@linkcode Dial} that keeps every line it was asked for. */
export class FakeDial {
  readonly transports: FakeTransport[] = [];

  /** To be handed to a worker. */
  readonly dial: Dial = (url, events, options) => {
    const transport = new FakeTransport(url, events, options);
    this.transports.push(transport);
    return transport;
  };

  /** The newest line. */
  get transport(): FakeTransport {
    return this.transports.at(-1)!;
  }
}
