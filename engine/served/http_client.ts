/**
 * Sends one HTTP request to an address that was checked, and follows redirects that are checked in
 * the same way.
 *
 * A host is resolved here, once per request, and the connection goes to one of the addresses that
 * were checked, by number: no other part resolves the name again, so an answer that changes in
 * between (DNS rebinding) has no effect. Host header, SNI and certificate are those of the name.
 * Proxies of the environment are not used. Nothing is sent twice.
 *
 * @module
 */
import type { IncomingMessage, RequestOptions } from "node:http";
import http from "node:http";
import https from "node:https";
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Turns } from "../ports/turns.ts";
import { addressProblem } from "./addresses.ts";
import { hostOf } from "./hosts.ts";
import { paceReading } from "./paced_reading.ts";
import { requestFailure } from "./request_failure.ts";
import { type HttpMethod, isAddress, type TargetRules, urlProblem } from "./target.ts";

/** How long an address may take to accept a connection, TLS included. */
export const CONNECT_MS = 10_000;
/** Redirects that are followed for one call. */
export const REDIRECTS_MAX = 5;
/** Addresses of one host that are tried. */
const ADDRESSES_TRIED_MAX = 4;
/** A connection that is idle for longer is closed, before most servers close it themselves. */
const IDLE_MS = 2_000;
/** Idle connections that are kept per host. */
const IDLE_PER_HOST_MAX = 8;

/** What {@linkcode HttpClient} works with. */
export interface HttpClientOptions {
  readonly clock: Clock;
  /** Of what was read and not handled. */
  readonly turns: Turns;
  /** The addresses of a host. */
  resolve(host: string): Promise<readonly string[]>;
  /** Certificates of authorities besides the known ones, as PEM. */
  readonly ca?: string;
}

/** A request. */
export interface HttpRequest {
  readonly url: URL;
  readonly method: HttpMethod;
  /** Sent to every host. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent to the origin of `url` only. */
  readonly ownHeaders: Readonly<Record<string, string>>;
  /** Without it, no body is sent. */
  readonly body: Uint8Array | undefined;
  /** Which hosts and addresses may be requested. */
  readonly rules: TargetRules;
  /** Ends the request; its reason is what request() rejects with. */
  readonly signal: AbortSignal;
}

/** Sends requests. */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #agents: { readonly "http:": http.Agent; readonly "https:": https.Agent };

  constructor(options: HttpClientOptions) {
    this.#options = options;
    const kept = {
      keepAlive: true,
      maxFreeSockets: IDLE_PER_HOST_MAX,
      timeout: IDLE_MS,
      proxyEnv: {}, // Otherwise a variable could send requests through a proxy.
    };
    const ca = options.ca === undefined ? {} : { ca: options.ca };
    this.#agents = {
      "http:": paced(new http.Agent(kept), options.turns),
      "https:": paced(new https.Agent({ ...kept, ...ca }), options.turns),
    };
  }

  /**
   * Sends a request, and returns the answer to it or to what it was redirected to; its body has
   * not been read.
   *
   * @throws {EngineError} `http_request_failed`; the reason of `signal` when that ends.
   */
  async request(first: HttpRequest): Promise<IncomingMessage> {
    let request = first;
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
      const answer = await this.#send(request);
      const next = redirected(request, answer);
      if (!next) return answer;
      answer.destroy();
      request = next;
    }
    throw requestFailure(first.url, `redirects more than ${REDIRECTS_MAX} times`);
  }

  /** Closes idle connections. */
  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  async #send(request: HttpRequest): Promise<IncomingMessage> {
    const { url, rules } = request;
    const problem = urlProblem(url, rules);
    if (problem !== undefined) {
      const why = problem.slice(url.origin.length + 1); // It begins with the origin, too.
      throw requestFailure(url, `is not requested, as it ${why}`);
    }
    const addresses = await this.#addressesOf(request);
    for (const [at, address] of addresses.entries()) {
      const isLast = at === addresses.length - 1;
      const answer = await this.#sendTo(address, request, isLast);
      if (answer) return answer;
    }
    throw requestFailure(url, "has no address");
  }

  /** The addresses of a host, all of them allowed. */
  async #addressesOf({ url, rules, signal }: HttpRequest): Promise<readonly string[]> {
    const host = hostOf(url).replace(/^\[|\]$/g, "");
    const found = isAddress(host) ? [host] : await this.#resolve(url, host, signal);
    if (found.length === 0) throw requestFailure(url, "has no address");
    for (const address of found) {
      const problem = addressProblem(address, rules.allow_private);
      // Without the address, which says something about the network that callers need not know.
      if (problem !== undefined) throw requestFailure(url, `resolves to ${problem}`);
    }
    return found.slice(0, ADDRESSES_TRIED_MAX);
  }

  async #resolve(url: URL, host: string, signal: AbortSignal): Promise<readonly string[]> {
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => {});
    const end = (): void => ended.reject(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
    try {
      const found = this.#options.resolve(host);
      found.catch(() => {}); // It may fail after the request has ended.
      return await Promise.race([found, ended.promise]);
    } catch (thrown) {
      if (signal.aborted) throw signal.reason;
      throw requestFailure(url, thrown);
    } finally {
      signal.removeEventListener("abort", end);
    }
  }

  /** Sends a request to one address; `undefined` if that did not connect and is not the last. */
  #sendTo(
    address: string,
    request: HttpRequest,
    isLast: boolean,
  ): Promise<IncomingMessage | undefined> {
    const { url, body, signal } = request;
    if (signal.aborted) return Promise.reject(signal.reason);
    const isSecure = url.protocol === "https:";
    const sent = (isSecure ? https : http).request(this.#optionsOf(address, request));
    let isConnected = false;
    return new Promise<IncomingMessage | undefined>((resolve, reject) => {
      const slow = this.#options.clock.after(CONNECT_MS, () => sent.destroy(new SlowConnect()));
      const abort = (): void => {
        sent.destroy(ENDED);
        slow();
        reject(signal.reason);
      };
      signal.addEventListener("abort", abort, { once: true });
      const connected = (): void => {
        isConnected = true;
        slow();
      };
      sent.on("socket", (socket) => {
        // Deno would send the request again on another connection when a kept one ends.
        sent.reusedSocket = false;
        if (!socket.connecting) connected();
        else socket.once(isSecure ? "secureConnect" : "connect", connected);
      });
      sent.on("response", (answer) => {
        answer.on("error", () => {}); // Its reader gets it too, if there is one.
        connected();
        signal.removeEventListener("abort", abort);
        if (signal.aborted) answer.destroy();
        resolve(answer);
      });
      // The socket is no longer the request's, so nothing else hears its errors.
      sent.on("upgrade", (_answer, socket) => {
        socket.on("error", () => {});
        socket.destroy();
        slow();
        signal.removeEventListener("abort", abort);
        reject(requestFailure(url, "changes to another protocol, which no function can use"));
      });
      sent.on("error", (error) => {
        slow();
        signal.removeEventListener("abort", abort);
        if (signal.aborted) reject(signal.reason);
        else if (!isConnected && !isLast) resolve(undefined);
        else reject(requestFailure(url, error));
      });
      sent.end(body);
    });
  }

  #optionsOf(address: string, request: HttpRequest): RequestOptions & { servername?: string } {
    const { url, method, headers, ownHeaders, body } = request;
    const host = hostOf(url);
    const isSecure = url.protocol === "https:";
    const isNamed = !isAddress(host.replace(/^\[|\]$/g, ""));
    return {
      host: address,
      port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
      method,
      path: `${url.pathname}${url.search}`,
      agent: this.#agents[url.protocol as "http:"],
      setHost: false,
      ...isSecure && isNamed && { servername: host },
      headers: {
        ...headers,
        ...ownHeaders,
        host: url.host,
        ...body && { "content-length": String(body.length) },
      },
    };
  }
}

/** The same agent, whose connections are read in turns. */
function paced<Agent extends http.Agent>(agent: Agent, turns: Turns): Agent {
  const create = agent.createConnection.bind(agent);
  agent.createConnection = (...options) => {
    const socket = create(...options);
    if (socket) paceReading(socket, turns);
    return socket;
  };
  return agent;
}

/** An address did not accept the connection in time. */
class SlowConnect extends Error {
  readonly code = "ETIMEDOUT";
}

/** Ends a request whose signal has ended. */
const ENDED = new Error("the request was ended");

/**
 * The request that a redirect asks for; `undefined` for any other answer.
 *
 * @throws {EngineError} `http_request_failed` for a redirect that is not followed.
 */
function redirected(request: HttpRequest, answer: IncomingMessage): HttpRequest | undefined {
  const { statusCode: status = 0, headers: { location } } = answer;
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return undefined;
  const { url, method } = request;
  const fail = (why: string): EngineError => {
    answer.destroy();
    return requestFailure(url, why);
  };
  if (!URL.canParse(location, url)) throw fail("redirects to no valid address");
  const next = new URL(location, url);
  next.hash = "";
  const isWeb = next.protocol === "https:" || next.protocol === "http:";
  if (!isWeb || next.username !== "" || next.password !== "") {
    throw fail("redirects to an address that is not requested");
  }
  if (url.protocol === "https:" && next.protocol !== "https:") {
    throw fail(`redirects from https to ${next.origin}, which is not encrypted`);
  }
  if (status === 303) {
    return { ...forOrigin(request, next), method: "GET", body: undefined };
  }
  if ((status === 301 || status === 302) && method !== "GET") {
    throw fail(
      `answers ${status}, which would lose the payload; register the function with its new ` +
        `address at ${next.origin}`,
    );
  }
  return forOrigin(request, next);
}

/** The same request for another address; only its own origin gets its own headers. */
function forOrigin(request: HttpRequest, url: URL): HttpRequest {
  const ownHeaders = url.origin === request.url.origin ? request.ownHeaders : {};
  return { ...request, url, ownHeaders };
}
