/**
 * Where requests come in: those of web pages go through the middleware for them, all others
 * straight to their answer.
 *
 * Only a request with an `Origin` and OPTIONS need HTTP middleware (CORS). The framework that it is
 * written in is loaded with the first of them, so the others pay nothing for it, nor does the
 * start of the engine.
 *
 * @module
 */
import type { Cors } from "./cors.ts";
import type { Answer, PageApp } from "./page_app.ts";
import { readHeaders } from "./request.ts";

/** Makes the middleware's app. */
export type LoadPageApp = (cors: Cors, answer: Answer) => Promise<PageApp>;

/** Both ways in. */
export class Entrance {
  readonly #cors: Cors;
  readonly #answer: Answer;
  readonly #load: LoadPageApp;
  #pages: Promise<PageApp> | undefined;

  /** `load`: for tests; left out: Hono. */
  constructor(cors: Cors, answer: Answer, load: LoadPageApp = loadHono) {
    this.#cors = cors;
    this.#answer = answer;
    this.#load = load;
  }

  /** Answers one request. */
  fetch(request: Request): Promise<Response> {
    const headers = readHeaders(request.headers);
    if (headers.origin === undefined && request.method !== "OPTIONS") {
      return this.#answer(request, headers);
    }
    return this.#throughPages(request, headers);
  }

  async #throughPages(request: Request, headers: Record<string, string>): Promise<Response> {
    const pages = await (this.#pages ??= this.#load(this.#cors, this.#answer));
    return await pages(request, headers);
  }
}

/** 10 ms, once. */
async function loadHono(cors: Cors, answer: Answer): Promise<PageApp> {
  const { makePageApp } = await import("./page_app.ts");
  return makePageApp(cors, answer);
}
