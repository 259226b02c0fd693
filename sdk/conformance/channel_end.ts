/**
 * One end of a channel as the scripted engine holds it: the SDK reads or writes the other one.
 *
 * Unlike the engine it forwards nothing: a duty plays the other end by hand.
 *
 * @module
 */
import { Log } from "./log.ts";

/** Headers of an upgrade, in lower case. */
export type UpgradeHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** How an end was closed; 1005: without a code, 1006: without a close frame. */
export interface ChannelClose {
  readonly code: number;
  readonly reason: string;
}

/** A message as it came: a text, or bytes. */
export type ChannelPart = string | Uint8Array;

/** The parts of a `ws` socket that a channel uses. */
export interface ChannelSocket {
  on(event: "message", listener: (data: Uint8Array, isBinary: boolean) => void): void;
  on(event: "close", listener: (code: number, reason: Uint8Array) => void): void;
  on(event: "ping", listener: () => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
  terminate(): void;
}

/** A socket of `/ws/channels/<channel_id>`. */
export class ChannelEnd {
  readonly url: URL;
  readonly headers: UpgradeHeaders;
  /** What the SDK sent, texts and bytes in their order. */
  readonly parts = new Log<ChannelPart>();
  /** One at most. */
  readonly closes = new Log<ChannelClose>();
  /** Times of pings. */
  readonly pings = new Log<number>();
  readonly #socket: ChannelSocket;

  /** Records what arrives on an open socket. */
  constructor(socket: ChannelSocket, url: URL, headers: UpgradeHeaders) {
    this.#socket = socket;
    this.url = url;
    this.headers = headers;
    const decoder = new TextDecoder();
    socket.on("message", (data, isBinary) => {
      this.parts.add(isBinary ? data.slice() : decoder.decode(data));
    });
    socket.on("ping", () => this.pings.add(performance.now()));
    socket.on("close", (code, reason) => {
      this.closes.add({ code, reason: decoder.decode(reason) });
    });
    socket.on("error", () => {}); // The close that follows is recorded.
  }

  /** The id in the path. */
  get channelId(): string {
    return decodeURIComponent(this.url.pathname.split("/").at(-1)!);
  }

  /** Sends a text as a message, or bytes as one frame. */
  send(part: ChannelPart): void {
    this.#socket.send(part);
  }

  /** Sends a close frame; without a code it has none. */
  close(code?: number, reason?: string): void {
    this.#socket.close(code, reason);
  }

  /** Ends the connection without a close frame. */
  destroy(): void {
    this.#socket.terminate();
  }

  /** Waits until the SDK has closed its end. */
  closed(): Promise<ChannelClose> {
    return this.closes.first("the close of a channel's socket", () => true);
  }

  /** Waits for so many parts. */
  async received(count: number): Promise<readonly ChannelPart[]> {
    await this.parts.first(`${count} messages of a channel`, () => this.parts.mark >= count);
    return this.parts.entries.slice(0, count);
  }
}
