/**
 * One TCP connection that is closed once, whatever happens to it.
 *
 * A connection that is closed while the peer still talks takes back what was sent to it last. So
 * {@linkcode RawSocket.finish} ends the own half only, and reads on, to nobody, until the peer has
 * ended its half, too, or {@linkcode RawSocket.destroy} is called because it takes too long.
 *
 * @module
 */

const DISCARD_BYTES = 4 * 1024;

/** A TCP connection with its end. */
export class RawSocket {
  readonly #tcp: Deno.TcpConn;
  #isDestroyed = false;

  /** Takes a connection; small messages leave it at once. */
  constructor(tcp: Deno.TcpConn) {
    this.#tcp = tcp;
    try {
      tcp.setNoDelay(true);
    } catch {
      // It is gone already, which the first read says, too.
    }
  }

  /** Bytes read, `null` at the end. Rejects when the connection broke off. */
  read(into: Uint8Array): Promise<number | null> {
    return this.#tcp.read(into);
  }

  /** Bytes written, which may be fewer. Rejects when the connection broke off. */
  write(bytes: Uint8Array): Promise<number> {
    return this.#tcp.write(bytes);
  }

  /** Says to the peer that nothing follows, and waits for its end. Never rejects. */
  async finish(): Promise<void> {
    try {
      await this.#tcp.closeWrite();
      const discarded = new Uint8Array(DISCARD_BYTES);
      while (await this.#tcp.read(discarded) !== null);
    } catch {
      // Broken off or destroyed meanwhile: the end all the same.
    }
    this.destroy();
  }

  /** Ends what is under way, now. */
  destroy(): void {
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    this.#tcp.close();
  }
}
