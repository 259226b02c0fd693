import assert from "node:assert/strict";
import type { FunctionView } from "../../engine/ports/directory.ts";
import { fakeHttp } from "../../tests/fakes/fake_http.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { RATE_KEYS_MAX } from "./guard.ts";
import { MISSING_ROUTES_MAX, STOPPED_ROUTES_MAX } from "./missing_routes.ts";

const DOWN = { reason: "worker shop is down (exit 7), next start in 1 s", worker: "shop" };

/** Routes of a function whose worker is away. */
function away(lines: readonly string[], more: JsonObject = {}) {
  const there = fakeHttp({}, { "shop::f": () => ({ body: "served" }) });
  for (const line of lines) {
    const id = there.route(line, "shop::f", more);
    there.types.unregisterTrigger({ id, trigger_type: "http" });
  }
  there.absences.set("shop::f", DOWN);
  return there;
}

Deno.test("a route of a worker that is started again gets 503 with the reason, and serves again", async () => {
  const { fetch, route, calls } = away(["GET /f/:id"]);

  const { status, headers, body } = await fetch("GET /f/7").then(async (response) => ({
    status: response.status,
    headers: response.headers,
    body: await response.json(),
  }));

  assert.equal(status, 503);
  assert.equal(headers.get("retry-after"), "1");
  const { error_id, ...error } = body.error;
  assert.deepEqual(error, {
    code: "function_not_found",
    message: `Function shop::f not found: ${DOWN.reason}`,
  });
  assert.match(error_id, /^[0-9a-f-]{36}$/);
  assert.equal((await fetch("HEAD /f/7")).status, 503);
  assert.equal(calls.length, 0);
  route("GET /f/:other", "shop::f");
  assert.equal(await (await fetch("GET /f/7")).json(), "served");
});

Deno.test("a route of a worker that is stopped, not supervised, or back without it gets 404", async () => {
  const stopped = away(["GET /f"]);
  const command = "engine worker start shop";
  stopped.absences.set("shop::f", { reason: "worker shop is stopped", worker: "shop", command });
  assert.equal((await stopped.fetch("GET /f")).status, 404);
  stopped.absences.set("shop::f", DOWN); // Started by hand, it comes back.
  assert.equal((await stopped.fetch("GET /f")).status, 503);

  const back = away(["GET /f"]);
  back.absences.clear();
  assert.equal((await back.fetch("GET /f")).status, 404);
  back.absences.set("shop::f", DOWN); // What it did not bring back is forgotten.
  assert.equal((await back.fetch("GET /f")).status, 404);
});

Deno.test("a lost route of a stopped worker hides none that is served or comes back", async () => {
  const command = "engine worker start shop";
  const { fetch, route, types, absences } = away(["GET /a/:x", "GET /a/b"]);
  absences.set("shop::f", { reason: "worker shop is stopped", worker: "shop", command });
  for (const line of ["GET /a/*", "GET /a/b"]) {
    const id = route(line, "till::f");
    types.unregisterTrigger({ id, trigger_type: "http" });
  }
  absences.set("till::f", { reason: "worker till is down", worker: "till" });

  assert.equal((await fetch("GET /a/1")).status, 503);
  assert.equal((await fetch("GET /a/b")).status, 503);
  absences.set("shop::f", DOWN);
  assert.match((await (await fetch("GET /a/1")).json()).error.message, /shop is down/);
  absences.set("shop::f", { reason: "worker shop is stopped", worker: "shop", command });
  route("GET /*", "shop::f");
  assert.equal((await fetch("GET /a/1")).status, 200);
});

Deno.test("a route of WebSockets gets 503 while its worker is started again, as one of HTTP", async () => {
  const { missing, absences, route, routes, types, fetch } = away([]);
  const id = route("GET /live/:room", "shop::f");
  const [ended] = [...routes.served()];
  types.unregisterTrigger({ id, trigger_type: "http" });
  absences.delete("shop::f");
  assert.equal((await fetch("GET /live/1")).status, 404, "the HTTP route is forgotten");
  missing.socketEnded(ended!);
  absences.set("shop::f", DOWN);
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };

  const reply = await fetch("GET /live/1", { headers });

  assert.deepEqual([reply.status, reply.headers.get("retry-after")], [503, "1"]);
  assert.match((await reply.json()).error.message, /shop is down/);
  assert.equal((await fetch("GET /live/1")).status, 404, "no upgrade is asked for");
});

Deno.test("a route that its worker takes back gets 404, since its function is there", async () => {
  const { route, types, views, absences, fetch } = fakeHttp();
  const id = route("GET /f", "shop::f");
  views.set("shop::f", {} as FunctionView);

  types.unregisterTrigger({ id, trigger_type: "http" });
  absences.set("shop::f", DOWN);

  assert.equal((await fetch("GET /f")).status, 404);
});

Deno.test("the token of a route is asked for before it says that its worker is away", async () => {
  const { fetch } = away(["GET /f"], { auth_token: "secret" });

  assert.equal((await fetch("GET /f")).status, 401);
  const headers = { authorization: "Bearer secret" };
  assert.equal((await fetch("GET /f", { headers })).status, 503);
});

Deno.test("the rate of a route holds while its worker is away, for a bounded number of clients", async () => {
  const rate_limit = { requests: 1, per_s: 3_600, key: "header:x-key" };
  const { fetch } = away(["GET /f"], { rate_limit });
  const statusFor = async (key: string) =>
    (await fetch("GET /f", { headers: { "x-key": key } })).status;

  assert.equal(await statusFor("first"), 503);
  assert.equal(await statusFor("first"), 429);
  for (let i = 0; i < RATE_KEYS_MAX / MISSING_ROUTES_MAX; i++) await statusFor(`other${i}`);

  assert.equal(await statusFor("first"), 503, "it is forgotten");
});

Deno.test("methods of a path are separate, and routes that differ in names are one", async () => {
  const { fetch, route } = away(["POST /f/:a", "POST /f/:b", "GET /x:y/:z/*"]);
  route("PUT /f/:a", "other::f");

  assert.equal((await fetch("POST /f/1")).status, 503);
  assert.equal((await fetch("GET /f/1")).status, 405);
  assert.equal((await fetch("GET /x:y/1/2/3")).status, 503);
  assert.equal((await fetch("GET /xa/1/2/3")).status, 404);
});

Deno.test("no more routes than the bound are remembered", async () => {
  const lines = Array.from({ length: MISSING_ROUTES_MAX + 1 }, (_, i) => `GET /f${i}`);
  const { fetch } = away(lines);

  assert.equal((await fetch("GET /f0")).status, 404);
  assert.equal((await fetch(`GET /f${MISSING_ROUTES_MAX}`)).status, 503);
});

Deno.test("a request looks behind a bounded number of routes of stopped workers", async () => {
  const { fetch, route, types, absences } = away(["GET /f"]);
  const stopped = { reason: "worker shop is stopped", worker: "shop", command: "start it" };
  const loseOne = (i: number): void => {
    const id = route("GET /f", `old::f${i}`);
    types.unregisterTrigger({ id, trigger_type: "http" });
    absences.set(`old::f${i}`, stopped);
  };
  const asked: string[] = [];
  const get = absences.get.bind(absences);
  absences.get = (id) => {
    asked.push(id);
    return get(id);
  };

  for (let i = 1; i < STOPPED_ROUTES_MAX; i++) loseOne(i);
  assert.equal((await fetch("GET /f")).status, 503, "the one that comes back is behind them");
  for (let i = 0; i < 100; i++) loseOne(STOPPED_ROUTES_MAX + i);
  asked.length = 0;

  assert.equal((await fetch("GET /f")).status, 404);
  assert.equal(asked.length, STOPPED_ROUTES_MAX);
});

Deno.test("lost routes of a path keep their order while their workers are stopped", async () => {
  const { fetch, route, types, absences } = away([]);
  const command = "engine worker start shop";
  for (const id of ["old::f", "new::f"]) {
    const trigger = { id: route("GET /f", id), trigger_type: "http" };
    types.unregisterTrigger(trigger);
    absences.set(id, { reason: "stopped", worker: "shop", command });
  }

  assert.equal((await fetch("GET /f")).status, 404);
  for (const id of ["old::f", "new::f"]) absences.set(id, DOWN);

  assert.match((await (await fetch("GET /f")).json()).error.message, /^Function new::f /);
});

Deno.test("no more routes of WebSockets than the bound are remembered", async () => {
  const { missing, route, routes, fetch } = away([]);
  route("GET /f", "shop::f");
  const [any] = [...routes.served()];
  routes.remove(any!.id);
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };

  for (let i = 0; i <= MISSING_ROUTES_MAX; i++) missing.socketEnded({ ...any!, path: `/f${i}` });

  assert.equal((await fetch("GET /f0", { headers })).status, 404);
  assert.equal((await fetch(`GET /f${MISSING_ROUTES_MAX}`, { headers })).status, 503);
});
