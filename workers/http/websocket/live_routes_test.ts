import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { fakeSockets } from "../../../tests/fakes/fake_sockets.ts";
import { LiveRoutes, RETURN_MS } from "./live_routes.ts";

const { target } = fakeSockets();

function setup() {
  const clock = new FakeClock();
  const closed: number[] = [];
  const socket = { close: (code: number) => void closed.push(code) };
  return { clock, routes: new LiveRoutes(clock), closed, socket };
}

Deno.test("LiveRoutes: the newest trigger of a path serves, and the one before when it has left", () => {
  const { routes, clock } = setup();
  const one = target({ api_path: "/a" }, "1");
  const two = target({ api_path: "a" }, "2");

  const route = routes.add(one);
  assert.equal(routes.add(two), route);
  assert.equal(route.target, two);
  routes.remove("2");
  assert.equal(route.target, one);
  routes.remove("1");
  assert.equal(route.target, undefined);
  assert.equal(route.last, one);
  assert.deepEqual([routes.size, clock.waiting], [0, 0]);
});

Deno.test("LiveRoutes: of triggers that say their order, the highest serves, whichever comes first", () => {
  const { routes } = setup();
  const [low, middle, high] = [1, 2, 3].map((at) => ({
    ...target({ api_path: "/a" }, `${at}`),
    order: { at, id: `${at}` },
  }));

  const route = routes.add(middle!);
  routes.add(high!);
  routes.add(low!);

  assert.equal(route.target, high);
  routes.remove("3");
  assert.equal(route.target, middle);
  routes.remove("2");
  assert.equal(route.target, low);
});

Deno.test("LiveRoutes closes connections with 1001 when no trigger comes back", () => {
  const { routes, clock, closed, socket } = setup();
  const route = routes.add(target({ api_path: "/a" }, "1"));
  route.sockets.add(socket);

  routes.remove("1");
  clock.tick(RETURN_MS - 1);
  assert.deepEqual(closed, []);
  assert.equal(routes.find("a"), route);
  clock.tick(1);
  assert.deepEqual(closed, [1001]);
  assert.equal(routes.size, 0);
});

Deno.test("LiveRoutes gives the connections to a trigger of the same path that comes in time", () => {
  const { routes, clock, closed, socket } = setup();
  const route = routes.add(target({ api_path: "/a" }, "1"));
  route.sockets.add(socket);

  routes.remove("1");
  clock.tick(RETURN_MS - 1);
  const next = target({ api_path: "/a" }, "2");
  assert.equal(routes.add(next), route);
  clock.tick(RETURN_MS);

  assert.deepEqual([closed, route.target], [[], next]);
});

Deno.test("LiveRoutes: a trigger that is registered again replaces itself, also at another path", () => {
  const { routes, clock } = setup();
  const route = routes.add(target({ api_path: "/a" }, "1"));
  routes.add(target({ api_path: "/a", timeout_ms: 5 }, "1"));
  assert.deepEqual([route.targets.length, route.target!.config.route.timeout_ms], [1, 5]);

  const moved = routes.add(target({ api_path: "/b" }, "1"));
  assert.deepEqual([moved.path, routes.find("/a"), routes.size], ["/b", undefined, 1]);
  routes.remove("unknown");
  routes.stop();
  assert.equal(clock.waiting, 0);
});
