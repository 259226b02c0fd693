/**
 * The port of `engine-http` and the Hono app that every request passes through: the listener's
 * token, CORS, then {@linkcode RequestHandler}.
 *
 * Routes come and go while the engine runs, which Hono's routers do not allow, so Hono sees two
 * paths only, one of which has CORS in front, and the handler's table of routes reads the real one.
 * Middleware that is to stand in front of all routes goes into {@linkcode makeApp}.
 *
 * `hono/body-limit` is not used: it opens the stream of every body, which costs a quarter of a
 * request, and reads bodies of undeclared length into memory before the request has a deadline.
 * `readBody` counts the bytes as they arrive.
 *
 * @module
 */
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { cors } from "hono/cors";
import { HTTPException } from "hono/http-exception";
import { timingSafeEqual } from "hono/utils/buffer";
import type { Clock } from "../../engine/ports/clock.ts";
import { DRAIN_MS } from "../kit/define.ts";
import { listenHttp } from "../kit/listen.ts";
import type { HttpConfig } from "./config.ts";
import type { RequestHandler } from "./handler.ts";
import { type PlainHeaders, readHeaders } from "./request.ts";
import { errorReply, type HeaderPair, toResponse } from "./response.ts";

/** Time for the last responses to leave after the requests behind them were stopped. */
export const FLUSH_MS = 500;
/** Seconds a browser may remember the response to a preflight request. */
const PREFLIGHT_MAX_AGE_S = 600;

const SETTINGS = { port: "port of engine-http", address: "host or port of engine-http" };

/** What a listener serves. */
export interface Served {
  /** Responds to a request; never rejects. */
  fetch(request: Request): Response | Promise<Response>;
  /** Refuses new requests from now on. */
  drain(): void;
  /** Ends the requests that still run; may be called twice. */
  stop(): void;
}

/** The configuration of the middleware in front of all routes. */
export type AppConfig = Pick<HttpConfig, "auth_token" | "cors">;

/** The paths that Hono sees: requests that CORS concerns, and all others. */
const CORS_PATH = "/cors";
const PLAIN_PATH = "/";

/** What middleware and handler get beside Hono's own request, which is costly to create. */
interface Bindings {
  readonly request: Request;
  readonly headers: PlainHeaders;
}

/** Makes the app: middleware in the order in which it runs, then the handler. */
export function makeApp(
  config: AppConfig,
  handler: Pick<RequestHandler, "handle">,
): (request: Request) => Response | Promise<Response> {
  const app = new Hono<{ Bindings: Bindings }>({
    getPath: (_request, options) => pathForHono(options!.env as Bindings),
  });
  app.use(CORS_PATH, corsMiddleware(config.cors));
  if (config.auth_token !== "") app.use("*", listenerToken(config.auth_token));
  for (const path of [PLAIN_PATH, CORS_PATH]) {
    app.all(path, ({ env }) => handler.handle(env.request, env.headers));
  }
  app.onError((error) => {
    if (error instanceof HTTPException) return unauthorized();
    throw error;
  });
  return (request) => app.fetch(request, { request, headers: readHeaders(request.headers) });
}

/** CORS concerns requests with an `Origin`, which browsers send, and preflights. */
function pathForHono({ request, headers }: Bindings): string {
  return headers.origin !== undefined || request.method === "OPTIONS" ? CORS_PATH : PLAIN_PATH;
}

/**
 * Headers for responses to requests without `Origin` that a cache could later show to a page of
 * another origin.
 */
export function headersForCaches({ origins }: HttpConfig["cors"]): readonly HeaderPair[] {
  return origins.includes("*") ? [["access-control-allow-origin", "*"]] : [["vary", "Origin"]];
}

/** `hono/cors`, with the status that PROTOCOL 6.5 requires and without copies of bodies. */
function corsMiddleware({ origins, methods }: HttpConfig["cors"]): MiddlewareHandler {
  const allowed = new Set(origins.map((origin) => origin.toLowerCase()));
  const middleware = cors({
    origin: origins.includes("*")
      ? "*"
      : (origin) => allowed.has(origin.toLowerCase()) ? origin : null,
    allowMethods: [...methods],
    maxAge: PREFLIGHT_MAX_AGE_S,
  });
  return async (context, next) => {
    if (context.req.method === "OPTIONS") {
      const { headers } = await middleware(context, next) as Response;
      return new Response(null, { status: 200, headers });
    }
    await next();
    return await addHeadersOf(middleware, context);
  };
}

/**
 * Adds the headers that a middleware sets to the finished response, in place: Hono would make a new
 * response whose body is a stream. The function's own headers are kept; `vary` adds up.
 */
async function addHeadersOf(middleware: MiddlewareHandler, context: Context): Promise<void> {
  const response = context.res;
  context.res = undefined; // Hono would otherwise add the headers of the response to the next one.
  context.res = new Response(null);
  await middleware(context, () => Promise.resolve());
  const added = context.res.headers;
  context.res = undefined;
  for (const [name, value] of added) {
    if (name === "vary" || !response.headers.has(name)) response.headers.append(name, value);
  }
  context.res = response;
}

/** `hono/bearer-auth`; PROTOCOL 1.1 also accepts the token as the query parameter `token`. */
function listenerToken(token: string): MiddlewareHandler {
  const bearer = bearerAuth({ token });
  return async (context, next) => {
    const offered = context.req.query("token");
    if (offered !== undefined && await timingSafeEqual(token, offered)) return await next();
    return await bearer(context, next);
  };
}

function unauthorized(): Response {
  const message = "Send the token of engine-http as Authorization: Bearer <token>";
  const reply = errorReply(401, "unauthorized", message, crypto.randomUUID());
  return toResponse({ ...reply, headers: [...reply.headers, ["www-authenticate", "Bearer"]] }, []);
}

/** An open port. */
export class HttpListener implements AsyncDisposable {
  /** Such as `http://127.0.0.1:3111`. */
  readonly url: string;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #clock: Clock;
  readonly #served: Served;
  #drained: Promise<void> | undefined;

  /**
   * Opens the port; 0 is any free one.
   *
   * @throws {EngineError} `address_in_use` or `address_not_available`, with what to do.
   */
  constructor(at: { host: string; port: number }, clock: Clock, served: Served) {
    this.#clock = clock;
    this.#served = served;
    const opened = listenHttp(at, SETTINGS, (request) => served.fetch(request));
    this.#server = opened.server;
    this.url = opened.url;
  }

  /**
   * Refuses new requests; running ones go on. Resolves when none is left and all connections have
   * ended.
   */
  drain(): Promise<void> {
    this.#served.drain();
    return this.#drained ??= this.#server.shutdown();
  }

  /**
   * Drains for `DRAIN_MS` at most, then ends what still runs. Resolves when all responses have
   * left, or `FLUSH_MS` later: a client that stops reading holds its connection, not the port.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const drained = this.drain();
    const cancelStop = this.#clock.after(DRAIN_MS, () => this.#served.stop());
    let cancelWait = (): void => {};
    const waited = new Promise<void>((resolve) => {
      cancelWait = this.#clock.after(DRAIN_MS + FLUSH_MS, resolve);
    });
    await Promise.race([drained, waited]);
    cancelStop();
    cancelWait();
    this.#served.stop();
  }
}
