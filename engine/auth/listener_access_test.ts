import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { fakeRouter } from "../../tests/fakes/fake_router.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { ListenerSettings, RbacSettings } from "../ports/config.ts";
import { UNLIMITED_MEMORY } from "../ports/memory.ts";
import { type AskOptions, decidingFunctions, hasRules, ListenerAccess } from "./listener_access.ts";

interface Asked extends AskOptions {
  readonly function_id: string;
  readonly payload: Json;
  answer(value: Json): void;
  fail(thrown: unknown): void;
}

const SETTINGS: ListenerSettings = {
  name: "partners",
  host: "127.0.0.1",
  port: 0,
  tokens: false,
  insecure: false,
  allowed_origins: [],
};

function setup(rbac: Partial<RbacSettings> | undefined, more: Partial<ListenerSettings> = {}) {
  const it = fakeRouter();
  const asked: Asked[] = [];
  const lines: LogLine[] = [];
  const listener: ListenerSettings = {
    ...SETTINGS,
    ...more,
    ...rbac && { rbac: { auth_timeout_ms: 700, expose_functions: [], ...rbac } },
  };
  const rules = new ListenerAccess({
    listener,
    clock: it.clock,
    log: recordingLog(lines),
    memory: UNLIMITED_MEMORY,
    reserved: decidingFunctions([listener]),
    call: (function_id, payload, options) => {
      const { promise, resolve, reject } = Promise.withResolvers<Json>();
      asked.push({ function_id, payload, ...options, answer: resolve, fail: reject });
      return promise;
    },
    open: (connection, info) => it.router.open(connection, info),
  });
  const connect = (target = "/?key=a&key=b&__proto__=c", headers: Record<string, string> = {}) => {
    const connection = new FakeConnection("c");
    const { pathname: path, searchParams: query } = new URL(target, "ws://here");
    const upgrade = { path, query, headers: new Headers(headers), address: "10.0.0.1" };
    const info = { address: "10.0.0.1", launch_id: null, builtin: null };
    const events = rules.admit(upgrade, info, undefined)(connection);
    const say = (message: JsonObject) => events.text(JSON.stringify(message));
    return { connection, events, say };
  };
  return { ...it, asked, lines, connect };
}

/** Runs what waits for promises. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

Deno.test("the auth function is asked once, and frames wait in order for its grant", async () => {
  const it = setup({ auth_function_id: "auth::f" });
  const { connection, say } = it.connect("/?key=a&key=b&__proto__=c", { "X-Api-Key": "k" });
  say({ type: "registerfunction", id: "one" });
  say({ type: "ping" });

  assert.deepEqual(connection.take(), []);
  const { function_id, payload, timeout_ms } = it.asked[0]!;
  assert.deepEqual([function_id, timeout_ms], ["auth::f", 700]);
  assert.equal(
    JSON.stringify(payload),
    '{"headers":{"x-api-key":"k"},"query_params":{"key":["a","b"],"__proto__":["c"]},' +
      '"ip_address":"10.0.0.1"}',
  );
  it.asked[0]!.answer({ function_registration_prefix: "acme" });
  await settle();

  assert.deepEqual(connection.take().map(({ type }) => type), ["workerregistered", "pong"]);
  assert.ok(it.router.directory.function("default", "acme::one"));
  assert.equal(it.asked.length, 1);
});

const REFUSALS: readonly [string, unknown, string][] = [
  [
    "throws",
    new EngineError("invocation_failed", "API key expired"),
    "The connection is not authorised: API key expired",
  ],
  [
    "does not exist",
    new EngineError("function_not_found", "Function auth::f not found"),
    "Connections cannot be authorised now; try again later",
  ],
  [
    "takes too long",
    new EngineError("timeout", "Invocation of auth::f timed out after 700 ms"),
    "The connection was not authorised in time; try again later",
  ],
];

for (const [what, thrown, message] of REFUSALS) {
  Deno.test(`a connection is refused when the auth function ${what}`, async () => {
    const it = setup({ auth_function_id: "auth::f" });
    const { connection, say, events } = it.connect();
    say({ type: "registerfunction", id: "one" });

    it.asked[0]!.fail(thrown);
    await settle();
    events.closed(1008, "");

    const error = { code: "AUTH_ERROR", message };
    assert.deepEqual(connection.take(), [{ type: "error", error }]);
    assert.deepEqual(connection.closing, { code: 1008, reason: "not authorised" });
    assert.equal(it.router.directory.workers().length, 0);
    const { text, fields } = it.lines[0]!;
    assert.equal(text, "a connection was refused by access rules");
    assert.deepEqual([fields.listener, fields.address, fields.function_id], [
      "partners",
      "10.0.0.1",
      "auth::f",
    ]);
    assert.equal(fields.reason, (thrown as Error).message);
  });
}

Deno.test("what is no grant refuses, and the peer does not see why", async () => {
  const it = setup({ auth_function_id: "auth::f" });
  const { connection } = it.connect();

  it.asked[0]!.answer({ forbidden_functions: ["admin::*"] });
  await settle();

  const [sent] = connection.take() as unknown as [{ error: { message: string } }];
  assert.equal(sent.error.message, "The connection could not be authorised");
  assert.match(String(it.lines[0]!.fields.reason), /forbidden_functions\[0\]: expected match/);
});

Deno.test("a peer that leaves meanwhile ends the call, and is not opened by a late grant", async () => {
  const it = setup({ auth_function_id: "auth::f" });
  const { connection, events } = it.connect();

  events.closed(1006, "");
  assert.equal(it.asked[0]!.signal!.aborted, true);
  it.asked[0]!.answer({});
  await settle();

  assert.deepEqual([connection.take(), it.lines.length], [[], 0]);
  assert.equal(it.router.directory.workers().length, 0);
});

Deno.test("refusals are logged a few times, however many there are", async () => {
  const it = setup({ auth_function_id: "auth::f" });
  for (let i = 0; i < 50; i++) it.connect();

  for (const each of it.asked) each.fail(new Error("no"));
  await settle();

  assert.equal(it.lines.length, 20);
});

Deno.test("without an auth function the rules count at once", () => {
  const it = setup({ expose_functions: ['match("orders::*")'] });
  const { connection, say } = it.connect();

  assert.deepEqual(connection.take().map(({ type }) => type), ["workerregistered"]);
  say({ type: "invokefunction", invocation_id: "i", function_id: "admin::drop" });
  const [result] = connection.take() as unknown as [{ error: { code: string } }];
  assert.equal(result.error.code, "FORBIDDEN");
});

Deno.test("a hook holds what follows the registration, and its timeout refuses it", async () => {
  const it = setup({ on_function_registration_function_id: "auth::register" });
  const { connection, say } = it.connect();
  connection.take();
  say({ type: "registerfunction", id: "one" });
  say({ type: "registerfunction", id: "two" });
  say({ type: "ping" });

  assert.deepEqual(connection.take(), []);
  assert.deepEqual([it.asked.length, it.asked[0]!.timeout_ms], [1, 700]);
  it.asked[0]!.answer({});
  await settle();
  assert.equal(it.asked.length, 2);
  it.asked[1]!.fail(new EngineError("timeout", "too slow"));
  await settle();

  assert.ok(it.router.directory.function("default", "one"));
  assert.equal(it.router.directory.function("default", "two"), undefined);
  assert.deepEqual(connection.take().map(({ type }) => type), ["registrationrejected", "pong"]);
});

Deno.test("a guest cannot register a function that decides about access", () => {
  const it = setup({}, {
    middleware_function_id: "gate::check",
  });
  const { connection, say } = it.connect();
  connection.take();

  say({ type: "registerfunction", id: "gate::check" });

  const [rejected] = connection.take() as unknown as [JsonObject];
  assert.equal(
    rejected.message,
    "gate::check is refused: a function with this id decides about access",
  );
});

Deno.test("hasRules() holds for middleware and rules, also empty ones", () => {
  const rbac = { auth_timeout_ms: 1, expose_functions: [] };
  assert.equal(hasRules(SETTINGS), false);
  assert.equal(hasRules({ ...SETTINGS, rbac }), true);
  assert.equal(hasRules({ ...SETTINGS, middleware_function_id: "m" }), true);
  assert.deepEqual([...decidingFunctions([SETTINGS])], []);
});
