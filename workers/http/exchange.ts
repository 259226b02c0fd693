/**
 * The two channels of a request: its body, which a function may read, and its response, which a
 * function may write (PROTOCOL 6.2, 6.4).
 *
 * Both are offered with every request and cost next to nothing until the function connects. Nothing
 * is held here beyond what the connections ahead are behind: a slow client holds back the function,
 * a slow function the client.
 *
 * @module
 */
import type {
  Channels,
  LocalChannel,
  LocalEnd,
  ReaderEnd,
  WriterEnd,
} from "../../engine/ports/channels.ts";
import { type ConnectionEvents, STREAM_AHEAD_BYTES } from "../../engine/ports/connection.ts";
import { STREAM_DRAINED_BYTES } from "../../engine/ports/connection.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { CHANNEL_CLOSE, CHANNEL_WRITE_BYTES } from "../../sdk/typescript/wire/channels.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { RequestBody } from "../kit/http/body.ts";
import type { ResponseStream } from "../kit/http/response.ts";
import type { Warn } from "./response.ts";

/** Longest control message of a function, in bytes. */
const CONTROL_BYTES_MAX = 256 * 1024;

/** What an {@linkcode Exchange} works with. */
export interface ExchangeOptions {
  readonly channels: Pick<Channels, "offerReader" | "offerWriter">;
  readonly memory: MemoryBudget;
  /** What was read of the body already. */
  readonly received: Uint8Array | undefined;
  readonly body: RequestBody;
  readonly bodyBytesMax: number;
  readonly warn: Warn;
}

/** The head of a response that a function writes. */
export interface StreamHead {
  readonly status: number | undefined;
  readonly headers: Json | undefined;
}

/** Both channels of one request. */
export class Exchange {
  readonly response: StreamedResponse;
  readonly #requestBody: StreamedBody;
  readonly #offers: readonly [LocalChannel, LocalChannel];

  constructor(options: ExchangeOptions) {
    const { channels, memory, warn } = options;
    this.response = new StreamedResponse(memory, warn);
    this.#requestBody = new StreamedBody(options, (error) => this.response.fail(error));
    this.#offers = [
      channels.offerReader(this.#requestBody),
      channels.offerWriter(this.response),
    ];
  }

  /** Adds the references to the payload of the function. */
  addTo(payload: JsonObject): void {
    const [body, response] = this.#offers;
    payload.request_body = body.ref as unknown as Json;
    payload.response = response.ref as unknown as Json;
  }

  /** What the function writes is no longer wanted, nor is it sent the body; may be called twice. */
  close(): void {
    for (const offer of this.#offers) offer.withdraw();
    this.#requestBody.end();
    this.response.cancel();
  }
}

/** The body of a request as the writer of a channel: read while the function reads it. */
class StreamedBody implements LocalEnd, WriterEnd {
  readonly #options: ExchangeOptions;
  readonly #failed: (error: EngineError) => void;
  #events: ConnectionEvents | undefined;
  #isPaused = false;
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(options: ExchangeOptions, failed: (error: EngineError) => void) {
    this.#options = options;
    this.#failed = failed;
  }

  connected(events: ConnectionEvents): void {
    this.#events = events;
    if (this.#isOver) return this.#end(CHANNEL_CLOSE.aborted, "the request has ended");
    void this.#send();
  }

  pause(): boolean {
    this.#isPaused = true;
    return true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#wake?.();
  }

  /** The function wants no more of it. */
  close(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  /** The request has ended. */
  end(): void {
    if (this.#events && !this.#isOver) {
      this.#end(CHANNEL_CLOSE.aborted, "the request has ended");
    }
    this.#isOver = true;
  }

  async #send(): Promise<void> {
    const { received, body, bodyBytesMax } = this.#options;
    try {
      if (received && received.length > 0) this.#events!.binary(received);
      if (body.isDone) return this.#end(CHANNEL_CLOSE.complete, "");
      const memory = new Uint8Array(CHANNEL_WRITE_BYTES);
      for (let total = received?.length ?? 0;;) {
        await this.#resumed();
        if (this.#isOver) return;
        const count = await body.read(memory);
        if (this.#isOver) return;
        if (count === 0) return this.#end(CHANNEL_CLOSE.complete, "");
        total += count;
        if (total > bodyBytesMax) return this.#tooLarge(bodyBytesMax);
        this.#events!.binary(memory.subarray(0, count));
      }
    } catch {
      this.#end(CHANNEL_CLOSE.aborted, "the client has left");
    }
  }

  #tooLarge(bodyBytesMax: number): void {
    const message = `Request body has more than ${bodyBytesMax} bytes; send less or raise ` +
      "streamed_body_bytes_max";
    this.#failed(
      new EngineError("body_too_large", message, {
        details: { streamed_body_bytes_max: bodyBytesMax },
      }),
    );
    this.#end(CHANNEL_CLOSE.aborted, "the body is too large");
  }

  async #resumed(): Promise<void> {
    while (this.#isPaused && !this.#isOver) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  #end(code: number, reason: string): void {
    if (this.#isOver && code === CHANNEL_CLOSE.complete) return;
    this.#isOver = true;
    this.#events!.closed(code, reason);
  }
}

/** A response as the reader of a channel: what the function writes, for the port to send. */
export class StreamedResponse implements LocalEnd, ReaderEnd, ResponseStream {
  /** Called once, when the head is complete or cannot come. */
  onHead: ((head: StreamHead | EngineError) => void) | undefined;
  /** Whether a byte or the end has come, so that the response is a stream. */
  isBegun = false;
  readonly #memory: MemoryBudget;
  readonly #warn: Warn;
  readonly #parts: Uint8Array[] = [];
  #bytes = 0;
  #status: number | undefined;
  #headers: Json | undefined;
  #events: ConnectionEvents | undefined;
  #isOver = false;
  #error: EngineError | undefined;
  #wake: (() => void) | undefined;

  constructor(memory: MemoryBudget, warn: Warn) {
    this.#memory = memory;
    this.#warn = warn;
  }

  get queuedBytes(): number {
    return this.#bytes;
  }

  connected(events: ConnectionEvents): void {
    this.#events = events;
    if (this.#isOver) events.closed(CHANNEL_CLOSE.complete, "");
  }

  send(text: string): void {
    this.#control(text);
  }

  forward(_prefix: Uint8Array, _bytes: number, memory: Uint8Array, start: number, end: number) {
    if (end - start > CONTROL_BYTES_MAX) {
      return this.#warn("a control message of a response is too long and is skipped", "");
    }
    this.#control(new TextDecoder().decode(memory.subarray(start, end)));
  }

  sendBinary(bytes: Uint8Array): void {
    if (this.#isOver) return;
    if (!this.#memory.take("bodies", bytes.length)) {
      return this.fail(new EngineError("overloaded", "engine.memory_mb is used up"));
    }
    this.#parts.push(bytes.slice());
    this.#bytes += bytes.length;
    this.#begin();
    this.#wake?.();
  }

  /** The function has ended the response, or was lost. */
  close(code: number, reason: string): void {
    if (this.#isOver) return;
    if (code !== CHANNEL_CLOSE.complete) {
      return this.fail(new EngineError("channel_closed", `The response ended early: ${reason}`));
    }
    this.#isOver = true;
    this.#begin();
    this.#wake?.();
  }

  /** Ends it with an error: the rest does not come. */
  fail(error: EngineError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    if (!this.isBegun) this.#tell(error);
    this.#wake?.();
    this.#events?.closed(CHANNEL_CLOSE.complete, "");
  }

  async read(): Promise<Uint8Array | undefined> {
    while (this.#parts.length === 0) {
      if (this.#error) throw this.#error;
      if (this.#isOver) return undefined;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const all = this.#takeAll();
    this.#give(all.length);
    return all;
  }

  /** Everything that waits, as one part: a write for each would cost more than the copy. */
  #takeAll(): Uint8Array {
    const parts = this.#parts.splice(0);
    if (parts.length === 1) return parts[0]!;
    const all = new Uint8Array(this.#bytes);
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  cancel(): void {
    const isFirst = !this.#isOver;
    this.#isOver = true;
    this.onHead = undefined;
    this.#parts.length = 0;
    this.#give(this.#bytes);
    if (isFirst) this.#events?.closed(CHANNEL_CLOSE.complete, "");
    this.#wake?.();
  }

  #give(bytes: number): void {
    if (bytes === 0) return;
    const isBehind = this.#bytes > STREAM_DRAINED_BYTES;
    this.#memory.release("bodies", bytes);
    this.#bytes -= bytes;
    if (isBehind && this.#bytes <= STREAM_DRAINED_BYTES && !this.#isOver) this.#events?.drained();
  }

  #control(text: string): void {
    if (this.isBegun) {
      return this.#warn("a control message of a response comes after its first byte", "");
    }
    const message = parse(text);
    if (message?.type === "set_status" && isStreamStatus(message.status_code)) {
      this.#status = message.status_code as number;
    } else if (message?.type === "set_headers" && message.headers !== undefined) {
      this.#headers = message.headers;
    } else this.#warn("a control message of a response is not understood", text.slice(0, 80));
  }

  #begin(): void {
    if (this.isBegun) return;
    this.isBegun = true;
    this.#tell({ status: this.#status, headers: this.#headers });
  }

  #tell(head: StreamHead | EngineError): void {
    const tell = this.onHead;
    this.onHead = undefined;
    tell?.(head);
  }
}

/** Responses wait for the function when so much is unsent. */
export const RESPONSE_AHEAD_BYTES: number = STREAM_AHEAD_BYTES;

function isStreamStatus(status: unknown): boolean {
  return typeof status === "number" && Number.isInteger(status) && status >= 100 && status <= 599;
}

function parse(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? value : undefined;
  } catch {
    return undefined;
  }
}
