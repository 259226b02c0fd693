/**
 * Which functions people do not ask about: the engine's own, and those that say so of themselves.
 *
 * @module
 */
import type { EngineHost } from "../../kit/define.ts";

/** Verdicts that are remembered. */
const VERDICTS_MAX = 20_000;

/** See the top of this file. */
export class InternalFunctions implements Disposable {
  readonly #directory: EngineHost["directory"];
  readonly #verdicts = new Map<string, boolean>();
  readonly #stopListening: () => void;

  /** Forgets what it knows whenever functions come or go. */
  constructor({ directory, onEvent }: Pick<EngineHost, "directory" | "onEvent">) {
    this.#directory = directory;
    this.#stopListening = onEvent(({ type }) => {
      if (type === "functions_changed") this.#verdicts.clear();
    });
  }

  /** Whether this is such a function; `false` of one that nobody offers. */
  has(namespace: string, function_id: string): boolean {
    if (function_id.startsWith("engine::")) return true;
    const key = `${namespace}\n${function_id}`;
    const known = this.#verdicts.get(key);
    if (known !== undefined) return known;
    const verdict = this.#directory.function(namespace, function_id)?.internal ?? false;
    if (this.#verdicts.size < VERDICTS_MAX) this.#verdicts.set(key, verdict);
    return verdict;
  }

  /** Hears of nothing any more. */
  [Symbol.dispose](): void {
    this.#stopListening();
  }
}
