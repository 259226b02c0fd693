/**
 * Which web pages may use the routes: the answer to every OPTIONS request, and the header on
 * other answers.
 *
 * @module
 */
import { emptyReply, type HeaderPair, isPlain, type Reply } from "./reply.ts";

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

  /**
   * What an answer carries besides. Only pages name their origin; an answer to others needs nothing
   * unless it could be cached and shown to a page later, which a plain one cannot.
   */
  headersFor(reply: Reply, origin: string | undefined): readonly HeaderPair[] {
    if (origin === undefined && isPlain(reply)) return [];
    return this.#headers(origin);
  }

  /** The answer to any OPTIONS request, whatever its path. */
  preflight(headers: Headers): Reply {
    const asked = headers.get("access-control-request-headers");
    const origin = headers.get("origin") ?? undefined;
    return emptyReply(200, [
      ...this.#headers(origin),
      ["access-control-allow-methods", this.#methods],
      ["access-control-allow-headers", asked ?? "*"],
      ["access-control-max-age", MAX_AGE_S],
    ]);
  }

  #headers(origin: string | undefined): readonly HeaderPair[] {
    if (this.#isOpen) return ANY;
    if (origin === undefined || !this.#origins.has(origin.toLowerCase())) return NONE;
    return [["access-control-allow-origin", origin], ...NONE];
  }
}
