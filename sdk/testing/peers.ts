/**
 * The connections of a test engine: what each worker registered, and how frames reach it.
 *
 * A frame is delivered in a microtask, in order, so that neither side is called while it handles
 * one.
 *
 * @module
 */
import { encodeMessage } from "../typescript/wire/codec.ts";
import type {
  EngineMessage,
  RegisterFunction,
  RegisterTrigger,
  WorkerMessage,
} from "../typescript/wire/protocol.ts";
import type { Dial, TransportEvents } from "../typescript/wire/transport.ts";
import { decodeWorkerMessage } from "../typescript/wire/codec.ts";

/** A connected worker. */
export class Peer {
  /** As it announced itself. */
  name = "worker";
  readonly id: string = crypto.randomUUID();
  readonly functions: Map<string, RegisterFunction> = new Map();
  readonly triggers: Map<string, RegisterTrigger> = new Map();
  readonly types: Set<string> = new Set();
  readonly #events: TransportEvents;
  #isOpen = true;
  #isDeaf = false;

  constructor(events: TransportEvents) {
    this.#events = events;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  send(message: EngineMessage): void {
    const text = encodeMessage(message);
    queueMicrotask(() => {
      if (this.#isOpen && !this.#isDeaf) this.#events.text(text);
    });
  }

  /**
   * Ends the conversation, but not the connection: a worker whose connection was lost would say so
   * and dial again.
   */
  abandon(): void {
    queueMicrotask(() => this.#isDeaf = true);
  }

  close(code: number, reason: string): void {
    if (!this.#isOpen) return;
    queueMicrotask(() => {
      if (!this.#isOpen) return;
      this.#isOpen = false;
      this.#events.closed(code, reason);
    });
  }
}

/** What receives the events of peers. */
export interface PeerEvents {
  joined(peer: Peer): void;
  received(peer: Peer, message: WorkerMessage): void;
  left(peer: Peer): void;
}

/** A {@linkcode Dial} whose connections end here. */
export function dialTo(engine: PeerEvents): Dial {
  return (_url, events) => {
    const peer = new Peer({
      ...events,
      text: (text) => events.text(text),
      closed(code, reason) {
        engine.left(peer);
        events.closed(code, reason);
      },
    });
    queueMicrotask(() => {
      events.opened();
      engine.joined(peer);
    });
    return {
      send(message) {
        if (typeof message !== "string" || !peer.isOpen) return;
        const decoded = decodeWorkerMessage(message);
        queueMicrotask(() => engine.received(peer, decoded));
      },
      close: (code = 1000, reason = "") => peer.close(code, reason),
    };
  };
}
