/**
 * TLS on a TCP connection, as a server speaks it.
 *
 * Not `Deno.listenTls`: it leaves Nagle's algorithm on, and there is no way to switch it off. That
 * held a message of 20 KiB back for 44 ms in the median, where this needs 0.5 ms; it costs twice
 * the CPU time in bulk. And a connection that is not TLS at all can be told so, since its first
 * byte is seen before.
 *
 * @module
 */
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import defer * as nodeStream from "node:stream";
import defer * as nodeTls from "node:tls";
import { setImmediate } from "node:timers";
import { READ_BYTES_FIRST } from "../../sdk/typescript/wire/limits.ts";
import type { Certificate } from "./certificate.ts";

/** Both halves of a connection. Reads and writes reject when it broke off. */
export interface ByteStream {
  /** Bytes read, `null` at the end. */
  read(into: Uint8Array): Promise<number | null>;
  /** Bytes written, which may be fewer. */
  write(bytes: Uint8Array): Promise<number>;
  /** Nothing more is written; the other half stays. */
  closeWrite(): Promise<void>;
  close(): void;
}

/** The first byte of everybody who begins to speak TLS. */
export const TLS_FIRST_BYTE = 22;

/** What is read at once: four records. */
const READ_BYTES_MAX = 64 * 1024;
/** What is written at once, so that a slow peer is seen to move. */
const WRITE_BYTES_MAX = 256 * 1024;

/** Options of Node that its types leave out for a server's own socket. */
type ServerOptions = ConstructorParameters<typeof TLSSocket>[1] & {
  readonly allowHalfOpen: boolean;
};

/** Opens TLS streams with one certificate. */
export class TlsServer {
  readonly #options: ServerOptions;

  /** Takes a certificate that was checked. */
  constructor({ cert, key }: Certificate) {
    const secureContext = nodeTls.createSecureContext({ cert, key, minVersion: "TLSv1.2" });
    this.#options = { isServer: true, secureContext, allowHalfOpen: true };
  }

  /** Goes on in TLS on a connection of which `first` was read; shakes hands with the first read. */
  open(tcp: ByteStream, first: Uint8Array): TlsStream {
    return new TlsStream(new nodeTls.TLSSocket(duplexOf(tcp, first), this.#options));
  }
}

/** One connection in TLS. */
export class TlsStream implements ByteStream {
  readonly #socket: TLSSocket;
  /** Decrypted bytes that nobody has read yet. */
  #chunk: Uint8Array | undefined;
  #isSecure = false;
  /** It begins in a tick of its own; if it ended before, Deno throws where nobody can catch it. */
  #hasBegun = false;
  #isClosed = false;
  #isOver = false;
  #failure: Error | undefined;
  /** Two may read at a time: one asks, and one throws away what follows a refusal. */
  #readers: (() => void)[] = [];

  /** Takes a socket that has not shaken hands. */
  constructor(socket: TLSSocket) {
    this.#socket = socket;
    const over = (): void => {
      this.#isOver = true;
      this.#wakeAll();
    };
    setImmediate(() => {
      this.#hasBegun = true;
      if (this.#isClosed) socket.destroy();
    });
    socket.on("secure", () => this.#isSecure = true);
    socket.on("data", (chunk: Uint8Array) => {
      socket.pause();
      this.#chunk = chunk;
      this.#wakeAll();
    });
    socket.on("error", (error: Error) => {
      this.#failure ??= error;
      over();
    });
    socket.on("end", over);
    socket.on("close", over);
  }

  /** Why no hands were shaken; `undefined` when they were, or nothing was wrong yet. */
  get handshakeFailure(): string | undefined {
    return this.#isSecure ? undefined : this.#failure?.message;
  }

  async read(into: Uint8Array): Promise<number | null> {
    while (!this.#chunk) {
      if (this.#failure) throw this.#failure;
      if (this.#isOver || this.#socket.destroyed) return null;
      this.#socket.resume();
      await new Promise<void>((resolve) => this.#readers.push(resolve));
    }
    const part = this.#chunk.subarray(0, into.length);
    into.set(part);
    this.#chunk = part.length < this.#chunk.length ? this.#chunk.subarray(part.length) : undefined;
    return part.length;
  }

  write(bytes: Uint8Array): Promise<number> {
    const part = bytes.subarray(0, WRITE_BYTES_MAX);
    if (part.length === 0) return Promise.resolve(0); // Deno never says that it is done with it.
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(this.#failure ?? new Error("the connection is closed"));
      if (this.#socket.destroyed) return fail();
      this.#socket.once("close", fail);
      this.#socket.write(part, (error) => {
        this.#socket.off("close", fail);
        if (error) reject(error);
        else resolve(part.length);
      });
    });
  }

  async closeWrite(): Promise<void> {
    if (this.#socket.destroyed) return;
    await new Promise<void>((resolve) => {
      this.#socket.once("close", resolve); // Broken off before all was written.
      this.#socket.end(() => resolve());
    });
  }

  close(): void {
    this.#isClosed = true;
    if (this.#hasBegun) this.#socket.destroy();
  }

  #wakeAll(): void {
    const readers = this.#readers;
    this.#readers = [];
    for (const wake of readers) wake();
  }
}

/** A connection as Node's TLS takes it. */
function duplexOf(tcp: ByteStream, first: Uint8Array): Duplex {
  let size = READ_BYTES_FIRST;
  let rest: Uint8Array | undefined = first;
  const readSome = async (): Promise<Uint8Array | null> => {
    if (rest) {
      // Noise ends the socket at once, and it may not have ended before it has begun.
      await new Promise<void>((resolve) => setImmediate(resolve));
      const bytes = rest;
      rest = undefined;
      return bytes;
    }
    const memory = new Uint8Array(size);
    const count = await tcp.read(memory);
    if (count === size) size = Math.min(4 * size, READ_BYTES_MAX);
    return count === null ? null : memory.subarray(0, count);
  };
  const writeAll = async (bytes: Uint8Array): Promise<void> => {
    for (let at = 0; at < bytes.length;) at += await tcp.write(bytes.subarray(at));
  };
  const duplex = new nodeStream.Duplex({
    allowHalfOpen: true,
    read() {
      readSome().then((bytes) => duplex.push(bytes), (error) => duplex.destroy(error));
    },
    write(bytes: Uint8Array, _encoding, done) {
      writeAll(bytes).then(() => done(), done);
    },
    final(done) {
      tcp.closeWrite().then(() => done(), done);
    },
    destroy(error, done) {
      tcp.close();
      done(error);
    },
  });
  return duplex;
}
