/**
 * The way in for web pages and their browsers: a Hono app, CORS in front of everything else.
 *
 * It knows no route: all paths are one to it, and the table of routes, which changes while it runs,
 * reads the path. What is to be in front of web pages' requests besides CORS goes here.
 *
 * @module
 */
import { Hono } from "hono";
import type { Cors } from "./cors.ts";
import { toResponse } from "./reply.ts";

/** Headers of a request, as `readHeaders` reads them. */
export type PlainHeaders = Record<string, string>;

/** Answers requests; never rejects. */
export type Answer = (request: Request, headers: PlainHeaders) => Promise<Response>;

/** Answers requests that carry an `Origin`, and all OPTIONS; `headers` are those of the request. */
export type PageApp = (request: Request, headers: PlainHeaders) => Promise<Response>;

/** What is known of a request on its way through the app. */
interface Passage {
  readonly headers: PlainHeaders;
  /** As the outermost middleware leaves it. */
  answer?: Response;
}

/** Makes the app; `answer` is behind its middleware. */
export function makePageApp(cors: Cors, answer: Answer): PageApp {
  const app = new Hono<{ Bindings: Passage }>({ getPath: () => "/" });
  app.use("*", async (context, next) => {
    const { headers } = context.env;
    if (context.req.method === "OPTIONS") return toResponse(cors.preflight(headers), [], false);
    await next();
    // In place: Hono's own way would make a new answer whose body is a stream.
    cors.allow(context.res.headers, headers.origin);
    context.env.answer = context.res;
    return;
  });
  app.all("*", (context) => answer(context.req.raw, context.env.headers));
  return async (request, headers) => {
    const passage: Passage = { headers };
    const copy = await app.fetch(request, passage);
    // To HEAD, Hono gives a copy whose headers have another order; ours has no body anyway.
    return passage.answer ?? copy;
  };
}
