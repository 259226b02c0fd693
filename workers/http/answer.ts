/**
 * The way of one request: route, middleware, condition, handler, reply.
 *
 * It neither opens ports nor knows which triggers there are; it asks the table of routes and calls
 * functions. Nothing a handler or a client does makes it throw.
 *
 * @module
 */
import type { Log } from "../../engine/ports/log.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { CallSignal } from "./call_signal.ts";
import type { HttpConfig, HttpTriggerConfig } from "./config.ts";
import type { Cors } from "./cors.ts";
import {
  emptyReply,
  errorReply,
  jsonReply,
  plainMessage,
  type Remark,
  type Reply,
  replyFromError,
  replyFromValue,
  toResponse,
} from "./reply.ts";
import { cutUrl, makePayload, readBody } from "./request.ts";
import type { RequestSpan, RequestSpans } from "./request_span.ts";
import type { Match, RouteTable } from "./routes.ts";
import type { RunningRequest, RunningRequests } from "./running.ts";
import { askCondition, askMiddleware, type Step, StepError } from "./steps.ts";
import { hasToken } from "./token.ts";

/** What a route leads to. */
export interface Target {
  readonly function_id: string;
  /** Of the function; `undefined` for the default one. */
  readonly namespace: string | undefined;
  readonly metadata: Json | undefined;
  readonly config: HttpTriggerConfig;
  /** What its requests are called in traces, such as `GET /orders/:id`. */
  readonly operation: string;
  /** Hears what is odd in the function's answers. */
  readonly remark: Remark;
}

/** A call of the engine's, as a worker makes it. */
export interface FunctionCall {
  readonly function_id: string;
  readonly payload: Json;
  readonly timeout_ms: number;
  readonly signal: CallSignal;
  readonly namespace?: string;
  readonly metadata?: Json;
  readonly traceparent?: string;
  readonly baggage?: string;
}

/** What answering needs. */
export interface AnswerSetup {
  readonly config: HttpConfig;
  readonly cors: Cors;
  readonly routes: RouteTable<Target>;
  readonly running: RunningRequests;
  readonly log: Log;
  readonly spans: RequestSpans;
  /** Calls a function; `undefined` when it returned nothing. */
  call(request: FunctionCall): Promise<Json | undefined>;
}

/** What is known of a request once it has a route. */
interface Routed {
  readonly running: RunningRequest;
  readonly method: string;
  readonly match: Match<Target>;
  readonly headers: Record<string, string>;
  readonly query: string;
  readonly span: RequestSpan;
}

/** What no name of a host has; the platform would read it as the start of the path. */
const FOREIGN_TO_HOST = /[/?#]/;

/** Nobody reads it: the client has gone. */
const CLIENT_GONE = emptyReply(499);

/** Answers requests. */
export class Answers {
  readonly #setup: AnswerSetup;
  readonly #middleware: readonly string[];
  #isStopping = false;

  /** Stores. */
  constructor(setup: AnswerSetup) {
    this.#setup = setup;
    this.#middleware = [...setup.config.middleware]
      .sort((a, b) => a.priority - b.priority)
      .map(({ function_id }) => function_id);
  }

  /** From now on new requests are told to go elsewhere; running ones go on. */
  drain(): void {
    this.#isStopping = true;
  }

  /** Answers one request; never rejects. What a page may do with the answer is added later. */
  async answer(request: Request, headers: Record<string, string>): Promise<Response> {
    const { method } = request;
    let reply: Reply;
    try {
      const entered = this.#enter(request, method, headers);
      reply = "status" in entered ? entered : entered.span.end(await this.#serve(entered));
    } catch (error) {
      reply = this.#replyTo(error);
    }
    const extra = headers.origin === undefined ? this.#setup.cors.forNoPage(reply) : [];
    return toResponse(reply, extra, method === "HEAD");
  }

  /** Finds the route and takes the request in, or says at once why not. */
  #enter(request: Request, method: string, headers: Record<string, string>): Routed | Reply {
    const { routes, running: all, config, spans } = this.#setup;
    // Else a client could choose the route by its Host header, past a proxy that watches paths.
    if (headers.host !== undefined && FOREIGN_TO_HOST.test(headers.host)) return emptyReply(400);
    const { path, query } = cutUrl(request.url);
    if (!hasToken(config.auth_token, headers.authorization, query)) return unauthorized();
    const match = this.#find(method, path);
    if (!match) return noRoute(routes.methods(path));
    if (this.#isStopping) return stopping();
    const running = all.enter(request);
    if (!running) return overloaded(config.concurrency_max);
    const { startedAt } = running;
    const span = spans.begin({ method, path, target: match.route.value, headers, startedAt });
    return { running, method, match, headers, query, span };
  }

  /** Runs a request that has its route; never rejects. */
  async #serve(routed: Routed): Promise<Reply> {
    const { running } = routed;
    try {
      return await this.#run(routed);
    } catch (error) {
      // A step that was too slow has more to say, whoever noticed the deadline first.
      if (running.end === "timeout" && !(error instanceof StepError)) return emptyReply(504);
      if (running.end === "stopped") return stopping();
      if (running.end === "client gone" || isBrokenOff(running, error)) return CLIENT_GONE;
      return this.#replyTo(error, routed);
    } finally {
      this.#setup.running.leave(running);
    }
  }

  async #run(routed: Routed): Promise<Reply> {
    const { running, method, match, headers, query } = routed;
    const { config, function_id, namespace, metadata, remark } = match.route.value;
    if (this.#middleware.length > 0) {
      const reply = await this.#askAll(this.#middleware, routed, undefined);
      if (reply) return reply;
    }
    const body = method === "GET" || method === "HEAD" ? null : await this.#bodyOf(routed);
    const payload = makePayload(method, match, query, headers, body);
    if (config.condition_function_id !== undefined) {
      const call = this.#step(routed, namespace);
      const refused = await askCondition(call, config.condition_function_id, payload);
      if (refused) return refused;
    }
    if (config.middleware_function_ids.length > 0) {
      const reply = await this.#askAll(config.middleware_function_ids, routed, namespace);
      if (reply) return reply;
    }
    const result = await this.#call(routed, function_id, payload, namespace, metadata);
    if (result !== undefined && result !== null) return replyFromValue(result, remark);
    remark("a handler returned nothing, so its request waits for the time-out", match.route.path);
    return await running.race(new Promise<never>(() => {}));
  }

  /** HEAD is served by the GET route where there is none of its own. */
  #find(method: string, path: string): Match<Target> | undefined {
    const { routes } = this.#setup;
    const match = routes.find(method, path);
    return match ?? (method === "HEAD" ? routes.find("GET", path) : undefined);
  }

  /** The value in the body. */
  #bodyOf({ running, match, headers }: Routed): Promise<Json> {
    const { lenient_body } = match.route.value.config;
    const { body_bytes_max } = this.#setup.config;
    return running.read(readBody(running.request, headers, body_bytes_max, lenient_body, running));
  }

  async #askAll(
    function_ids: readonly string[],
    routed: Routed,
    namespace: string | undefined,
  ): Promise<Reply | undefined> {
    const { method, match, headers, query } = routed;
    const call = this.#step(routed, namespace);
    const { remark } = match.route.value;
    for (const function_id of function_ids) {
      const request = introduction(method, match, query, headers);
      const reply = await askMiddleware(call, function_id, request, remark);
      if (reply) return reply;
    }
    return undefined;
  }

  #step(routed: Routed, namespace: string | undefined): Step {
    return (function_id, payload) => {
      return this.#call(routed, function_id, payload, namespace, undefined);
    };
  }

  #call(
    { running, span }: Routed,
    function_id: string,
    payload: Json,
    namespace: string | undefined,
    metadata: Json | undefined,
  ): Promise<Json | undefined> {
    const timeout_ms = this.#setup.running.left(running);
    const request: FunctionCall = {
      function_id,
      payload,
      timeout_ms,
      signal: running.signal,
      ...span.fields,
    };
    if (namespace === undefined && metadata === undefined) return this.#setup.call(request);
    return this.#setup.call({
      ...request,
      ...namespace !== undefined && { namespace },
      ...metadata !== undefined && { metadata },
    });
  }

  #replyTo(error: unknown, { match, span }: Partial<Routed> = {}): Reply {
    const known = error instanceof EngineError ? error : broken(error);
    if (span) span.errorCode = known.code;
    const error_id = crypto.randomUUID();
    const reply = known instanceof StepError
      ? errorReply(known.status, known.code, known.message, error_id)
      : replyFromError(known, error_id);
    const { stacktrace } = describeRemote(error);
    const fields = {
      error_id,
      status: reply.status,
      code: known.code,
      problem: error instanceof EngineError ? plainMessage(error) : String(error),
      route: match && `${match.route.method} ${match.route.path}`,
      function_id: match?.route.value.function_id,
      trace_id: span?.trace_id,
      stacktrace,
    };
    // Below 500, and where nobody is to blame but the load, a line per request would be a flood.
    if (reply.status === 500) this.#setup.log.warn("a request failed", fields);
    else this.#setup.log.debug("a request was refused", fields);
    return reply;
  }
}

/** Whether the body could not be read to its end; there is nobody to answer then. */
function isBrokenOff(running: RunningRequest, error: unknown): boolean {
  return running.isReading && !(error instanceof EngineError);
}

/** The request as middleware sees it: no body, which may not have arrived. */
function introduction(
  method: string,
  match: Match<Target>,
  query: string,
  headers: Record<string, string>,
): JsonObject {
  const { path_params, query_params } = makePayload(method, match, query, headers, null);
  return { path_params: path_params!, query_params: query_params!, headers, method };
}

/** Where a handler failed, if it said so; for the log only. */
function describeRemote(error: unknown): { stacktrace?: string } {
  const { stacktrace, stack } = error as { stacktrace?: string; stack?: string };
  const text = stacktrace ?? (error instanceof EngineError ? undefined : stack);
  return text === undefined ? {} : { stacktrace: text };
}

/** No failed call but a mistake of ours: what it says is for the log. */
function broken(thrown: unknown): EngineError {
  const message = "The request could not be answered; the log of the engine says why";
  return new EngineError("invocation_error", message, { cause: thrown });
}

function noRoute(methods: readonly string[]): Reply {
  if (methods.length === 0) {
    return jsonReply(404, { error: { code: "NOT_FOUND", message: "Not Found" } });
  }
  const allowed = new Set(methods);
  if (allowed.has("GET")) allowed.add("HEAD");
  return emptyReply(405, [["allow", [...allowed].sort().join(", ")]]);
}

function unauthorized(): Reply {
  const message = "Send the token of engine-http as Authorization: Bearer <token>";
  const reply = errorReply(401, "unauthorized", message, crypto.randomUUID());
  return { ...reply, headers: [...reply.headers, ["www-authenticate", "Bearer"]] };
}

function overloaded(max: number): Reply {
  const message = `${max} requests are running already; try again`;
  return busy(errorReply(429, "overloaded", message, crypto.randomUUID()));
}

function stopping(): Reply {
  const message = "The engine is stopping; try again";
  const reply = errorReply(503, "invocation_stopped", message, crypto.randomUUID());
  return busy({ ...reply, headers: [...reply.headers, ["connection", "close"]] });
}

function busy(reply: Reply): Reply {
  return { ...reply, headers: [...reply.headers, ["retry-after", "1"]] };
}
