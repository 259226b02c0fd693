/**
 * Writes that arrive during a commit share the next one, so that one fsync serves them all.
 *
 * Works are settled strictly in the order in which they were added, also those that change nothing:
 * what they saw may be on its way itself, and a crash could still take it back. When a commit
 * fails, it fails for every work in it and for every later one that looked at a key it would have
 * changed, and so on for the keys of those; they do not wait for the works between. This file knows
 * neither keys nor a database; it only sees ids.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  STORE_COMMIT_BYTES_MAX,
  STORE_COMMIT_CHANGES_MAX,
} from "../../sdk/typescript/wire/limits.ts";

/** One write that was applied in memory and waits to be made durable. */
export interface Work {
  /** Ids of all keys it looked at. */
  readonly looked: readonly string[];
  /** Ids of the keys it changes, all of them among `looked`. */
  readonly changed: readonly string[];
  /** What it adds to a commit. */
  readonly mutations: number;
  /** See {@linkcode Work.mutations}. */
  readonly bytes: number;
  /** Called once: it is durable, or with `SET_ERROR` it is to be undone. Must not throw. */
  settle(failure: EngineError | undefined): void;
}

/** Makes works durable together, or none of them. */
export type Commit<W extends Work> = (works: readonly W[]) => Promise<void>;

/** The queue of works and the one commit that is on its way. */
export class GroupCommit<W extends Work> {
  readonly #commit: Commit<W>;
  readonly #rest: () => Promise<boolean>;
  #waiting: W[] = [];
  #running: Promise<void> | undefined;

  /**
   * `rest` does a piece of work that nobody waits for, such as clearing up, and says whether it
   * did any; it runs between commits.
   */
  constructor(commit: Commit<W>, rest: () => Promise<boolean>) {
    this.#commit = commit;
    this.#rest = rest;
  }

  /** Takes a work; it is settled later, never before this returns. */
  add(work: W): void {
    this.#waiting.push(work);
    this.#running ??= Promise.resolve().then(() => this.#run());
  }

  /** Resolves when nothing waits and no commit is on its way. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #run(): Promise<void> {
    let didRest = false;
    do {
      if (this.#waiting.length > 0) await this.#commitGroup(this.#takeGroup());
      didRest = await this.#rest();
    } while (didRest || this.#waiting.length > 0);
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
      // A work that is too large for any group makes one of its own.
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
    const failed = new Set(group.filter(({ looked }) => looked.some((id) => lost.has(id))));
    this.#addBuiltOn(failed, lost);
    const unharmed = group.filter((work) => !failed.has(work));
    this.#waiting = this.#waiting.filter((work) => !failed.has(work));
    for (const work of unharmed) work.settle(undefined);
    for (const work of failed) work.settle(failure);
  }

  /**
   * Adds what waits and cannot be kept when some keys are undone: later works that looked at one
   * of them, and earlier ones that change it too, since nobody would know what they leave there.
   */
  #addBuiltOn(failed: Set<W>, lost: ReadonlySet<string>): void {
    const undone = new Set(lost);
    let before: number;
    do {
      before = failed.size;
      const gone = new Set(lost);
      for (const work of this.#waiting) {
        const { looked, changed } = work;
        if (!looked.some((id) => gone.has(id)) && !changed.some((id) => undone.has(id))) continue;
        failed.add(work);
        for (const id of changed) {
          gone.add(id);
          undone.add(id);
        }
      }
    } while (failed.size > before);
  }
}
