/**
 * One TCP connection that is closed once, whatever happens to it, with TLS on it or without.
 *
 * A connection that is closed while the peer still talks takes back what was sent to it last. So
 * {@linkcode RawSocket.finish} ends the own half only, and reads on, to nobody, until the peer has
 * ended its half, too, or {@linkcode RawSocket.destroy} is called because it takes too long.
 *
 * @module
 */
import type { ByteStream, TlsServer, TlsStream } from "./tls_stream.ts";

const DISCARD_BYTES = 4 * 1024;

/** A TCP connection with its end. */
export class RawSocket {
  #stream: ByteStream;
  #tls: TlsStream | undefined;
  #unread: Uint8Array | undefined;
  #isDestroyed = false;

  /** Takes a connection; small messages leave it at once. */
  constructor(tcp: Deno.TcpConn) {
    this.#stream = tcp;
    try {
      tcp.setNoDelay(true);
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

  /** These bytes were read and belong to whoever reads next. */
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
