/**
 * The reading end of a channel.
 *
 * Messages wait here only while user code is behind; beyond {@linkcode HELD_BYTES_MAX} the
 * connection is not read, so the engine and the writer wait.
 *
 * @module
 */
import type { ChannelRef } from "../wire/channels.ts";
import { EngineError } from "../wire/errors.ts";
import { EndConnection, type EndSetup } from "./end.ts";

/** Bytes that wait for user code before the connection is not read. */
export const HELD_BYTES_MAX = 256 * 1024;
/** What a message counts beside its bytes. */
const MESSAGE_BYTES = 256;
/** Default limit of {@linkcode ChannelReader.bytes} and {@linkcode ChannelReader.text}. */
const COLLECTED_BYTES_MAX = 64 * 1024 * 1024;

const encoder = new TextEncoder();

/**
 * The reading end of a channel: an async iterable of what the writer sends, bytes as `Uint8Array`
 * and text messages as strings, in order. It connects when it is first read; only one reader can.
 *
 * A handler finds one wherever the payload holds a reference; inside the payload of a call or a
 * result it becomes a reference again, so it can be passed on unread.
 *
 * Reading fails with `channel_closed` if the stream is not whole, because the writer gave up or was
 * lost; with `channel_not_found` if the reference is unknown or was used already; with
 * `engine_unreachable` if the engine cannot be reached.
 *
 * @example
 * ```ts
 * import { type ChannelReader, registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker();
 * worker.registerFunction("files::size", async ({ file }: { file: ChannelReader }) => {
 *   let bytes = 0;
 *   for await (const part of file) bytes += part.length;
 *   return { bytes };
 * });
 * await worker.shutdown();
 * ```
 */
export class ChannelReader implements AsyncIterable<Uint8Array | string> {
  readonly #connection: EndConnection;
  #held: (Uint8Array | string)[] = [];
  #heldBytes = 0;
  #isPaused = false;
  #isEnded = false;
  #error: EngineError | undefined;
  #wake: (() => void) | undefined;
  #readable: ReadableStream<Uint8Array> | undefined;

  /** Created by `Worker.createChannel()`, and from references inside payloads. */
  constructor(ref: ChannelRef, setup: EndSetup) {
    this.#connection = new EndConnection(ref, setup, {
      message: (data) => this.#message(data),
      closed: (error) => {
        this.#isEnded = true;
        this.#error ??= error;
        this.#wake?.();
      },
    });
  }

  /** The reference to this end, as it travels in payloads. */
  get ref(): ChannelRef {
    return this.#connection.ref;
  }

  /**
   * The bytes as a stream, such as for a `Response`; text messages are encoded as UTF-8. Reads in
   * place of the iteration, not beside it.
   */
  get readable(): ReadableStream<Uint8Array> {
    return this.#readable ??= new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const part = await this.read();
        if (part === undefined) controller.close();
        else controller.enqueue(typeof part === "string" ? encoder.encode(part) : part);
      },
      cancel: () => this.cancel(),
    }, { highWaterMark: 0 });
  }

  /** The next message; `undefined` at the end of the stream. One read at a time. */
  async read(): Promise<Uint8Array | string | undefined> {
    while (this.#held.length === 0) {
      if (this.#isEnded) {
        if (this.#error) throw this.#error;
        return undefined;
      }
      if (this.#wake) {
        throw new EngineError("INVALID_ARGUMENTS", "A read of this channel is waiting already");
      }
      if (this.#connection.socket) await new Promise<void>((resolve) => this.#wake = resolve);
      else await this.#connection.connect();
      this.#wake = undefined;
    }
    return this.#take();
  }

  /** All that the writer sends, as bytes; at most `maxBytes`, by default 64 MiB. */
  async bytes(maxBytes: number = COLLECTED_BYTES_MAX): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of this) {
      const bytes = typeof part === "string" ? encoder.encode(part) : part;
      size += bytes.length;
      if (size > maxBytes) {
        const message = `Channel ${this.ref.channel_id} carries over ${maxBytes} bytes`;
        throw new EngineError("body_too_large", message);
      }
      parts.push(bytes);
    }
    const all = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  /** All that the writer sends, as one text; at most `maxBytes`, by default 64 MiB. */
  async text(maxBytes: number = COLLECTED_BYTES_MAX): Promise<string> {
    return new TextDecoder().decode(await this.bytes(maxBytes));
  }

  /** Ends the channel: the writer learns that nothing more is read. Never rejects. */
  async cancel(): Promise<void> {
    this.#held = [];
    this.#heldBytes = 0;
    // A reader that never connected does so, that the writer need not wait for one.
    await this.#connection.connect();
    this.#connection.socket?.finish(1000, "channel_close");
    this.#connection.end(
      new EngineError("channel_closed", `Channel ${this.ref.channel_id} was cancelled here`),
    );
  }

  /** Reads to the end; leaving the loop early cancels. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array | string, void, undefined> {
    try {
      for (;;) {
        const part = await this.read();
        if (part === undefined) return;
        yield part;
      }
    } finally {
      if (!this.#isEnded || this.#held.length > 0) await this.cancel();
    }
  }

  /** The reference: a reader inside a payload arrives as a reader. */
  toJSON(): ChannelRef {
    return this.ref;
  }

  #message(data: string | Uint8Array): void {
    this.#held.push(data);
    this.#heldBytes += data.length + MESSAGE_BYTES;
    if (this.#heldBytes > HELD_BYTES_MAX && !this.#isPaused) {
      this.#isPaused = true;
      this.#connection.socket?.pause();
    }
    this.#wake?.();
  }

  #take(): Uint8Array | string {
    const data = this.#held.shift()!;
    this.#heldBytes -= data.length + MESSAGE_BYTES;
    if (this.#isPaused && this.#heldBytes <= HELD_BYTES_MAX / 2) {
      this.#isPaused = false;
      this.#connection.socket?.resume();
    }
    return data;
  }
}
