/**
 * Names in the log the web pages that a port refused, with the setting that would allow them.
 *
 * A browser tells its page nothing but that the request failed, so the log is where a developer
 * finds the reason. Each origin is reported once, and at most {@linkcode ORIGINS_REPORTED_MAX} of
 * them: any page may make requests.
 *
 * @module
 */
import type { Log } from "../../engine/ports/log.ts";

/** Origins that one port reports. */
export const ORIGINS_REPORTED_MAX = 100;
const OWN_PAGES_ONLY = "a page of another origin was refused: the console serves its own pages " +
  "only, and a proxy in front of it has to pass on Host unchanged";
/** Characters of an origin in the log. */
const ORIGIN_CHARS_MAX = 200;

/** The refused origins of one port. */
export class RefusedOrigins {
  readonly #log: Pick<Log, "warn">;
  readonly #setting: string | null;
  readonly #reported = new Set<string>();

  /**
   * `setting` says where an origin is listed, such as `cors.origins of engine-http`; `null`: the
   * port serves its own pages only.
   */
  constructor(log: Pick<Log, "warn">, setting: string | null) {
    this.#log = log;
    this.#setting = setting;
  }

  /** Reports an origin, if it is new. */
  report(origin: string): void {
    const shown = JSON.stringify(origin.slice(0, ORIGIN_CHARS_MAX));
    if (this.#reported.has(shown) || this.#reported.size >= ORIGINS_REPORTED_MAX) return;
    this.#reported.add(shown);
    if (this.#setting === null) {
      this.#log.warn(OWN_PAGES_ONLY, { origin: shown });
    } else {
      this.#log.warn("a page of another origin was refused; to allow it, list its origin", {
        origin: shown,
        setting: this.#setting,
      });
    }
  }
}
