/**
 * What the core answers itself.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { call, only, results } from "../../tests/fakes/calling.ts";
import { type FakeRouter, fakeRouter, type FakeWorker } from "../../tests/fakes/fake_router.ts";
import { PROVIDER_ANSWER_MS } from "./core_functions.ts";

const ANNOUNCE = "engine::workers::register";
const REGISTER = "engine::register_trigger";
const UNREGISTER = "engine::unregister_trigger";
const TRIGGER = { trigger_type: "files", function_id: "f", config: { dir: "inbox" } };

interface Setup extends FakeRouter {
  readonly provider: FakeWorker;
  readonly line: FakeWorker;
}

function setup(): Setup {
  const engine = fakeRouter();
  const provider = engine.open();
  provider.say({ type: "registertriggertype", id: "files", description: "" });
  return { ...engine, provider, line: engine.open() };
}

/** The id under which a provider was given a trigger. */
function given(provider: FakeWorker): string {
  const message = only(provider);
  assert.equal(message.type, "registertrigger");
  return message.id;
}

function answers(provider: FakeWorker, id: string, error?: Json): void {
  const { trigger_type, function_id } = TRIGGER;
  provider.say({ type: "triggerregistrationresult", id, trigger_type, function_id, error });
}

Deno.test("an announcement is stored, counted at once, and answered if it has an id", () => {
  const { line, router, events } = setup();
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

  call(line, "i1", { function_id: ANNOUNCE, data });

  assert.deepEqual(results(line), { i1: { success: true } });
  const { connected_at_ms: _, ...view } = router.directory.worker(line.worker_id)!;
  assert.deepEqual(view, {
    id: line.worker_id,
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

Deno.test("an announcement that nobody waits for is not answered, and replaces the one before", () => {
  const { line, router } = setup();
  for (const name of ["first", "second"]) {
    line.say({
      type: "invokefunction",
      function_id: ANNOUNCE,
      action: { type: "void" },
      data: { name },
    });
  }

  assert.deepEqual(line.connection.take(), []);
  assert.equal(router.directory.worker(line.worker_id)?.name, "second");
});

for (const data of [null, 5, [], {}, { name: "" }, { name: 7 }]) {
  Deno.test(`an announcement of ${JSON.stringify(data)} is refused`, () => {
    const { line, router } = setup();

    call(line, "i1", { function_id: ANNOUNCE, data: data as Json });

    const message = only(line);
    assert.ok(message.type === "invocationresult" && message.error);
    assert.equal(message.error.code, "deserialization_error");
    assert.match(
      message.error.message,
      /^Failed to deserialize input for engine::workers::register/,
    );
    assert.equal(router.directory.worker(line.worker_id)?.announced, false);
  });
}

Deno.test("a namespace of its own makes it another function", () => {
  const { line } = setup();

  call(line, "i1", { function_id: ANNOUNCE, namespace: "eu", data: { name: "w" } });

  assert.deepEqual(results(line), { i1: "function_not_found" });
});

Deno.test("engine::register_trigger answers with the id when the provider has", () => {
  const { line, provider, router } = setup();

  call(line, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);
  assert.deepEqual(results(line), {});
  assert.equal(router.runningCalls, 1);
  answers(provider, id);

  assert.deepEqual(results(line), { i1: { id } });
  assert.equal(router.directory.trigger(id)?.worker_id, line.worker_id);
});

Deno.test("engine::register_trigger passes a refusal on and keeps nothing", () => {
  const { line, provider, router } = setup();
  call(line, "i1", { function_id: REGISTER, data: TRIGGER });

  answers(provider, given(provider), { code: "nope", message: "No such directory" });

  const message = only(line);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "nope",
    message: "No such directory",
  });
  assert.deepEqual([provider.connection.take(), router.directory.triggers()], [[], []]);
});

Deno.test("engine::register_trigger does not wait for a provider without end", () => {
  const { line, provider, clock } = setup();
  call(line, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);

  clock.tick(PROVIDER_ANSWER_MS - 1);
  assert.deepEqual(results(line), {});
  clock.tick(1);

  assert.deepEqual(results(line), { i1: { id } });
});

Deno.test("engine::register_trigger answers at once when nobody provides the type", () => {
  const { line, router, provider, clock } = setup();

  call(line, "i1", { function_id: REGISTER, data: { ...TRIGGER, trigger_type: "other" } });
  assert.equal(Object.keys(results(line)).length, 1);
  call(line, "i2", { function_id: REGISTER, data: TRIGGER });
  given(provider);
  provider.cut();

  assert.equal(Object.keys(results(line)).length, 1);
  assert.deepEqual(router.directory.triggers().map(({ state }) => state), ["parked", "parked"]);
  assert.equal(router.runningCalls, 0);
  clock.tick(PROVIDER_ANSWER_MS);
  assert.deepEqual(line.connection.take(), []);
});

for (
  const [name, end] of [
    [
      "is cancelled",
      ({ line }: Setup) => line.say({ type: "cancelinvocation", invocation_id: "i1" }),
    ],
    ["is late", ({ clock }: Setup) => clock.tick(50)],
    ["loses its caller", ({ line }: Setup) => line.cut()],
  ] as const
) {
  Deno.test(`a trigger whose registration ${name} does not stay`, () => {
    const world = setup();
    const { line, provider, clock, router } = world;
    call(line, "i1", { function_id: REGISTER, data: TRIGGER, timeout_ms: 50 });
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

Deno.test("a trigger may be registered by a call that nobody waits for", () => {
  const { line, provider, router } = setup();

  line.say({ type: "invokefunction", function_id: REGISTER, data: TRIGGER });

  assert.equal(router.directory.trigger(given(provider))?.state, "offered");
  assert.deepEqual(line.connection.take(), []);
});

for (const data of [null, {}, { trigger_type: "files" }, { ...TRIGGER, function_id: 5 }]) {
  Deno.test(`engine::register_trigger refuses ${JSON.stringify(data)}`, () => {
    const { line, provider } = setup();

    call(line, "i1", { function_id: REGISTER, data });

    assert.deepEqual(results(line), { i1: "deserialization_error" });
    assert.deepEqual(provider.connection.take(), []);
  });
}

Deno.test("engine::unregister_trigger ends a trigger of the connection that asks, and no other", () => {
  const { line, provider, open } = setup();
  line.say({ type: "registertrigger", id: "t1", ...TRIGGER });
  given(provider);
  const stranger = open();

  call(stranger, "i1", { function_id: UNREGISTER, data: { id: "t1" } });
  assert.deepEqual(results(stranger), { i1: { removed: false } });
  call(line, "i1", { function_id: UNREGISTER, data: { id: "t1" } });
  call(line, "i2", { function_id: UNREGISTER, data: { id: "t1" } });
  call(line, "i3", { function_id: UNREGISTER, data: {} });

  assert.deepEqual(results(line), {
    i1: { removed: true },
    i2: { removed: false },
    i3: "deserialization_error",
  });
  assert.equal(only(provider).type, "unregistertrigger");
});

Deno.test("a trigger that cannot be kept is answered so at once, and leaves nothing behind", () => {
  const { line, provider, router, clock } = setup();
  const config = JSON.parse("[".repeat(20_000) + "]".repeat(20_000)) as Json;

  call(line, "i1", { function_id: REGISTER, data: { ...TRIGGER, config } });

  assert.deepEqual(results(line), { i1: "serialization_error" });
  assert.deepEqual(router.directory.triggers(), []);
  assert.equal(router.runningCalls, 0);
  clock.tick(PROVIDER_ANSWER_MS);
  assert.deepEqual(results(line), {});
  assert.deepEqual(provider.connection.take(), []);
});

Deno.test("a trigger whose provider says yes late stays, and waits for it when it leaves", () => {
  const { line, provider, router, clock } = setup();
  call(line, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);
  clock.tick(PROVIDER_ANSWER_MS);
  assert.deepEqual(results(line), { i1: { id } });

  answers(provider, id);
  assert.equal(router.directory.trigger(id)?.state, "offered");

  provider.cut();
  assert.equal(router.directory.trigger(id)?.state, "parked");
});

Deno.test("a trigger whose provider leaves without a word stays once its time is over", () => {
  const { line, provider, router, clock } = setup();
  call(line, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);
  clock.tick(PROVIDER_ANSWER_MS);

  provider.cut();

  assert.equal(router.directory.trigger(id)?.state, "parked");
});

Deno.test("a trigger whose provider says no late is refused, and its originator is told", () => {
  const { line, provider, router, clock } = setup();
  call(line, "i1", { function_id: REGISTER, data: TRIGGER });
  const id = given(provider);
  clock.tick(PROVIDER_ANSWER_MS);
  line.connection.take();

  answers(provider, id, { code: "trigger_registration_failed", message: "no" });

  const told = only(line);
  assert.equal(told.type, "triggerregistrationresult");
  assert.equal(router.directory.trigger(id)?.state, "refused");
});
