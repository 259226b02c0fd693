/**
 * From a request to its response: route, global middleware, body, condition, route middleware,
 * function.
 *
 * The handler neither opens ports nor registers triggers; it searches the table of routes and calls
 * functions. {@linkcode RequestHandler.handle} never rejects, whatever a function or a client does.
 *
 * @module
 */
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { JsonText } from "../../sdk/typescript/json_text.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Action, Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { type HttpConfig, type HttpTriggerConfig, OPENAPI_PATH } from "./config.ts";
import type { PlainHeaders } from "../kit/http/head.ts";
import type {
  HeaderPair,
  ResponseStream,
  ServedRequest,
  ServedResponse,
} from "../kit/http/response.ts";
import { type BodyValue, readBody } from "./body.ts";
import { Exchange, type ExchangeOptions, type HeadListener, type StreamHead } from "./exchange.ts";
import type { RouteGuard } from "./guard.ts";
import { type CallStep, runCondition, runMiddleware, StepError } from "./middleware.ts";
import {
  type CallSignal,
  cutTarget,
  endPayload,
  hasTooManyParams,
  QUERY_PARAMS_MAX,
  readQuery,
  type RunningRequest,
  type RunningRequests,
  startPayload,
} from "./request.ts";
import {
  accepted,
  draining,
  emptyReply,
  overloaded,
  plainMessage,
  type Reply,
  replyFromError,
  replyFromStream,
  replyFromValue,
  retryLater,
  tooManyParams,
  tooManyRun,
  type Warn,
  withExtra,
} from "./response.ts";
import type { Match, RouteTable } from "./routes.ts";
import type { RequestSpan, RequestSpans } from "./spans.ts";
import { tokenIn, type UpgradeCall, type Upgrades, wantsUpgrade } from "./websocket/upgrades.ts";

/** What a route runs. */
export interface Target {
  readonly function_id: string;
  /** Of the function; `undefined` for the default one. */
  readonly namespace: string | undefined;
  readonly metadata: Json | undefined;
  readonly config: HttpTriggerConfig;
  /** What is asked of a request first; `undefined`: nothing. */
  readonly guard: RouteGuard | undefined;
  /** Name of its requests in traces, such as `GET /orders/:id`. */
  readonly operation: string;
  /** Reports what is wrong with the values that the function returns. */
  readonly warn: Warn;
  /** Takes the request instead of the function, of a route for WebSockets; `undefined`: none. */
  readonly upgrade?: Upgrades;
}

/** A call as `Worker.trigger` takes it. */
export interface FunctionCall {
  readonly function_id: string;
  readonly payload: Json | JsonText;
  readonly timeout_ms: number;
  readonly signal: CallSignal;
  readonly namespace?: string;
  readonly metadata?: Json;
  readonly action?: Action;
  readonly traceparent?: string;
  readonly baggage?: string;
}

/** What {@linkcode RequestHandler} works with. */
export interface RequestHandlerOptions {
  readonly config: HttpConfig;
  readonly routes: RouteTable<Target>;
  /** Routes of requests for an upgrade to a WebSocket; their method is GET. Default: none. */
  readonly upgradeRoutes?: RouteTable<Target>;
  /** The reply to a request without a route. */
  noRoute(request: ServedRequest, path: string, nowMs: number): Reply;
  readonly running: RunningRequests;
  readonly log: Log;
  readonly spans: RequestSpans;
  /** For responses that a cache may keep, to requests without `Origin`; see `headersForCaches`. */
  readonly cacheHeaders: readonly HeaderPair[];
  /** For streams; `undefined`: there are none. */
  readonly channels: ExchangeOptions["channels"] | undefined;
  readonly memory: MemoryBudget;
  /** Responds with the OpenAPI document; `undefined`: it has no path of its own. */
  readonly respondOpenApi: (() => Promise<ServedResponse>) | undefined;
  /** Calls a function; `undefined` when it returned nothing. */
  call(request: FunctionCall): Promise<Json | undefined>;
}

/** A request that has a route. */
interface RoutedRequest {
  readonly running: RunningRequest;
  readonly method: string;
  readonly match: Match<Target>;
  readonly headers: PlainHeaders;
  readonly query: string;
  readonly span: RequestSpan;
  /** What middleware said about the request; `undefined`: nothing. */
  context: JsonObject | undefined;
  /** Its response is a stream, with which it ends. */
  isStreaming: boolean;
}

/** A call that only has to be made. */
interface ReadyCall {
  /** The payload without its end; see `startPayload`. */
  readonly start: string;
  /** Of a request for an upgrade, in place of that. */
  readonly upgrade: JsonObject | undefined;
  readonly exchange: Exchange | undefined;
  /** The references to the channels of the exchange; see `Exchange.refsText`. */
  readonly refs: string;
}

/** A function that was called. */
interface Called {
  readonly result: Promise<Json | undefined>;
  readonly exchange: Exchange | undefined;
}

/** Begins a response that a function writes. */
type BeginStream = (routed: RoutedRequest, exchange: Exchange, head: StreamHead) => Reply;

/** A reply that a function may still begin to write. */
class PendingReply implements HeadListener {
  readonly #routed: RoutedRequest;
  readonly #exchange: Exchange;
  readonly #begin: BeginStream;
  readonly #resolve: (reply: Reply) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    routed: RoutedRequest,
    exchange: Exchange,
    begin: BeginStream,
    resolve: (reply: Reply) => void,
    reject: (error: unknown) => void,
  ) {
    this.#routed = routed;
    this.#exchange = exchange;
    this.#begin = begin;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  gotHead(head: StreamHead | EngineError): void {
    if (head instanceof EngineError) return this.#reject(head);
    try {
      this.#resolve(this.#begin(this.#routed, this.#exchange, head));
    } catch (error) {
      this.#reject(error);
    }
  }
}

/** Never seen by the client, which is gone. */
const CLIENT_GONE = emptyReply(499);
/** Stands for the OpenAPI document, which takes a while to write. */
const OPENAPI = emptyReply(200);

/** Responds to requests. */
export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #globalMiddleware: readonly string[];
  /** Made once: a closure for each request would be garbage of nearly all of them. */
  readonly #begin: BeginStream = (...all) => this.#beginStream(...all);
  #isDraining = false;

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
    this.#globalMiddleware = [...options.config.middleware]
      .sort((a, b) => a.priority - b.priority)
      .map(({ function_id }) => function_id);
  }

  /** Refuses new requests with 503 from now on. Resolves when the running ones have ended. */
  drain(): Promise<void> {
    this.#isDraining = true;
    return this.#options.running.empty();
  }

  /** Responds to one request; never rejects. */
  async handle(request: ServedRequest): Promise<ServedResponse> {
    let reply: Reply;
    try {
      const routed = this.#route(request);
      if (routed === OPENAPI) reply = await this.#openApi(request);
      else reply = "status" in routed ? routed : routed.span.end(await this.#run(routed));
    } catch (error) {
      reply = this.#replyTo(error);
    }
    return withExtra(
      reply,
      request.headers.origin === undefined ? this.#options.cacheHeaders : [],
    );
  }

  /**
   * Finds the route and counts the request as running, or replies with the reason why not.
   *
   * @throws {EngineError} What the guard of the route says.
   */
  #route(request: ServedRequest): RoutedRequest | Reply {
    const { running: all, config, spans } = this.#options;
    const { method, headers, target } = request;
    // Before the route is looked for: routes leave while the engine stops.
    if (this.#isDraining) return draining();
    const { path, query } = cutTarget(target);
    const match = this.#find(request, path);
    if (!match) {
      if (this.#isOpenApi(method, path)) return OPENAPI;
      return this.#options.noRoute(request, path, all.now());
    }
    if (hasTooManyParams(query)) return tooManyParams(QUERY_PARAMS_MAX);
    const { guard, upgrade, config: { timeout_ms } } = match.route.value;
    guard?.check(request, all.now(), upgrade && tokenIn(query));
    const refusal = upgrade?.refusalOf(request);
    if (refusal) return refusal;
    const running = all.add(request, timeout_ms);
    if (!running) return overloaded(config.concurrency_max);
    const { startedAt } = running;
    const span = spans.begin({ method, path, target: match.route.value, headers, startedAt });
    return { running, method, match, headers, query, span, context: undefined, isStreaming: false };
  }

  /** HEAD is served by the GET route where it has no route of its own. */
  #find({ method, headers }: ServedRequest, path: string): Match<Target> | undefined {
    const { routes, upgradeRoutes } = this.#options;
    const socket = wantsUpgrade(method, headers) ? upgradeRoutes?.find("GET", path) : undefined;
    if (socket) return socket;
    const match = routes.find(method, path);
    return match ?? (method === "HEAD" ? routes.find("GET", path) : undefined);
  }

  /** A route of this path stands before the document. */
  #isOpenApi(method: string, path: string): boolean {
    return path === OPENAPI_PATH && (method === "GET" || method === "HEAD") &&
      this.#options.respondOpenApi !== undefined;
  }

  /** The OpenAPI document, as a request among the others. */
  async #openApi(request: ServedRequest): Promise<Reply> {
    const { running: all, config, respondOpenApi } = this.#options;
    const running = all.add(request);
    if (!running) return overloaded(config.concurrency_max);
    const response = respondOpenApi!();
    try {
      return await running.race(response);
    } catch (error) {
      response.then(({ stream }) => stream?.cancel(), () => {}); // It comes too late.
      if (running.stopReason === "timeout") return emptyReply(504);
      if (running.stopReason !== undefined) return draining();
      return this.#replyTo(error);
    } finally {
      all.remove(running);
    }
  }

  /** Runs a request that has a route; never rejects. Each function that waits costs promises. */
  async #run(routed: RoutedRequest): Promise<Reply> {
    const { running } = routed;
    let exchange: Exchange | undefined;
    try {
      if (this.#globalMiddleware.length > 0) {
        const reply = await this.#runMiddleware(this.#globalMiddleware, routed, undefined);
        if (reply) return reply;
      }
      const begun = this.#callWithBody(routed);
      const called = begun instanceof Promise ? await begun : begun;
      if ("status" in called) return called;
      exchange = called.exchange;
      return await this.#replyOf(routed, called.result, exchange);
    } catch (error) {
      // The error of a middleware that was too slow says more than the deadline of the request.
      if (running.stopReason === "timeout" && !(error instanceof StepError)) return emptyReply(504);
      if (running.stopReason === "stopped") return draining();
      if (running.stopReason === "client gone" || isBrokenOff(running, error)) return CLIENT_GONE;
      return this.#replyTo(error, routed);
    } finally {
      if (!routed.isStreaming) {
        exchange?.close();
        this.#options.running.remove(running);
      }
    }
  }

  /**
   * Reads the body, runs what stands before the function, and calls it, at once where nothing has
   * to be waited for. A function of its own: the one that waits for the result would keep the
   * payload, which takes many times its bytes.
   */
  #callWithBody(routed: RoutedRequest): Reply | Called | Promise<Reply | Called> {
    const { method, match } = routed;
    const read = method === "GET" || method === "HEAD" ? null : this.#readBody(routed);
    const waits = read instanceof Promise || match.route.value.upgrade || hasSteps(match);
    if (waits) return this.#callLater(routed, read);
    const ready = this.#prepare(routed, read);
    try {
      return this.#callNow(routed, ready);
    } catch (error) {
      ready.exchange?.close();
      throw error;
    }
  }

  async #callLater(
    routed: RoutedRequest,
    read: BodyValue | Promise<BodyValue>,
  ): Promise<Reply | Called> {
    const { match } = routed;
    const { upgrade } = match.route.value;
    const ready = this.#prepare(routed, await read);
    let isCalled = false;
    try {
      const reply = hasSteps(match) ? await this.#runBefore(routed, ready) : undefined;
      if (reply) return reply;
      if (upgrade) return await this.#upgrade(routed, upgrade, inContext(ready.upgrade!, routed));
      const called = this.#callNow(routed, ready);
      isCalled = true;
      return called;
    } finally {
      if (!isCalled) ready.exchange?.close();
    }
  }

  #prepare(routed: RoutedRequest, body: BodyValue): ReadyCall {
    const { running: { request, rawBody }, method, match, query } = routed;
    const { upgrade, config: { enqueue } } = match.route.value;
    const parts = { method, match, query, headers: request.headersJson, body, rawBody };
    const start = startPayload(parts);
    if (upgrade) {
      const payload = JSON.parse(endPayload(start, undefined, "").text) as JsonObject;
      upgrade.prepare(payload, request);
      return { start, upgrade: payload, exchange: undefined, refs: "" };
    }
    const exchange = enqueue === undefined ? this.#exchangeOf(routed) : undefined;
    return { start, upgrade: undefined, exchange, refs: exchange?.refsText ?? "" };
  }

  #callNow(routed: RoutedRequest, { start, exchange, refs }: ReadyCall): Called {
    const { function_id, namespace, metadata, config: { enqueue } } = routed.match.route.value;
    const sent = endPayload(start, routed.context, refs);
    const call = this.#call(routed, function_id, sent, namespace, metadata, undefined, enqueue);
    return { result: enqueue === undefined ? call : accepted(call), exchange };
  }

  #upgrade(routed: RoutedRequest, upgrade: Upgrades, payload: JsonObject): Promise<Reply> {
    const { namespace, metadata } = routed.match.route.value;
    const call: UpgradeCall = (function_id, connect, traceparent) => {
      return this.#call(routed, function_id, connect, namespace, metadata, traceparent);
    };
    const { traceparent } = routed.span.fields;
    return upgrade.open(routed.running.request, payload, call, traceparent);
  }

  /** Condition and middleware of the route. */
  async #runBefore(
    routed: RoutedRequest,
    { start, upgrade, refs }: ReadyCall,
  ): Promise<Reply | undefined> {
    const { config, namespace } = routed.match.route.value;
    if (config.condition_function_id !== undefined) {
      const call = this.#stepOf(routed, namespace);
      const sent = upgrade ? inContext(upgrade, routed) : endPayload(start, routed.context, refs);
      const refusal = await runCondition(call, config.condition_function_id, sent);
      if (refusal) return refusal;
    }
    if (config.middleware_function_ids.length === 0) return undefined;
    return await this.#runMiddleware(config.middleware_function_ids, routed, namespace);
  }

  #exchangeOf({ running, match }: RoutedRequest): Exchange | undefined {
    const { channels, memory, config: { streamed_body_bytes_max: bodyBytesMax } } = this.#options;
    if (!channels) return undefined;
    const { received, request: { body } } = running;
    const { warn } = match.route.value;
    return new Exchange({ channels, memory, received, body, bodyBytesMax, warn });
  }

  /** The reply to the value that the function returns, or what it writes, whichever comes first. */
  #replyOf(
    routed: RoutedRequest,
    call: Promise<Json | undefined>,
    exchange: Exchange | undefined,
  ): Promise<Reply> {
    const { warn } = routed.match.route.value;
    return new Promise<Reply>((resolve, reject) => {
      exchange?.listen(new PendingReply(routed, exchange, this.#begin, resolve, reject));
      const fail = (error: unknown): void => {
        // After the head an error can only cut the stream.
        if (exchange?.isBegun) exchange.response.fail(toEngineError(error));
        else reject(error);
      };
      call.then((value) => {
        if (exchange?.isBegun) return;
        if (value === undefined || value === null) return this.#awaitHead(routed, reject);
        try {
          resolve(replyFromValue(value, warn));
        } catch (error) {
          reject(error);
        }
      }, fail);
    });
  }

  /** The function returned nothing: it may write its response, still or from now on. */
  #awaitHead({ running, match: { route } }: RoutedRequest, reject: (error: unknown) => void): void {
    running.race(new Promise<never>(() => {})).catch((error) => {
      if (running.stopReason === "timeout") {
        const text = "a handler returned nothing and wrote no response in time";
        route.value.warn(text, route.path);
      }
      reject(error);
    });
  }

  /** From now on the request lives as long as its response. */
  #beginStream(routed: RoutedRequest, exchange: Exchange, head: StreamHead): Reply {
    const { running, match } = routed;
    const { response } = exchange;
    const { running: all } = this.#options;
    let isWhole = false;
    const stream: ResponseStream = {
      async read() {
        const part = await response.read();
        isWhole = part === undefined;
        return part;
      },
      rest: () => response.rest(),
      cancel: () => {
        exchange.close();
        if (!isWhole) running.signal.abort(new Error("client gone"));
        all.remove(running);
      },
    };
    const reply = replyFromStream(head.status, head.headers, stream, match.route.value.warn);
    routed.isStreaming = true;
    running.onStop = () => {
      response.fail(new EngineError("invocation_stopped", "The request was stopped"));
    };
    all.stream(running);
    return reply;
  }

  #readBody({ running, match }: RoutedRequest): BodyValue | Promise<BodyValue> {
    const { running: all, config } = this.#options;
    const body = readBody(running.request, config, match.route.value.config, running);
    if (!(body instanceof Promise)) return body;
    all.pause(running);
    return running.read(body).then((value) => {
      if (all.resume(running)) return value;
      throw new EngineError("overloaded", tooManyRun(config.concurrency_max));
    });
  }

  async #runMiddleware(
    function_ids: readonly string[],
    routed: RoutedRequest,
    namespace: string | undefined,
  ): Promise<Reply | undefined> {
    const { method, match, headers, query } = routed;
    const call = this.#stepOf(routed, namespace);
    const { warn } = match.route.value;
    for (const function_id of function_ids) {
      const request = middlewareRequest(method, match, query, headers);
      const said = await runMiddleware(call, function_id, request, routed.context, warn);
      if (said?.reply) return said.reply;
      if (said?.context) routed.context = said.context;
    }
    return undefined;
  }

  #stepOf(routed: RoutedRequest, namespace: string | undefined): CallStep {
    return (function_id, payload) => {
      return this.#call(routed, function_id, payload, namespace, undefined);
    };
  }

  #call(
    { running, span }: RoutedRequest,
    function_id: string,
    payload: Json | JsonText,
    namespace: string | undefined,
    metadata: Json | undefined,
    traceparent?: string,
    queue?: string,
  ): Promise<Json | undefined> {
    const timeout_ms = this.#options.running.remainingMs(running);
    const request: FunctionCall = {
      function_id,
      payload,
      timeout_ms,
      signal: running.signal,
      ...span.fields,
    };
    // Spreads of what is rarely there would make each call slower.
    const isPlain = namespace === undefined && metadata === undefined && queue === undefined &&
      traceparent === undefined;
    if (isPlain) return this.#options.call(request);
    return this.#options.call({
      ...request,
      ...traceparent !== undefined && { traceparent },
      ...queue !== undefined && { action: { type: "enqueue", queue } },
      ...namespace !== undefined && { namespace },
      ...metadata !== undefined && { metadata },
    });
  }

  #replyTo(error: unknown, { match, span }: Partial<RoutedRequest> = {}): Reply {
    const known = error instanceof EngineError ? error : internalError(error);
    if (span) span.errorCode = known.code;
    if (this.#isDraining && known.code === "overloaded") return draining();
    const error_id = crypto.randomUUID();
    const warn = match?.route.value.warn ?? (() => {});
    const status = known instanceof StepError ? known.status : undefined;
    const found = replyFromError(known, error_id, warn, status);
    const reply = found.status === 429 ? retryLater(found) : found;
    const fields = {
      error_id,
      status: reply.status,
      code: known.code,
      problem: error instanceof EngineError ? plainMessage(error) : String(error),
      route: match && `${match.route.method} ${match.route.path}`,
      function_id: match?.route.value.function_id,
      trace_id: span?.trace_id,
      ...stackOf(error),
    };
    // Other statuses are the client's fault or the load's; a warning per request would be a flood.
    if (reply.status === 500) this.#options.log.warn("a request failed", fields);
    else this.#options.log.debug("a request was refused", fields);
    return reply;
  }
}

/** Whether anything runs between the body and the function. */
function hasSteps({ route: { value: { config } } }: Match<Target>): boolean {
  return config.condition_function_id !== undefined || config.middleware_function_ids.length > 0;
}

/** The payload of an upgrade with what middleware said so far. */
function inContext(payload: JsonObject, { context }: RoutedRequest): JsonObject {
  return context === undefined ? payload : { ...payload, context };
}

/** Whether the body broke off, so that no client is left to read a response. */
function isBrokenOff(running: RunningRequest, error: unknown): boolean {
  return running.isReading && !(error instanceof EngineError);
}

/** The request as middleware sees it: without a body, which may not have arrived. */
function middlewareRequest(
  method: string,
  match: Match<Target>,
  query: string,
  headers: PlainHeaders,
): JsonObject {
  return { path_params: match.params, query_params: readQuery(query).last, headers, method };
}

function toEngineError(error: unknown): EngineError {
  return error instanceof EngineError ? error : internalError(error);
}

/** Where a function failed, if the error says so; for the log only. */
function stackOf(error: unknown): { stacktrace: string | undefined } {
  const { stacktrace, stack } = error as { stacktrace?: string; stack?: string };
  return { stacktrace: stacktrace ?? (error instanceof EngineError ? undefined : stack) };
}

/** For a bug of the engine: only the log says what it is. */
function internalError(thrown: unknown): EngineError {
  const message = "The request could not be answered; see the engine's log";
  return new EngineError("invocation_error", message, { cause: thrown });
}
