/**
 * What a route asks of a request before anything is read or called: a rate and a token of its own.
 *
 * A rate is a token bucket per client, kept as one number (GCRA): the time at which the bucket is
 * full again. Clients that fell silent cost nothing after a while: numbers are in two generations,
 * and the older one is dropped when the younger one has its share of keys. So one that
 * makes up many names only shortens the memory of its own route.
 *
 * @module
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { PlainHeaders } from "../kit/http/head.ts";
import type { ServedRequest } from "../kit/http/response.ts";

/** Most keys that all routes remember together. */
export const RATE_KEYS_MAX = 100_000;
/** Each route remembers at least so many, however many routes there are. */
const ROUTE_KEYS_MIN = 32;
/** Longer keys are kept as their hash. */
export const RATE_KEY_CHARS_MAX = 128;
/** What a key by header looks like. */
const BY_HEADER = "header:";
const BEARER = /^Bearer +([^ ]+) *$/i;

/** How often a client may use a route. */
export interface RateLimit {
  /** So many at once, and on average. */
  readonly requests: number;
  /** Within so many seconds. */
  readonly per_s: number;
  /** What tells clients apart: `ip`, or `header:<name>`. */
  readonly key: string;
}

/** What a guard reads of a request. */
export type GuardedRequest = Pick<ServedRequest, "headers" | "client">;

/** The rates of all routes. */
export class RateLimits {
  readonly #limiters = new Map<string, RateLimiter>();

  /** The limiter for a route: the one it has, unless its rule has changed. */
  make(id: string, rule: RateLimit): RateLimiter {
    const before = this.#limiters.get(id);
    return before?.hasRule(rule) ? before : new RateLimiter(rule, () => this.#keysMax);
  }

  /** The route has this limiter from now on, or none. */
  set(id: string, limiter: RateLimiter | undefined): void {
    if (limiter) this.#limiters.set(id, limiter);
    else this.#limiters.delete(id);
  }

  get #keysMax(): number {
    return Math.max(ROUTE_KEYS_MIN, Math.floor(RATE_KEYS_MAX / Math.max(1, this.#limiters.size)));
  }
}

/** The rate of one route. */
export class RateLimiter {
  /** What it was made for. */
  readonly rule: RateLimit;
  /** Name of the header with the key; `undefined`: the key is the client. */
  readonly #header: string | undefined;
  readonly #keysMax: () => number;
  /**
   * When the bucket of a key is full again, in milliseconds times requests: whole numbers, so that
   * nothing is lost by rounding.
   */
  #young = new Map<string, number>();
  #old = new Map<string, number>();

  constructor(rule: RateLimit, keysMax: () => number) {
    this.rule = rule;
    this.#keysMax = keysMax;
    const { key } = rule;
    this.#header = key.startsWith(BY_HEADER)
      ? key.slice(BY_HEADER.length).toLowerCase()
      : undefined;
  }

  /** How many keys are remembered. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** Whether it was made for an equal rule. */
  hasRule({ requests, per_s, key }: RateLimit): boolean {
    const own = this.rule;
    return own.requests === requests && own.per_s === per_s && own.key === key;
  }

  /** Counts a request. Returns 0, or the seconds after which the client may send the next one. */
  take(request: GuardedRequest, nowMs: number): number {
    const { requests, per_s } = this.rule;
    const key = this.#keyOf(request);
    const now = Math.floor(nowMs) * requests;
    const full = Math.max(now, this.#young.get(key) ?? this.#old.get(key) ?? 0);
    const intervalMs = per_s * 1_000;
    const over = full - now - intervalMs * (requests - 1);
    if (over > 0) {
      if (!this.#young.has(key)) this.#remember(key, full);
      return Math.max(1, Math.ceil(over / requests / 1_000));
    }
    this.#remember(key, full + intervalMs);
    return 0;
  }

  #remember(key: string, full: number): void {
    if (this.#young.size >= this.#keysMax() / 2 && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, full);
  }

  /** Requests without the header share a key. */
  #keyOf({ headers, client }: GuardedRequest): string {
    if (this.#header === undefined) return client.name;
    const value = own(headers, this.#header) ?? "";
    if (value.length <= RATE_KEY_CHARS_MAX) return value;
    return createHash("sha256").update(value).digest("base64");
  }
}

/** The conditions of one route. */
export class RouteGuard {
  /** The rate; `undefined`: none. */
  readonly limiter: RateLimiter | undefined;
  #digest: Uint8Array | undefined;

  constructor(limiter: RateLimiter | undefined, token: string | undefined) {
    this.limiter = limiter;
    this.#digest = token === undefined ? undefined : digest(token);
  }

  /** Equal conditions that count from zero, for at most so many clients. */
  copy(keysMax: number): RouteGuard {
    const { limiter } = this;
    const copy = new RouteGuard(limiter && new RateLimiter(limiter.rule, () => keysMax), undefined);
    copy.#digest = this.#digest;
    return copy;
  }

  /**
   * Counts a request and checks its token, in this order: guessing a token is limited, too. `token`
   * is one that came otherwise than as a header.
   *
   * @throws {EngineError} `rate_limited`, `unauthorized`; with status and headers in its details.
   */
  check(request: GuardedRequest, nowMs: number, token?: string): void {
    const retryAfterS = this.limiter?.take(request, nowMs) ?? 0;
    if (retryAfterS > 0) throw rateLimited(this.limiter!.rule, retryAfterS);
    if (this.#digest) checkToken(this.#digest, [bearerOf(request.headers), token]);
  }
}

function rateLimited({ requests, per_s }: RateLimit, retryAfterS: number): EngineError {
  const message = `At most ${requests} requests in ${per_s} s; try again in ${retryAfterS} s`;
  const headers = { "retry-after": `${retryAfterS}` };
  return new EngineError("rate_limited", message, { details: { status_code: 429, headers } });
}

function bearerOf(headers: PlainHeaders): string | undefined {
  return BEARER.exec(own(headers, "authorization") ?? "")?.[1];
}

/** One of them has to be right: the other may be the token of the listener. */
function checkToken(expected: Uint8Array, offered: readonly (string | undefined)[]): void {
  // Digests have one length, so that the comparison says nothing about that of the token.
  for (const token of offered) {
    if (token !== undefined && timingSafeEqual(expected, digest(token))) return;
  }
  const message = "This route asks for its token as Authorization: Bearer <token>";
  const details = { status_code: 401, headers: { "www-authenticate": "Bearer" } };
  throw new EngineError("unauthorized", message, { details });
}

function digest(token: string): Uint8Array {
  return createHash("sha256").update(token).digest();
}

function own(headers: PlainHeaders, name: string): string | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined;
}
