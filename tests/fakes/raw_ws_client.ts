/**
 * A WebSocket client for tests, over a connection of its own, that can also do everything wrong.
 *
 * It reads only when it is asked to, so that a peer that has stopped reading is easy to play, and
 * it answers nothing by itself: no pong, no close.
 *
 * @module
 */

/** One frame as it came over the wire. */
export interface RawFrame {
  readonly opcode: number;
  readonly fin: boolean;
  readonly payload: Uint8Array;
}

/** What a frame to be sent looks like, if not as it has to. */
export interface FrameShape {
  readonly fin?: boolean;
  readonly masked?: boolean;
  /** Four bytes. Default: zeros, which are allowed and leave the payload readable in a dump. */
  readonly mask?: Uint8Array;
  /** The three reserved bits, 0 to 7. */
  readonly reserved?: number;
  /** The length that the header claims, if not the true one. */
  readonly claims?: bigint;
}

/** How the upgrade is asked for. */
export interface UpgradeShape {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Header names of the upgrade that are left out. */
  readonly without?: readonly string[];
  /** Sent in the same write as the request. */
  readonly behind?: Uint8Array;
}

/** A port on this machine. */
export interface Dialled {
  readonly port: number;
  /** Certificate of the CA to trust, in PEM; left out: no TLS is spoken. */
  readonly ca?: string;
  /** Leaves Nagle's algorithm on, which waits for a word of the peer before it sends on. */
  readonly delays?: boolean;
}

/** Connects, and shakes hands if TLS is spoken. */
export async function dial({ port, ca, delays = false }: Dialled): Promise<Deno.Conn> {
  const hostname = "127.0.0.1";
  if (ca !== undefined) return await Deno.connectTls({ hostname, port, caCerts: [ca] });
  const tcp = await Deno.connect({ hostname, port });
  tcp.setNoDelay(!delays);
  return tcp;
}

/** Opcodes of RFC 6455. */
export const OP = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** A TCP connection that has asked for an upgrade. */
export class RawWsClient implements Disposable {
  /** Status of the HTTP response; 101 when the connection is open. */
  readonly status: number;
  /** The whole head of the HTTP answer. */
  readonly head: string;
  readonly #tcp: Deno.Conn;
  #buffer: Uint8Array;
  #length: number;

  private constructor(tcp: Deno.Conn, head: string, rest: Uint8Array) {
    this.#tcp = tcp;
    this.head = head;
    this.status = Number(head.split(" ")[1]);
    this.#buffer = rest;
    this.#length = rest.length;
  }

  /** Asks a port on this machine for an upgrade and reads the head of the answer. */
  static connect(to: number | Dialled, shape: UpgradeShape = {}): Promise<RawWsClient> {
    const request = joined([encode(upgradeRequest(shape)), shape.behind ?? new Uint8Array()]);
    return RawWsClient.open(typeof to === "number" ? { port: to } : to, [request]);
  }

  /** Sends bytes of the test's own, in as many writes, and reads the head of the answer. */
  static async open(to: Dialled, writes: readonly Uint8Array[]): Promise<RawWsClient> {
    const tcp = await dial(to);
    for (const bytes of writes) await writeAll(tcp, bytes);
    const { head, rest } = await readHead(tcp);
    return new RawWsClient(tcp, head, rest);
  }

  /** Sends one text message. */
  text(message: string): Promise<void> {
    return this.frame(OP.text, encode(message));
  }

  /** Sends one frame, shaped as the test wants it. */
  frame(opcode: number, payload: Uint8Array = new Uint8Array(), shape?: FrameShape): Promise<void> {
    return this.write(encodeFrame(opcode, payload, shape));
  }

  /** Sends a close frame with a code. */
  close(code: number, reason = ""): Promise<void> {
    return this.frame(OP.close, joined([Uint8Array.of(code >> 8, code & 255), encode(reason)]));
  }

  /** Sends bytes as they are; a connection that is gone takes them without a word. */
  async write(bytes: Uint8Array): Promise<void> {
    try {
      await writeAll(this.#tcp, bytes);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }

  /** The next frame; `undefined` when the connection is over. */
  async next(): Promise<RawFrame | undefined> {
    if (!await this.#fill(2)) return undefined;
    const short = this.#buffer[1]! & 127;
    const header = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (!await this.#fill(header)) return undefined;
    const view = new DataView(this.#buffer.buffer, this.#buffer.byteOffset);
    const size = header === 2
      ? short
      : header === 4
      ? view.getUint16(2)
      : Number(view.getBigUint64(2));
    if (!await this.#fill(header + size)) return undefined;
    const first = this.#buffer[0]!;
    const payload = this.#buffer.slice(header, header + size);
    this.#buffer.copyWithin(0, header + size, this.#length);
    this.#length -= header + size;
    return { opcode: first & 15, fin: first >= 128, payload };
  }

  /** The next text message, which has to be one frame. */
  async nextText(): Promise<string | undefined> {
    const frame = await this.next();
    return frame?.opcode === OP.text ? new TextDecoder().decode(frame.payload) : undefined;
  }

  /** Code and reason of the next frame, if it is a close frame. */
  async nextClose(): Promise<{ code: number; reason: string } | undefined> {
    const frame = await this.next();
    if (frame?.opcode !== OP.close) return undefined;
    const { payload } = frame;
    const code = payload.length < 2 ? 1005 : payload[0]! << 8 | payload[1]!;
    return { code, reason: new TextDecoder().decode(payload.subarray(2)) };
  }

  /** All bytes that still come, up to the end. */
  async rest(): Promise<Uint8Array> {
    while (await this.#fill(this.#length + 1));
    return this.#buffer.slice(0, this.#length);
  }

  /** Ends its half of the connection, and reads on. */
  endWriting(): Promise<void> {
    return this.#tcp.closeWrite();
  }

  /** Drops the connection without a close frame. */
  destroy(): void {
    try {
      this.#tcp.close();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
  }

  [Symbol.dispose](): void {
    this.destroy();
  }

  async #fill(bytes: number): Promise<boolean> {
    if (bytes > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(bytes, 64 * 1024));
      larger.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = larger;
    }
    while (this.#length < bytes) {
      const read = await readSome(this.#tcp, this.#buffer.subarray(this.#length));
      if (read === 0) return false;
      this.#length += read;
    }
    return true;
  }
}

/** One masked frame, unless its shape says otherwise. */
export function encodeFrame(
  opcode: number,
  payload: Uint8Array,
  shape: FrameShape = {},
): Uint8Array {
  const { fin = true, masked = true, mask, reserved = 0, claims } = shape;
  const size = claims ?? BigInt(payload.length);
  const header = size < 126n ? 2 : size < 65536n ? 4 : 10;
  const bytes = new Uint8Array(header + (masked ? 4 : 0) + payload.length);
  const view = new DataView(bytes.buffer);
  bytes[0] = (fin ? 128 : 0) | reserved << 4 | opcode;
  bytes[1] = (masked ? 128 : 0) | (header === 2 ? Number(size) : header === 4 ? 126 : 127);
  if (header === 4) view.setUint16(2, Number(size));
  if (header === 10) view.setBigUint64(2, size);
  const start = bytes.length - payload.length;
  bytes.set(payload, start);
  if (!masked || !mask) return bytes;
  bytes.set(mask, start - 4);
  for (let at = 0; at < payload.length; at++) bytes[start + at]! ^= mask[at & 3]!;
  return bytes;
}

function upgradeRequest({ path = "/", headers = {}, without = [] }: UpgradeShape): string {
  const all: Record<string, string> = {
    "Host": "127.0.0.1",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    ...headers,
  };
  for (const name of without) delete all[name];
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** Reads to the empty line, byte-exact, so that what stands behind it is not lost. */
async function readHead(tcp: Deno.Conn): Promise<{ head: string; rest: Uint8Array }> {
  let bytes = new Uint8Array();
  const chunk = new Uint8Array(64 * 1024);
  while (true) {
    const head = new TextDecoder("latin1").decode(bytes);
    const end = head.indexOf("\r\n\r\n");
    if (end >= 0) return { head: head.slice(0, end), rest: bytes.slice(end + 4) };
    const read = await readSome(tcp, chunk);
    if (read === 0) return { head, rest: new Uint8Array() };
    bytes = joined([bytes, chunk.subarray(0, read)]);
  }
}

/** 0 when there will be nothing more. */
async function readSome(tcp: Deno.Conn, into: Uint8Array): Promise<number> {
  try {
    return await tcp.read(into) ?? 0;
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

async function writeAll(tcp: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await tcp.write(bytes.subarray(at));
}

function isGone(error: unknown): boolean {
  return error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.BrokenPipe ||
    error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted ||
    error instanceof Deno.errors.ConnectionAborted || error instanceof Deno.errors.UnexpectedEof;
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
