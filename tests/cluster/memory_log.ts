/**
 * A log of the state in memory, with several engines on it, whose answers may be lost.
 *
 * @module
 */
import {
  type LeaderKey,
  type LogEnd,
  type LogMessage,
  notOwner,
  type SnapshotPiece,
  type StateLog,
  unknownOutcome,
} from "../../engine/ports/state_log.ts";

/** What the engines of a test share. */
export class MemoryLogServer {
  id: string = crypto.randomUUID();
  readonly messages: { readonly number: number; readonly bytes: Uint8Array }[] = [];
  last = 0;
  snapshot: { readonly upTo: number; readonly pieces: readonly Uint8Array[] } | undefined;
  /** Runs before each message is appended; a throw is its failure. */
  beforeAppend: () => Promise<void> | void = () => {};
  /** Runs before its answer; a throw: the answer is lost for good. */
  beforeAnswer: () => Promise<void> | void = () => {};

  /** Runs before each message that is read. */
  beforeRead: () => Promise<void> | void = () => {};
  #leader: { readonly life: string; readonly revision: number } | undefined;

  open(): StateLog {
    return new MemoryLog(this);
  }

  /** The leader's key; `beforeWrite` may throw, as a network does. */
  openKey(beforeWrite: () => void = () => {}): LeaderKey {
    return {
      read: () => Promise.resolve(this.#leader),
      // deno-lint-ignore require-await -- A throw is to become a rejection.
      write: async (life, revision) => {
        beforeWrite();
        if (revision !== (this.#leader?.revision ?? 0)) throw notOwner();
        this.#leader = { life, revision: revision + 1 };
        return revision + 1;
      },
    };
  }
}

class MemoryLog implements StateLog {
  readonly #server: MemoryLogServer;

  constructor(server: MemoryLogServer) {
    this.#server = server;
  }

  get bytes(): number {
    return this.#server.messages.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  end(): Promise<LogEnd> {
    return Promise.resolve({ id: this.#server.id, number: this.#server.last });
  }

  async append(bytes: Uint8Array, after: number): Promise<number> {
    await this.#server.beforeAppend();
    if (after !== this.#server.last) throw notOwner();
    this.#server.messages.push({ number: ++this.#server.last, bytes: bytes.slice() });
    try {
      await this.#server.beforeAnswer();
    } catch (thrown) {
      throw unknownOutcome(thrown);
    }
    return after + 1;
  }

  async *read(from: number): AsyncGenerator<LogMessage | SnapshotPiece> {
    const { messages, last, snapshot } = this.#server;
    const upTo = snapshot?.upTo ?? 0;
    const needsSnapshot = from <= upTo;
    if (needsSnapshot) {
      for (const [i, bytes] of snapshot!.pieces.entries()) {
        await Promise.resolve();
        const isLast = i === snapshot!.pieces.length - 1;
        yield { kind: "piece", upTo, isFirst: i === 0, isLast, bytes };
      }
    }
    const next = needsSnapshot ? upTo + 1 : from;
    for (const { number, bytes } of [...messages]) {
      await this.#server.beforeRead();
      if (number >= next && number <= last) yield { kind: "message", number, bytes };
    }
  }

  async snapshot(pieces: AsyncIterable<Uint8Array>, upTo: number): Promise<void> {
    const kept: Uint8Array[] = [];
    for await (const piece of pieces) kept.push(piece.slice());
    const server = this.#server;
    if ((server.snapshot?.upTo ?? 0) > upTo) throw notOwner();
    server.snapshot = { upTo, pieces: kept };
    const stay = server.messages.filter(({ number }) => number > upTo);
    server.messages.splice(0, Infinity, ...stay);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
