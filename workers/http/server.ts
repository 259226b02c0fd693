/**
 * The port of `engine-http` and the Hono app that every request passes through: the host it names,
 * the listener's token, CORS, then {@linkcode RequestHandler}.
 *
 * Routes come and go while the engine runs, which Hono's routers do not allow, so Hono sees two
 * paths only, one of which has CORS in front, and the handler's table of routes reads the real one.
 * Middleware that is to stand in front of all routes goes into {@linkcode makeApp}.
 *
 * Hono gets a request that has only what middleware reads of one, and passes on what the handler
 * returns: a `Request`, its `Headers` and a `Response` would be a third of a request's CPU. For the
 * same reason `hono/body-limit` is not used; `readBody` counts the bytes as they arrive.
 *
 * @module
 */
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { cors } from "hono/cors";
import { csrf } from "hono/csrf";
import { HTTPException } from "hono/http-exception";
import { timingSafeEqual } from "hono/utils/buffer";
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { AllowedHosts, nameOf } from "../kit/allowed_hosts.ts";
import { DRAIN_MS } from "../kit/define.ts";
import { HttpPort } from "../kit/http/port.ts";
import {
  type HeaderPair,
  problemResponse,
  type ServedRequest,
  type ServedResponse,
} from "../kit/http/response.ts";
import type { HttpConfig } from "./config.ts";
import type { RequestHandler } from "./handler.ts";
import { mayUse } from "./origins.ts";
import { errorReply } from "./response.ts";

/** Time for the last responses to leave after the requests behind them were stopped. */
export const FLUSH_MS = 500;
/** Seconds a browser may remember the response to a preflight request. */
const PREFLIGHT_MAX_AGE_S = 600;

const SETTINGS = { port: "port of engine-http", address: "host or port of engine-http" };

/** What a listener serves. */
export interface Served {
  /** Responds to a request; never rejects. */
  fetch(request: ServedRequest): ServedResponse | Promise<ServedResponse>;
  /** Refuses new requests from now on; resolves when none runs any more. */
  drain(): Promise<void>;
  /** Ends the requests that still run; may be called twice. */
  stop(): void;
}

/** The configuration of what stands in front of all routes. */
export type AppConfig = Pick<HttpConfig, "auth_token" | "cors" | "host" | "allowed_hosts">;

/** The paths that Hono sees: requests that CORS concerns, and all others. */
const CORS_PATH = "/cors";
const PLAIN_PATH = "/";

/** What middleware and handler get beside Hono's own request, which is costly to create. */
interface Bindings {
  readonly request: ServedRequest;
}

/** What Hono and its middleware read of a `Request`. */
class HonoRequest {
  /** HEAD is GET here: the port leaves the body out. */
  readonly method: string;
  readonly #served: ServedRequest;

  constructor(served: ServedRequest) {
    this.#served = served;
    this.method = served.method === "HEAD" ? "GET" : served.method;
  }

  get url(): string {
    const { headers, target } = this.#served;
    return `http://${headers.host ?? "localhost"}${target}`;
  }

  get headers(): Headers {
    return new Headers(this.#served.headers);
  }
}

/**
 * Makes the app: middleware in the order in which it runs, then the handler. `refused` is called
 * with origins whose pages may not read responses or send forms.
 */
export function makeApp(
  config: AppConfig,
  handler: Pick<RequestHandler, "handle">,
  refused: (origin: string) => void = () => {},
): (request: ServedRequest) => ServedResponse | Promise<ServedResponse> {
  const app = new Hono<{ Bindings: Bindings }>({
    getPath: (_request, options) => pathForHono((options!.env as Bindings).request),
  });
  app.use(CORS_PATH, corsMiddleware(config.cors, refused));
  app.use(CORS_PATH, formGuard(config.cors, refused));
  if (config.auth_token !== "") app.use("*", listenerToken(config.auth_token));
  app.all(CORS_PATH, ({ env }) => handler.handle(env.request).then(asResponse));
  app.all(PLAIN_PATH, ({ env }) => asResponse(new Later(handler.handle(env.request))));
  app.onError((error) => {
    if (!(error instanceof HTTPException)) throw error;
    return asResponse(error.status === 403 ? foreignForm() : unauthorized());
  });
  const hosts = new AllowedHosts([config.host, ...config.allowed_hosts]);
  return (request) => {
    const { host } = request.headers;
    if (host !== undefined && !hosts.allows(host)) return wrongHost(host);
    const seen = new HonoRequest(request) as unknown as Request;
    const passed: unknown = app.fetch(seen, { request });
    return passed instanceof Promise ? passed.then(settled) : settled(passed);
  };
}

/**
 * A response that is not there yet, where no middleware looks at it: of a promise Hono would make
 * three others.
 */
class Later {
  readonly response: Promise<ServedResponse>;

  constructor(response: Promise<ServedResponse>) {
    this.response = response;
  }
}

function settled(passed: unknown): ServedResponse | Promise<ServedResponse> {
  return passed instanceof Later ? passed.response : passed as ServedResponse;
}

/** Hono hands on what it gets, and looks at nothing but what `addHeadersOf` replaces. */
function asResponse(response: ServedResponse | Later): Response {
  return response as unknown as Response;
}

/** CORS concerns requests with an `Origin`, which browsers send, and preflights. */
function pathForHono({ method, headers }: ServedRequest): string {
  return headers.origin !== undefined || method === "OPTIONS" ? CORS_PATH : PLAIN_PATH;
}

function wrongHost(host: string): ServedResponse {
  const name = JSON.stringify(nameOf(host) ?? host.slice(0, 100));
  const problem = `This engine is not meant to be reached as ${name}; if it is, add ${name} to ` +
    "allowed_hosts of engine-http";
  return problemResponse({ status: 403, problem });
}

/**
 * Headers for responses to requests without `Origin` that a cache could later show to a page of
 * another origin.
 */
export function headersForCaches({ origins }: HttpConfig["cors"]): readonly HeaderPair[] {
  return origins.includes("*") ? [["access-control-allow-origin", "*"]] : [["vary", "Origin"]];
}

/** `hono/cors`, with the status that PROTOCOL 6.5 requires. */
function corsMiddleware(
  { origins, methods }: HttpConfig["cors"],
  refused: (origin: string) => void,
): MiddlewareHandler {
  const isAllowed = mayUse({ origins }, refused);
  const middleware = cors({
    origin: origins.includes("*")
      ? "*"
      : (origin, { req }) => isAllowed(origin, req.header("host")) ? origin : null,
    allowMethods: [...methods],
    maxAge: PREFLIGHT_MAX_AGE_S,
  });
  return async (context, next) => {
    if (context.req.method === "OPTIONS") {
      const { headers } = await middleware(context, next) as Response;
      context.res = undefined; // Hono would otherwise make a copy.
      context.res = asResponse({ status: 200, headers: [...headers], body: null });
      return;
    }
    await next();
    return await addHeadersOf(middleware, context);
  };
}

/** `hono/csrf`: browsers let any page send forms and text without a preflight request. */
function formGuard(
  config: HttpConfig["cors"],
  refused: (origin: string) => void,
): MiddlewareHandler {
  const isAllowed = mayUse(config, refused);
  return csrf({ origin: (origin, { req }) => isAllowed(origin, req.header("host")) });
}

function foreignForm(): ServedResponse {
  const message = "A page of another origin may not send forms or text here; list its origin in " +
    "cors.origins of engine-http if it may";
  return errorReply(403, "FORBIDDEN", message, crypto.randomUUID());
}

/** Adds what a middleware sets to the headers of the response; `vary` adds up. */
async function addHeadersOf(middleware: MiddlewareHandler, context: Context): Promise<void> {
  const response = context.res as unknown as ServedResponse;
  context.res = undefined; // Hono would otherwise add the headers of the response to the next one.
  context.res = new Response(null);
  await middleware(context, () => Promise.resolve());
  const headers: HeaderPair[] = [...response.headers];
  for (const [name, value] of context.res.headers) {
    if (name === "vary" || !headers.some((pair) => pair[0] === name)) headers.push([name, value]);
  }
  context.res = undefined;
  context.res = asResponse({ ...response, headers });
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

function unauthorized(): ServedResponse {
  const message = "Send the token of engine-http as Authorization: Bearer <token>";
  const reply = errorReply(401, "unauthorized", message, crypto.randomUUID());
  return { ...reply, headers: [...reply.headers, ["www-authenticate", "Bearer"]] };
}

/** What {@linkcode HttpListener} works with. */
export interface HttpListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly memory: MemoryBudget;
  /** Sockets that may be open at once. */
  readonly socketsMax: number;
}

/** An open port. */
export class HttpListener implements AsyncDisposable {
  /** Such as `http://127.0.0.1:3111`. */
  readonly url: string;
  readonly #port: HttpPort;
  readonly #clock: Clock;
  readonly #served: Served;
  #drained: Promise<void> | undefined;

  /**
   * Opens the port; 0 is any free one.
   *
   * @throws {EngineError} `address_in_use` or `address_not_available`, with what to do.
   */
  constructor(options: HttpListenerOptions, served: Served) {
    this.#clock = options.clock;
    this.#served = served;
    this.#port = new HttpPort({
      ...options,
      name: "engine-http",
      settings: SETTINGS,
      handle: (request) => served.fetch(request),
    });
    this.url = this.#port.url;
  }

  /**
   * Refuses new requests; running ones go on. Resolves when none is left and all responses were
   * sent.
   */
  drain(): Promise<void> {
    this.#port.drain();
    return this.#drained ??= this.#served.drain().then(() => this.#port.quiet());
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
    await this.#port.close();
  }
}
