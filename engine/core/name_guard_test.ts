import assert from "node:assert/strict";
import type { EngineEvent } from "../ports/events.ts";
import type { RouterSettings } from "./router.ts";
import { Access } from "./access/access.ts";
import { Pattern } from "./access/patterns.ts";
import { announce, fakeRouter, type FakeWorker } from "../../tests/fakes/fake_router.ts";

function setup(settings: Partial<RouterSettings> = {}) {
  const engine = fakeRouter(settings);
  const { router } = engine;
  /** A worker that announces a name, unless that is `null`, then offers functions. */
  const join = (name: string | null, ...ids: string[]): FakeWorker => {
    const worker = engine.open();
    if (name !== null) announce(worker, [], name);
    for (const id of ids) worker.say({ type: "registerfunction", id });
    return worker;
  };
  const contenders = (id: string) => router.directory.function("default", id)?.contenders;
  const offering = (id: string) => router.directory.function("default", id)?.worker_ids.length;
  return { ...engine, join, contenders, offering, warnings: () => warningsOf(engine.events) };
}

function warningsOf(events: readonly EngineEvent[]): string[] {
  return events.flatMap((event) => event.type === "warning" ? [event.detail] : []);
}

Deno.test("replicas with one name are not reported", () => {
  const { join, warnings, contenders, offering } = setup();
  join("shop", "f");
  join("shop", "f");

  assert.deepEqual([warnings(), contenders("f"), offering("f")], [[], undefined, 2]);
});

Deno.test("a function of a worker of another name is accepted, reported once, and listed", () => {
  const { join, warnings, contenders, offering } = setup();
  join("shop", "f");
  const other = join("till", "f");
  other.cut();
  join("till", "f");
  join("till", "f");

  assert.equal(offering("f"), 3);
  assert.deepEqual(contenders("f"), ["shop", "till"]);
  const [warning, ...more] = warnings();
  assert.deepEqual(more, []);
  assert.match(warning!, /^f is offered by worker shop and now by worker till too/);
  assert.match(warning!, /engine\.shared_functions$/);
});

Deno.test("a worker that announces itself after it registered is compared then", () => {
  const { join, warnings } = setup();
  join("shop", "f");
  const late = join(null, "f");
  assert.deepEqual(warnings(), []);

  announce(late, [], "till");

  assert.match(warnings()[0]!, /worker shop and now by worker till/);
});

Deno.test("unnamed workers are no strangers to each other, but to named ones", () => {
  const { open, warnings, contenders } = setup();
  const unnamed = (pid: number) => {
    const worker = open();
    worker.say({
      type: "invokefunction",
      function_id: "engine::workers::register",
      action: { type: "void" },
      data: { name: `host:${pid}`, pid },
    });
    worker.say({ type: "registerfunction", id: "f" });
    return worker;
  };
  unnamed(7);
  unnamed(8);
  assert.deepEqual([warnings(), contenders("f")], [[], undefined]);

  const named = open();
  announce(named, [], "shop");
  named.say({ type: "registerfunction", id: "f" });

  assert.match(warnings()[0]!, /an unnamed worker \(host:7\) and now by worker shop/);
  assert.deepEqual(contenders("f"), ["(unnamed)", "shop"]);
});

Deno.test("with shared_functions a worker of another name is refused, and the first one stays", () => {
  const { join, offering, warnings } = setup({ shared_functions: ["public::*", "one"] });
  const owner = join("shop", "f", "public::f", "one");
  const other = join("till", "f", "public::f", "one", "mine");

  assert.deepEqual(["f", "public::f", "one", "mine"].map(offering), [1, 2, 2, 1]);
  assert.deepEqual(other.connection.take(), [{
    type: "registrationrejected",
    code: "FUNCTION_NAMESPACE_CONFLICT",
    namespace: "default",
    function_id: "f",
    owner_worker_id: owner.worker_id,
    message: "f is refused: worker shop offers it, and engine.shared_functions does not list it; " +
      "replicas need the same worker name",
  }]);
  assert.equal(warnings().length, 1);
});

Deno.test("a worker with access rules does not learn who offers a function", () => {
  const { join, open, warnings } = setup({ shared_functions: [] });
  join("shop", "f");
  const token = { name: "ci", allow: [Pattern.glob("f")] };
  const guest = open({ access: new Access({ token }) });

  guest.say({ type: "registerfunction", id: "f" });

  const [answer] = guest.connection.take();
  assert.deepEqual(answer, {
    type: "registrationrejected",
    code: "FUNCTION_NAMESPACE_CONFLICT",
    namespace: "default",
    function_id: "f",
    owner_worker_id: "engine",
    message: "f is refused: another worker offers it, and engine.shared_functions does not list " +
      "it; replicas need the same worker name",
  });
  assert.match(warnings()[0]!, /worker shop offers it/);
});

Deno.test("with shared_functions replicas join, and without a name only the first is accepted", () => {
  const { join, offering } = setup({ shared_functions: [] });
  join("shop", "f");
  join("shop", "f");
  join(null, "f");
  assert.equal(offering("f"), 2);

  join(null, "g");
  join(null, "g");
  assert.equal(offering("g"), 1);
});

Deno.test("a name is free again when its worker has left", () => {
  const { join, offering } = setup({ shared_functions: [] });
  const first = join("shop", "f");
  first.cut();

  join("till", "f");

  assert.equal(offering("f"), 1);
});

Deno.test("a worker that registers its function again is not refused because of itself", () => {
  const { join, offering, warnings } = setup({ shared_functions: [] });
  const worker = join(null, "f");
  worker.say({ type: "registerfunction", id: "f" });

  assert.deepEqual([offering("f"), warnings()], [1, []]);
});

Deno.test("shared_functions may change while functions are offered", () => {
  const { router, join, offering, contenders } = setup();
  join("shop", "f", "g");
  join("till", "f");
  const settings = {
    invocation_timeout_ms: 1,
    validate_payloads: true,
    max_inflight_calls_per_worker: 1,
    max_inflight_bytes_per_worker: 1,
  };

  router.applySettings({ ...settings, shared_functions: [] });
  join("till", "g");
  assert.deepEqual([offering("f"), offering("g")], [2, 1]);
  assert.deepEqual(contenders("f"), ["shop", "till"]);

  router.applySettings({ ...settings, shared_functions: ["f"] });
  assert.equal(contenders("f"), undefined);
});
