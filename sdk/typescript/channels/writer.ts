/**
 * The writing end of a channel.
 *
 * @module
 */
import {
  CHANNEL_CLOSE,
  CHANNEL_WRITE_BYTES,
  type ChannelRef,
  STREAM_COMPLETE,
} from "../wire/channels.ts";
import { EngineError, thrownText } from "../wire/errors.ts";
import { EndConnection, type EndSetup } from "./end.ts";

const SENT = Promise.resolve();

/**
 * The writing end of a channel: sends bytes and text messages to the reader. It connects at the
 * first write; only one writer can.
 *
 * A handler finds one wherever the payload holds a reference; inside the payload of a call or a
 * result it becomes a reference again, so it can be passed on unused.
 *
 * Writing fails with `channel_closed` once the reader has left; with `channel_not_found` if the
 * reference is unknown or was used already; with `engine_unreachable` if the engine cannot be
 * reached.
 *
 * @example
 * ```ts
 * import { type ChannelWriter, registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker();
 * worker.registerFunction("numbers::count", async ({ to, out }: {
 *   to: number;
 *   out: ChannelWriter;
 * }) => {
 *   for (let i = 1; i <= to; i++) await out.write(`${i}\n`);
 *   await out.close();
 * });
 * await worker.shutdown();
 * ```
 */
export class ChannelWriter implements AsyncDisposable {
  readonly #connection: EndConnection;
  readonly #left = new AbortController();
  /** The last write; the next one follows it. */
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;
  #isClosing = false;
  #isClosed = false;
  #error: EngineError | undefined;
  #wake: (() => void) | undefined;
  #writable: WritableStream<Uint8Array | string> | undefined;

  /** Created by `Worker.createChannel()`, and from references inside payloads. */
  constructor(ref: ChannelRef, setup: EndSetup) {
    this.#connection = new EndConnection(ref, setup, {
      message() {},
      closed: (error) => this.#closed(error),
    });
  }

  /** The reference to this end, as it travels in payloads. */
  get ref(): ChannelRef {
    return this.#connection.ref;
  }

  /** Aborted when nothing more can be written: the reader has left, or the connection is lost. */
  get signal(): AbortSignal {
    return this.#left.signal;
  }

  /** This end as a stream, such as for `pipeTo()`. */
  get writable(): WritableStream<Uint8Array | string> {
    return this.#writable ??= new WritableStream<Uint8Array | string>({
      write: (data) => this.write(data),
      close: () => this.close(),
      abort: (reason) => this.abort(reason),
    });
  }

  /**
   * Sends bytes, or a string as one text message. Resolves when more may be written; writes that
   * are not awaited keep their order, and the promise of one that fails rejects.
   *
   * @throws {EngineError} `channel_closed`, `channel_not_found`, `engine_unreachable`,
   * `INVALID_ARGUMENTS`.
   */
  write(data: Uint8Array | string): Promise<void> {
    if (typeof data !== "string" && !(data instanceof Uint8Array)) {
      const message = "A channel carries strings and Uint8Array; encode other values first";
      return Promise.reject(new EngineError("INVALID_ARGUMENTS", message));
    }
    if (this.#isClosing) {
      return Promise.reject(new EngineError("INVALID_ARGUMENTS", "The writer is closed"));
    }
    return this.#sendNow(data) ?? this.#queue(() => this.#send(data));
  }

  /** Sends what needs no wait and no cutting; most parts of a stream are such. */
  #sendNow(data: Uint8Array | string): Promise<void> | undefined {
    const { socket } = this.#connection;
    if (!socket || this.#waiting > 0 || this.#error) return undefined;
    if (typeof data !== "string" && data.length > CHANNEL_WRITE_BYTES) return undefined;
    const sent = socket.send(data);
    return sent ? this.#queue(() => this.#sent(sent)) : SENT;
  }

  /**
   * Ends the stream: resolves when the engine has all of it, which takes as long as the reader
   * takes for all but the last part. Has no effect the second time.
   */
  close(): Promise<void> {
    if (this.#isClosing) return this.#last;
    this.#isClosing = true;
    return this.#queue(async () => {
      await this.#connected();
      this.#connection.socket!.finish(CHANNEL_CLOSE.complete, STREAM_COMPLETE);
      while (!this.#connection.isOver) await this.#wait();
      if (this.#error) throw this.#error;
    });
  }

  /** Gives up: the reader gets what was sent, then an error with the reason. Never rejects. */
  async abort(reason?: unknown): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosing = true;
    const text = reason === undefined ? "the writer gave up" : thrownText(reason);
    // A writer that never connected does so, that the reader need not wait for one.
    await this.#connection.connect();
    this.#connection.socket?.finish(CHANNEL_CLOSE.aborted, text);
    this.#closed(
      new EngineError("channel_closed", `Channel ${this.ref.channel_id} was aborted: ${text}`),
    );
  }

  /** Calls {@linkcode ChannelWriter.close} at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isClosed) await this.close();
  }

  /** The reference: a writer inside a payload arrives as a writer. */
  toJSON(): ChannelRef {
    return this.ref;
  }

  /** Runs tasks one after another; at once if none runs. */
  #queue(task: () => Promise<void>): Promise<void> {
    const isFirst = this.#waiting++ === 0;
    const done = isFirst ? task() : this.#last.then(task, task);
    const ended = (): void => void this.#waiting--;
    this.#last = done;
    done.then(ended, ended);
    return done;
  }

  async #send(data: Uint8Array | string): Promise<void> {
    await this.#connected();
    const step = CHANNEL_WRITE_BYTES;
    if (typeof data === "string" || data.length <= step) return await this.#sendPart(data);
    for (let at = 0; at < data.length; at += step) {
      await this.#sendPart(data.subarray(at, at + step));
    }
  }

  async #sendPart(data: Uint8Array | string): Promise<void> {
    if (this.#error) throw this.#error;
    await this.#sent(this.#connection.socket?.send(data));
  }

  async #sent(sent: Promise<void> | undefined): Promise<void> {
    if (sent) await Promise.race([sent, this.#wait()]);
    if (this.#error) throw this.#error;
  }

  async #connected(): Promise<void> {
    if (!this.#connection.socket) await this.#connection.connect();
    if (this.#error) throw this.#error;
  }

  /** Settles when the connection ends. */
  #wait(): Promise<void> {
    return new Promise((resolve) => this.#wake = resolve);
  }

  #closed(error: EngineError | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // The engine closes first only if nothing more is wanted.
    const { channel_id } = this.ref;
    this.#error = error ?? (this.#isClosing ? undefined : new EngineError(
      "channel_closed",
      `Channel ${channel_id} was closed by the engine`,
    ));
    this.#wake?.();
    if (this.#error) this.#left.abort(this.#error);
  }
}
