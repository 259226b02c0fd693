/**
 * The memory of answers: what `state::list` and large values take while they are read.
 *
 * A small answer is counted only. A larger one waits until the larger ones before it are sent, so
 * that a hundred of them do not each fill memory with a part, and is refused where the whole does
 * not fit. Callers that wait for the same large list get one text, which is made once. Once an
 * answer is on its way the connection of its caller counts it.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { VALUE_BYTES_MAX } from "../../engine/ports/store.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { listText, listValues, type StateEntries } from "./entries.ts";
import type { Place } from "./record.ts";
import { applyOps, type OpError, type UpdateOp } from "./update_ops.ts";

/** Answers up to this size do not wait. */
export const SMALL_ANSWER_BYTES = 1024 * 1024;

/** Pause between two larger ones, for what waits in the engine meanwhile. */
export const ANSWER_PAUSE_MS = 100;

/**
 * With a smaller old value, the answer fits into a message in any case: a message may be 64 KiB
 * larger than a value.
 */
export const LARGE_BYTES = 32 * 1024;

/** Takes the memory of a part of an answer, before it is kept. */
export type Add = (bytes: number) => Promise<void>;

/** A text that several callers get. */
interface Shared {
  readonly text: Promise<JsonText>;
  /** Those that have not got it. */
  callers: number;
  /** Its bytes, which it holds until the last of them has. */
  taken: number;
}

/** All answers that are being read. */
export class AnswerMemory {
  readonly #memory: MemoryBudget;
  readonly #clock: Pick<Clock, "after">;
  /** Settles when the large answers that began before have ended. */
  #last: Promise<void> = Promise.resolve();
  /** By key: texts that are not begun yet. */
  readonly #waiting = new Map<string, Shared>();

  constructor(memory: MemoryBudget, clock: Pick<Clock, "after">) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /**
   * Runs `read`, which reports the bytes of each part to `add` before it keeps it.
   *
   * @throws {EngineError} `overloaded` when the answer does not fit. What `read` throws.
   */
  async hold<T>(read: (add: Add) => Promise<T>): Promise<T> {
    let bytes = 0;
    let taken = 0;
    let leave: (() => void) | undefined;
    const add = async (more: number): Promise<void> => {
      bytes += more;
      if (bytes > SMALL_ANSWER_BYTES) leave ??= await this.#enter();
      if (!this.#memory.take("queues", bytes - taken)) throw noMemory();
      taken = bytes;
    };
    try {
      return await read(add);
    } finally {
      this.#memory.release("queues", taken);
      leave?.();
    }
  }

  /**
   * A large answer as text. Callers that ask for the same key before the text is begun share it;
   * what it is made of is then newer than all their calls. They get it one after another.
   *
   * @throws {EngineError} `overloaded` when the answer does not fit. What `make` throws.
   */
  async shared(key: string, make: (add: Add) => Promise<JsonText>): Promise<JsonText> {
    const shared = this.#waiting.get(key) ?? this.#begin(key, make);
    shared.callers++;
    try {
      const text = await shared.text;
      const leave = await this.#enter();
      leave();
      // The frame of this caller, which its connection counts from now on.
      if (!this.#memory.take("queues", shared.taken)) throw noMemory();
      this.#memory.release("queues", shared.taken);
      return text;
    } finally {
      if (--shared.callers === 0) {
        this.#memory.release("queues", shared.taken);
        shared.taken = 0;
      }
    }
  }

  #begin(key: string, make: (add: Add) => Promise<JsonText>): Shared {
    const { promise, resolve } = Promise.withResolvers<JsonText>();
    const shared: Shared = { text: promise, callers: 0, taken: 0 };
    this.#waiting.set(key, shared);
    resolve(this.#make(key, shared, make));
    return shared;
  }

  async #make(
    key: string,
    shared: Shared,
    make: (add: Add) => Promise<JsonText>,
  ): Promise<JsonText> {
    const leave = await this.#enter();
    this.#waiting.delete(key);
    try {
      // deno-lint-ignore require-await -- A throw is to become a rejection.
      return await make(async (bytes) => {
        if (!this.#memory.take("queues", bytes)) throw noMemory();
        shared.taken += bytes;
      });
    } finally {
      leave();
    }
  }

  /** Gives what waits in the engine its turn. */
  giveWay(): Promise<void> {
    return new Promise((resolve) => void this.#clock.after(0, resolve));
  }

  /** Waits for the large answers before; call the result to let the next one go on. */
  async #enter(): Promise<() => void> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    // The pause begins when the answer was sent: that may take longer than the pause.
    return () => void this.#clock.after(0, () => void this.#clock.after(ANSWER_PAUSE_MS, resolve));
  }
}

function noMemory(): EngineError {
  const message = "The memory of the engine has no room for the answer now; try again, or read " +
    "less with state::list_entries";
  return new EngineError("overloaded", message);
}

/** Rejects a write whose answer, the old and the new value, would not fit into one message. */
export function checkAnswer(old: { readonly bytes: number } | undefined, value: Json): void {
  if (!old || old.bytes < LARGE_BYTES) return;
  const bytes = old.bytes + new TextEncoder().encode(JSON.stringify(value)).length;
  if (bytes <= VALUE_BYTES_MAX) return;
  const message = `The old and the new value have ${bytes} bytes together; ` +
    `${VALUE_BYTES_MAX} are allowed, so delete the old one first`;
  throw new EngineError("VALUE_TOO_LARGE", message, {
    details: { bytes, bytes_max: VALUE_BYTES_MAX },
  });
}

/** Applies operations to an entry; the answer of `update`. Its other members stay as they are. */
export async function updateEntry(
  entries: StateEntries,
  place: Place,
  ops: readonly UpdateOp[],
): Promise<JsonText> {
  let errors: OpError[] = [];
  const changed = await entries.write(place, (old) => {
    const updated = applyOps(old?.value, ops);
    errors = updated.errors;
    checkAnswer(old, updated.value);
    return { value: updated.value, expires_at_ms: old?.expires_at_ms };
  });
  return changeAnswer(changed.old, changed.new!.json, errors);
}

/** The answer of a change: the old and the new value as they are stored, and what was skipped. */
export function changeAnswer(
  old: { readonly json: string } | undefined,
  json: string,
  errors: readonly OpError[] = [],
): JsonText {
  const skipped = errors.length === 0 ? "" : `,"errors":${JSON.stringify(errors)}`;
  return new JsonText(`{"old_value":${old?.json ?? null},"new_value":${json}${skipped}}`);
}

/** The values of a scope as text; readers of a large list share it. */
export async function listAnswer(
  entries: StateEntries,
  answers: AnswerMemory,
  scope: string,
): Promise<JsonText> {
  const small = await answers.hold((add) => listValues(entries, scope, SMALL_ANSWER_BYTES, add));
  return small ?? await answers.shared(scope, (add) => {
    return listText(entries, scope, add, () => answers.giveWay());
  });
}
