/**
 * The views of the core's tables.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Absences } from "../ports/absences.ts";
import { announce, fakeRouter } from "../../tests/fakes/fake_router.ts";

Deno.test("a function is listed once, as its newest replica describes it", () => {
  const { router, open } = fakeRouter();
  const [first, second] = [open(), open()];
  first.say({ type: "registerfunction", id: "math::add", description: "old" });
  second.say({
    type: "registerfunction",
    id: "math::add",
    description: "new",
    request_format: { type: "object" },
    response_format: { type: "number" },
    metadata: { internal: true },
  });

  const { directory } = router;
  const expected = {
    function_id: "math::add",
    namespace: "default",
    worker_id: second.worker_id,
    worker_name: "math",
    description: "new",
    request_schema: { type: "object" },
    response_schema: { type: "number" },
    metadata: { internal: true },
    internal: true,
    builtin: false,
    worker_ids: [first.worker_id, second.worker_id],
  };
  assert.deepEqual(directory.function("default", "math::add"), expected);
  assert.deepEqual(directory.functions().filter(({ builtin }) => !builtin), [expected]);
  assert.equal(directory.function("eu", "math::add"), undefined);
});

Deno.test("functionsAfter() lists functions by id and namespace, from any one on", () => {
  const { router: { directory }, open } = fakeRouter();
  const worker = open();
  const list = (id = "", namespace = ""): string[] =>
    Array.from(
      directory.functionsAfter(id, namespace),
      (view) => `${view.function_id} ${view.namespace}`,
    );
  for (const id of ["z", "b", "engine-like", "a"]) worker.say({ type: "registerfunction", id });
  worker.say({ type: "registerfunction", id: "b", namespace: "blue" });
  const own = ["register_trigger", "unregister_trigger", "workers::register"]
    .map((id) => `engine::${id} default`);

  const all = ["a default", "b blue", "b default", "engine-like default", ...own, "z default"];
  assert.deepEqual(list(), all);
  assert.deepEqual(list("b", "blue"), all.slice(2));
  assert.deepEqual(list("engine::register_trigger", "default"), all.slice(5));
  assert.deepEqual(list("z", "default"), []);
  worker.say({ type: "unregisterfunction", id: "b" });
  worker.say({ type: "registerfunction", id: "aa" });
  worker.say({ type: "unregisterfunction", id: "a" });
  worker.say({ type: "registerfunction", id: "a" });
  assert.deepEqual(list().slice(0, 3), ["a default", "aa default", "b blue"]);
});

Deno.test("functionsAfter() shows what functions() shows", () => {
  const { router: { directory }, open } = fakeRouter();
  const worker = open();
  const metadata = { internal: true };
  worker.say({ type: "registerfunction", id: "f", description: "d", metadata });
  open().say({ type: "registerfunction", id: "g" });

  for (const view of directory.functionsAfter("engine::z", "")) {
    const whole = directory.function("default", view.function_id)!;
    const { function_id, namespace, worker_id, worker_name, description } = view;
    const { internal, builtin, worker_ids } = view;
    const shown = { function_id, namespace, worker_id, worker_name, description, internal };
    const { request_schema: _request, response_schema: _response, ...rest } = whole;
    assert.deepEqual(
      { description: undefined, metadata: undefined, ...rest },
      { ...shown, metadata: view.metadata, builtin, worker_ids },
    );
    assert.equal(directory.isInternal("default", function_id), internal);
  }
  assert.equal(directory.isInternal("default", "unknown"), false);
});

Deno.test("core functions are listed as the engine's", () => {
  const { directory } = fakeRouter().router;

  const ids = directory.functions().map(({ function_id, builtin }) => [function_id, builtin]);
  assert.deepEqual(ids, [
    ["engine::workers::register", true],
    ["engine::register_trigger", true],
    ["engine::unregister_trigger", true],
  ]);
  assert.equal(directory.function("default", "engine::register_trigger")?.worker_name, "engine");
  assert.equal(directory.function("eu", "engine::register_trigger"), undefined);
});

Deno.test("a type is listed while it has a provider, with all its triggers", () => {
  const { router, open, openBuiltin } = fakeRouter();
  const originator = open();
  announce(originator);
  originator.say({
    type: "registertrigger",
    id: "t1",
    trigger_type: "http",
    function_id: "http::add",
    metadata: { why: "demo" },
  });
  const { directory } = router;
  assert.deepEqual(directory.triggerTypes(), []);
  assert.equal(directory.triggerType("default", "http"), undefined);

  const provider = openBuiltin("engine-http");
  provider.say({
    type: "registertriggertype",
    id: "http",
    description: "HTTP",
    trigger_request_format: { a: 1 },
    call_request_format: { b: 1 },
  });

  const type = {
    id: "http",
    namespace: "default",
    worker_id: provider.worker_id,
    worker_name: "engine-http",
    description: "HTTP",
    configuration_schema: { a: 1 },
    request_schema: { b: 1 },
    builtin: true,
    instance_count: 1,
  };
  assert.deepEqual(directory.triggerTypes(), [type]);
  assert.deepEqual(directory.triggerType("default", "http"), type);
  const trigger = {
    id: "t1",
    trigger_type: "http",
    trigger_namespace: "default",
    function_id: "http::add",
    namespace: "default",
    config: {},
    metadata: { why: "demo" },
    state: "offered",
    reason: null,
    worker_id: originator.worker_id,
    worker_name: "w",
  };
  assert.deepEqual(directory.triggers(), [trigger]);
  assert.deepEqual(directory.trigger("t1"), trigger);
  assert.equal(directory.trigger("t2"), undefined);
});

Deno.test("a worker is listed from its connection on, with its registrations and running calls", () => {
  const { router, open, clock } = fakeRouter();
  clock.tick(1_234);
  const peer = open({ address: "10.1.2.3", launch_id: "l7" });
  peer.say({ type: "registerfunction", id: "f" });
  peer.say({ type: "registertrigger", id: "t1", trigger_type: "x", function_id: "f" });
  peer.say({ type: "invokefunction", function_id: "f" });

  const view = router.directory.worker(peer.worker_id)!;
  assert.deepEqual(router.directory.workers(), [view]);
  assert.deepEqual(
    [view.name, view.announced, view.ip_address, view.launch_id, view.connected_at_ms],
    [null, false, "10.1.2.3", "l7", clock.wall()],
  );
  assert.deepEqual([view.function_count, view.trigger_count, view.active_invocations], [1, 1, 1]);
  assert.equal(router.directory.worker("unknown"), undefined);
});

Deno.test("a connection of the command line is listed as an operator's, others are not", () => {
  const { router, open, openBuiltin } = fakeRouter();

  const operator = open({ operator: true });
  const others = [open(), open({ operator: false }), openBuiltin("engine-state")];

  const shown = [operator, ...others].map(({ worker_id }) =>
    router.directory.worker(worker_id)?.operator
  );
  assert.deepEqual(shown, [true, false, false, false]);
});

Deno.test("a parked trigger says that its type is unknown, and which known type is near", () => {
  const { router, open, openBuiltin } = fakeRouter({}, undefined, undefined, ABSENCES);
  openBuiltin("engine-http").say({ type: "registertriggertype", id: "http", description: "" });
  const worker = open();
  const reasonOf = (trigger_type: string, trigger_namespace?: string): string | null => {
    const namespace = trigger_namespace === undefined ? {} : { trigger_namespace };
    const id = `t-${trigger_type}`;
    worker.say({ type: "registertrigger", id, trigger_type, function_id: "f", ...namespace });
    const { state, reason } = router.directory.trigger(id)!;
    assert.equal(state, "parked");
    return reason;
  };

  const text = (type: string) => `no worker provides the trigger type ${type}`;
  assert.equal(reasonOf("htp"), `${text("htp")}; did you mean http?`);
  assert.equal(reasonOf("corn"), `${text("corn")}; did you mean cron?`);
  assert.equal(reasonOf("htp2", "eu"), text("htp2"));
  assert.equal(reasonOf("no-such-type-at-all"), text("no-such-type-at-all"));
  assert.equal(
    reasonOf("cron"),
    `${text("cron")}: engine-cron provides it; to fix it: engine worker add engine-cron`,
  );
});

Deno.test("a refused trigger says what its provider said, shortened, and fires again without", () => {
  const { router, open } = fakeRouter();
  const [provider, owner] = [open(), open()];
  provider.say({ type: "registertriggertype", id: "till", description: "" });
  const trigger = { id: "t1", trigger_type: "till", function_id: "f" };
  owner.say({ type: "registertrigger", ...trigger });
  const answer = (error?: { code: string; message: string }) =>
    provider.say({ type: "triggerregistrationresult", ...trigger, ...error && { error } });
  const view = () => {
    const { state, reason } = router.directory.trigger("t1")!;
    return [state, reason];
  };

  assert.deepEqual(view(), ["offered", null]);
  answer({ code: "x", message: `no drawer ${"x".repeat(1_000)}` });
  const [state, reason] = view();
  assert.equal(state, "refused");
  assert.equal(reason, `its provider refused it: no drawer ${"x".repeat(490)}`);
  answer();
  assert.deepEqual(view(), ["offered", null]);
});

Deno.test("a listing looks for similar types a bounded number of times", () => {
  const { router, open } = fakeRouter();
  const [provider, owner] = [open(), open()];
  provider.say({ type: "registertriggertype", id: "type-0", description: "" });
  for (let i = 1; i <= 100; i++) {
    owner.say({
      type: "registertrigger",
      id: `t${i}`,
      trigger_type: `type-${i}`,
      function_id: "f",
    });
  }

  const reasons = router.directory.triggers().map(({ reason }) => reason ?? "");

  assert.equal(reasons.filter((reason) => reason.includes("no worker provides")).length, 100);
  assert.equal(reasons.filter((reason) => reason.includes("did you mean type-0?")).length, 20);
});

const ABSENCES: Absences = {
  ofFunction: () => undefined,
  ofTriggerType: (id) =>
    id === "cron"
      ? {
        reason: "engine-cron provides it",
        worker: "engine-cron",
        command: "engine worker add engine-cron",
      }
      : undefined,
  triggerTypes: ["cron"],
};
