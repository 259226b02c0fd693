/**
 * Which web pages may use the routes: the answer to every OPTIONS request, and the headers on
 * other answers. What it says is data; who asks when is in the page app.
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
   * What an answer to somebody who is no page carries besides: nothing unless it could be cached
   * and shown to a page later, which a plain one cannot.
   */
  forNoPage(reply: Reply): readonly HeaderPair[] {
    return isPlain(reply) ? [] : this.#headers(undefined);
  }

  /** Adds to an answer what the page at `origin` may do with it; what a handler said stays. */
  allow(answer: Headers, origin: string | undefined): void {
    for (const [name, value] of this.#headers(origin)) {
      // What an answer depends on adds up: without ours, a cache could show it to another origin.
      if (name === "vary" || !answer.has(name)) answer.append(name, value);
    }
  }

  /** The answer to any OPTIONS request, whatever its path. */
  preflight(headers: Readonly<Record<string, string>>): Reply {
    const asked = headers["access-control-request-headers"];
    return emptyReply(200, [
      ...this.#headers(headers.origin),
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
