/**
 * Pages of the worker port, such as `/metrics`: text that is made per request.
 *
 * A page requires the token of workers, if there is one; an open page, such as `/healthz`, does
 * not. A web page whose host name was made to resolve to this machine (DNS rebinding) sends that
 * name as `Host`, so without a token only names of this machine are served.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { AnswerPage, PageAnswer, PageRequest, Refusal, Upgrade } from "../ports/connection.ts";
import type { Log } from "../ports/log.ts";
import { type Admitted, makeTokenCheck, type TokenOptions } from "../auth/token.ts";

/** A page of the worker port, such as `/metrics`, has to be made by then, in milliseconds. */
export const PAGE_TIMEOUT_MS = 10_000;

/** Options of {@linkcode Pages}. */
export interface PagesOptions extends Pick<TokenOptions, "created"> {
  readonly clock: Clock;
  readonly log: Log;
  /** Required, except for open pages; absent or empty: no token is required. */
  readonly authToken?: string;
  /** Whether only this machine can reach the port. */
  readonly isLoopback: boolean;
}

/** Makes a page. */
export type MakePage = (request: PageRequest) => PageAnswer | Promise<PageAnswer>;

/** The pages of one port. */
export class Pages {
  readonly #options: PagesOptions;
  readonly #checkToken: (asked: Upgrade) => Admitted | Refusal;
  readonly #pages = new Map<string, { readonly make: MakePage; readonly open: boolean }>();

  constructor(options: PagesOptions) {
    this.#options = options;
    this.#checkToken = makeTokenCheck(options);
  }

  /**
   * Serves a path from now on; call the result to stop.
   *
   * @throws {Error} When the path is taken.
   */
  serve(
    path: string,
    make: MakePage,
    { open = false }: { readonly open?: boolean } = {},
  ): () => void {
    if (this.#pages.has(path)) throw new Error(`The page ${path} exists already`);
    this.#pages.set(path, { make, open });
    return () => void this.#pages.delete(path);
  }

  /** Responds to a request, as {@linkcode AnswerPage} says. */
  readonly answer: AnswerPage = (asked) => {
    const page = this.#pages.get(asked.path);
    if (!page) return undefined;
    const refusal = page.open ? undefined : this.#refusal(asked);
    return refusal ? Promise.resolve(refusal) : this.#make(page.make, asked);
  };

  #refusal(asked: Upgrade): Refusal | undefined {
    const admitted = this.#checkToken(asked);
    if ("status" in admitted) return admitted;
    if (admitted.token && admitted.token.allow !== null) return LIMITED;
    const { authToken, isLoopback } = this.#options;
    if (authToken || !isLoopback || isHere(asked.headers.get("host") ?? "")) return undefined;
    const message = "The header Host names another machine; ask for localhost, or set " +
      "engine.auth_token in config.yaml and send it";
    return { status: 403, message };
  }

  async #make(make: MakePage, { path, query, headers }: Upgrade): Promise<PageAnswer | Refusal> {
    const late = Promise.withResolvers<Refusal>();
    const message = `The page ${path} took longer than ${PAGE_TIMEOUT_MS} ms; ask again later`;
    const cancel = this.#options.clock.after(PAGE_TIMEOUT_MS, () => {
      late.resolve({ status: 503, message });
    });
    try {
      const made = Promise.try(make, { path, query, headers });
      made.catch(() => {}); // It may fail after the timeout.
      return await Promise.race([made, late.promise]);
    } catch (thrown) {
      this.#options.log.error("a page could not be created", { path, reason: String(thrown) });
      return {
        status: 500,
        message: `The page ${path} could not be created; see the engine's log`,
      };
    } finally {
      cancel();
    }
  }
}

const LIMITED: Refusal = {
  status: 403,
  message: "A token limited to some functions cannot open pages; create one without --allow",
};

/** Whether a `Host` is a name of this machine only, or an address. */
function isHere(host: string): boolean {
  const url = URL.parse(`http://${host}`);
  if (!url) return false;
  const { hostname } = url;
  return hostname === "localhost" || hostname.endsWith(".localhost") || hostname.startsWith("[") ||
    /^\d+\.\d+\.\d+\.\d+$/.test(hostname);
}
