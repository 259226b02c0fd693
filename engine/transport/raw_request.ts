/**
 * A connection that is no line yet: its request is read, and answered if it will never be one.
 *
 * @module
 */
import {
  LINE_CLOSE_MS,
  PAGE_TIMEOUT_MS,
  UPGRADE_HEAD_BYTES_MAX,
  UPGRADE_HEAD_MS,
} from "../../sdk/typescript/wire/limits.ts";
import { type Answer, TLS_HERE } from "./answers.ts";
import type { RawSocket } from "./raw_socket.ts";
import { TLS_FIRST_BYTE, type TlsServer } from "./tls_stream.ts";
import { answerBytes, readHead, type RequestHead, TOO_SLOW } from "./upgrade.ts";

const FIRST_BYTES = 1_024;

/** A request's head, and what came behind it. */
export interface AskedUpgrade {
  readonly head: RequestHead;
  readonly rest: Uint8Array;
}

/** One request, from its first byte to its answer. */
export class RawRequest {
  readonly #socket: RawSocket;
  /** When the part that runs has to be done, as `performance` tells time. */
  #endAt = performance.now() + UPGRADE_HEAD_MS;
  #isAnswered = false;
  #misfit: string | undefined;
  #late: Promise<void> | undefined;

  /** Takes a connection of which nothing was read. */
  constructor(socket: RawSocket) {
    this.#socket = socket;
  }

  /** What the peer began with, when that is not what the port speaks. */
  get misfit(): string | undefined {
    return this.#misfit;
  }

  /**
   * Goes on in TLS if that is how the peer begins, else tells it to; `false` when there will be
   * nothing to read. Never rejects.
   */
  async secure(tls: TlsServer): Promise<boolean> {
    const first = new Uint8Array(FIRST_BYTES);
    const count = await this.#socket.read(first).catch(() => null);
    if (count === null || this.#isAnswered) {
      await this.#late;
      return false;
    }
    if (first[0] !== TLS_FIRST_BYTE) {
      this.#misfit = "plain ws:// on a port with TLS: the peer has to dial wss://";
      await this.refuse(TLS_HERE);
      return false;
    }
    this.#socket.secure(tls, first.subarray(0, count));
    return true;
  }

  /**
   * What is asked; `undefined` when there will be nothing, and what there is to say about it was
   * said. Never rejects.
   */
  async read(): Promise<AskedUpgrade | undefined> {
    let bytes = new Uint8Array(FIRST_BYTES);
    for (let end = 0;;) {
      const count = await this.#socket.read(bytes.subarray(end)).catch(() => null);
      if (count === null || this.#isAnswered) return void await this.#late;
      end += count;
      const found = readHead(bytes.subarray(0, end));
      if (found.state === "whole") {
        return { head: found.head, rest: bytes.subarray(found.head.bytes, end) };
      }
      if (found.state === "refused") {
        if (bytes[0] === TLS_FIRST_BYTE) {
          this.#misfit = "TLS on a port without it: the peer has to dial ws://, or set engine.tls";
        }
        await this.refuse(found.answer);
        return undefined;
      }
      if (end === bytes.length) bytes = enlarged(bytes);
    }
  }

  /** The head is there and its answer is being made: that has a time of its own. */
  extend(): void {
    this.#endAt = performance.now() + PAGE_TIMEOUT_MS + LINE_CLOSE_MS;
  }

  /** Answers, and returns when the peer has the answer or has had long enough. Never rejects. */
  async refuse(answer: Answer, method = "GET"): Promise<void> {
    this.#isAnswered = true;
    const takeMs = answer.body === undefined ? LINE_CLOSE_MS : PAGE_TIMEOUT_MS;
    this.#endAt = performance.now() + takeMs;
    const bytes = answerBytes(answer, method);
    try {
      for (let at = 0; at < bytes.length;) at += await this.#socket.write(bytes.subarray(at));
    } catch {
      return; // Nobody is there to be told.
    }
    await this.#socket.finish();
  }

  /** Ends a request that takes too long; `now` is that of `performance`. */
  look(now: number): void {
    if (now < this.#endAt) return;
    if (this.#isAnswered) this.#socket.destroy();
    else this.#late = this.refuse(TOO_SLOW);
  }

  /** The port is closing: who has not asked by now is not waited for. */
  close(): void {
    if (!this.#isAnswered) this.destroy();
  }

  /** Ends it without a word. */
  destroy(): void {
    this.#socket.destroy();
  }
}

function enlarged(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(Math.min(bytes.length * 4, UPGRADE_HEAD_BYTES_MAX));
  larger.set(bytes);
  return larger;
}
