import assert from "node:assert/strict";
import { announce, fakeRouter, handed } from "../../tests/fakes/fake_router.ts";
import type { FiringBounds, FiringInput, FiringPayload } from "../ports/firings.ts";

const BOUNDS: FiringBounds = { waitingCalls: 100, unsentBytes: 1_000 };
const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

function payloadOf(value: unknown, traceparent?: string): FiringPayload {
  return { json: new TextEncoder().encode(JSON.stringify(value)), traceparent };
}

function setup() {
  const engine = fakeRouter({ max_inflight_calls_per_worker: 1_000 });
  const provider = engine.openBuiltin("engine-pubsub");
  const worker = engine.open();
  announce(worker);
  worker.say({ type: "registerfunction", id: "f::a" });
  worker.say({ type: "registerfunction", id: "f::b", namespace: "eu" });
  const { firings } = engine.router;
  const target = (input: Partial<FiringInput> = {}) =>
    firings.prepare({ function_id: "f::a", namespace: undefined, metadata: undefined, ...input });
  const fire = (it = target(), payload = payloadOf({ n: 1 }), bounds = BOUNDS) =>
    firings.fire("engine-pubsub", it, payload, bounds);
  return { engine, provider, worker, target, fire };
}

Deno.test("a firing is a call whose result is ignored", () => {
  const { engine, worker, provider, fire } = setup();

  assert.equal(fire(), "sent");

  const [call] = handed(worker);
  assert.deepEqual([call!.function_id, call!.data], ["f::a", { n: 1 }]);
  assert.equal(engine.router.runningCalls, 1);
  worker.say({
    type: "invocationresult",
    invocation_id: call!.invocation_id,
    function_id: "f::a",
    result: 1,
  });
  assert.equal(engine.router.runningCalls, 0);
  assert.deepEqual(provider.connection.take(), []);
});

Deno.test("one payload goes to many functions, each with its own metadata, namespace and id", () => {
  const { worker, target, fire } = setup();
  const payload = payloadOf({ text: 'ü"\\' }, TRACE);
  const long = { note: "x".repeat(10_000) };
  const targets = [
    target(),
    target({ function_id: "f::b", namespace: "eu", metadata: { m: [1] } }),
    target({ metadata: long }),
    target(),
  ];

  for (const it of targets) assert.equal(fire(it, payload), "sent");
  assert.equal(fire(target(), payloadOf(null)), "sent");
  assert.equal(fire(target(), payloadOf("y".repeat(500_000))), "sent");
  assert.equal(fire(target(), payloadOf(2)), "sent");

  const calls = handed(worker);
  assert.deepEqual(
    calls.map(({ function_id, namespace, metadata, traceparent }) => [
      function_id,
      namespace,
      metadata,
      traceparent,
    ]),
    [
      ["f::a", undefined, undefined, TRACE],
      ["f::b", "eu", { m: [1] }, TRACE],
      ["f::a", undefined, long, TRACE],
      ["f::a", undefined, undefined, TRACE],
      ["f::a", undefined, undefined, undefined],
      ["f::a", undefined, undefined, undefined],
      ["f::a", undefined, undefined, undefined],
    ],
  );
  const data = calls.map((call) => call.data);
  assert.deepEqual(data.slice(0, 4), Array(4).fill({ text: 'ü"\\' }));
  assert.equal(data[4] ?? null, null);
  assert.deepEqual(data.slice(5), ["y".repeat(500_000), 2]);
  assert.equal(new Set(calls.map(({ invocation_id }) => invocation_id)).size, calls.length);
});

Deno.test("a worker that is behind in calls or bytes gets no more", () => {
  const { worker, fire } = setup();
  for (let i = 0; i < BOUNDS.waitingCalls; i++) assert.equal(fire(), "sent");

  assert.equal(fire(), "behind");
  const [first] = handed(worker);
  worker.say({
    type: "invocationresult",
    invocation_id: first!.invocation_id,
    function_id: "f::a",
  });
  assert.equal(fire(), "sent");
  const more = { ...BOUNDS, waitingCalls: 1_000 };
  worker.connection.queuedBytes = BOUNDS.unsentBytes;
  assert.equal(fire(undefined, undefined, more), "behind");
  worker.connection.queuedBytes = 0;
  assert.equal(fire(undefined, undefined, more), "sent");
});

Deno.test("a worker at the engine's own bound of calls is behind too", () => {
  const { fire } = setup();
  const wide = { waitingCalls: 1e9, unsentBytes: 1e9 };
  for (let i = 0; i < 1_000; i++) assert.equal(fire(undefined, undefined, wide), "sent");

  assert.equal(fire(undefined, undefined, wide), "behind");
});

Deno.test("a function without a worker, or of the engine, is left to an ordinary call", () => {
  const { engine, worker, provider, target, fire } = setup();
  provider.say({ type: "registerfunction", id: "own::f" });

  assert.equal(fire(target({ function_id: "no::such" })), "ordinary");
  assert.equal(fire(target({ namespace: "eu" })), "ordinary");
  assert.equal(fire(target({ function_id: "own::f" })), "ordinary");
  worker.events.closed(1000, "");
  assert.equal(fire(), "ordinary");
  provider.events.closed(1000, "");
  assert.equal(engine.router.firings.fire("none", target(), payloadOf(1), BOUNDS), "ordinary");
});
