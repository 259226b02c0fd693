/**
 * Group commit: writes that arrive during a commit share the next one, and so one fsync.
 *
 * Works are settled strictly in the order in which they were added, also those that change nothing,
 * because a crash could still undo what they read. When a commit fails, it fails for every work in
 * it and for every later one that read a key it would have changed, and so on for the keys of
 * those; they do not wait for the works between. Keys are ids here, and the database is a callback.
 *
 * Works that were acknowledged already may wait for others: until their time, until one comes that
 * may not, or until a commit is full.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
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
  /** Milliseconds that the commit may wait for; 0: it begins at once. */
  readonly flushMs: number;
  /** Called once: the work is durable, or with `SET_ERROR` has to be undone. Must not throw. */
  settle(failure: EngineError | undefined): void;
}

/** What one commit holds. A key whose values have no parts counts once, however often it is set. */
class Fill {
  readonly #ids = new Set<string>();
  #works = 0;
  #mutations = 0;
  #bytes = 0;

  /** Adds a work, unless it does not fit. The first one always does. */
  add({ changed, mutations, bytes }: Work): boolean {
    const isWhole = mutations === changed.length;
    let more = isWhole ? 0 : mutations;
    if (isWhole) { for (const id of changed) if (!this.#ids.has(id)) more++; }
    const fits = this.#mutations + more <= STORE_COMMIT_CHANGES_MAX &&
      this.#bytes + bytes <= STORE_COMMIT_BYTES_MAX;
    if (!fits && this.#works > 0) return false;
    this.#works++;
    this.#mutations += more;
    this.#bytes += bytes;
    for (const id of changed) this.#ids.add(id);
    return true;
  }

  /** Nothing more fits. */
  get isFull(): boolean {
    return this.#mutations >= STORE_COMMIT_CHANGES_MAX || this.#bytes >= STORE_COMMIT_BYTES_MAX;
  }
}

/** Makes works durable together, or none of them. */
export type Commit<W extends Work> = (works: readonly W[]) => Promise<void>;

/** The queue of works, and the one commit that is under way. */
export class GroupCommit<W extends Work> {
  readonly #commit: Commit<W>;
  readonly #idleWork: () => Promise<boolean>;
  readonly #clock: Pick<Clock, "after"> | undefined;
  #waiting: W[] = [];
  /** Those that came since the last flush. */
  #fill = new Fill();
  /** So many of those that wait, the first ones, may not wait longer. */
  #due = 0;
  #cancelFlush: (() => void) | undefined;
  #running: Promise<void> | undefined;

  /**
   * `idleWork` runs between commits, such as to delete unused parts; it resolves to `false` when
   * nothing was left to do. Without a clock no work waits for others.
   */
  constructor(
    commit: Commit<W>,
    idleWork: () => Promise<boolean>,
    clock?: Pick<Clock, "after">,
  ) {
    this.#commit = commit;
    this.#idleWork = idleWork;
    this.#clock = clock;
  }

  /** Adds a work; it is settled after this returns. */
  add(work: W): void {
    this.#waiting.push(work);
    const isFull = !this.#fill.add(work) || this.#fill.isFull;
    if (work.flushMs <= 0 || isFull || !this.#clock) this.flush();
    else this.#cancelFlush ??= this.#clock.after(work.flushMs, () => this.flush());
  }

  /** Commits all works that wait. */
  flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#fill = new Fill();
    this.#due = this.#waiting.length;
    if (this.#due > 0) this.#running ??= Promise.resolve().then(() => this.#run());
  }

  /** Resolves when no work waits and no commit is under way. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #run(): Promise<void> {
    let hasIdleWork = false;
    do {
      if (this.#due > 0) await this.#commitGroup(this.#takeGroup());
      hasIdleWork = await this.#idleWork();
    } while (hasIdleWork || this.#due > 0);
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
    const fill = new Fill();
    let count = 0;
    // A work that is too large for any group gets one of its own.
    while (count < this.#waiting.length && fill.add(this.#waiting[count]!)) count++;
    const group = this.#waiting.splice(0, count);
    this.#gone(count);
    return group;
  }

  #gone(works: number): void {
    this.#due -= works;
    this.#due = Math.max(0, Math.min(this.#due, this.#waiting.length));
  }

  #fail(group: readonly W[], thrown: unknown): void {
    const failure = failureOf(thrown);
    const lost = new Set(group.flatMap(({ changed }) => changed));
    const failed = new Set(group.filter(({ read }) => read.some((id) => lost.has(id))));
    this.#addBuiltOn(failed, lost);
    const unaffected = group.filter((work) => !failed.has(work));
    const gone = this.#waiting.filter((work) => failed.has(work));
    this.#waiting = this.#waiting.filter((work) => !failed.has(work));
    this.#gone(gone.length);
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

/** What failed for a reason that the database knows better stays as it is. */
function failureOf(thrown: unknown): EngineError {
  if (thrown instanceof EngineError && thrown.code === "SET_ERROR") return thrown;
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  const message = `The state file refused the write (${reason}); check that its disk has space`;
  return new EngineError("SET_ERROR", message, { cause: thrown });
}
