/**
 * One TCP connection, with TLS or without, that is closed exactly once.
 *
 * Closing a connection while the peer still sends discards what was sent to it last. So
 * {@linkcode RawSocket.finish} ends the own half only, and reads and discards until the peer has
 * ended its half too, or {@linkcode RawSocket.destroy} is called because it takes too long.
 *
 * TLS is Node's, not `Deno.listenTls`, which leaves Nagle's algorithm on without a way to switch it
 * off: a message of 20 KiB took 44 ms in the median there and takes 0.5 ms here, for twice the CPU
 * time in bulk. It also lets the port recognise a peer without TLS by its first byte.
 *
 * @module
 */
import { Duplex } from "node:stream";
import { setImmediate } from "node:timers";
import { createSecureContext, TLSSocket } from "node:tls";
import { READ_BYTES_FIRST } from "./frames.ts";
import type { Certificate } from "./certificate.ts";

const DISCARD_BYTES = 4 * 1024;

/** A TCP connection with its end. */
export class RawSocket {
  #stream: ByteStream;
  #tls: TlsStream | undefined;
  #unread: Uint8Array | undefined;
  #isDestroyed = false;

  /** Takes a connection; small messages leave it at once. */
  constructor(tcp: ByteStream & Partial<Pick<Deno.TcpConn, "setNoDelay">>) {
    this.#stream = tcp;
    try {
      tcp.setNoDelay?.(true);
    } catch {
      // It is gone already, which the first read says, too.
    }
  }

  /** Goes on in TLS; `first` was read from it. */
  secure(tls: TlsServer, first: Uint8Array): void {
    this.#stream = this.#tls = tls.open(this.#stream, first);
  }

  /** Why the peer and this side cannot speak TLS; `undefined` when they can. */
  get handshakeFailure(): string | undefined {
    return this.#tls?.handshakeFailure;
  }

  /** Puts bytes back that were read; the next read returns them. */
  unread(bytes: Uint8Array): void {
    this.#unread = bytes;
  }

  /** Bytes read, `null` at the end. Rejects when the connection broke off. */
  read(into: Uint8Array): Promise<number | null> {
    return this.#unread ? Promise.resolve(this.#readAgain(into)) : this.#stream.read(into);
  }

  #readAgain(into: Uint8Array): number {
    const part = this.#unread!.subarray(0, into.length);
    into.set(part);
    const rest = this.#unread!.subarray(part.length);
    this.#unread = rest.length > 0 ? rest : undefined;
    return part.length;
  }

  /** Bytes written, which may be fewer. Rejects when the connection broke off. */
  write(bytes: Uint8Array): Promise<number> {
    return this.#stream.write(bytes);
  }

  /** Says to the peer that nothing follows, and waits for its end. Never rejects. */
  async finish(): Promise<void> {
    try {
      await this.#stream.closeWrite();
      const discarded = new Uint8Array(DISCARD_BYTES);
      while (await this.#stream.read(discarded) !== null);
    } catch {
      // Broken off or destroyed meanwhile: the end all the same.
    }
    this.destroy();
  }

  /** Ends what is under way, now. */
  destroy(): void {
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    this.#stream.close();
  }
}

/** Both halves of a TCP connection. Reads and writes reject when it broke off. */
export interface ByteStream {
  /** Bytes read, `null` at the end. */
  read(into: Uint8Array): Promise<number | null>;
  /** Bytes written, which may be fewer. */
  write(bytes: Uint8Array): Promise<number>;
  /** Ends the write half; the other half stays open. */
  closeWrite(): Promise<void>;
  close(): void;
}

/** The first byte of a TLS handshake. */
export const TLS_FIRST_BYTE = 22;

/** Largest read: four TLS records. */
const READ_BYTES_MAX = 64 * 1024;
/** Largest write, so that progress of a slow peer is visible. */
const WRITE_BYTES_MAX = 256 * 1024;

/** Options of Node that are missing in its types for a server's own socket. */
type ServerOptions = ConstructorParameters<typeof TLSSocket>[1] & {
  readonly allowHalfOpen: boolean;
};

/** Opens TLS streams with one certificate, which was checked before. */
export class TlsServer {
  readonly #options: ServerOptions;

  constructor({ cert, key }: Certificate) {
    const secureContext = createSecureContext({ cert, key, minVersion: "TLSv1.2" });
    this.#options = { isServer: true, secureContext, allowHalfOpen: true };
  }

  /** Starts TLS on a connection of which `first` was read; the first read does the handshake. */
  open(tcp: ByteStream, first: Uint8Array): TlsStream {
    return new TlsStream(new TLSSocket(duplexOf(tcp, first), this.#options));
  }
}

/** One connection with TLS. */
export class TlsStream implements ByteStream {
  readonly #socket: TLSSocket;
  /** Decrypted bytes that were not read yet. */
  #chunk: Uint8Array | undefined;
  #isSecure = false;
  /** The handshake starts in a later tick; ending before it makes Deno throw outside any catch. */
  #hasBegun = false;
  #isClosed = false;
  #isOver = false;
  #failure: Error | undefined;
  /** Up to two: the request, and the one that discards what follows a refusal. */
  #readers: (() => void)[] = [];

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

  /** Why the handshake failed; `undefined` when it succeeded or is under way. */
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
    if (part.length === 0) return Promise.resolve(0); // Deno never calls back for an empty write.
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

/** A connection in the form that Node's TLS takes. */
function duplexOf(tcp: ByteStream, first: Uint8Array): Duplex {
  let size = READ_BYTES_FIRST;
  let rest: Uint8Array | undefined = first;
  const readSome = async (): Promise<Uint8Array | null> => {
    if (rest) {
      // Invalid bytes end the socket at once, which must not happen before it has begun.
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
  const duplex = new Duplex({
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
