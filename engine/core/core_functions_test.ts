/**
 * The functions that the core executes itself.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import {
  call,
  type FakeRouter,
  fakeRouter,
  type FakeWorker,
  only,
  results,
} from "../../tests/fakes/fake_router.ts";
import { PROVIDER_ANSWER_MS } from "./core_functions.ts";

const ANNOUNCE = "engine::workers::register";
const REGISTER = "engine::register_trigger";
const UNREGISTER = "engine::unregister_trigger";
const TRIGGER = { trigger_type: "files", function_id: "f", config: { dir: "inbox" } };

interface Setup extends FakeRouter {
  readonly provider: FakeWorker;
  readonly peer: FakeWorker;
}

function setup(): Setup {
  const engine = fakeRouter();
  const provider = engine.open();
  provider.say({ type: "registertriggertype", id: "files", description: "" });
  return { ...engine, provider, peer: engine.open() };
}

/** The id with which a provider received a trigger. */
function given(provider: FakeWorker): string {
  const message = only(provider);
  assert.equal(message.type, "registertrigger");
  return message.id;
}

function answers(provider: FakeWorker, id: string, error?: Json): void {
  const { trigger_type, function_id } = TRIGGER;
  provider.say({ type: "triggerregistrationresult", id, trigger_type, function_id, error });
}

Deno.test("an announcement is stored, effective at once, and answered if it has an id", () => {
  const { peer, router, events } = setup();
  const data = {
    runtime: "python",
    version: "0.1.0",
    name: "math",
    description: "Sums",
    os: "linux",
    pid: 42,
    isolation: null,
    namespace: "eu",
    capabilities: ["cancel", "progress", 7],
    telemetry: { language: "en" },
  };

  call(peer, "i1", { function_id: ANNOUNCE, data });

  assert.deepEqual(results(peer), { i1: { success: true } });
  const { connected_at_ms: _, ...view } = router.directory.worker(peer.worker_id)!;
  assert.deepEqual(view, {
    id: peer.worker_id,
    name: "math",
    namespace: "eu",
    description: "Sums",
    version: "0.1.0",
    runtime: "python",
    os: "linux",
    pid: 42,
    isolation: null,
    launch_id: null,
    status: "connected",
    suspect: false,
    announced: true,
    builtin: false,
    operator: false,
    function_count: 0,
    trigger_count: 0,
    active_invocations: 0,
    queued_bytes: 0,
    ip_address: "127.0.0.1",
  });
  assert.equal(events.at(-1)?.type, "worker_announced");
});

Deno.test("a void announcement gets no reply, and replaces the one before", () => {
  const { peer, router } = setup();
  for (const name of ["first", "second"]) {
    peer.say({
      type: "invokefunction",
      function_id: ANNOUNCE,
      action: { type: "void" },
      data: { name },
    });
  }

  assert.deepEqual(peer.connection.take(), []);
  assert.equal(router.directory.worker(peer.worker_id)?.name, "second");
});

for (const data of [null, 5, [], {}, { name: "" }, { name: 7 }]) {
  Deno.test(`an announcement of ${JSON.stringify(data)} is rejected`, () => {
    const { peer, router } = setup();

    call(peer, "i1", { function_id: ANNOUNCE, data: data as Json });

    const message = only(peer);
    assert.ok(message.type === "invocationresult" && message.error);
    assert.equal(message.error.code, "deserialization_error");
    assert.match(
      message.error.message,
      /^Failed to deserialize input for engine::workers::register/,
    );
    assert.equal(router.directory.worker(peer.worker_id)?.announced, false);
  });
}

Deno.test("an id in another namespace is another function", () => {
  const { peer } = setup();

  call(peer, "i1", { function_id: ANNOUNCE, namespace: "eu", data: { name: "w" } });

  assert.deepEqual(results(peer), { i1: "function_not_found" });
});

Deno.test("engine::register_trigger replies with the id after the provider replied", () => {
  const { peer, provider, router } = setup();

  call(peer, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);
  assert.deepEqual(results(peer), {});
  assert.equal(router.runningCalls, 1);
  answers(provider, id);

  assert.deepEqual(results(peer), { i1: { id } });
  assert.equal(router.directory.trigger(id)?.worker_id, peer.worker_id);
});

Deno.test("engine::register_trigger forwards a refusal and keeps nothing", () => {
  const { peer, provider, router } = setup();
  call(peer, "i1", { function_id: REGISTER, data: TRIGGER });

  answers(provider, given(provider), { code: "nope", message: "No such directory" });

  const message = only(peer);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "nope",
    message: "No such directory",
  });
  assert.deepEqual([provider.connection.take(), router.directory.triggers()], [[], []]);
});

Deno.test("engine::register_trigger waits for the provider for a limited time", () => {
  const { peer, provider, clock } = setup();
  call(peer, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);

  clock.tick(PROVIDER_ANSWER_MS - 1);
  assert.deepEqual(results(peer), {});
  clock.tick(1);

  assert.deepEqual(results(peer), { i1: { id } });
});

Deno.test("engine::register_trigger replies at once when the type has no provider", () => {
  const { peer, router, provider, clock } = setup();

  call(peer, "i1", { function_id: REGISTER, data: { ...TRIGGER, trigger_type: "other" } });
  assert.equal(Object.keys(results(peer)).length, 1);
  call(peer, "i2", { function_id: REGISTER, data: TRIGGER });
  given(provider);
  provider.cut();

  assert.equal(Object.keys(results(peer)).length, 1);
  assert.deepEqual(router.directory.triggers().map(({ state }) => state), ["parked", "parked"]);
  assert.equal(router.runningCalls, 0);
  clock.tick(PROVIDER_ANSWER_MS);
  assert.deepEqual(peer.connection.take(), []);
});

for (
  const [name, end] of [
    [
      "is cancelled",
      ({ peer }: Setup) => peer.say({ type: "cancelinvocation", invocation_id: "i1" }),
    ],
    ["is late", ({ clock }: Setup) => clock.tick(50)],
    ["loses its caller", ({ peer }: Setup) => peer.cut()],
  ] as const
) {
  Deno.test(`a trigger whose registration ${name} does not stay`, () => {
    const world = setup();
    const { peer, provider, clock, router } = world;
    call(peer, "i1", { function_id: REGISTER, data: TRIGGER, timeout_ms: 50 });
    const id = given(provider);

    end(world);
    answers(provider, id);
    clock.tick(PROVIDER_ANSWER_MS);

    assert.deepEqual(router.directory.triggers(), []);
    assert.deepEqual(provider.connection.take(), [
      { type: "unregistertrigger", id, trigger_type: "files" },
    ]);
    assert.deepEqual([router.runningCalls, clock.waiting], [0, 0]);
  });
}

Deno.test("a trigger may be registered by a void call", () => {
  const { peer, provider, router } = setup();

  peer.say({ type: "invokefunction", function_id: REGISTER, data: TRIGGER });

  assert.equal(router.directory.trigger(given(provider))?.state, "offered");
  assert.deepEqual(peer.connection.take(), []);
});

for (const data of [null, {}, { trigger_type: "files" }, { ...TRIGGER, function_id: 5 }]) {
  Deno.test(`engine::register_trigger rejects ${JSON.stringify(data)}`, () => {
    const { peer, provider } = setup();

    call(peer, "i1", { function_id: REGISTER, data });

    assert.deepEqual(results(peer), { i1: "deserialization_error" });
    assert.deepEqual(provider.connection.take(), []);
  });
}

Deno.test("engine::unregister_trigger ends only triggers of the calling connection", () => {
  const { peer, provider, open } = setup();
  peer.say({ type: "registertrigger", id: "t1", ...TRIGGER });
  given(provider);
  const stranger = open();

  call(stranger, "i1", { function_id: UNREGISTER, data: { id: "t1" } });
  assert.deepEqual(results(stranger), { i1: { removed: false } });
  call(peer, "i1", { function_id: UNREGISTER, data: { id: "t1" } });
  call(peer, "i2", { function_id: UNREGISTER, data: { id: "t1" } });
  call(peer, "i3", { function_id: UNREGISTER, data: {} });

  assert.deepEqual(results(peer), {
    i1: { removed: true },
    i2: { removed: false },
    i3: "deserialization_error",
  });
  assert.equal(only(provider).type, "unregistertrigger");
});

Deno.test("a trigger that cannot be stored fails at once, and leaves nothing behind", () => {
  const { peer, provider, router, clock } = setup();
  const config = JSON.parse("[".repeat(20_000) + "]".repeat(20_000)) as Json;

  call(peer, "i1", { function_id: REGISTER, data: { ...TRIGGER, config } });

  assert.deepEqual(results(peer), { i1: "invalid_payload" });
  assert.deepEqual(router.directory.triggers(), []);
  assert.equal(router.runningCalls, 0);
  clock.tick(PROVIDER_ANSWER_MS);
  assert.deepEqual(results(peer), {});
  assert.deepEqual(provider.connection.take(), []);
});

Deno.test("a trigger whose provider accepts late stays, and is parked when the provider disconnects", () => {
  const { peer, provider, router, clock } = setup();
  call(peer, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);
  clock.tick(PROVIDER_ANSWER_MS);
  assert.deepEqual(results(peer), { i1: { id } });

  answers(provider, id);
  assert.equal(router.directory.trigger(id)?.state, "offered");

  provider.cut();
  assert.equal(router.directory.trigger(id)?.state, "parked");
});

Deno.test("a trigger whose provider disconnects without a reply stays", () => {
  const { peer, provider, router, clock } = setup();
  call(peer, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);
  clock.tick(PROVIDER_ANSWER_MS);

  provider.cut();

  assert.equal(router.directory.trigger(id)?.state, "parked");
});

Deno.test("a trigger whose provider refuses late is refused, and its originator is notified", () => {
  const { peer, provider, router, clock } = setup();
  call(peer, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);
  clock.tick(PROVIDER_ANSWER_MS);
  peer.connection.take();

  answers(provider, id, { code: "trigger_registration_failed", message: "no" });

  const reply = only(peer);
  assert.equal(reply.type, "triggerregistrationresult");
  assert.equal(router.directory.trigger(id)?.state, "refused");
});
