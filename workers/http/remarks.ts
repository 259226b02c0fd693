/**
 * Remarks on what functions return: each is logged once, not once per request.
 *
 * @module
 */
import type { Log } from "../../engine/ports/log.ts";
import { HTTP_REMARKS_MAX } from "../limits.ts";

/** Logs each remark on a function once. */
export class Remarks {
  readonly #log: Log;
  readonly #made = new Set<string>();

  /** Stores. */
  constructor(log: Log) {
    this.#log = log;
  }

  /** Warns with a constant text; the same of the same function and thing only once. */
  make(text: string, function_id: string, about: string): void {
    const key = `${text}\n${function_id}\n${about}`;
    if (this.#made.has(key) || this.#made.size >= HTTP_REMARKS_MAX) return;
    this.#made.add(key);
    this.#log.warn(text, { function_id, about });
  }
}
