/**
 * The body of a request as it arrives: of a declared length, or in chunks (RFC 9112, 7.1).
 *
 * Nothing is read before a handler asks, so TCP holds the client back. The first question also
 * sends the `100 Continue` that the client may wait for.
 *
 * @module
 */
import { CHUNKED } from "./head.ts";
import { ClientGone, type Input } from "./input.ts";

/** Longest line with the size of a chunk. */
const CHUNK_LINE_BYTES_MAX = 256;
/** A chunk is as much work as so many bytes. */
const BYTES_PER_CHUNK = 1024;
/** Longest trailer after the last chunk. */
const TRAILER_BYTES_MAX = 8 * 1024;

const CR = 13;
const LF = 10;
const CHUNK_LINE = /^([0-9a-f]{1,12})[ \t]*(;[\t\x20-\x7e]*)?$/i;
const ASCII = new TextDecoder("latin1");

/** The chunks are not well formed; nothing that follows can be read. */
export class BodyError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "BodyError";
  }
}

/** See the module. */
export class RequestBody {
  /** What was declared, or {@linkcode CHUNKED}. */
  readonly declaredBytes: number;
  readonly #input: Input;
  /** Called before the first byte is read. */
  #begin: (() => Promise<void>) | undefined;
  /** Of the whole body, or of the present chunk. */
  #left: number;
  #isDone: boolean;
  /** A chunk was read and its end was not. */
  #isInChunk = false;
  #isCancelled = false;
  /** Since the last turn of others. */
  #chunks = 0;

  /** `begin` is called before the first read; `undefined`: the client waits for nothing. */
  constructor(input: Input, declaredBytes: number, begin: (() => Promise<void>) | undefined) {
    this.#input = input;
    this.declaredBytes = declaredBytes;
    this.#begin = begin;
    this.#left = Math.max(0, declaredBytes);
    this.#isDone = declaredBytes === 0;
  }

  /** Whether all of it was read. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** A reader gets {@linkcode ClientGone} from now on. */
  cancel(): void {
    this.#isCancelled = true;
  }

  /** Skips the rest without waiting; `false` when it was not received, or is in chunks. */
  dropReceived(): boolean {
    return this.#isDone || this.takeReceived() !== undefined;
  }

  /** All that is left, if it was received and is not in chunks; valid until the next read. */
  takeReceived(): Uint8Array | undefined {
    const { start, waiting, bytes } = this.#input;
    if (this.declaredBytes < 0 || waiting < this.#left || this.#begin) return undefined;
    const end = start + this.#left;
    this.#input.start = end;
    this.#left = 0;
    this.#isDone = true;
    return bytes.subarray(start, end);
  }

  /**
   * Reads some bytes into `target`, which is not empty; 0 at the end of the body.
   *
   * @throws {ClientGone} When the connection ended before. {BodyError}, {Error} when it broke off.
   */
  async read(target: Uint8Array): Promise<number> {
    if (this.#isDone) return 0;
    if (this.#isCancelled) throw new ClientGone();
    if (this.#begin) {
      const begin = this.#begin;
      this.#begin = undefined;
      await begin();
    }
    if (this.declaredBytes !== CHUNKED) {
      const count = await this.#input.take(target.subarray(0, Math.min(target.length, this.#left)));
      this.#left -= count;
      this.#isDone = this.#left === 0;
      return count;
    }
    return await this.#readChunks(target);
  }

  /** Fills `target` from the chunks that were received; waits only when there are none. */
  async #readChunks(target: Uint8Array): Promise<number> {
    let count = 0;
    while (count < target.length) {
      if (this.#left === 0) {
        const size = this.#nextSize();
        if (size === undefined) {
          if (count > 0) return count;
          await this.#more();
          continue;
        }
        if (size === 0) {
          await this.#end();
          return count;
        }
        this.#beginChunk(size);
        continue;
      }
      const { start, waiting, bytes } = this.#input;
      if (waiting === 0) {
        if (count > 0) return count;
        await this.#more();
        continue;
      }
      const part = Math.min(waiting, this.#left, target.length - count);
      target.set(bytes.subarray(start, start + part), count);
      this.#input.start += part;
      this.#left -= part;
      count += part;
    }
    return count;
  }

  /** The size of the next chunk; `undefined` while its line is not there. */
  #nextSize(): number | undefined {
    const { start, end, bytes } = this.#input;
    let at = start;
    if (this.#isInChunk) {
      if (end - start < 2) return undefined;
      if (bytes[start] !== CR || bytes[start + 1] !== LF) {
        throw new BodyError("A chunk of the body does not end where it says");
      }
      at += 2;
    }
    const stop = Math.min(end, at + CHUNK_LINE_BYTES_MAX);
    for (let i = at; i < stop; i++) {
      if (bytes[i] !== LF) continue;
      if (i === at || bytes[i - 1] !== CR) throw wrongChunk();
      this.#isInChunk = false;
      this.#input.start = i + 1;
      return sizeIn(bytes, at, i - 1);
    }
    if (stop === at + CHUNK_LINE_BYTES_MAX) throw wrongChunk();
    return undefined;
  }

  #beginChunk(size: number): void {
    this.#chunks++;
    this.#left = size;
    this.#isInChunk = true;
  }

  async #end(): Promise<void> {
    await this.#skipTrailer();
    this.#isDone = true;
  }

  /** Reads up to the empty line that ends the body; trailers are not used. */
  async #skipTrailer(): Promise<void> {
    for (let total = 0;;) {
      const { start, end, bytes } = this.#input;
      const at = bytes.subarray(start, end).indexOf(LF);
      if (at < 0) {
        if (total + end - start > TRAILER_BYTES_MAX) break;
        await this.#more();
        continue;
      }
      this.#input.start = start + at + 1;
      total += at + 1;
      if (bytes[start + at - 1] !== CR || at === 0 || total > TRAILER_BYTES_MAX) break;
      if (at === 1) return;
    }
    throw new BodyError("The end of the body is not well formed");
  }

  async #more(): Promise<void> {
    if (!await this.#input.fill(Math.max(this.#input.bytes.length, TRAILER_BYTES_MAX * 2))) {
      throw new ClientGone();
    }
    await this.#input.turn(this.#input.waiting + this.#chunks * BYTES_PER_CHUNK);
    this.#chunks = 0;
  }
}

/** The size in a line; one of few digits is read without making a text of it. */
function sizeIn(bytes: Uint8Array, start: number, end: number): number {
  let size = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    const digit = byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : -1;
    if (digit < 0 || at - start > 8) return sizeInText(bytes.subarray(start, end));
    size = size * 16 + digit;
  }
  if (end === start) throw wrongChunk();
  return size;
}

function sizeInText(bytes: Uint8Array): number {
  const digits = CHUNK_LINE.exec(ASCII.decode(bytes))?.[1];
  if (digits === undefined) throw wrongChunk();
  return parseInt(digits, 16);
}

function wrongChunk(): BodyError {
  return new BodyError("The size of a chunk of the body is not well formed");
}
