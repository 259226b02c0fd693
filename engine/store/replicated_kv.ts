/**
 * The database of a store whose commits go through a log before they count, for the engine that
 * keeps the state of a cluster.
 *
 * A commit names the message before it, so of two engines that both believe to keep the state, one
 * is refused. What the log has accepted is applied to the view, which answers all reads. After a
 * write that was refused, or of which nothing is known, nothing can be read or written here any
 * more: another engine may have changed what this view does not have.
 *
 * @module
 */
import { EngineError, thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { Log } from "../ports/log.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import type { Clock } from "../ports/clock.ts";
import { isNotOwner, type StateLog, unknownOutcome } from "../ports/state_log.ts";
import type { Store } from "../ports/store.ts";
import type { Turns } from "../ports/turns.ts";
import {
  FILE_FORMAT,
  FILE_HEAD_KEY,
  type FileHead,
  type KvCommit,
  type KvDatabase,
} from "./kv_file.ts";
import { openStoreOn } from "./kv_store.ts";
import { encodeChanges, type LogChange } from "./log_changes.ts";
import type { StateView } from "./state_view.ts";

/** Bytes of the log after which a snapshot takes their place. */
export const LOG_BYTES_MAX = 64 * 1024 * 1024;
/** Attempts to become the last one in the log, while the one before still writes. */
const TAKE_OVER_ATTEMPTS = 20;

/** How to open the store of the cluster. */
export interface ReplicatedStoreSetup {
  readonly log: StateLog;
  readonly view: StateView;
  /** Aborted when this engine may not keep the state any more; what is under way then fails. */
  readonly signal: AbortSignal;
  /** Called once, when this engine has to stop keeping the state. */
  failed(reason: EngineError): void;
  readonly report: Log;
  readonly memory?: MemoryBudget;
  readonly clock?: Clock;
  readonly turns?: Turns;
  /** Default: {@linkcode LOG_BYTES_MAX}. */
  readonly logBytesMax?: number;
  readonly cacheBytesMax?: number;
}

/**
 * Takes the state over: applies what this engine lacks, and appends a message, from which on those
 * of the engine before are refused.
 *
 * @throws {EngineError} `store_unavailable`, `SET_ERROR`.
 */
export async function openReplicatedStore(setup: ReplicatedStoreSetup): Promise<Store> {
  const { view, report, memory, clock, turns, cacheBytesMax } = setup;
  const kv = new ReplicatedKv(setup);
  await kv.takeOver();
  const { value } = await kv.get<FileHead>(FILE_HEAD_KEY);
  const head = value ?? { format: FILE_FORMAT, version: 0 };
  if (head.format > FILE_FORMAT) {
    throw new EngineError("store_unavailable", "The state was written by a newer engine");
  }
  const { id = crypto.randomUUID(), epoch = 0, version } = head;
  const marker = { id, epoch: epoch + 1 };
  await kv.set(FILE_HEAD_KEY, { format: FILE_FORMAT, version, ...marker });
  const file = { kv, version, marker, [Symbol.dispose]: () => kv.close() };
  return await openStoreOn(file, view.path, {
    log: report,
    ...memory && { memory },
    ...clock && { clock },
    ...turns && { turns },
    ...cacheBytesMax !== undefined && { cacheBytesMax },
  });
}

class ReplicatedKv implements KvDatabase {
  readonly #setup: ReplicatedStoreSetup;
  /** Commits one after the other: each names the one before. */
  #turn: Promise<unknown> = Promise.resolve();
  #failure: EngineError | undefined;
  #isSnapshotting = false;
  /** Bytes of the log that begin the next snapshot. */
  #snapshotAt: number;

  constructor(setup: ReplicatedStoreSetup) {
    this.#setup = setup;
    this.#snapshotAt = setup.logBytesMax ?? LOG_BYTES_MAX;
  }

  /** Becomes the last one in the log. */
  async takeOver(): Promise<void> {
    const { log, view, signal } = this.#setup;
    for (let attempt = 1;; attempt++) {
      await view.catchUp(log);
      try {
        const number = await log.append(encodeChanges([]), view.applied, signal);
        return await view.apply([], number);
      } catch (thrown) {
        // The engine before has written meanwhile.
        if (!isNotOwner(thrown) || attempt === TAKE_OVER_ATTEMPTS) throw thrown;
      }
    }
  }

  get<T = unknown>(key: Deno.KvKey): Promise<Deno.KvEntryMaybe<T>> {
    return this.#read((kv) => kv.get<T>(key));
  }

  getMany: Deno.Kv["getMany"] = (keys) => this.#read((kv) => kv.getMany(keys));

  list: Deno.Kv["list"] = (selector, options) => {
    this.#assertUsable();
    return this.#setup.view.kv.list(selector, options);
  };

  atomic(): KvCommit {
    return new Commit((changes) => this.#append(changes));
  }

  set(key: Deno.KvKey, value: unknown): Promise<void> {
    return this.atomic().set(key, value).commit() as Promise<void>;
  }

  /** The view stays open: it follows the log again. */
  close(): void {}

  async #read<T>(read: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    this.#assertUsable();
    const result = await read(this.#setup.view.kv);
    this.#assertUsable(); // It may have taken long.
    return result;
  }

  #assertUsable(): void {
    if (this.#failure) throw this.#failure;
    if (!this.#setup.signal.aborted) return;
    throw new EngineError("SET_ERROR", "This engine does not keep the state any more");
  }

  #append(changes: readonly LogChange[]): Promise<void> {
    const done = this.#turn.then(() => this.#appendNow(changes));
    this.#turn = done.catch(() => {}); // The caller has it.
    return done;
  }

  async #appendNow(changes: readonly LogChange[]): Promise<void> {
    this.#assertUsable();
    const { log, view, signal } = this.#setup;
    let number: number;
    try {
      const appended = log.append(encodeChanges(changes), view.applied, signal);
      number = await orUnknown(appended, signal);
    } catch (thrown) {
      if (isNotOwner(thrown) || isUnknown(thrown)) this.#fail(thrown as EngineError);
      throw thrown;
    }
    try {
      await view.apply(changes, number);
    } catch (thrown) {
      // It counts, and cannot be read here.
      this.#fail(unknownOutcome(thrown));
      throw this.#failure;
    }
    if (log.bytes >= this.#snapshotAt && !this.#isSnapshotting) void this.#snapshot();
  }

  #fail(failure: EngineError): void {
    this.#failure = failure;
    this.#setup.failed(failure);
  }

  /** Commits go on meanwhile: applied to what is read of them, they change nothing. */
  async #snapshot(): Promise<void> {
    const { log, view, report, logBytesMax = LOG_BYTES_MAX } = this.#setup;
    this.#isSnapshotting = true;
    const upTo = view.applied;
    try {
      await log.snapshot(this.#pieces(), upTo);
      report.debug("a snapshot of the state took the place of its log", { up_to: upTo });
    } catch (thrown) {
      const reason = thrownText(thrown);
      if (this.#failure === undefined && !this.#setup.signal.aborted) {
        report.warn("a snapshot of the state failed; its log stays", { reason });
      }
    }
    this.#snapshotAt = log.bytes + logBytesMax;
    this.#isSnapshotting = false;
  }

  async *#pieces(): AsyncGenerator<Uint8Array> {
    for await (const piece of this.#setup.view.pieces()) {
      this.#assertUsable();
      yield piece;
    }
  }
}

/** The changes of one commit. */
class Commit implements KvCommit {
  readonly #append: (changes: readonly LogChange[]) => Promise<void>;
  readonly #changes: LogChange[] = [];

  constructor(append: (changes: readonly LogChange[]) => Promise<void>) {
    this.#append = append;
  }

  set(key: Deno.KvKey, value: unknown): this {
    this.#changes.push(["set", key, value]);
    return this;
  }

  delete(key: Deno.KvKey): this {
    this.#changes.push(["delete", key]);
    return this;
  }

  commit(): Promise<void> {
    return this.#append(this.#changes);
  }
}

/** The result; an aborted signal is not waited beyond, whatever becomes of the write. */
async function orUnknown(appended: Promise<number>, signal: AbortSignal): Promise<number> {
  const late = Promise.withResolvers<never>();
  const abort = (): void => late.reject(unknownOutcome());
  appended.catch(() => {}); // It may fail later.
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([appended, late.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function isUnknown(thrown: unknown): boolean {
  return thrown instanceof EngineError && thrown.details?.unknown === true;
}
