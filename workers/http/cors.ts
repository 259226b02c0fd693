/**
 * Which web pages may use the routes: the answer to every OPTIONS request, and the header on all
 * other answers.
 *
 * @module
 */
import { emptyReply, type HeaderPair, type Reply } from "./reply.ts";

/** What is allowed. */
export interface CorsConfig {
  /** Origins such as `https://example.com`; `*` is any. */
  readonly origins: readonly string[];
  /** Methods in capitals. */
  readonly methods: readonly string[];
}

/** Seconds a browser may remember the answer. */
const MAX_AGE_S = "600";
const ANY: readonly HeaderPair[] = [["access-control-allow-origin", "*"]];
const NONE: readonly HeaderPair[] = [["vary", "Origin"]];

/** Answers for one configuration. */
export class Cors {
  readonly #isOpen: boolean;
  readonly #origins: ReadonlySet<string>;
  readonly #methods: string;

  /** Stores. */
  constructor(config: CorsConfig) {
    this.#isOpen = config.origins.includes("*");
    this.#origins = new Set(config.origins.map((origin) => origin.toLowerCase()));
    this.#methods = config.methods.join(", ");
  }

  /** What every answer carries. */
  headers(origin: string | undefined): readonly HeaderPair[] {
    if (this.#isOpen) return ANY;
    if (origin === undefined || !this.#origins.has(origin.toLowerCase())) return NONE;
    return [["access-control-allow-origin", origin], ...NONE];
  }

  /** The answer to any OPTIONS request, whatever its path. */
  preflight(headers: Headers): Reply {
    const asked = headers.get("access-control-request-headers");
    const origin = headers.get("origin") ?? undefined;
    return emptyReply(200, [
      ...this.headers(origin),
      ["access-control-allow-methods", this.#methods],
      ["access-control-allow-headers", asked ?? "*"],
      ["access-control-max-age", MAX_AGE_S],
    ]);
  }
}
