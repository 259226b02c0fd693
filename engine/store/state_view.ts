/**
 * What an engine of a cluster has of the state: a database in a file of its own, to which it
 * applies the messages of the log in their order.
 *
 * The log is the truth; the file may be lost, and is made anew from the snapshot and the messages
 * behind it. The number of the last message stands in the file and changes with what the message
 * changes, so a crash loses no place. Engines that do not keep the state follow the log all the
 * time, so that one that takes over lacks little.
 *
 * @module
 */
import { EngineError, thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { Log } from "../ports/log.ts";
import type { LogEnd, SnapshotPiece, StateLog } from "../ports/state_log.ts";
import { createStateFile, lockStateFile } from "./kv_file.ts";
import { decodeChanges, encodeChanges, type LogChange } from "./log_changes.ts";
import { sizeOfFile } from "./marker.ts";
import { STORE_COMMIT_BYTES_MAX, STORE_COMMIT_CHANGES_MAX } from "./record.ts";

/** Where the file stands: a log and the last message of it. */
const PLACE: Deno.KvKey = ["log"];
/** Bytes and changes of one piece of a snapshot; each is one commit of the file. */
const PIECE_BYTES = 512 * 1024;
const PIECE_CHANGES = 400;
/** Keys that are read at once for a snapshot. */
const READ_KEYS = 100;
/** Estimated bytes of a change beside those of its value. */
const CHANGE_BYTES = 200;

/** See {@linkcode PLACE}. */
interface Place {
  readonly id: string;
  /** 0 while a snapshot is being loaded. */
  readonly number: number;
}

/** An engine's view of the state. */
export class StateView implements Disposable {
  readonly path: string;
  readonly kv: Deno.Kv;
  readonly #lock: Disposable;
  #place: Place;

  private constructor(path: string, kv: Deno.Kv, lock: Disposable, place: Place) {
    this.path = path;
    this.kv = kv;
    this.#lock = lock;
    this.#place = place;
  }

  /**
   * Opens the file, or makes it; one that is damaged is made anew.
   *
   * @throws {EngineError} `store_unavailable` when another engine of this machine uses it.
   */
  static async open(path: string, log: Log): Promise<StateView> {
    using started = new DisposableStack();
    const lock = started.use(lockStateFile(path));
    let kv: Deno.Kv;
    let place: Place | null;
    try {
      kv = await openView(path);
      ({ value: place } = await kv.get<Place>(PLACE));
    } catch (thrown) {
      log.warn("the local copy of the state is rebuilt", { path, reason: thrownText(thrown) });
      for (const end of ["", "-wal", "-shm"]) {
        if (sizeOfFile(`${path}${end}`) !== undefined) Deno.removeSync(`${path}${end}`);
      }
      kv = await openView(path);
      place = null;
    }
    started.move();
    return new StateView(path, kv, lock, place ?? { id: "", number: 0 });
  }

  /** The number of the last message that was applied. */
  get applied(): number {
    return this.#place.number;
  }

  /**
   * Applies what the log has and this view lacks.
   *
   * @throws {EngineError} `store_unavailable` when this view has messages that the log has lost.
   */
  async catchUp(log: StateLog, end?: LogEnd): Promise<void> {
    const { id, number } = end ?? await log.end();
    if (this.#place.id !== id) await this.#begin(id);
    if (this.applied > number) {
      throw new EngineError(
        "store_unavailable",
        `The log of the state ends at ${number}, but this engine has seen message ` +
          `${this.applied}: it lost what it acknowledged; move ${this.path} away to go on with ` +
          "what the log has, or restore a backup with `engine state restore FILE`",
      );
    }
    if (this.applied === number) return;
    const batch = new Batch();
    let next = this.applied + 1;
    for await (const item of log.read(next)) {
      if (item.kind === "piece") {
        await this.#load(item);
        next = item.upTo + 1;
        continue;
      }
      if (item.number !== next++) throw new EngineError("store_unavailable", "The log has a gap");
      const changes = decodeChanges(item.bytes);
      if (changes.some(([kind]) => kind === "restored")) {
        await this.#flush(batch);
        throw restoreUnderWay();
      }
      if (!batch.fits(changes, item.bytes.length)) await this.#flush(batch);
      batch.add(changes, item.bytes.length, item.number);
    }
    await this.#flush(batch);
  }

  /** Applies the changes of the message behind the last one. */
  async apply(changes: readonly LogChange[], number: number): Promise<void> {
    await this.#commit(changes, { id: this.#place.id, number });
  }

  /** See {@linkcode piecesOf}. */
  pieces(): AsyncGenerator<Uint8Array> {
    return piecesOf(this.kv);
  }

  [Symbol.dispose](): void {
    this.kv.close();
    this.#lock[Symbol.dispose]();
  }

  /** Forgets what another log, or another state of it, has left. */
  async #begin(id: string): Promise<void> {
    await this.#commit([], { id, number: 0 });
    let changes: LogChange[] = [];
    for await (const { key } of this.kv.list({ prefix: [] })) {
      if (key[0] === PLACE[0]) continue;
      changes.push(["delete", key]);
      if (changes.length < PIECE_CHANGES) continue;
      await this.#commit(changes, { id, number: 0 });
      changes = [];
    }
    await this.#commit(changes, { id, number: 0 });
  }

  async #load({ isFirst, isLast, upTo, bytes }: SnapshotPiece): Promise<void> {
    const { id } = this.#place;
    if (isFirst) await this.#begin(id);
    await this.#commit(decodeChanges(bytes), { id, number: isLast ? upTo : 0 });
  }

  async #flush(batch: Batch): Promise<void> {
    if (batch.number > 0) await this.apply(batch.changes, batch.number);
    batch.clear();
  }

  async #commit(changes: readonly LogChange[], place: Place): Promise<void> {
    const commit = this.kv.atomic().set(PLACE, place);
    for (const [kind, key, value] of changes) {
      if (kind === "delete") commit.delete(key);
      else if (kind === "set") commit.set(key, value);
    }
    await commit.commit();
    this.#place = place;
  }
}

/** All of a state, in pieces, each small enough for one message; see `StateLog.snapshot`. */
export async function* piecesOf(kv: Deno.Kv): AsyncGenerator<Uint8Array> {
  let changes: LogChange[] = [];
  let bytes = 0;
  for await (const { key, value } of kv.list({ prefix: [] }, { batchSize: READ_KEYS })) {
    if (key[0] === PLACE[0]) continue;
    const size = CHANGE_BYTES + (value instanceof Uint8Array ? value.length : 0);
    if (bytes + size > PIECE_BYTES || changes.length === PIECE_CHANGES) {
      yield encodeChanges(changes);
      [changes, bytes] = [[], 0];
    }
    changes.push(["set", key, value]);
    bytes += size;
  }
  yield encodeChanges(changes);
}

/** Its snapshot takes the place of that message, once it is there. */
function restoreUnderWay(): EngineError {
  const message = "The state is being restored; if no `engine state restore` runs, run it again";
  return new EngineError("store_unavailable", message);
}

/** Messages that are applied to the file at once. */
class Batch {
  changes: LogChange[] = [];
  /** Of the last message; 0: none. */
  number = 0;
  #bytes = 0;

  fits(changes: readonly LogChange[], bytes: number): boolean {
    return this.changes.length + changes.length <= STORE_COMMIT_CHANGES_MAX &&
      this.#bytes + bytes <= STORE_COMMIT_BYTES_MAX;
  }

  add(changes: readonly LogChange[], bytes: number, number: number): void {
    this.changes.push(...changes);
    this.#bytes += bytes;
    this.number = number;
  }

  clear(): void {
    this.changes = [];
    this.#bytes = this.number = 0;
  }
}

async function openView(path: string): Promise<Deno.Kv> {
  if (sizeOfFile(path) === undefined) createStateFile(path);
  return await Deno.openKv(path);
}
