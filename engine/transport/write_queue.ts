/**
 * The unsent frames of a connection, in memory that is ready to be written.
 *
 * Frames are appended to a block, so that the messages of a tick leave in few writes. A frame is
 * never split between two blocks, so whatever is dropped, the peer sees whole frames. Where the
 * peer accepts batches (`engine.batch.v1`), the text messages of a tick share a frame, whose header
 * is written when the batch is closed.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { BATCH_CHARS_MAX } from "../../sdk/typescript/wire/limits.ts";
import { OPCODE } from "./frames.ts";

/** What a line writes at once at first; it grows with what is sent. */
export const WRITE_BYTES_FIRST = 4 * 1024;
/** What a line writes at once at most, but for a message that is larger. */
export const WRITE_BYTES_MAX = 256 * 1024;
/** Memory for writing that is kept for the next message, of each size. */
export const WRITE_POOL_BYTES_MAX = 4 * 1024 * 1024;

/** Longest header of a frame that a server sends. */
const HEADER_BYTES_MAX = 10;
const GROWTH = 8;
/** Block for a ping or one short message: 10,000 idle connections may be pinged in one tick. */
const SMALL_BYTES = 512;
/** Up to this size, a loop copies faster than `set`. */
const COPIED_BYTES_MAX = 64;
const encoder = new TextEncoder();

/** Blocks of memory shared by the connections of a listener. */
export class BlockPool {
  readonly #free = new Map<number, Uint8Array[]>();

  /** Takes a block of at least this size. */
  take(bytes: number): Uint8Array {
    const size = poolSize(bytes);
    return this.#free.get(size)?.pop() ?? new Uint8Array(size);
  }

  /** Takes a block back that is no longer used; keeps it while there are few of its size. */
  give(block: Uint8Array): void {
    const free = this.#free.get(block.length);
    const keptBytes = (free?.length ?? 0) * block.length;
    if (keptBytes + block.length > WRITE_POOL_BYTES_MAX) return;
    if (free) free.push(block);
    else this.#free.set(block.length, [block]);
  }
}

/** Rounds sizes to steps, so that blocks fit other connections. */
function poolSize(bytes: number): number {
  if (bytes <= SMALL_BYTES) return SMALL_BYTES;
  let size = WRITE_BYTES_FIRST;
  while (size < bytes && size < WRITE_POOL_BYTES_MAX) {
    size = size < WRITE_BYTES_MAX ? Math.min(size * GROWTH, WRITE_BYTES_MAX) : size * 2;
  }
  return Math.max(size, bytes);
}

interface Block {
  memory: Uint8Array;
  length: number;
}

const NEWLINE = 0x0a;
const SPACE = 0x20;
/** The header size of all but the smallest and the largest batches. */
const BATCH_HEADER_BYTES = 4;

/** The unsent frames of one connection. */
export class WriteQueue {
  readonly #pool: BlockPool;
  readonly #isBatching: boolean;
  /** Start of the open batch in the last block, with room for its header; -1: none is open. */
  #batchAt = -1;
  /** The last one is being filled. */
  #blocks: Block[] = [];
  /** The block that is being written, and the number of its bytes that were. */
  #current: Block | undefined;
  #written = 0;
  #bytes = 0;

  /** `isBatching`: text messages may share a frame, separated by newlines. */
  constructor(pool: BlockPool, isBatching = false) {
    this.#pool = pool;
    this.#isBatching = isBatching;
  }

  /** Unsent bytes, headers included. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a text message. */
  text(text: string): void {
    const bytes = Buffer.byteLength(text);
    const block = this.#begin(bytes);
    encoder.encodeInto(text, block.memory.subarray(block.length));
    this.#ended(block, bytes);
  }

  /** Adds a text message of two parts; copies it. */
  textBytes(
    head: Uint8Array,
    headLength: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    const bytes = headLength + end - start;
    const block = this.#begin(bytes);
    copy(head, 0, headLength, block.memory, block.length);
    copy(memory, start, end, block.memory, block.length + headLength);
    this.#ended(block, bytes);
  }

  /** Adds a binary message; copies it. */
  binary(bytes: Uint8Array): void {
    this.#closeBatch();
    this.#frame(OPCODE.binary, bytes);
  }

  /** Adds a control frame, of at most 125 bytes. */
  control(opcode: number, payload: Uint8Array): void {
    this.#closeBatch();
    this.#frame(opcode, payload);
  }

  /** Adds bytes that are not a frame. */
  raw(bytes: Uint8Array): void {
    const block = this.#room(bytes.length);
    block.memory.set(bytes, block.length);
    this.#grown(block, bytes.length);
  }

  /** The bytes to write next; unchanged until {@linkcode wrote} has counted all of them. */
  next(): Uint8Array | undefined {
    if (!this.#current) {
      this.#closeBatch();
      this.#current = this.#blocks.shift();
    }
    return this.#current?.memory.subarray(this.#written, this.#current.length);
  }

  /** Marks `count` bytes of {@linkcode next} as written. */
  wrote(count: number): void {
    this.#written += count;
    this.#bytes -= count;
    if (this.#written < this.#current!.length) return;
    this.#pool.give(this.#current!.memory);
    this.#current = undefined;
    this.#written = 0;
  }

  /** Drops all frames that are not being written. */
  drop(): void {
    for (const { memory, length } of this.#blocks) {
      this.#bytes -= length;
      this.#pool.give(memory);
    }
    this.#blocks = [];
    this.#batchAt = -1;
  }

  /** Drops everything, also what was being written; nothing may be added any more. */
  end(): void {
    this.drop();
    if (this.#current) this.wrote(this.#current.length - this.#written);
  }

  /** Writes the header of a text message and reserves room for its bytes. */
  #begin(bytes: number): Block {
    if (this.#isBatching) return this.#beginInBatch(bytes);
    const header = headerBytes(bytes);
    const block = this.#room(header + bytes);
    writeHeader(block.memory, block.length, OPCODE.text, bytes);
    this.#grown(block, header);
    return block;
  }

  /** Writes a newline, or reserves the header of a new batch; a batch stays in its block. */
  #beginInBatch(bytes: number): Block {
    const last = this.#blocks.at(-1);
    const needed = bytes + HEADER_BYTES_MAX;
    const end = (last?.length ?? 0) + needed;
    const isOpen = this.#batchAt >= 0 && end - this.#batchAt <= BATCH_CHARS_MAX;
    if (isOpen && end <= WRITE_BYTES_MAX) {
      const block = this.#room(needed);
      block.memory[block.length] = NEWLINE;
      this.#grown(block, 1);
      return block;
    }
    this.#closeBatch();
    const block = this.#room(needed);
    this.#batchAt = block.length;
    this.#grown(block, BATCH_HEADER_BYTES);
    return block;
  }

  /** Ends a text message after its bytes were written. */
  #ended(block: Block, bytes: number): void {
    if (this.#isBatching) withoutNewlines(block.memory, block.length, block.length + bytes);
    this.#grown(block, bytes);
  }

  #closeBatch(): void {
    const block = this.#blocks.at(-1);
    if (!block || this.#batchAt < 0) return;
    const from = this.#batchAt + BATCH_HEADER_BYTES;
    const bytes = block.length - from;
    const header = headerBytes(bytes);
    if (header !== BATCH_HEADER_BYTES) {
      block.memory.copyWithin(this.#batchAt + header, from, block.length);
      this.#grown(block, header - BATCH_HEADER_BYTES);
    }
    writeHeader(block.memory, this.#batchAt, OPCODE.text, bytes);
    this.#batchAt = -1;
  }

  #frame(opcode: number, payload: Uint8Array): void {
    const bytes = payload.length;
    const header = headerBytes(bytes);
    const block = this.#room(header + bytes);
    writeHeader(block.memory, block.length, opcode, bytes);
    block.memory.set(payload, block.length + header);
    this.#grown(block, header + bytes);
  }

  #grown(block: Block, bytes: number): void {
    block.length += bytes;
    this.#bytes += bytes;
  }

  /** The block to append to, with room for this many bytes. */
  #room(bytes: number): Block {
    const last = this.#blocks.at(-1);
    if (last && last.memory.length - last.length >= bytes) return last;
    if (last && last.length + bytes <= WRITE_BYTES_MAX) return this.#enlarge(last, bytes);
    const block = { memory: this.#pool.take(bytes), length: 0 };
    this.#blocks.push(block);
    return block;
  }

  #enlarge(block: Block, bytes: number): Block {
    const larger = this.#pool.take(block.length + bytes);
    larger.set(block.memory.subarray(0, block.length));
    this.#pool.give(block.memory);
    block.memory = larger;
    return block;
  }
}

function headerBytes(payload: number): number {
  return payload < 126 ? 2 : payload < 65_536 ? 4 : HEADER_BYTES_MAX;
}

function writeHeader(memory: Uint8Array, start: number, opcode: number, payload: number): void {
  let at = start;
  memory[at++] = 0x80 | opcode;
  if (payload < 126) {
    memory[at] = payload;
  } else if (payload < 65_536) {
    memory[at++] = 126;
    memory[at++] = payload >>> 8;
    memory[at] = payload & 255;
  } else {
    memory[at++] = 127;
    new DataView(memory.buffer, memory.byteOffset).setBigUint64(at, BigInt(payload));
  }
}

function copy(
  from: Uint8Array,
  start: number,
  end: number,
  to: Uint8Array,
  place: number,
): void {
  if (end - start > COPIED_BYTES_MAX) return to.set(from.subarray(start, end), place);
  for (let at = start, into = place; at < end; at++, into++) to[into] = from[at]!;
}

/** Replaces newlines, which separate messages, by spaces; JSON has them between tokens only. */
function withoutNewlines(memory: Uint8Array, start: number, end: number): void {
  const message = memory.subarray(start, end);
  for (let at = message.indexOf(NEWLINE); at >= 0; at = message.indexOf(NEWLINE, at + 1)) {
    message[at] = SPACE;
  }
}
