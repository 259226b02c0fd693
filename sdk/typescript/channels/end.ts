/**
 * What both ends of a channel have in common: one connection that opens at the first use, and the
 * error with which it ended.
 *
 * @module
 */
import { CHANNEL_CLOSE, type ChannelRef, READER_CLOSED } from "../wire/channels.ts";
import { EngineError } from "../wire/errors.ts";
import {
  type ChannelSocket,
  type ChannelSocketEvents,
  channelUrl,
  type OpenChannelSocket,
} from "./socket.ts";

/** What the ends of one worker work with. */
export interface EndSetup {
  /** The address of the engine. */
  readonly url: string;
  readonly open: OpenChannelSocket;
  /** Called when the end connects. */
  opened(end: EndConnection): void;
  /** Called when the connection has ended. */
  closed(end: EndConnection): void;
}

/** What an end does with its connection's events. */
export interface EndEvents {
  message(data: string | Uint8Array): void;
  /** The error is `undefined` at the regular end of the stream. */
  closed(error: EngineError | undefined): void;
}

/** The connection of one end. */
export class EndConnection {
  readonly ref: ChannelRef;
  readonly #setup: EndSetup;
  readonly #events: EndEvents;
  #socket: ChannelSocket | undefined;
  #opening: Promise<void> | undefined;
  #isOpen = false;
  #isOver = false;

  constructor(ref: ChannelRef, setup: EndSetup, events: EndEvents) {
    this.ref = { channel_id: ref.channel_id, access_key: ref.access_key, direction: ref.direction };
    this.#setup = setup;
    this.#events = events;
  }

  /** The socket once it is open. */
  get socket(): ChannelSocket | undefined {
    return this.#isOpen && !this.#isOver ? this.#socket : undefined;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Connects the first time; settles when it is open or `closed` was reported. */
  connect(): Promise<void> {
    return this.#opening ??= new Promise((resolve) => {
      if (this.#isOver) return resolve();
      this.#setup.opened(this);
      const events: ChannelSocketEvents = {
        opened: () => {
          this.#isOpen = true;
          resolve();
        },
        message: (data) => this.#events.message(data),
        closed: (code, reason) => {
          this.#closed(this.#errorOf(code, reason));
          resolve();
        },
      };
      this.#socket = this.#setup.open(channelUrl(this.#setup.url, this.ref), events);
    });
  }

  /** Ends the connection now, with this error. */
  end(error: EngineError): void {
    this.#closed(error);
    this.#socket?.terminate();
  }

  #closed(error: EngineError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#setup.closed(this);
    this.#events.closed(error);
  }

  #errorOf(code: number, reason: string): EngineError | undefined {
    const { channel_id } = this.ref;
    const details = { channel_id, close_code: code, reason };
    const isRegular = code === CHANNEL_CLOSE.complete || code === 1005;
    if (!this.#isOpen) {
      const isUnknown = reason === "HTTP 404";
      const message = isUnknown
        ? `There is no channel ${channel_id}, or the key of its reference is wrong`
        : `Cannot connect to channel ${channel_id}: ${reason}`;
      return new EngineError(isUnknown ? "channel_not_found" : "engine_unreachable", message, {
        details,
      });
    }
    if (code === CHANNEL_CLOSE.claimed) {
      const message = `This end of channel ${channel_id} is in use already`;
      return new EngineError("channel_not_found", message, { details });
    }
    if (isRegular && reason !== READER_CLOSED) return undefined;
    if (isRegular) {
      const message = `The reader of channel ${channel_id} has left`;
      return new EngineError("channel_closed", message, { details });
    }
    const message = `Channel ${channel_id} ended early: ${reason || `close code ${code}`}`;
    return new EngineError("channel_closed", message, { details });
  }
}
