/**
 * Keeps one watch of a worker's files on the right paths, which its manifest may change.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { MANIFEST } from "../install/worker_files.ts";
import type { WatchWorker, WorkerChange } from "./worker_watch.ts";

/** What watching needs. */
export interface EditWatchTools {
  readonly clock: Clock;
  readonly log: Log;
  readonly watch: WatchWorker;
}

/** The watch of one worker. */
export class EditWatch implements Disposable {
  readonly #tools: EditWatchTools;
  readonly #name: string;
  readonly #onChange: (change: WorkerChange) => void;
  #watching: Disposable | undefined;
  #directory = "";
  #paths = "";
  #isClosed = false;

  /** Watches nothing yet. */
  constructor(tools: EditWatchTools, name: string, onChange: (change: WorkerChange) => void) {
    this.#tools = tools;
    this.#name = name;
    this.#onChange = onChange;
  }

  /** Watches a directory whose manifest is not known yet. */
  look(directory: string, isContained: boolean): void {
    if (this.#directory !== directory) this.#watch(directory, ["."], isContained);
  }

  /** Watches what a manifest lists, and the manifest; an empty list is nothing at all. */
  follow(directory: string, watch: readonly string[], isContained: boolean): void {
    const isWhole = watch.length === 0 || watch.includes(".");
    this.#watch(directory, isWhole ? watch : [...watch, MANIFEST], isContained);
  }

  /** Watches nothing any more, whatever is read of the worker afterwards. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#watching?.[Symbol.dispose]();
    this.#watching = undefined;
  }

  #watch(directory: string, watch: readonly string[], isContained: boolean): void {
    const paths = JSON.stringify([watch, isContained]);
    if (this.#isClosed) return;
    if (this.#directory === directory && this.#paths === paths) return;
    this.#watching?.[Symbol.dispose]();
    this.#directory = directory;
    this.#paths = paths;
    const { clock, log } = this.#tools;
    this.#watching = this.#tools.watch({
      directory,
      watch,
      isContained,
      clock,
      onChange: this.#onChange,
      onFailure: (reason) =>
        log.warn("edits of a worker are not seen", { worker: this.#name, reason }),
    });
  }
}
