/**
 * One connection of an HTTP port: requests one after another, each with its response.
 *
 * A connection knows no others. The port looks at it now and then, with `check`, and closes the one
 * that is worth least when it needs a socket.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import { RequestBody } from "./body.ts";
import type { Client } from "./clients.ts";
import {
  endOfHead,
  HEAD_BYTES_MAX,
  HEAD_TOO_LONG,
  HeaderSection,
  type HeadProblem,
  HeadReader,
  mayBeHead,
  type PlainHeaders,
  type RequestHead,
} from "./head.ts";
import { type BodyReadTurns, type ByteStream, ClientGone, Input } from "./input.ts";
import {
  headOfStream,
  LAST_CHUNK,
  piecesOf,
  problemResponse,
  type ResponseStream,
  type ServedRequest,
  type ServedResponse,
  SMALL_RESPONSE_CHARS,
  wholeOf,
  type WriteMemory,
} from "./response.ts";

/** A head has to be there so long after its first byte, or after the connection. */
export const HEAD_MS = 10_000;
/** A connection without a request is closed after this time. */
export const IDLE_MS = 75_000;
/** A body has to come, and a response has to be taken, at least this fast. */
export const BYTES_PER_SECOND_MIN = 240;
/** So long a body may be slower than that. */
export const SLOW_BODY_MS = 10_000;
/** So long a response may be taken more slowly than that. */
export const SLOW_READER_MS = 30_000;
/** The same while the memory of the process is tight. */
const SLOW_READER_TIGHT_MS = 5_000;
/** Time for a client to read a response whose request was not read to its end. */
export const LINGER_MS = 2_000;
/** After so many requests that were received at once, others get a turn. */
const REQUESTS_PER_TURN = 8;

const CR = 13;
const LF = 10;
const CONTINUE = new TextEncoder().encode("HTTP/1.1 100 Continue\r\n\r\n");

/** What a connection does now; the earlier in this list, the sooner it is given up. */
export const PHASES = [
  "ending",
  "idle",
  "head",
  "body",
  "response",
  "running",
  "upgraded",
] as const;
/** See {@linkcode PHASES}. */
export type Phase = (typeof PHASES)[number];

/** What a connection uses of its port. */
export interface ConnectionServices {
  readonly clock: Clock;
  readonly turns: BodyReadTurns;
  readonly writeMemory: WriteMemory;
  /** Responds; never rejects. */
  handle(request: ServedRequest): ServedResponse | Promise<ServedResponse>;
  /** Takes the memory of a large response; call the result to return it. */
  holdResponse(response: ServedResponse): Promise<HeldResponse>;
  /** A response was sent. */
  responded(): void;
  /** For the header `date`. */
  date(): string;
  /** Whether no connection may take another request. */
  readonly isDraining: boolean;
  readonly isMemoryTight: boolean;
}

/** A response whose memory was taken, or the one to send instead. */
export interface HeldResponse {
  readonly response: ServedResponse;
  release(): void;
}

/** See the module. */
export class HttpConnection {
  /** The client behind it, by which sockets are shared. */
  readonly client: Client;
  readonly #stream: ByteStream;
  readonly #services: ConnectionServices;
  readonly #input: Input;
  readonly #heads = new HeadReader();
  /** When a check last found it in another phase, or ahead; a request reads no clock. */
  #since: number;
  /** How often it went on to another phase, now and at the last check. */
  #steps = 0;
  #stepsSeen = 0;
  #stage: "reading" | "serving" | "responding" | "ending" | "upgraded" = "reading";
  #isFresh = true;
  #written = 0;
  /** Bytes that the client is behind the slowest allowed pace, and when that was computed. */
  #behind = 0;
  #seen = 0;
  #seenAt: number;
  /** The body of the response, if it is a stream that has nothing to send now. */
  #idleStream: ResponseStream | undefined;
  #isDestroyed = false;
  /** Requests that were received together with the one before. */
  #pipelined = 0;

  constructor(stream: ByteStream, client: Client, services: ConnectionServices) {
    this.client = client;
    this.#stream = stream;
    this.#services = services;
    this.#input = new Input(stream, services.turns);
    this.#since = this.#seenAt = services.clock.now();
  }

  get phase(): Phase {
    switch (this.#stage) {
      case "reading":
        return this.#isFresh || this.#input.waiting > 0 ? "head" : "idle";
      case "serving":
        return this.#input.isWaiting ? "body" : "running";
      case "responding":
        return this.#idleStream ? "running" : "response";
      default:
        return this.#stage;
    }
  }

  /** Since when it has made no progress, on the clock. */
  get since(): number {
    return this.#since;
  }

  /** Whether it has a request that has not got its whole response. */
  get isBusy(): boolean {
    return this.#stage === "serving" || this.#stage === "responding";
  }

  /** Serves until the connection ends. Never rejects. */
  async run(): Promise<void> {
    try {
      while (await this.#serveOne());
      if (this.#stage === "ending") await this.#linger();
    } catch {
      // The client is gone, or the connection was cut.
    } finally {
      this.destroy();
    }
  }

  /** Ends it when it is too slow; `now` is that of the clock. */
  check(now: number): void {
    const { phase } = this;
    const bytes = this.#written + this.#input.total;
    const got = bytes - this.#seen;
    const allowed = (now - this.#seenAt) * BYTES_PER_SECOND_MIN / 1_000;
    const isWatched = phase === "body" || phase === "response";
    this.#behind = isWatched ? Math.max(0, this.#behind + allowed - got) : 0;
    this.#seen = bytes;
    this.#seenAt = now;
    if (this.#steps === this.#stepsSeen) this.#rest();
    if (this.#steps !== this.#stepsSeen || (got > 0 && isWatched)) {
      this.#stepsSeen = this.#steps;
      this.#since = now;
    }
    const waited = now - this.#since;
    if (phase === "ending" && waited >= LINGER_MS) this.destroy();
    else if (phase === "idle" && waited >= IDLE_MS) this.destroy();
    else if (phase === "head" && waited >= HEAD_MS) {
      this.cut("The head of the request took too long");
    } else if (phase === "body" && this.#isBehindBy(SLOW_BODY_MS)) {
      this.cut(`The body came more slowly than ${BYTES_PER_SECOND_MIN} bytes a second`);
    } else if (phase === "response" && this.#isBehindBy(this.#slowReaderMs)) this.destroy();
  }

  /** Nothing has happened for a while: frees what only makes it faster. */
  #rest(): void {
    this.#idleStream?.rest();
    this.#heads.forget();
  }

  /** Ends it; a client that has begun a request gets the reason, if that takes no time. */
  cut(problem: string, status = 408): void {
    const { phase } = this;
    if (phase === "idle" || this.#input.total === 0) return this.destroy();
    if (phase !== "head" && phase !== "body") return this.destroy();
    const response = problemResponse({ status, problem });
    const [piece] = piecesOf(response, this.#endingOf(false, "close"));
    this.#stage = "ending";
    // What follows comes to nothing: the connection is closed whatever the client takes.
    this.#stream.write(piece!).catch(() => {}).finally(() => this.destroy());
  }

  /** Closes the socket at once. */
  destroy(): void {
    if (this.#isDestroyed || this.#stage === "upgraded") return;
    this.#isDestroyed = true;
    this.#stream.close();
  }

  get #slowReaderMs(): number {
    return this.#services.isMemoryTight ? SLOW_READER_TIGHT_MS : SLOW_READER_MS;
  }

  #isBehindBy(ms: number): boolean {
    return this.#behind >= ms * BYTES_PER_SECOND_MIN / 1_000;
  }

  #enter(stage: "reading" | "serving" | "responding" | "ending"): void {
    this.#stage = stage;
    this.#steps++;
    this.#behind = 0;
  }

  /** Serves one request; whether another one may follow. */
  async #serveOne(): Promise<boolean> {
    const head = await this.#readHead();
    if (head === undefined) return false;
    if ("problem" in head) {
      this.#enter("responding");
      await this.#write(problemResponse(head), false, "close");
      this.#enter("ending");
      return false;
    }
    this.#enter("serving");
    const body = new RequestBody(this.#input, head.bodyBytes, this.#continueFor(head));
    const input = this.#input;
    const request = new ReceivedRequest(head, body, this.client, input);
    const response = await this.#services.handle(request);
    if (this.#isDestroyed || this.#stage !== "serving") {
      response.stream?.cancel();
      response.lost?.();
      return false;
    }
    if (response.upgrade) return await this.#upgrade(response.upgrade);
    if (response.stream) return await this.#respondStream(head, body, response, response.stream);
    // What is left of an unread body has to be here: nothing waits for it.
    const keeps = head.keepsAlive && !response.isLast && !this.#services.isDraining &&
      body.dropReceived();
    const word = keeps ? (head.isOld ? "keep-alive" : undefined) : "close";
    const isHead = head.method === "HEAD";
    this.#enter("responding");
    const memory = this.#services.writeMemory.take();
    const piece = wholeOf(response, this.#endingOf(isHead, word), memory);
    if (piece === undefined) {
      this.#services.writeMemory.release(memory);
      await this.#write(response, isHead, word);
    } else {
      // Functions of its own for this would cost each request a few promises.
      const count = await this.#stream.write(piece);
      this.#written += count;
      if (count < piece.length) await this.#writeAll(piece.subarray(count));
      this.#services.writeMemory.release(memory); // Not if a write fails: it may not have ended.
    }
    this.#enter(keeps ? "reading" : "ending");
    this.#services.responded();
    return keeps;
  }

  /** Sends a body while it comes; one that breaks off ends the connection without an end of it. */
  async #respondStream(
    head: RequestHead,
    body: RequestBody,
    response: ServedResponse,
    stream: ResponseStream,
  ): Promise<boolean> {
    const hasBody = head.method !== "HEAD" && response.status !== 204 && response.status !== 304;
    const isChunked = hasBody && !head.isOld;
    const keeps = head.keepsAlive && !this.#services.isDraining && body.isDone &&
      (isChunked || !hasBody);
    this.#enter("responding");
    try {
      const word = keeps ? (head.isOld ? "keep-alive" : undefined) : "close";
      await this.#writeAll(headOfStream(response, this.#endingOf(!hasBody, word), isChunked));
      if (hasBody) await this.#writeStream(stream, isChunked);
    } finally {
      this.#idleStream = undefined;
      stream.cancel();
    }
    this.#enter(keeps ? "reading" : "ending");
    this.#services.responded();
    return keeps;
  }

  async #writeStream(stream: ResponseStream, isChunked: boolean): Promise<void> {
    for (;;) {
      this.#idleStream = stream;
      const part = await stream.read();
      this.#idleStream = undefined;
      this.#steps++;
      this.#behind = 0;
      if (part === undefined) break;
      if (part.length > 0) await this.#writeAll(isChunked ? part.chunk() : part.bytes());
    }
    if (isChunked) await this.#writeAll(LAST_CHUNK);
  }

  /** Hands the socket over. */
  async #upgrade(
    upgrade: (stream: ByteStream, rest: Uint8Array) => Promise<void>,
  ): Promise<boolean> {
    this.#stage = "upgraded";
    const { stream, rest } = this.#input.handOver();
    try {
      await upgrade(stream, rest);
    } finally {
      this.#stage = "ending";
      this.destroy();
    }
    return false;
  }

  /** The head of the next request; `undefined` when none comes. */
  async #readHead(): Promise<RequestHead | HeadProblem | undefined> {
    const input = this.#input;
    let searched = 0;
    let turns = 0;
    for (;;) {
      if (input.waiting > 0) {
        while (input.waiting > 0 && isBlank(input.bytes[input.start]!)) input.start++;
        const end = this.#endOfHead(input.start + searched);
        if (end >= 0) {
          const head = this.#heads.read(input.bytes, input.start, end);
          input.start = end;
          this.#isFresh = false;
          if (turns === 0) await this.#takeTurns();
          return head;
        }
        if (input.waiting >= HEAD_BYTES_MAX) return HEAD_TOO_LONG;
        if (searched === 0 && !mayBeHead(input.bytes.subarray(input.start, input.end))) {
          return { status: 400, problem: "This is not HTTP/1.1" };
        }
        searched = Math.max(0, input.waiting - 3);
      }
      const isFirst = input.waiting === 0;
      turns++;
      if (isFirst) {
        input.shrink();
        if (this.#services.isDraining && !this.#isFresh) return undefined;
      }
      const isOpen = input.hasEarly
        ? await input.fill(HEAD_BYTES_MAX + 1)
        : input.took(await input.read(HEAD_BYTES_MAX + 1));
      if (!isOpen) return undefined;
      if (isFirst && !this.#isFresh) this.#steps++;
    }
  }

  /** Where the next head ends; -1: not yet. It is searched for from `from` on. */
  #endOfHead(from: number): number {
    const { bytes, start, end } = this.#input;
    const same = this.#heads.endOfSame(bytes, start, end);
    return same >= 0 ? same : endOfHead(bytes, from, end);
  }

  /** Requests that were received together must not keep others waiting. */
  async #takeTurns(): Promise<void> {
    if (++this.#pipelined % REQUESTS_PER_TURN !== 0) return;
    await new Promise<void>((resolve) => this.#services.clock.after(0, resolve));
  }

  #continueFor(head: RequestHead): (() => Promise<void>) | undefined {
    if (head.bodyBytes === 0 || head.isOld) return undefined;
    if (head.headers.plain.expect?.toLowerCase() !== "100-continue") return undefined;
    return async () => {
      if (this.#input.waiting === 0) await this.#writeAll(CONTINUE);
    };
  }

  async #write(response: ServedResponse, isHead: boolean, word: string | undefined): Promise<void> {
    const isSmall = response.body === null || response.body.length <= SMALL_RESPONSE_CHARS;
    if (isSmall) return await this.#writePieces(response, isHead, word);
    const held = await this.#services.holdResponse(response);
    try {
      await this.#writePieces(held.response, isHead, word);
    } finally {
      held.release();
    }
  }

  async #writePieces(
    response: ServedResponse,
    isHead: boolean,
    word: string | undefined,
  ): Promise<void> {
    for (const piece of piecesOf(response, this.#endingOf(isHead, word))) {
      await this.#writeAll(piece);
    }
  }

  #endingOf(isHead: boolean, connection: string | undefined) {
    return { isHead, connection, date: this.#services.date() };
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const count = await this.#stream.write(at === 0 ? bytes : bytes.subarray(at));
      at += count;
      this.#written += count;
    }
  }

  /**
   * Ends the own half and drops what still comes, for a moment: closing a socket with unread bytes
   * would discard the response on its way.
   */
  async #linger(): Promise<void> {
    await this.#stream.closeWrite();
    const dropped = new Uint8Array(16 * 1024);
    this.#input.start = this.#input.end;
    try {
      while (await this.#input.take(dropped) > 0);
    } catch (error) {
      if (!(error instanceof ClientGone)) throw error;
    }
  }
}

/** A request that was received from a connection. */
class ReceivedRequest implements ServedRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: PlainHeaders;
  readonly body: RequestBody;
  readonly client: Client;
  readonly #section: HeaderSection;
  readonly #input: Input;

  constructor(head: RequestHead, body: RequestBody, client: Client, input: Input) {
    this.method = head.method;
    this.target = head.target;
    this.#section = head.isOld ? withoutUpgrade(head.headers) : head.headers;
    this.headers = this.#section.plain;
    this.body = body;
    this.client = client;
    this.#input = input;
  }

  get headersJson(): string {
    return this.#section.json;
  }

  watch(gone: () => void): void {
    this.#input.watch(gone);
  }
}

/** HTTP/1.0 has no upgrade (RFC 9110 7.8). */
function withoutUpgrade(headers: HeaderSection): HeaderSection {
  if (headers.plain.upgrade === undefined) return headers;
  const { upgrade: _upgrade, ...others } = headers.plain;
  return new HeaderSection(others);
}

/** Empty lines before a request are skipped, as RFC 9112 2.2 asks for. */
function isBlank(byte: number): boolean {
  return byte === CR || byte === LF;
}
