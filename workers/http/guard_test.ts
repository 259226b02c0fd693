/**
 * Rates and tokens of routes, with a clock that stands where it is put.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  type GuardedRequest,
  RATE_KEYS_MAX,
  type RateLimit,
  RateLimiter,
  RateLimits,
  RouteGuard,
} from "./guard.ts";

function from(name: string, headers: Record<string, string> = {}): GuardedRequest {
  return { client: { name, sockets: 1, running: 0 }, headers };
}

function limiter(rule: Partial<RateLimit> = {}, keysMax = 1_000): RateLimiter {
  return new RateLimiter({ requests: 3, per_s: 10, key: "ip", ...rule }, () => keysMax);
}

Deno.test("RateLimiter takes its requests at once, then one per interval", () => {
  const rate = limiter({ requests: 2, per_s: 10 });
  const take = (ms: number): number => rate.take(from("a"), ms);

  assert.deepEqual([0, 0, 0].map(take), [0, 0, 5]);
  assert.deepEqual([4_999, 5_000, 5_000].map(take), [1, 0, 5]);
  assert.deepEqual([60_000, 60_000, 60_000].map(take), [0, 0, 5]);
});

Deno.test("RateLimiter takes no more than its rate over any time, and no less", () => {
  for (const [requests, per_s] of [[1, 1], [3, 10], [7, 1], [1_000, 60]] as const) {
    const rate = limiter({ requests, per_s });
    let taken = 0;
    const seconds = 20 * per_s;
    for (let ms = 0; ms < seconds * 1_000; ms += 97.3) {
      for (let i = 0; i < 40; i++) if (rate.take(from("a"), ms) === 0) taken++;
    }
    const most = requests + requests * seconds / per_s;
    assert.ok(taken <= most, `${taken} of ${most}`);
    assert.ok(taken >= most - requests - Math.ceil(requests / 2), `${taken} of ${most}`);
  }
});

Deno.test("RateLimiter says when the next request is taken", () => {
  const rate = limiter({ requests: 5, per_s: 60 });
  for (let i = 0; i < 5; i++) rate.take(from("a"), 1_000);

  const wait = rate.take(from("a"), 1_000);

  assert.equal(wait, 12);
  assert.ok(rate.take(from("a"), 1_000 + wait * 1_000 - 1_000) > 0);
  assert.equal(rate.take(from("a"), 1_000 + wait * 1_000), 0);
});

Deno.test("RateLimiter tells clients apart by address or by a header", () => {
  const byIp = limiter({ requests: 1 });
  const byHeader = limiter({ requests: 1, key: "header:X-Api-Key" });

  assert.deepEqual([from("a"), from("b"), from("a")].map((r) => byIp.take(r, 0)), [0, 0, 10]);
  const requests = [
    from("a", { "x-api-key": "1" }),
    from("a", { "x-api-key": "2" }),
    from("b", { "x-api-key": "1" }),
    from("a"),
    from("b"), // Without the header as the one before.
  ];
  assert.deepEqual(requests.map((r) => byHeader.take(r, 0)), [0, 0, 10, 0, 10]);
  const inherited = limiter({ requests: 1, key: "header:constructor" });
  assert.deepEqual([from("a"), from("b")].map((r) => inherited.take(r, 0)), [0, 10]);
});

Deno.test("RateLimiter tells long keys apart by all of their characters", () => {
  const rate = limiter({ requests: 1, key: "header:authorization" });
  const start = "x".repeat(60_000);

  for (const end of ["1", "2"]) {
    assert.equal(rate.take(from("a", { authorization: start + end }), 0), 0);
    assert.equal(rate.take(from("a", { authorization: start + end }), 0), 10);
  }

  assert.equal(rate.size, 2);
});

Deno.test("RateLimiter remembers so many keys, and the ones that come most recently", () => {
  const rate = limiter({ requests: 1 }, 100);
  for (let i = 0; i < 10_000; i++) {
    rate.take(from(`c${i}`), 0);
    if (i % 10 === 0) assert.ok(rate.take(from("always"), 0) === (i === 0 ? 0 : 10), `${i}`);
    assert.ok(rate.size <= 100, `${rate.size}`);
  }
});

Deno.test("RateLimits gives each route a share, and keeps the counts of an equal rule", () => {
  const limits = new RateLimits();
  const rule = { requests: 1, per_s: 10, key: "ip" };
  const first = limits.make("t1", rule);
  limits.set("t1", first);
  first.take(from("a"), 0);

  assert.equal(limits.make("t1", { ...rule }), first);
  assert.notEqual(limits.make("t1", { ...rule, requests: 2 }), first);
  assert.notEqual(limits.make("t2", rule), first);

  for (let i = 0; i < 1_000; i++) limits.set(`r${i}`, limits.make(`r${i}`, rule));
  const one = limits.make("r1", rule);
  for (let i = 0; i < 1_000; i++) one.take(from(`c${i}`), 0);
  assert.ok(one.size <= RATE_KEYS_MAX / 1_000);
  limits.set("t1", undefined);
  assert.notEqual(limits.make("t1", rule), first);
});

Deno.test("RouteGuard asks for its token, and counts a request before it looks", () => {
  const guard = new RouteGuard(limiter({ requests: 4, per_s: 8 }), "s3cret");
  const check = (authorization?: string) => {
    try {
      guard.check(from("a", authorization === undefined ? {} : { authorization }), 0);
      return 200;
    } catch (error) {
      const { code, details } = error as { code: string; details: Record<string, unknown> };
      return [code, details.status_code, details.headers];
    }
  };
  const refused = ["unauthorized", 401, { "www-authenticate": "Bearer" }];

  assert.deepEqual(check("bearer s3cret"), 200);
  assert.deepEqual(check(), refused);
  assert.deepEqual(check("Bearer s3cre"), refused);
  assert.deepEqual(check("Basic s3cret"), refused);
  assert.deepEqual(check("Bearer s3cret"), ["rate_limited", 429, { "retry-after": "2" }]);
});
