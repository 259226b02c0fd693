/**
 * Group commit: writes that arrive during a commit share the next one, and so one fsync.
 *
 * Works are settled strictly in the order in which they were added, also those that change nothing,
 * because a crash could still undo what they read. When a commit fails, it fails for every work in
 * it and for every later one that read a key it would have changed, and so on for the keys of
 * those; they do not wait for the works between. Keys are ids here, and the database is a callback.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { STORE_COMMIT_BYTES_MAX, STORE_COMMIT_CHANGES_MAX } from "./record.ts";

/** A write that was applied in memory and is not durable yet. */
export interface Work {
  /** Ids of all keys it read. */
  readonly read: readonly string[];
  /** Ids of the keys it changes, all of them in `read`. */
  readonly changed: readonly string[];
  /** What it adds to a commit. */
  readonly mutations: number;
  /** See {@linkcode Work.mutations}. */
  readonly bytes: number;
  /** Called once: the work is durable, or with `SET_ERROR` has to be undone. Must not throw. */
  settle(failure: EngineError | undefined): void;
}

/** Makes works durable together, or none of them. */
export type Commit<W extends Work> = (works: readonly W[]) => Promise<void>;

/** The queue of works, and the one commit that is under way. */
export class GroupCommit<W extends Work> {
  readonly #commit: Commit<W>;
  readonly #idleWork: () => Promise<boolean>;
  #waiting: W[] = [];
  #running: Promise<void> | undefined;

  /**
   * `idleWork` runs between commits, such as to delete unused parts; it resolves to `false` when
   * nothing was left to do.
   */
  constructor(commit: Commit<W>, idleWork: () => Promise<boolean>) {
    this.#commit = commit;
    this.#idleWork = idleWork;
  }

  /** Adds a work; it is settled after this returns. */
  add(work: W): void {
    this.#waiting.push(work);
    this.#running ??= Promise.resolve().then(() => this.#run());
  }

  /** Resolves when no work waits and no commit is under way. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #run(): Promise<void> {
    let hasIdleWork = false;
    do {
      if (this.#waiting.length > 0) await this.#commitGroup(this.#takeGroup());
      hasIdleWork = await this.#idleWork();
    } while (hasIdleWork || this.#waiting.length > 0);
    this.#running = undefined;
  }

  async #commitGroup(group: readonly W[]): Promise<void> {
    if (group.some(({ changed }) => changed.length > 0)) {
      try {
        await this.#commit(group);
      } catch (thrown) {
        this.#fail(group, thrown);
        return;
      }
    }
    for (const work of group) work.settle(undefined);
  }

  #takeGroup(): W[] {
    let count = 0;
    let mutations = 0;
    let bytes = 0;
    for (const work of this.#waiting) {
      mutations += work.mutations;
      bytes += work.bytes;
      const isFull = mutations > STORE_COMMIT_CHANGES_MAX || bytes > STORE_COMMIT_BYTES_MAX;
      // A work that is too large for any group gets one of its own.
      if (isFull && count > 0) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  #fail(group: readonly W[], thrown: unknown): void {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    const message = `The state file refused the write (${reason}); see that its disk has room`;
    const failure = new EngineError("SET_ERROR", message, { cause: thrown });
    const lost = new Set(group.flatMap(({ changed }) => changed));
    const failed = new Set(group.filter(({ read }) => read.some((id) => lost.has(id))));
    this.#addBuiltOn(failed, lost);
    const unaffected = group.filter((work) => !failed.has(work));
    this.#waiting = this.#waiting.filter((work) => !failed.has(work));
    for (const work of unaffected) work.settle(undefined);
    for (const work of failed) work.settle(failure);
  }

  /**
   * Adds the waiting works that depend on undone keys: later ones that read such a key, and earlier
   * ones that change it too, because its entry would be unknown.
   */
  #addBuiltOn(failed: Set<W>, lost: ReadonlySet<string>): void {
    const undone = new Set(lost);
    let before: number;
    do {
      before = failed.size;
      const gone = new Set(lost);
      for (const work of this.#waiting) {
        const { read, changed } = work;
        if (!read.some((id) => gone.has(id)) && !changed.some((id) => undone.has(id))) continue;
        failed.add(work);
        for (const id of changed) {
          gone.add(id);
          undone.add(id);
        }
      }
    } while (failed.size > before);
  }
}
