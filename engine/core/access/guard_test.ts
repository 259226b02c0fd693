/**
 * The rules of a connection as its peer and the other workers see them, through a router.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fakeRouter, type FakeWorker, handed, results } from "../../../tests/fakes/fake_router.ts";
import type { ErrorBody, Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import {
  Access,
  type AccessGrant,
  DEFAULT_GRANT,
  type HookAnswer,
  type ListenerRules,
  type RegistrationHooks,
  type TokenRules,
} from "./access.ts";
import { Pattern, readExposeRule } from "./patterns.ts";

const NO_HOOKS: RegistrationHooks = {
  function: undefined,
  trigger: undefined,
  triggerType: undefined,
};

interface Shape {
  readonly expose?: Json[] | undefined;
  readonly grant?: Partial<AccessGrant>;
  readonly middleware?: string;
  readonly hooks?: Partial<RegistrationHooks>;
  readonly token?: TokenRules;
}

/** An open worker with functions, and a guest with rules. */
function setup({ expose, grant, middleware, hooks, token }: Shape) {
  const it = fakeRouter();
  const worker = it.open();
  for (const id of ["orders::create", "orders::list", "admin::drop", "mw"]) {
    worker.say({ type: "registerfunction", id, metadata: { public: id === "orders::list" } });
  }
  const asked: { hook: string; payload: JsonObject; then: (answer: HookAnswer) => void }[] = [];
  const listener: ListenerRules = {
    expose: expose?.map((rule) => {
      const read = readExposeRule(rule);
      assert.ok(typeof read !== "string");
      return read;
    }),
    middleware,
    hooks: { ...NO_HOOKS, ...hooks },
  };
  const access = new Access({
    rules: { listener, grant: { ...DEFAULT_GRANT, ...grant } },
    token,
    ports: { ask: (hook, payload, then) => void asked.push({ hook, payload, then }) },
  });
  const guest = it.open({ access });
  return { ...it, worker, guest, access, asked };
}

let calls = 0;

/** The error of a call by the guest; `undefined` when it reached the worker. */
function tryCall(
  { worker, guest }: { worker: FakeWorker; guest: FakeWorker },
  function_id: string,
  more: JsonObject = {},
): ErrorBody | undefined {
  const invocation_id = `c${++calls}`;
  guest.say({ type: "invokefunction", invocation_id, function_id, data: {}, ...more });
  if (handed(worker).length > 0) return undefined;
  const [result] = guest.connection.take();
  assert.ok(result && "error" in result, JSON.stringify(result));
  return result.error as ErrorBody;
}

Deno.test("a guest calls what is exposed and the infrastructure, and nothing else", () => {
  const it = setup({ expose: ['match("orders::*")'] });

  assert.equal(tryCall(it, "orders::create"), undefined);
  const refused = {
    code: "FORBIDDEN",
    message: "function 'admin::drop' not allowed (add to rbac.expose_functions)",
  };
  assert.deepEqual(tryCall(it, "admin::drop"), refused);
  assert.equal(tryCall(it, "admin::unknown")?.code, "FORBIDDEN");
  assert.equal(tryCall(it, "orders::creaet")?.code, "function_not_found");
  assert.equal(tryCall(it, "orders::creaet")?.details, undefined);
  it.guest.say({
    type: "invokefunction",
    invocation_id: "a1",
    function_id: "engine::workers::register",
    data: { name: "guest" },
  });
  assert.deepEqual(results(it.guest), { a1: { success: true } });
  it.guest.say({ type: "invokefunction", function_id: "admin::drop", action: { type: "void" } });
  assert.deepEqual(it.guest.connection.take(), [{ type: "error", error: refused }]);
});

Deno.test("what is forbidden stays so, also with a grant, and for infrastructure", () => {
  const forbidden = [Pattern.plain("engine::workers::register"), Pattern.glob("admin::*")];
  const allowed = [Pattern.plain("admin::drop"), Pattern.plain("orders::create")];
  const it = setup({ expose: [], grant: { forbidden, allowed, namespaces: new Set(["default"]) } });

  const error = tryCall(it, "admin::drop");
  assert.equal(
    error?.message,
    "function 'admin::drop' not allowed (remove from rbac.forbidden_functions)",
  );
  assert.equal(
    tryCall(it, "engine::workers::register", { data: { name: "x" } })?.code,
    "FORBIDDEN",
  );
  assert.equal(tryCall(it, "orders::list"), undefined);
});

Deno.test("namespaces are granted as a whole, allowed ids are of the default one", () => {
  const grant = { allowed: [Pattern.plain("x")], namespaces: new Set(["ours"]) };
  const it = setup({ expose: [], grant });
  for (const namespace of ["ours", "theirs"]) {
    it.worker.say({ type: "registerfunction", id: "x", namespace });
  }
  it.worker.say({ type: "registerfunction", id: "x" });

  assert.equal(tryCall(it, "x", { namespace: "ours" }), undefined);
  assert.equal(tryCall(it, "x"), undefined);
  assert.equal(tryCall(it, "x", { namespace: "theirs" })?.code, "FORBIDDEN");
});

Deno.test("metadata exposes, unless another replica of the function lacks it", () => {
  const it = setup({ expose: [{ metadata: { public: true } }] });

  assert.equal(tryCall(it, "orders::list"), undefined);
  assert.equal(tryCall(it, "orders::create")?.code, "FORBIDDEN");
  it.open().say({ type: "registerfunction", id: "orders::list" });
  assert.equal(tryCall(it, "orders::list")?.code, "FORBIDDEN");
});

Deno.test("a refused void call gets a result if it has an id, its enqueue always", () => {
  const it = setup({ expose: [] });
  const say = (more: JsonObject) =>
    it.guest.say({ type: "invokefunction", function_id: "admin::drop", ...more });

  say({ invocation_id: "v1", action: { type: "void" } });
  say({ invocation_id: "q1", action: { type: "enqueue", queue: "q" } });

  const sent = it.guest.connection.take() as unknown as JsonObject[];
  assert.deepEqual(sent.map(({ type, invocation_id }) => [type, invocation_id]), [
    ["invocationresult", "v1"],
    ["invocationresult", "q1"],
  ]);
});

Deno.test("a token with patterns limits calls and registrations to them", () => {
  const token = { name: "ci", allow: [Pattern.glob("orders::*")] };
  const it = setup({ token });

  assert.equal(tryCall(it, "orders::create"), undefined);
  const error = tryCall(it, "admin::drop");
  assert.deepEqual(error?.details, { token: "ci", allow: ["orders::*"] });
  it.guest.say({ type: "registerfunction", id: "orders::ship" });
  it.guest.say({ type: "registerfunction", id: "admin::ship" });
  it.guest.say({ type: "registertriggertype", id: "hook", description: "" });
  const [rejected, ...others] = it.guest.connection.take() as unknown as JsonObject[];
  assert.deepEqual([rejected!.type, rejected!.code, rejected!.function_id], [
    "registrationrejected",
    "FUNCTION_NAMESPACE_CONFLICT",
    "admin::ship",
  ]);
  assert.equal(rejected!.message, "admin::ship is refused: token ci allows orders::*");
  assert.deepEqual(others, []);
  assert.deepEqual(it.router.directory.functionsOf(it.guest.worker_id).map((f) => f.function_id), [
    "orders::ship",
  ]);
  assert.equal(it.router.directory.triggerType("default", "hook"), undefined);
});

Deno.test("a prefix is added when a function is registered, and stripped when it is called", () => {
  const it = setup({ expose: [], grant: { prefix: "acme" } });
  const caller = it.open();
  it.guest.say({ type: "registerfunction", id: "x::y" });
  const call = '{"type":"invokefunction","invocation_id":"i1","function_id":"acme::x::y",' +
    '"data":{"a":12345678901234567890}}';

  caller.say(call);
  const [text] = it.guest.connection.takeTexts();
  const { invocation_id, ...sent } = JSON.parse(text!);
  assert.deepEqual(sent.function_id, "x::y");
  assert.ok(text!.endsWith('"data":{"a":12345678901234567890}}'));
  it.guest.say({ type: "invocationresult", invocation_id, function_id: "x::y", result: 7 });

  assert.deepEqual(results(caller), { i1: 7 });
  it.guest.say({ type: "unregisterfunction", id: "x::y" });
  assert.equal(it.router.directory.function("default", "acme::x::y"), undefined);
  assert.equal(it.access.functions.size, 0);
});

Deno.test("a function with replicas of two names is called by each one's own", () => {
  const it = setup({ expose: [], grant: { prefix: "acme" } });
  const caller = it.open();
  const other = it.open();
  it.guest.say({ type: "registerfunction", id: "x" });
  other.say({ type: "registerfunction", id: "acme::x" });

  for (const invocation_id of ["i1", "i2"]) {
    caller.say({ type: "invokefunction", invocation_id, function_id: "acme::x" });
  }
  assert.deepEqual(handed(it.guest).map((call) => call.function_id), ["x"]);
  assert.deepEqual(handed(other).map((call) => call.function_id), ["acme::x"]);
  it.guest.cut();
  caller.say({ type: "invokefunction", invocation_id: "i3", function_id: "acme::x" });
  assert.deepEqual(handed(other).map((call) => call.function_id), ["acme::x"]);
});

Deno.test("middleware is called instead, with the payload's bytes; engine functions are not", () => {
  const it = setup({ middleware: "mw", grant: { context: { user: "u1" } } });

  it.guest.say(
    '{"type":"invokefunction","invocation_id":"i1","function_id":"orders::list","timeout_ms":90,' +
      '"action":null,"data":{"n":1.10}}',
  );
  const [text] = it.worker.connection.takeTexts();
  const { function_id, timeout_ms, data, invocation_id } = JSON.parse(text!);
  assert.deepEqual([function_id, timeout_ms], ["mw", 90]);
  assert.deepEqual(data, {
    function_id: "orders::list",
    action: null,
    context: { user: "u1" },
    namespace: "default",
    payload: { n: 1.1 },
  });
  assert.ok(text!.includes('"payload":{"n":1.10}'));
  it.worker.say({ type: "invocationresult", invocation_id, function_id, result: "decided" });
  assert.deepEqual(results(it.guest), { i1: "decided" });

  it.guest.say({
    type: "invokefunction",
    invocation_id: "i2",
    function_id: "engine::workers::register",
    data: { name: "g" },
  });
  assert.deepEqual(results(it.guest), { i2: { success: true } });
});

Deno.test("middleware that is absent lets nothing pass; a void call of it gets no result", () => {
  const it = setup({ middleware: "nowhere" });

  assert.equal(tryCall(it, "orders::list")?.code, "function_not_found");
  const void_ = { type: "invokefunction", function_id: "orders::list", action: { type: "void" } };
  it.guest.say({ ...void_, invocation_id: "v" });
  assert.deepEqual([handed(it.worker), it.guest.connection.take()], [[], []]);
});

Deno.test("a hook accepts, renames or refuses a function; the owner keeps its own name", () => {
  const it = setup({ expose: [], hooks: { function: "hook" }, grant: { context: { a: 1 } } });
  const register = (id: string) => it.guest.say({ type: "registerfunction", id, description: "d" });

  for (const id of ["one", "two", "three", "four"]) register(id);
  assert.deepEqual(it.asked[0]!.payload, {
    function_id: "one",
    description: "d",
    namespace: "default",
    context: { a: 1 },
  });
  it.asked[0]!.then({ value: {} });
  it.asked[1]!.then({ value: { function_id: "renamed", metadata: { by: "hook" } } });
  it.asked[2]!.then({ value: true });
  it.asked[3]!.then({ error: { code: "timeout", message: "too slow" } });

  const rejected = it.guest.connection.take() as unknown as JsonObject[];
  assert.deepEqual(rejected.map(({ function_id, message }) => [function_id, message]), [
    ["three", "three is refused: hook returned no object"],
    ["four", "four is refused: hook failed: too slow"],
  ]);
  const { directory } = it.router;
  const views = directory.functionsOf(it.guest.worker_id);
  assert.deepEqual(views.map((view) => [view.function_id, view.metadata]), [
    ["one", undefined],
    ["renamed", { by: "hook" }],
  ]);
  it.open().say({ type: "invokefunction", invocation_id: "i", function_id: "renamed" });
  assert.equal(handed(it.guest)[0]!.function_id, "two");
  it.guest.say({ type: "unregisterfunction", id: "two" });
  assert.equal(directory.function("default", "renamed"), undefined);
  assert.equal(it.access.functions.size, 0);
});

Deno.test("a function that a hook names otherwise the second time loses its first name", () => {
  const it = setup({ expose: [], hooks: { function: "hook" } });
  const register = (value: Json) => {
    it.guest.say({ type: "registerfunction", id: "f" });
    it.asked.at(-1)!.then({ value });
    const views = it.router.directory.functionsOf(it.guest.worker_id);
    return views.map(({ function_id, namespace }) => `${namespace} ${function_id}`);
  };

  assert.deepEqual(register({}), ["default f"]);
  assert.deepEqual(register({ function_id: "g" }), ["default g"]);
  assert.deepEqual(register({ function_id: "g", namespace: "blue" }), ["blue g"]);
  assert.deepEqual(register({}), ["default f"]);
  assert.equal(it.access.functions.size, 0);
});

Deno.test("functions of which none may be registered are rejected without a hook", () => {
  const grant = { mayRegisterFunctions: false };
  const it = setup({ expose: [], grant, hooks: { function: "hook" } });

  it.guest.say({ type: "registerfunction", id: "f" });

  const [rejected] = it.guest.connection.take() as unknown as JsonObject[];
  assert.equal(rejected!.type, "registrationrejected");
  assert.deepEqual(it.asked, []);
});

Deno.test("names of registrations that the engine refuses are not kept", () => {
  const it = setup({ expose: [], grant: { prefix: "engine" } });

  it.guest.say({ type: "registerfunction", id: "x" });

  const [rejected] = it.guest.connection.take() as unknown as JsonObject[];
  assert.equal(rejected!.function_id, "engine::x");
  assert.equal(it.access.functions.size, 0);
});

Deno.test("a trigger may only have functions that its owner may call, or that are its own", () => {
  const it = setup({ expose: ['match("orders::*")'], grant: { prefix: "acme" } });
  it.guest.say({ type: "registerfunction", id: "mine" });
  const trigger = (id: string, function_id: string, more: JsonObject = {}) => {
    it.guest.say({ type: "registertrigger", id, trigger_type: "cron", function_id, ...more });
    const view = it.router.directory.trigger(id);
    return view && [view.function_id, view.config];
  };

  assert.deepEqual(trigger("t1", "orders::create"), ["orders::create", {}]);
  assert.equal(trigger("t2", "admin::drop"), undefined);
  assert.deepEqual(trigger("t3", "mine", { config: { condition_function_id: "mine" } }), [
    "acme::mine",
    { condition_function_id: "acme::mine" },
  ]);
  assert.equal(
    trigger("t4", "mine", { config: { middleware_function_ids: ["admin::drop"] } }),
    undefined,
  );
  assert.equal(trigger("t5", "mine", { trigger_type: "engine::functions-available" }), undefined);
  assert.deepEqual(it.guest.connection.take(), []);
  const warned = it.events.filter(({ type }) => type === "warning").map((e) =>
    "detail" in e && e.detail
  );
  assert.equal(warned.length, 3);
  assert.match(String(warned[0]), /^trigger t2: function 'admin::drop' not allowed/);
});

Deno.test("a trigger that is registered by a call obeys the same rules", () => {
  const it = setup({ expose: ['match("engine::register_trigger")', 'match("orders::*")'] });
  const register = (function_id: string) =>
    tryCall(it, "engine::register_trigger", { data: { trigger_type: "none", function_id } });

  assert.equal(register("admin::drop")?.code, "FORBIDDEN");
  it.guest.say({
    type: "invokefunction",
    invocation_id: "ok",
    function_id: "engine::register_trigger",
    data: { trigger_type: "none", function_id: "orders::list" },
  });
  assert.equal(it.router.directory.triggers().length, 1);
});

Deno.test("types of triggers are limited, and hooks rename triggers", () => {
  const it = setup({
    grant: { triggerTypes: new Set(["cron", "http"]) },
    hooks: { trigger: "hook" },
  });
  const say = (id: string, trigger_type: string) =>
    it.guest.say({ type: "registertrigger", id, trigger_type, function_id: "orders::list" });

  say("t1", "state");
  assert.equal(it.asked.length, 0);
  say("t2", "cron");
  it.asked[0]!.then({ value: { trigger_id: "T2", function_id: "admin::drop", config: { a: 1 } } });
  say("t3", "cron");
  it.asked[1]!.then({ value: { trigger_type: "state" } });
  say("t4", "cron");
  it.asked[2]!.then({ value: null });

  const views = it.router.directory.triggers();
  assert.deepEqual(views.map(({ id, function_id, config }) => [id, function_id, config]), [
    ["T2", "admin::drop", { a: 1 }],
  ]);
  it.guest.say({ type: "unregistertrigger", id: "t2" });
  assert.deepEqual([it.router.directory.triggers().length, it.access.triggers.size], [0, 0]);
});

Deno.test("trigger types need a grant; a renamed one reaches its provider by its own name", () => {
  const closed = setup({ expose: [] });
  closed.guest.say({ type: "registertriggertype", id: "beat", description: "" });
  assert.equal(closed.router.directory.triggerType("default", "beat"), undefined);
  assert.deepEqual(closed.guest.connection.take(), []);

  const it = setup({
    expose: [],
    grant: { mayRegisterTriggerTypes: true },
    hooks: { triggerType: "hook" },
  });
  it.guest.say({ type: "registertriggertype", id: "beat", description: "b" });
  assert.deepEqual(it.asked[0]!.payload, {
    trigger_type_id: "beat",
    description: "b",
    context: {},
  });
  it.asked[0]!.then({ value: { trigger_type_id: "acme-beat" } });
  const trigger = { id: "t", trigger_type: "acme-beat", function_id: "orders::list" };
  it.worker.say({ type: "registertrigger", ...trigger });
  it.worker.say({ type: "unregistertrigger", id: "t" });

  const sent = it.guest.connection.take() as unknown as JsonObject[];
  assert.deepEqual(sent.map(({ type, trigger_type }) => [type, trigger_type]), [
    ["registertrigger", "beat"],
    ["unregistertrigger", "beat"],
  ]);
  it.guest.say({ type: "unregistertriggertype", id: "beat" });
  assert.equal(it.router.directory.triggerType("default", "acme-beat"), undefined);
});

Deno.test("an answer of a hook behind the end of its connection changes nothing", () => {
  const it = setup({ expose: [], hooks: { function: "hook" } });
  it.guest.say({ type: "registerfunction", id: "f" });
  it.guest.cut();

  it.asked[0]!.then({ value: {} });

  assert.equal(it.router.directory.function("default", "f"), undefined);
});

Deno.test("what a hook returns is checked like a message of a worker", () => {
  const it = setup({ expose: [], hooks: { function: "hook" } });
  it.guest.say({ type: "registerfunction", id: "f" });

  it.asked[0]!.then({ value: { function_id: 7 } });

  assert.equal(it.router.directory.function("default", "f"), undefined);
  assert.ok(it.events.some((event) => event.type === "warning"));
});

Deno.test("endWhere() tells a connection why and cleans up at once", () => {
  const it = fakeRouter();
  const gone = it.open({ token: "t1" });
  const stays = it.open({ token: "t2" });
  gone.say({ type: "registerfunction", id: "f" });

  const error = { code: "AUTH_ERROR", message: "token ci was revoked" };
  it.router.endWhere(({ token }) => token === "t1", error);

  assert.deepEqual(gone.connection.take(), [{ type: "error", error }]);
  assert.deepEqual(gone.connection.closing, { code: 1008, reason: "token ci was revoked" });
  assert.equal(it.router.directory.function("default", "f"), undefined);
  assert.equal(stays.connection.closing, undefined);
});
