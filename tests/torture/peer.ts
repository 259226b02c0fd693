/**
 * A peer of the engine on a TCP connection of its own, which knows no SDK and may misbehave.
 *
 * It reads all the time, hands on text messages or only counts them, and answers pings; what it
 * sends is bytes that the scenario made. For many frames a second, {@linkcode Batch} holds
 * encoded frames whose ids are renewed in place.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { OP } from "../fakes/raw_ws_client.ts";

/** How a peer is to connect. */
export interface PeerOptions {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text messages are counted and dropped, so that a flood costs its sender little. */
  readonly isCounting?: boolean;
  /** Does not read at all until {@linkcode Peer.read} is called. */
  readonly isFrozen?: boolean;
  /** Longest wait for the response to the upgrade. */
  readonly limitMs?: number;
}

/** How a connection ended. */
export interface PeerEnd {
  /** 1006 without a close frame. */
  readonly code: number;
  readonly reason: string;
}

/** Longest wait for the head of the response to an upgrade. */
const UPGRADE_MS_MAX = 20_000;
/** Longest message that a counting peer reads while it waits for an answer. */
const ANSWER_BYTES_MAX = 1_000;
const READ_BYTES = 64 * 1024;
/** A counting peer looks at one of so many answers, at this much of its start. */
const SAMPLE_EVERY = 16;
const SAMPLE_BYTES = 200;
const MASK = Uint8Array.of(0x5a, 0xc3, 0x17, 0x8e);
/** Bytes in front of a payload: header, length in 8 bytes, mask. */
const HEADER_BYTES_MAX = 14;

/** See the top of this file. */
export class Peer implements Disposable {
  /** Called with every text message, unless the peer only counts. */
  onText: ((text: string) => void) | undefined;
  /** Text messages and bytes that came. */
  received = 0;
  receivedBytes = 0;
  /** Of a counting peer: answers that were looked at, and those of them that say `overloaded`. */
  readonly sample = { size: 0, overloaded: 0 };
  /** Resolves when the connection is over; never rejects. */
  readonly ended: Promise<PeerEnd>;
  isOver = false;
  readonly #tcp: Deno.Conn;
  readonly #isCounting: boolean;
  readonly #end = Promise.withResolvers<PeerEnd>();
  #memory = new Uint8Array(READ_BYTES);
  #start = 0;
  #filled = 0;
  /** Bytes of a counted frame that are still to come. */
  #skip = 0;
  #writes: Promise<unknown> = Promise.resolve();
  readonly #waiting = new Map<string, (message: JsonObject) => void>();

  private constructor(tcp: Deno.Conn, options: PeerOptions) {
    this.#tcp = tcp;
    this.#isCounting = options.isCounting ?? false;
    this.ended = this.#end.promise;
  }

  /** Connects and upgrades. @throws {Error} When the engine refuses or does not answer. */
  static async connect(port: number, options: PeerOptions = {}): Promise<Peer> {
    const tcp = await Deno.connect({ hostname: "127.0.0.1", port });
    tcp.setNoDelay(true);
    const limit = setTimeout(() => tcp.close(), options.limitMs ?? UPGRADE_MS_MAX);
    const peer = new Peer(tcp, options);
    try {
      await peer.#upgrade(options);
    } catch (error) {
      peer.destroy();
      throw error;
    } finally {
      clearTimeout(limit);
    }
    if (!options.isFrozen) peer.read();
    return peer;
  }

  /** Begins to read. */
  read(): void {
    void this.#read();
  }

  /** Announces the peer as a worker. */
  announce(name: string, more: JsonObject = {}): Promise<void> {
    const data = { runtime: "other", version: "0.1", name, os: "linux", pid: 1, ...more };
    const function_id = "engine::workers::register";
    return this.send({ type: "invokefunction", function_id, action: { type: "void" }, data });
  }

  /** Sends one message. */
  send(message: JsonObject | string): Promise<void> {
    const text = typeof message === "string" ? message : JSON.stringify(message);
    return this.write(frameOf(new TextEncoder().encode(text)));
  }

  /** Sends bytes behind what was sent before; a connection that is gone takes them silently. */
  write(bytes: Uint8Array): Promise<void> {
    const done = this.#writes.then(async () => {
      try {
        for (let at = 0; at < bytes.length && !this.isOver;) {
          at += await this.#tcp.write(bytes.subarray(at));
        }
      } catch (error) {
        this.#finish({ code: 1006, reason: String(error) });
      }
    });
    this.#writes = done;
    return done;
  }

  /** Calls a function and returns the whole `invocationresult`; `undefined` if there is none. */
  async call(
    function_id: string,
    data?: JsonObject,
    limitMs = UPGRADE_MS_MAX,
  ): Promise<JsonObject | undefined> {
    const invocation_id = crypto.randomUUID();
    const answer = this.#answer(invocation_id, limitMs);
    await this.send({ type: "invokefunction", invocation_id, function_id, data: data ?? null });
    return await answer;
  }

  /** Time until the engine has handled all that was sent; `undefined` if it takes too long. */
  async settled(limitMs: number): Promise<number | undefined> {
    const start = performance.now();
    const pong = this.#answer("pong", limitMs);
    void this.send({ type: "ping" });
    return await pong === undefined ? undefined : performance.now() - start;
  }

  /** The next message with this invocation id, or the next `pong`. */
  expect(invocationId: string, limitMs: number): Promise<JsonObject | undefined> {
    return this.#answer(invocationId, limitMs);
  }

  /** Half-closes: the engine reads the end, the peer reads on. */
  async endWriting(): Promise<void> {
    await this.#tcp.closeWrite().catch(() => {}); // It is gone already.
  }

  /** Drops the connection without a close frame. */
  destroy(): void {
    this.#finish({ code: 1006, reason: "destroyed by the test" });
    try {
      this.#tcp.close();
    } catch {
      // It was closed before.
    }
  }

  [Symbol.dispose](): void {
    this.destroy();
  }

  async #upgrade({ path = "/", headers = {} }: PeerOptions): Promise<void> {
    const all = {
      "Host": "127.0.0.1",
      "Upgrade": "websocket",
      "Connection": "Upgrade",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    await this.#tcp.write(
      new TextEncoder().encode(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`),
    );
    for (;;) {
      const head = new TextDecoder("latin1").decode(this.#memory.subarray(0, this.#filled));
      const end = head.indexOf("\r\n\r\n");
      if (end >= 0) {
        if (!head.startsWith("HTTP/1.1 101")) throw new Error(`refused: ${head.slice(0, 200)}`);
        this.#start = end + 4;
        return;
      }
      const count = await this.#tcp.read(this.#memory.subarray(this.#filled));
      if (count === null) throw new Error(`refused: closed behind ${JSON.stringify(head)}`);
      this.#filled += count;
    }
  }

  async #read(): Promise<void> {
    try {
      for (;;) {
        this.#take();
        if (this.isOver) return;
        this.#makeRoom();
        const count = await this.#tcp.read(this.#memory.subarray(this.#filled));
        if (count === null) break;
        this.#filled += count;
        this.receivedBytes += count;
      }
      this.#finish({ code: 1006, reason: "the connection ended" });
    } catch (error) {
      this.#finish({ code: 1006, reason: String(error) });
    }
  }

  /** Handles the whole frames that are there. */
  #take(): void {
    while (!this.isOver) {
      const there = this.#filled - this.#start;
      const skipped = Math.min(this.#skip, there);
      this.#skip -= skipped;
      this.#start += skipped;
      const frame = this.#header();
      if (this.#skip > 0 || frame === undefined) return;
      const { opcode, payload, size } = frame;
      const isAnswer = this.#waiting.size > 0 && size <= ANSWER_BYTES_MAX;
      if (this.#isCounting && opcode === OP.text && !isAnswer) {
        if (this.received++ % SAMPLE_EVERY === 0) this.#look(payload, size);
        this.#start = payload;
        this.#skip = size;
        continue;
      }
      if (this.#filled - payload < size) return;
      this.#start = payload + size;
      this.#handle(opcode, this.#memory.subarray(payload, payload + size));
    }
  }

  /** Whether an answer is a refusal, if enough of it is there to tell. */
  #look(payload: number, size: number): void {
    const end = payload + Math.min(size, SAMPLE_BYTES);
    if (end > this.#filled) return;
    this.sample.size++;
    const text = new TextDecoder("latin1").decode(this.#memory.subarray(payload, end));
    if (text.includes('"code":"overloaded"')) this.sample.overloaded++;
  }

  #header(): { opcode: number; payload: number; size: number } | undefined {
    const there = this.#filled - this.#start;
    if (there < 2) return undefined;
    const at = this.#start;
    const short = this.#memory[at + 1]! & 127;
    const header = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (there < header) return undefined;
    const view = new DataView(this.#memory.buffer);
    const size = header === 2
      ? short
      : header === 4
      ? view.getUint16(at + 2)
      : Number(view.getBigUint64(at + 2));
    return { opcode: this.#memory[at]! & 15, payload: at + header, size };
  }

  #handle(opcode: number, payload: Uint8Array): void {
    if (opcode === OP.text) {
      this.received++;
      this.#message(new TextDecoder().decode(payload));
    } else if (opcode === OP.ping) {
      void this.write(frameOf(payload, OP.pong));
    } else if (opcode === OP.close) {
      const code = payload.length < 2 ? 1005 : payload[0]! << 8 | payload[1]!;
      const reason = new TextDecoder().decode(payload.subarray(2));
      this.#finish({ code, reason });
    }
  }

  #message(text: string): void {
    if (this.#waiting.size > 0) {
      const id = text.startsWith('{"type":"pong"')
        ? "pong"
        : /"invocation_id":"([^"]*)"/.exec(text.slice(0, 300))?.[1];
      const resolve = id === undefined ? undefined : this.#waiting.get(id);
      if (resolve) return resolve(JSON.parse(text));
    }
    this.onText?.(text);
  }

  #answer(id: string, limitMs: number): Promise<JsonObject | undefined> {
    const { promise, resolve } = Promise.withResolvers<JsonObject | undefined>();
    const give = (message?: JsonObject): void => {
      clearTimeout(timer);
      this.#waiting.delete(id);
      resolve(message);
    };
    const timer = setTimeout(give, limitMs);
    this.#waiting.set(id, give);
    void this.ended.then(() => give());
    return promise;
  }

  /** Moves what is left to the front, and grows when one frame needs more. */
  #makeRoom(): void {
    const left = this.#filled - this.#start;
    const size = this.#skip > 0 ? 0 : (this.#header()?.size ?? 0) + HEADER_BYTES_MAX;
    const memory = size > this.#memory.length ? new Uint8Array(size + READ_BYTES) : this.#memory;
    if (memory !== this.#memory || this.#start > 0) {
      memory.set(this.#memory.subarray(this.#start, this.#filled));
    }
    this.#memory = memory;
    this.#start = 0;
    this.#filled = left;
  }

  #finish(end: PeerEnd): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#end.resolve(end);
    try {
      this.#tcp.close();
    } catch {
      // It was closed before.
    }
  }
}

/** One masked frame. */
export function frameOf(payload: Uint8Array, opcode: number = OP.text, fin = true): Uint8Array {
  const header = headerOf(payload.length, opcode, fin);
  // The payload begins at a multiple of four, so that it can be masked by words.
  const padding = (4 - header.length % 4) % 4;
  const memory = new Uint8Array(padding + header.length + payload.length);
  memory.set(header, padding);
  memory.set(payload, padding + header.length);
  mask(memory, padding + header.length);
  return memory.subarray(padding);
}

/** Header of a frame that is to have so many bytes, mask included. */
export function headerOf(size: number, opcode: number = OP.text, fin = true): Uint8Array {
  const length = size < 126 ? 2 : size < 65_536 ? 4 : 10;
  const header = new Uint8Array(length + 4);
  const view = new DataView(header.buffer);
  header[0] = (fin ? 128 : 0) | opcode;
  header[1] = 128 | (length === 2 ? size : length === 4 ? 126 : 127);
  if (length === 4) view.setUint16(2, size);
  if (length === 10) view.setBigUint64(2, BigInt(size));
  header.set(MASK, length);
  return header;
}

/** Masks from an index that is a multiple of four to the end. */
function mask(memory: Uint8Array, start: number): void {
  const words = (memory.length - start) >> 2;
  const key = new DataView(MASK.buffer).getUint32(0, true);
  const view = new Uint32Array(memory.buffer, memory.byteOffset + start, words);
  for (let i = 0; i < words; i++) view[i]! ^= key;
  for (let i = start + words * 4; i < memory.length; i++) memory[i]! ^= MASK[(i - start) & 3]!;
}

/** Text that `Batch` replaces by a fresh number. */
export const FRESH = "#".repeat(12);

/** Frames that are sent again and again, with a fresh number wherever {@linkcode FRESH} stands. */
export class Batch {
  readonly frames: number;
  readonly #bytes: Uint8Array;
  /** Index of each number, and the key its first digit is masked with. */
  readonly #slots: { readonly at: number; readonly frameStart: number }[] = [];
  #next: number;

  /** `first` keeps the numbers of several batches apart. */
  constructor(messages: readonly string[], first = 0) {
    this.frames = messages.length;
    this.#next = first;
    const frames = messages.map((message) => frameOf(new TextEncoder().encode(message)));
    this.#bytes = new Uint8Array(frames.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const [i, frame] of frames.entries()) {
      this.#bytes.set(frame, at);
      const size = new TextEncoder().encode(messages[i]!).length;
      const payload = at + frame.length - size;
      const text = messages[i]!;
      for (let found = text.indexOf(FRESH); found >= 0; found = text.indexOf(FRESH, found + 1)) {
        this.#slots.push({ at: payload + found, frameStart: payload });
      }
      at += frame.length;
    }
  }

  /** The bytes with fresh numbers; valid until the next call. */
  renew(): Uint8Array {
    let frame = -1;
    for (const { at, frameStart } of this.#slots) {
      if (frame !== frameStart) this.#next++;
      frame = frameStart;
      let rest = this.#next;
      for (let i = FRESH.length - 1; i >= 0; i--) {
        this.#bytes[at + i] = (48 + rest % 10) ^ MASK[(at + i - frameStart) & 3]!;
        rest = Math.floor(rest / 10);
      }
    }
    return this.#bytes;
  }
}
