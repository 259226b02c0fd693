/**
 * How much memory the registrations of a worker may take: functions, triggers, types, announcement.
 *
 * The size of one registration is bounded by that of its message; here their sum is, per worker by
 * the bytes that the worker sent, and over the process by an estimate of what storing them takes,
 * since small JSON values take many times their text. Tables keep a {@linkcode Holding} per entry
 * and return it when the entry goes.
 *
 * @module
 */
import { errorBody } from "../../sdk/typescript/wire/errors.ts";
import type { ErrorBody } from "../../sdk/typescript/wire/protocol.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../ports/memory.ts";
import { partsIn } from "./wire/members.ts";
import type { ByteRange } from "./wire/parsed_frame.ts";

/** Bytes of the messages with which one worker registered what it offers now. */
export const WORKER_REGISTRATIONS_BYTES_MAX = 16 * 1024 * 1024;
/** Objects, maps and ids of one registration, as stored. */
const FIXED_BYTES = 1_024;
/** One object, array or member of parsed JSON. */
const PART_BYTES = 48;
/** A trigger is stored as its message, a key for comparisons, and what its provider keeps of it. */
const TEXT_COPIES = 3;

/** What one registration takes. */
export interface Holding {
  /** Bytes of its message. */
  readonly bytes: number;
  /** What it takes of the process's budget. */
  readonly memoryBytes: number;
}

/** A worker that registers; a peer of the core. */
export interface Registrant {
  readonly isBuiltin: boolean;
  registeredBytes: number;
}

/** Takes nothing. */
export const NO_HOLDING: Holding = { bytes: 0, memoryBytes: 0 };

/** Counts what registrations take. */
export class Registrations {
  readonly #memory: MemoryBudget;

  constructor(memory: MemoryBudget = UNLIMITED_MEMORY) {
    this.#memory = memory;
  }

  /**
   * Takes what a registration needs, in place of the one that it replaces; an error, and nothing
   * changes, when it does not fit. Those of built-in workers always fit.
   */
  take(
    peer: Registrant,
    what: string,
    { memory, start, end }: ByteRange,
    replaced: Holding = NO_HOLDING,
  ): Holding | ErrorBody {
    if (peer.isBuiltin) return NO_HOLDING;
    const bytes = end - start | 0; // An integer, else V8 keeps an object for the number.
    const sum = peer.registeredBytes - replaced.bytes + bytes;
    if (sum > WORKER_REGISTRATIONS_BYTES_MAX) {
      const limit_bytes = WORKER_REGISTRATIONS_BYTES_MAX;
      const message = `${what} is refused: the registrations of this worker would have ${sum} ` +
        `bytes, at most ${limit_bytes} are accepted; unregister what is not needed, or shorten ` +
        "schemas, metadata and config";
      return errorBody("overloaded", message, { bytes: sum, limit_bytes });
    }
    const memoryBytes = FIXED_BYTES + TEXT_COPIES * bytes +
        PART_BYTES * partsIn(memory, start, end) | 0;
    if (!this.#memory.take("registrations", memoryBytes)) {
      const message = `${what} is refused: the engine's memory is used up (engine.memory_mb); ` +
        "register it again later";
      return errorBody("overloaded", message);
    }
    peer.registeredBytes += bytes;
    return { bytes, memoryBytes };
  }

  /** Returns what a registration took. */
  release(peer: Registrant, { bytes, memoryBytes }: Holding): void {
    peer.registeredBytes -= bytes;
    if (memoryBytes > 0) this.#memory.release("registrations", memoryBytes);
  }
}
