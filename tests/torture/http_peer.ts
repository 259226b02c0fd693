/**
 * A client of the HTTP port that sends requests without waiting for responses, and counts those.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { PeerEnd } from "./peer.ts";

const READ_BYTES = 64 * 1024;
const STATUS_LINE = "HTTP/1.1 ";
/** What says that nothing was done. */
const REFUSED = "HTTP/1.1 429";

/** See the top of this file. */
export class HttpPeer implements Disposable {
  /** Responses that began. */
  received = 0;
  /** The same, and those of them with the status 429. */
  readonly sample = { size: 0, overloaded: 0 };
  /** Resolves when the connection is over; never rejects. */
  readonly ended: Promise<PeerEnd>;
  isOver = false;
  readonly #tcp: Deno.Conn;
  readonly #end = Promise.withResolvers<PeerEnd>();
  #writes: Promise<unknown> = Promise.resolve();

  private constructor(tcp: Deno.Conn) {
    this.#tcp = tcp;
    this.ended = this.#end.promise;
    void this.#read();
  }

  static async connect(port: number): Promise<HttpPeer> {
    const tcp = await Deno.connect({ hostname: "127.0.0.1", port });
    tcp.setNoDelay(true);
    return new HttpPeer(tcp);
  }

  /** Sends bytes behind what was sent before; a connection that is gone takes them silently. */
  write(bytes: Uint8Array): Promise<void> {
    const done = this.#writes.then(async () => {
      try {
        for (let at = 0; at < bytes.length && !this.isOver;) {
          at += await this.#tcp.write(bytes.subarray(at));
        }
      } catch (error) {
        this.#finish(String(error));
      }
    });
    this.#writes = done;
    return done;
  }

  destroy(): void {
    this.#finish("destroyed by the test");
  }

  [Symbol.dispose](): void {
    this.destroy();
  }

  async #read(): Promise<void> {
    const memory = Buffer.alloc(READ_BYTES);
    // The start of a status line may come with the bytes before.
    let kept = 0;
    try {
      for (;;) {
        const count = await this.#tcp.read(memory.subarray(kept));
        if (count === null) return this.#finish("the connection ended");
        kept = this.#count(memory.subarray(0, kept + count));
      }
    } catch (error) {
      this.#finish(String(error));
    }
  }

  /** Counts status lines; moves the bytes behind the last one to the front, returns how many. */
  #count(bytes: Buffer): number {
    let next = 0;
    for (;;) {
      const at = bytes.indexOf(STATUS_LINE, next, "latin1");
      if (at < 0 || at + REFUSED.length > bytes.length) {
        const start = at < 0 ? Math.max(next, bytes.length - STATUS_LINE.length + 1) : at;
        return bytes.copy(bytes, 0, start);
      }
      this.received++;
      this.sample.size++;
      next = at + REFUSED.length;
      if (bytes.toString("latin1", at, next) === REFUSED) this.sample.overloaded++;
    }
  }

  #finish(reason: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#end.resolve({ code: 1006, reason });
    try {
      this.#tcp.close();
    } catch {
      // It was closed before.
    }
  }
}
