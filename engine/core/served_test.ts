import assert from "node:assert/strict";
import { FakeConnection, type FakePeer, fakePeer } from "../../tests/fakes/fake_connection.ts";
import {
  announce,
  answer,
  call,
  fakeRouter,
  type FakeWorker,
  handed,
  results,
} from "../../tests/fakes/fake_router.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { FindInvocation, ServedFunctions } from "../ports/served.ts";
import { Access } from "./access/access.ts";
import { Pattern } from "./access/patterns.ts";

const URL = { url: "https://api.example.com/quote" };

/** The connections that a router opened for served functions; each is driven as a peer. */
class FakeServed implements ServedFunctions {
  readonly lines: (FakePeer & { readonly find: FindInvocation })[] = [];
  readonly asked: boolean[] = [];
  refusal: string | undefined;

  problem(_registration: unknown, { isLimited }: { readonly isLimited: boolean }) {
    this.asked.push(isLimited);
    return this.refusal;
  }

  open: ServedFunctions["open"] = (find, accept) => {
    const connection = new FakeConnection(`line ${this.lines.length}`);
    this.lines.push({ ...fakePeer(connection, accept(connection)), find });
  };

  /** Line of the n-th worker that registered such a function. */
  line(at = 0): FakeWorker & { readonly find: FindInvocation } {
    return this.lines[at] as FakeWorker & { readonly find: FindInvocation };
  }
}

function setup() {
  const served = new FakeServed();
  const engine = fakeRouter({}, undefined, undefined, undefined, served);
  const owner = engine.open();
  announce(owner, [], "quotes");
  const caller = engine.open();
  announce(caller);
  return { ...engine, served, owner, caller };
}

function serve(worker: FakePeer, id = "f", more: JsonObject = {}): void {
  worker.say({ type: "registerfunction", id, invocation: URL, ...more });
}

Deno.test("calls of a function with a URL go to its server, results to the caller", () => {
  const { served, owner, caller } = setup();
  serve(owner);

  call(caller, "c1", { data: { sku: "A1" }, timeout_ms: 500 });

  assert.deepEqual(owner.connection.take(), [], "its worker gets nothing");
  const [handed1] = handed(served.line());
  assert.deepEqual([handed1!.function_id, handed1!.data], ["f", { sku: "A1" }]);
  answer(served.line(), handed1!.invocation_id, { cents: 7 });
  assert.deepEqual(results(caller), { c1: { cents: 7 } });
});

Deno.test("a server is no worker: the function is its owner's, and found by its name", () => {
  const { router, served, owner } = setup();
  const before = router.directory.workers().length;
  serve(owner);
  serve(owner, "g", { namespace: "eu", invocation: { url: "https://eu.example.com/" } });

  assert.equal(router.directory.workers().length, before);
  const view = router.directory.function("default", "f")!;
  assert.deepEqual([view.worker_id, view.worker_name], [owner.worker_id, "quotes"]);
  assert.equal(served.lines.length, 1, "one for all functions of a worker");
  assert.deepEqual(served.line().find("f", "default"), URL);
  assert.deepEqual(served.line().find("g", "eu"), { url: "https://eu.example.com/" });
  assert.equal(served.line().find("g", "default"), undefined);
  serve(owner, "f", { invocation: { url: "https://new.example.com/" } });
  assert.deepEqual(served.line().find("f", "default"), { url: "https://new.example.com/" });
});

Deno.test("a function with a problem is rejected, and only that function", () => {
  const { router, served, owner, events } = setup();
  served.refusal = "its host is not allowed";
  serve(owner);
  served.refusal = undefined;
  serve(owner, "g");

  assert.deepEqual(owner.connection.take(), [{
    type: "registrationrejected",
    code: "FUNCTION_NAMESPACE_CONFLICT",
    namespace: "default",
    function_id: "f",
    owner_worker_id: "engine",
    message: "f is refused: its host is not allowed",
  }]);
  assert.equal(router.directory.function("default", "f"), undefined);
  assert.ok(router.directory.function("default", "g"));
  assert.equal(events.filter(({ type }) => type === "warning").length, 1);
});

Deno.test("a router without a part that requests rejects such functions", () => {
  const { open, router } = fakeRouter();
  const owner = open();

  serve(owner);

  const [message] = owner.connection.take();
  assert.equal(message?.type, "registrationrejected");
  assert.equal(router.directory.function("default", "f"), undefined);
});

Deno.test("when the owner leaves, its calls end and its server is closed", () => {
  const { router, served, owner, caller } = setup();
  serve(owner);
  call(caller, "c1");
  const [running] = handed(served.line());

  owner.cut(1006, "");

  assert.deepEqual(results(caller), { c1: "invocation_stopped" });
  assert.equal(served.line().connection.closing?.code, 1000);
  assert.equal(router.directory.function("default", "f"), undefined);
  assert.equal(router.runningCalls, 0);
  answer(served.line(), running!.invocation_id);
  assert.deepEqual(results(caller), {}, "a late answer is ignored");
});

Deno.test("a server gets the cancellation of a call, also when it timed out", () => {
  const { clock, served, owner, caller } = setup();
  serve(owner);
  call(caller, "c1");
  call(caller, "c2", { timeout_ms: 100 });
  const [one, two] = handed(served.line());

  caller.say({ type: "cancelinvocation", invocation_id: "c1", reason: "enough" });
  clock.tick(100);

  assert.deepEqual(results(caller), { c1: "cancelled", c2: "timeout" });
  const cancels = served.line().connection.take().map((message) =>
    "invocation_id" in message && message.invocation_id
  );
  assert.deepEqual(cancels, [one!.invocation_id, two!.invocation_id]);
});

Deno.test("a function with a URL is one more replica, with a load of its own", () => {
  const { open, served, owner, caller } = setup();
  const other = open();
  announce(other, [], "quotes");
  serve(owner);
  other.say({ type: "registerfunction", id: "f" });

  for (let i = 0; i < 4; i++) call(caller, `c${i}`);

  assert.deepEqual([handed(served.line()).length, handed(other).length], [2, 2]);
  // Registered without a URL, it is the worker's own again.
  owner.say({ type: "registerfunction", id: "f" });
  other.say({ type: "unregisterfunction", id: "f" });
  call(caller, "c4");
  assert.deepEqual([handed(served.line()).length, handed(owner).length], [0, 1]);
});

Deno.test("a worker unregisters a function with a URL like the others", () => {
  const { router, owner, caller } = setup();
  serve(owner);

  owner.say({ type: "unregisterfunction", id: "f" });
  call(caller, "c1");

  assert.equal(router.directory.function("default", "f"), undefined);
  assert.deepEqual(results(caller), { c1: "function_not_found" });
});

Deno.test("calls of a server count as running calls of its owner", () => {
  const { router, owner, caller } = setup();
  serve(owner);
  const handover = router.traffic.drain([owner.worker_id], { isComingBack: false });
  assert.equal(handover.runningCalls, 0);
  handover.end();
  const { router: again, owner: busy, caller: asking } = setup();
  serve(busy);
  call(asking, "c1");

  assert.equal(again.directory.worker(busy.worker_id)?.active_invocations, 1);
  assert.equal(again.traffic.drain([busy.worker_id], { isComingBack: false }).runningCalls, 1);
  call(caller, "c1");
  assert.deepEqual(results(caller), { c1: "function_not_found" }, "its owner is draining");
});

Deno.test("payloads are checked against request_format before anything is requested", () => {
  const { served, owner, caller } = setup();
  serve(owner, "f", { request_format: { type: "object", required: ["sku"] } });

  call(caller, "c1", { data: {} });

  assert.deepEqual(results(caller), { c1: "invalid_payload" });
  assert.deepEqual(handed(served.line()), []);
});

Deno.test("under access rules a function with a URL is registered where others may be", () => {
  const { open, router, served, caller } = setup();
  const allow = [Pattern.glob("shop::*")];
  const access = () => new Access({ token: { name: "ci", allow } });
  const guest = open({ access: access() });

  serve(guest, "shop::quote");
  serve(guest, "other::quote");

  assert.deepEqual(served.asked, [true], "the other one is refused before");
  assert.ok(router.directory.function("default", "shop::quote"));
  assert.equal(router.directory.function("default", "other::quote"), undefined);
  call(caller, "c1", { function_id: "shop::quote" });
  assert.equal(handed(served.line()).length, 1);
});

Deno.test("a server knows a function by the name that its worker gave it", () => {
  const { open, router, served, caller } = setup();
  const { rules } = prefixed("tenant");
  const guest = open({ access: new Access({ rules }) });

  serve(guest, "quote");
  call(caller, "c1", { function_id: "tenant::quote" });

  assert.ok(router.directory.function("default", "tenant::quote"));
  const [handed1] = handed(served.line());
  assert.equal(handed1!.function_id, "quote");
  assert.deepEqual(served.line().find("quote", "default"), URL);
  answer(served.line(), handed1!.invocation_id);
  assert.deepEqual(results(caller), { c1: "done" });
});

function prefixed(prefix: string) {
  const hooks = { function: undefined, trigger: undefined, triggerType: undefined };
  return {
    rules: {
      listener: { expose: undefined, middleware: undefined, hooks },
      grant: {
        allowed: [],
        forbidden: [],
        namespaces: new Set<string>(),
        triggerTypes: undefined,
        mayRegisterTriggerTypes: false,
        mayRegisterFunctions: true,
        context: {},
        prefix,
      },
    },
  };
}

Deno.test("the engine's stop ends running calls of servers", () => {
  const { router, served, owner, caller } = setup();
  serve(owner);
  call(caller, "c1");

  router.close();

  assert.deepEqual(results(caller), { c1: "invocation_stopped" });
  assert.ok(served.line().connection.closing);
});
