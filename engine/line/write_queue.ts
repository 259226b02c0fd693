/**
 * What a line has to say, as frames in memory that is ready to be written.
 *
 * Frames are put one behind the other into a block, and what was sent in one turn leaves in one
 * write. A frame is never divided between two blocks: so whatever is dropped, the peer sees whole
 * frames. The idea: the text is encoded where it will lie, behind room for its header, whose size
 * is guessed from the length; only text beyond ASCII makes the guess wrong.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import {
  WRITE_BYTES_FIRST,
  WRITE_BYTES_MAX,
  WRITE_POOL_BYTES_MAX,
} from "../../sdk/typescript/limits.ts";
import type { Frame } from "../ports/connection.ts";
import { OPCODE } from "./frames.ts";

/** Longest header of a frame that a server sends. */
const HEADER_BYTES_MAX = 10;
const GROWTH = 8;
/** A short text is joined to its head: encoding once costs less than copying it. */
const JOINED_CHARS_MAX = 2_048;
const NONE: EncodeResult = { read: 0, written: 0 };
const encoder = new TextEncoder();

/** Memory that lines write from and give back; shared by those of one listener. */
export class BlockPool {
  readonly #free = new Map<number, Uint8Array[]>();

  /** Memory of at least this size. */
  take(bytes: number): Uint8Array {
    const size = poolSize(bytes);
    return this.#free.get(size)?.pop() ?? new Uint8Array(size);
  }

  /** Nobody uses it any more. */
  give(block: Uint8Array): void {
    if (block.length > WRITE_POOL_BYTES_MAX) return;
    const free = this.#free.get(block.length);
    if (!free) this.#free.set(block.length, [block]);
    else if (free.length * block.length < WRITE_POOL_BYTES_MAX) free.push(block);
  }
}

/** Sizes come in steps, so that what one line gives back suits another. */
function poolSize(bytes: number): number {
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

/** The unsent frames of one line. */
export class WriteQueue {
  readonly #pool: BlockPool;
  /** The last one is being filled. */
  #blocks: Block[] = [];
  /** The one that is being written, and how far that is. */
  #current: Block | undefined;
  #written = 0;
  #bytes = 0;

  /** Makes an empty one. */
  constructor(pool: BlockPool) {
    this.#pool = pool;
  }

  /** Bytes that have not left, headers included. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a text message in one part or two; copies it. */
  text(head: Frame, rest: Frame = ""): void {
    if (typeof head !== "string" || typeof rest !== "string") {
      this.#frame(OPCODE.text, asBytes(head), asBytes(rest));
    } else if (rest.length <= JOINED_CHARS_MAX || endsInHalf(head)) this.#string(head + rest, "");
    else this.#string(head, rest);
  }

  /** Adds a binary message; copies it. */
  binary(bytes: Uint8Array): void {
    this.#frame(OPCODE.binary, bytes);
  }

  /** Adds a frame that is no message, of at most 125 bytes. */
  control(opcode: number, payload: Uint8Array): void {
    this.#frame(opcode, payload);
  }

  /** Adds bytes that are no frame. */
  raw(bytes: Uint8Array): void {
    const block = this.#room(bytes.length);
    block.memory.set(bytes, block.length);
    this.#grown(block, bytes.length);
  }

  /** What is to be written next; the same until {@linkcode wrote} has heard of all of it. */
  next(): Uint8Array | undefined {
    this.#current ??= this.#blocks.shift();
    return this.#current?.memory.subarray(this.#written, this.#current.length);
  }

  /** So many bytes of {@linkcode next} have left. */
  wrote(count: number): void {
    this.#written += count;
    this.#bytes -= count;
    if (this.#written < this.#current!.length) return;
    this.#pool.give(this.#current!.memory);
    this.#current = undefined;
    this.#written = 0;
  }

  /** Forgets what is not being written. */
  drop(): void {
    for (const { memory, length } of this.#blocks) {
      this.#bytes -= length;
      this.#pool.give(memory);
    }
    this.#blocks = [];
  }

  #string(head: string, rest: string): void {
    const length = head.length + rest.length;
    const block = this.#room(length + 2 * HEADER_BYTES_MAX);
    const guess = headerBytes(length);
    const first = encodeAt(head, block, guess);
    const second = rest === "" ? NONE : encodeAt(rest, block, guess + first.written);
    if (first.read + second.read === length) {
      return this.#finish(block, guess, first.written + second.written);
    }
    // Beyond ASCII, and it did not fit.
    const bytes = Buffer.byteLength(head) + Buffer.byteLength(rest);
    const larger = this.#room(bytes + 2 * HEADER_BYTES_MAX);
    const { written } = encodeAt(head, larger, headerBytes(bytes));
    encodeAt(rest, larger, headerBytes(bytes) + written);
    this.#finish(larger, headerBytes(bytes), bytes);
  }

  /** A payload lies behind the room that was left for its header. */
  #finish(block: Block, guess: number, payload: number): void {
    const header = headerBytes(payload);
    const start = block.length;
    if (header !== guess) {
      block.memory.copyWithin(start + header, start + guess, start + guess + payload);
    }
    writeHeader(block.memory, start, OPCODE.text, payload);
    this.#grown(block, header + payload);
  }

  #frame(opcode: number, payload: Uint8Array, rest?: Uint8Array): void {
    const bytes = payload.length + (rest?.length ?? 0);
    const header = headerBytes(bytes);
    const block = this.#room(header + bytes);
    const at = block.length + header;
    writeHeader(block.memory, block.length, opcode, bytes);
    block.memory.set(payload, at);
    if (rest) block.memory.set(rest, at + payload.length);
    this.#grown(block, header + bytes);
  }

  #grown(block: Block, bytes: number): void {
    block.length += bytes;
    this.#bytes += bytes;
  }

  /** The block to fill, with so much room in it. */
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

type EncodeResult = ReturnType<TextEncoder["encodeInto"]>;

/** Encodes behind the room for a header, and leaves as much free for a longer one. */
function encodeAt(text: string, { memory, length }: Block, header: number): EncodeResult {
  const end = memory.length - HEADER_BYTES_MAX;
  return encoder.encodeInto(text, memory.subarray(length + header, end));
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

/** Half of a character, whose other half may be in what follows. */
function endsInHalf(text: string): boolean {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
}

function asBytes(frame: Frame): Uint8Array {
  return typeof frame === "string" ? encoder.encode(frame) : frame;
}
