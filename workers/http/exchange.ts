/**
 * The two channels of a request: its body, which a function may read, and its response, which a
 * function may write (PROTOCOL 6.2, 6.4).
 *
 * Both are offered with every request; their ends are created when the function connects. Nothing
 * is held here beyond what the connections ahead are behind: a slow client holds back the function,
 * a slow function the client.
 *
 * @module
 */
import type {
  Channels,
  LocalChannels,
  LocalEnd,
  LocalEnds,
  ReaderEnd,
  WriterEnd,
} from "../../engine/ports/channels.ts";
import { type ConnectionEvents, STREAM_AHEAD_BYTES } from "../../engine/ports/connection.ts";
import { STREAM_DRAINED_BYTES } from "../../engine/ports/connection.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import {
  CHANNEL_CLOSE,
  CHANNEL_WRITE_BYTES,
  type ChannelRef,
} from "../../sdk/typescript/wire/channels.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { RequestBody } from "../kit/http/body.ts";
import { PartBuffer } from "../kit/http/part_buffer.ts";
import type { ResponseStream } from "../kit/http/response.ts";
import type { Warn } from "./response.ts";

/** Longest control message of a function, in bytes. */
const CONTROL_BYTES_MAX = 256 * 1024;

/** Memory that a response keeps while it has nothing to send. */
const KEPT_BYTES = 16 * 1024;

const encoder = new TextEncoder();

/** What an {@linkcode Exchange} works with. */
export interface ExchangeOptions {
  readonly channels: Pick<Channels, "offer">;
  readonly memory: MemoryBudget;
  /** What was read of the body already; memory of the exchange, which frees it. */
  readonly received: Uint8Array | string | undefined;
  readonly body: RequestBody;
  readonly bodyBytesMax: number;
  readonly warn: Warn;
}

/** The head of a response that a function writes. */
export interface StreamHead {
  readonly status: number | undefined;
  readonly headers: Json | undefined;
}

/**
 * Waits for the head of a response. An object, because V8 keeps a function that is added to an
 * existing object, with its closure, until the next full collection: 4 KB per request.
 */
export interface HeadListener {
  /** Called once, when the head is complete or cannot come. */
  gotHead(head: StreamHead | EngineError): void;
}

/** Both channels of one request. */
export class Exchange implements LocalEnds {
  readonly #options: ExchangeOptions;
  readonly #offered: LocalChannels;
  #listener: HeadListener | undefined;
  #requestBody: StreamedBody | undefined;
  #response: StreamedResponse | undefined;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#offered = options.channels.offer(this);
  }

  /** Whether a byte or the end of the response has come, so that it is a stream. */
  get isBegun(): boolean {
    return this.#response?.isBegun ?? false;
  }

  /** What the function writes. */
  get response(): StreamedResponse {
    return this.#response ??= new StreamedResponse(this, this.#options);
  }

  /** The references as members of the payload of the function, each after a comma. */
  get refsText(): string {
    const { reader, writer } = this.#offered;
    return `,"request_body":${refText(reader)},"response":${refText(writer)}`;
  }

  /** Tells `listener` about the head of the response. */
  listen(listener: HeadListener): void {
    this.#listener = listener;
  }

  writerEnd(): LocalEnd & WriterEnd {
    return this.#requestBody = new StreamedBody(this.#options, this);
  }

  readerEnd(): LocalEnd & ReaderEnd {
    return this.response;
  }

  /** What the function writes is no longer wanted, nor is it sent the body; may be called twice. */
  close(): void {
    this.#listener = undefined;
    this.#offered.withdraw();
    this.#requestBody?.end();
    this.#response?.cancel();
  }

  /** The head of the response is there, or cannot come. */
  tell(head: StreamHead | EngineError): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.gotHead(head);
  }
}

/** The body of a request as the writer of a channel: read while the function reads it. */
class StreamedBody implements LocalEnd, WriterEnd {
  readonly #options: ExchangeOptions;
  readonly #exchange: Exchange;
  #events: ConnectionEvents | undefined;
  #isPaused = false;
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(options: ExchangeOptions, exchange: Exchange) {
    this.#options = options;
    this.#exchange = exchange;
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
    const { received: kept, body, bodyBytesMax } = this.#options;
    const received = typeof kept === "string" ? encoder.encode(kept) : kept;
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
    this.#exchange.response.fail(
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
  /** Whether a byte or the end has come, so that the response is a stream. */
  isBegun = false;
  readonly #exchange: Pick<Exchange, "tell">;
  readonly #memory: MemoryBudget;
  readonly #warn: Warn;
  /** What waits for the port, and what the port sends. */
  #waiting = new PartBuffer();
  #sent = new PartBuffer();
  /** Bytes of the memory budget that both take. */
  #heldBytes = 0;
  #status: number | undefined;
  #headers: Json | undefined;
  #events: ConnectionEvents | undefined;
  #isOver = false;
  #error: EngineError | undefined;
  #wake: (() => void) | undefined;

  constructor(
    exchange: Pick<Exchange, "tell">,
    { memory, warn }: Pick<ExchangeOptions, "memory" | "warn">,
  ) {
    this.#exchange = exchange;
    this.#memory = memory;
    this.#warn = warn;
  }

  get queuedBytes(): number {
    return this.#waiting.length;
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
    const more = this.#waiting.growthFor(bytes.length);
    if (more > 0 && !this.#memory.take("bodies", more)) {
      return this.fail(new EngineError("overloaded", "engine.memory_mb is used up"));
    }
    this.#heldBytes += more;
    this.#waiting.add(bytes);
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
    if (!this.isBegun) this.#exchange.tell(error);
    this.#wake?.();
    this.#events?.closed(CHANNEL_CLOSE.complete, "");
  }

  /** Everything that waits, as one part: a write for each would cost more than the copy. */
  async read(): Promise<PartBuffer | undefined> {
    while (this.#waiting.length === 0) {
      if (this.#error) throw this.#error;
      if (this.#isOver) return undefined;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const part = this.#waiting;
    this.#waiting = this.#sent;
    this.#waiting.clear();
    this.#sent = part;
    if (part.length > STREAM_DRAINED_BYTES && !this.#isOver) this.#events?.drained();
    return part;
  }

  /** Gives buffers back that a burst has left. */
  rest(): void {
    if (this.#waiting.length > 0 || this.#heldBytes <= KEPT_BYTES) return;
    for (const buffer of [this.#waiting, this.#sent]) {
      const bytes = buffer.shrink();
      this.#memory.release("bodies", bytes);
      this.#heldBytes -= bytes;
    }
  }

  cancel(): void {
    const isFirst = !this.#isOver;
    this.#isOver = true;
    this.#waiting = new PartBuffer();
    this.#memory.release("bodies", this.#heldBytes);
    this.#heldBytes = 0;
    if (isFirst) this.#events?.closed(CHANNEL_CLOSE.complete, "");
    this.#wake?.();
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
    this.#exchange.tell({ status: this.#status, headers: this.#headers });
  }
}

/** Responses wait for the function when so much is unsent. */
export const RESPONSE_AHEAD_BYTES: number = STREAM_AHEAD_BYTES;

/** Ids and keys of references need no escapes; written by hand, since each request has two. */
function refText({ channel_id, access_key, direction }: ChannelRef): string {
  return `{"channel_id":"${channel_id}","access_key":"${access_key}","direction":"${direction}"}`;
}

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
