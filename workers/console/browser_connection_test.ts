/**
 * @module
 */
import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { ID_CHARS_MAX } from "../../sdk/typescript/wire/limits.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeBrowserSocket } from "../../tests/fakes/fake_connection.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConsoleWorker, settle } from "../../tests/console/fake_console_worker.ts";
import {
  BrowserConnection,
  type BrowserServices,
  HELLO_CHARS_MAX,
  HELLO_MS,
  MESSAGE_CHARS_MAX,
  OPEN_REQUESTS_MAX,
  QUERY_TRIGGERS_MAX,
  readMessage,
  WRONG_TOKEN_MS,
} from "./browser_connection.ts";
import { EngineClient } from "./engine_client.ts";
import { BEHIND_BYTES, BEHIND_CHECK_MS } from "./outbox.ts";
import { INTERVAL_MS, QueryFeeds } from "./query_feeds.ts";
import { TriggerFeeds } from "./trigger_feeds.ts";
import type { BrowserMessage } from "./wire.ts";

/** The connection of a page, after `hello` unless a test sends it. */
function setup(token: string | null = "operator") {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  const engine = new EngineClient(worker, clock);
  const triggers = new TriggerFeeds(engine, worker);
  const queries = new QueryFeeds(engine, triggers, clock);
  const shared: BrowserServices = {
    clock,
    engine,
    triggers,
    queries,
    http: {
      send: ({ path }) =>
        path === "/broken" ? Promise.reject(new EngineError("timeout", "late")) : Promise.resolve({
          status: 200,
          headers: [],
          body: path,
          binary: false,
          trace_id: "t",
        }),
    },
    rightsOf: (token) => token === "operator" || token === "guest" ? token : undefined,
    version: "0.1.0",
    engineUrl: () => "ws://127.0.0.1:49134",
  };
  const open = () => {
    const socket = new FakeBrowserSocket();
    return { socket, connection: new BrowserConnection(shared, socket) };
  };
  const { socket, connection } = open();
  const say = async (message: BrowserMessage): Promise<void> => {
    connection.receive(JSON.stringify(message));
    await settle();
  };
  if (token !== null) connection.receive(JSON.stringify({ type: "hello", token }));
  return { clock, worker, triggers, queries, socket, connection, say, open };
}

const call = (id: number, function_id: string, payload?: Json): BrowserMessage => ({
  type: "call",
  id,
  function_id,
  ...payload !== undefined && { payload },
});
const watchQuery = (id: number): BrowserMessage => ({
  type: "watch_query",
  id,
  query: { function_id: "list", items: "rows", key: ["id"] },
  on: [{ type: "changed" }],
});

Deno.test("BrowserConnection answers a valid hello with welcome and the state of the engine", () => {
  const { clock, socket } = setup();

  assert.deepEqual(socket.sent, [
    { type: "welcome", version: "0.1.0", engine_url: "ws://127.0.0.1:49134", operator: true },
    { type: "engine", connected: true, since_ms: clock.wall() },
  ]);
  assert.equal(clock.waiting, 0);
});

Deno.test("BrowserConnection reports when the engine is lost and when it is back", () => {
  const { worker, socket } = setup();

  worker.become("reconnecting");
  worker.become("connected");

  const states = socket.sent.flatMap((it) => it.type === "engine" ? [it.connected] : []);
  assert.deepEqual(states, [true, false, true]);
});

Deno.test("BrowserConnection closes when the first message is no hello, or is too long", () => {
  const [early, long] = [setup(null), setup(null)];

  early.connection.receive(JSON.stringify(call(1, "a::b")));
  const token = "x".repeat(HELLO_CHARS_MAX);
  long.connection.receive(JSON.stringify({ type: "hello", token }));

  assert.deepEqual(early.socket.closedWith, [1008, "hello comes first"]);
  assert.deepEqual(long.socket.closedWith, [1009, "a message is too long"]);
});

Deno.test("BrowserConnection closes after a delay on a wrong token, with its own code", () => {
  const { clock, socket } = setup("wrong");

  clock.tick(WRONG_TOKEN_MS - 1);
  assert.equal(socket.closedWith, undefined);
  clock.tick(1);

  assert.deepEqual(socket.closedWith, [4401, "wrong token"]);
  assert.deepEqual([socket.sent, clock.waiting], [[], 0]);
});

Deno.test("BrowserConnection reads nothing after a wrong token, so that every guess costs the delay", () => {
  const { clock, socket, connection } = setup("wrong");

  clock.tick(WRONG_TOKEN_MS - 1);
  connection.receive(JSON.stringify({ type: "hello", token: "operator" }));
  clock.tick(1);

  assert.deepEqual([socket.sent, socket.closedWith], [[], [4401, "wrong token"]]);
});

Deno.test("BrowserConnection closes when no hello arrives in time", () => {
  const { clock, socket } = setup(null);

  clock.tick(HELLO_MS);

  assert.deepEqual(socket.closedWith, [1008, "the page sent no hello"]);
});

Deno.test("BrowserConnection forwards every field of a call, and sends the result", async () => {
  const { clock, worker, socket, say } = setup();
  worker.functions["math::add"] = (payload) => {
    clock.tick(7);
    return { got: payload! };
  };

  await say({
    type: "call",
    id: 1,
    function_id: "math::add",
    namespace: "lab",
    payload: { a: 1 },
    timeout_ms: 500,
    metadata: { why: "test" },
  });

  const [seen] = worker.calls;
  const { traceparent } = seen!;
  assert.deepEqual(
    [seen!.namespace, seen!.payload, seen!.timeout_ms, seen!.metadata],
    ["lab", { a: 1 }, 500, { why: "test" }],
  );
  const trace_id = /^00-([0-9a-f]{32})-[0-9a-f]{16}-01$/.exec(traceparent!)![1];
  const result = { got: { a: 1 } };
  assert.deepEqual(socket.about(1), [{ type: "result", id: 1, result, duration_ms: 7, trace_id }]);
});

Deno.test("BrowserConnection does not record calls of core functions", async () => {
  const { worker, socket, say } = setup();
  worker.functions["engine::workers::list"] = () => undefined;

  await say(call(1, "engine::workers::list"));

  assert.match(worker.calls[0]!.traceparent!, /-00$/);
  const [answer] = socket.about(1);
  assert.deepEqual(answer, { type: "result", id: 1, duration_ms: 0, trace_id: null });
});

Deno.test("BrowserConnection does not record calls that no person made", async () => {
  const { worker, socket, say } = setup();
  worker.functions["math::add"] = () => 3;

  await say({ type: "call", id: 1, function_id: "math::add", background: true });

  assert.match(worker.calls[0]!.traceparent!, /-00$/);
  const [answer] = socket.about(1);
  assert.deepEqual(answer, { type: "result", id: 1, result: 3, duration_ms: 0, trace_id: null });
});

Deno.test("BrowserConnection answers a failed call with code, message, details and remote stack", async () => {
  const { worker, socket, say } = setup();
  worker.functions["a::b"] = () => {
    throw new EngineError("out_of_stock", "Only 2 left", { details: { left: 2 } });
  };

  await say(call(1, "a::b"));
  await say(call(2, "missing::f"));

  const [first, second] = [...socket.about(1), ...socket.about(2)];
  assert.ok(first?.type === "error" && second?.type === "error");
  assert.deepEqual(first.error, {
    code: "out_of_stock",
    message: "Only 2 left",
    details: { left: 2 },
  });
  assert.equal(second.error.code, "function_not_found");
});

Deno.test("BrowserConnection forwards progress, and cancels a call that the page ends", async () => {
  const { worker, socket, say, connection } = setup();
  let aborted = false;
  worker.functions["slow::job"] = (_payload, { onProgress, signal }) => {
    onProgress!({ done: 1 });
    signal!.addEventListener("abort", () => {
      aborted = true;
      onProgress!({ done: 2 });
    });
    return new Promise(() => {});
  };
  await say(call(1, "slow::job"));
  assert.equal(connection.openCount, 1);

  await say({ type: "end", id: 1 });

  assert.deepEqual(socket.about(1), [{ type: "progress", id: 1, data: { done: 1 } }]);
  assert.deepEqual([aborted, connection.openCount], [true, 0]);
});

Deno.test("BrowserConnection lets an id be used again without mixing up its requests", async () => {
  const { worker, socket, say } = setup();
  const answers: PromiseWithResolvers<Json>[] = [];
  worker.functions["slow::job"] = () => {
    answers.push(Promise.withResolvers<Json>());
    return answers.at(-1)!.promise;
  };
  await say(call(1, "slow::job"));
  await say({ type: "end", id: 1 });
  await say(call(1, "slow::job"));

  answers[0]!.resolve("first");
  answers[1]!.resolve("second");
  await settle();

  const results = socket.about(1).map((message) => (message as { result?: Json }).result);
  assert.deepEqual(results, ["second"]);
});

Deno.test("BrowserConnection pushes firings of a trigger until the page ends the watch", async () => {
  const { worker, socket, say } = setup();
  await say({ type: "watch_trigger", id: 3, trigger: { type: "log", config: { level: "warn" } } });

  await worker.fire("log", { body: "hello" });
  await say({ type: "end", id: 3 });
  await worker.fire("log", { body: "late" });

  assert.deepEqual(socket.about(3), [{ type: "fired", id: 3, payload: { body: "hello" } }]);
  assert.equal(worker.triggers.size, 0);
});

Deno.test("BrowserConnection answers a refused watch with the reason, and closes it", async () => {
  const { socket, say, connection } = setup();

  await say({ type: "watch_trigger", id: 3, trigger: { type: "refused" } });

  const error = { code: "bad_config", message: "This config is wrong" };
  const message = { type: "error", id: 3, error, duration_ms: 0, trace_id: null };
  assert.deepEqual([socket.about(3), connection.openCount], [[message], 0]);
});

Deno.test("BrowserConnection pushes the result of a query and then its changes", async () => {
  const { clock, worker, socket, say } = setup();
  let rows: Json[] = ["a", "b", "c"].map((id) => ({ id }));
  worker.functions["list"] = () => ({ rows });
  await say(watchQuery(4));

  rows = [...rows.slice(1), { id: "d" }];
  await worker.fire("changed");
  clock.tick(INTERVAL_MS);
  await settle();

  assert.deepEqual(socket.about(4), [
    { type: "snapshot", id: 4, items: [{ id: "a" }, { id: "b" }, { id: "c" }] },
    { type: "patch", id: 4, set: [{ id: "d" }], gone: ['["a"]'] },
  ]);
});

Deno.test("BrowserConnection sends a slow page one snapshot instead of the changes it missed", async () => {
  const { clock, worker, socket, say } = setup();
  let n = 0;
  worker.functions["list"] = () => ({ rows: ["a", "b", "c"].map((id) => ({ id, n })) });
  await say(watchQuery(4));
  socket.bufferedAmount = BEHIND_BYTES + 1;

  for (n = 1; n <= 3; n++) {
    await worker.fire("changed");
    clock.tick(INTERVAL_MS);
    await settle();
  }
  assert.equal(socket.about(4).length, 1);
  socket.bufferedAmount = 0;
  clock.tick(BEHIND_CHECK_MS);

  const items = ["a", "b", "c"].map((id) => ({ id, n: 3 }));
  assert.deepEqual(socket.about(4).slice(1), [{ type: "snapshot", id: 4, items }]);
});

Deno.test("BrowserConnection forwards HTTP requests of the page", async () => {
  const { socket, say } = setup();

  await say({ type: "http", id: 5, method: "GET", path: "/orders", headers: {} });
  await say({ type: "http", id: 6, method: "GET", path: "/broken", headers: {} });

  const [answer, failed] = [...socket.about(5), ...socket.about(6)];
  assert.ok(answer?.type === "http_answer" && failed?.type === "error");
  assert.deepEqual([answer.status, answer.body, failed.error.code], [200, "/orders", "timeout"]);
});

Deno.test("BrowserConnection lets a guest look and call, but not manage workers or see payloads", async () => {
  const { worker, socket, say } = setup("guest");
  const attributes = [["engine.worker", "shop"], ["engine.request", "{}"]];
  worker.functions["engine::traces::list"] = () => ({ spans: [{ attributes }] });
  worker.functions["engine::supervisor::list"] = () => ({ workers: [] });

  await say(call(1, "engine::supervisor::restart", { name: "shop" }));
  await say(call(2, "engine::supervisor::list"));
  await say(call(3, "engine::traces::list"));
  await say({
    type: "watch_query",
    id: 4,
    query: { function_id: "engine::supervisor::stop", payload: { name: "shop" } },
    on: [],
  });
  await say({
    type: "watch_query",
    id: 5,
    query: { function_id: "engine::traces::list", items: "spans" },
    on: [],
  });

  const kinds = [1, 2, 3, 4, 5].map((id) => socket.about(id)[0]?.type);
  assert.deepEqual(kinds, ["error", "result", "result", "error", "snapshot"]);
  const [refused] = socket.about(1);
  assert.ok(refused?.type === "error" && refused.error.code === "FORBIDDEN");
  const shown = JSON.stringify([socket.about(3), socket.about(5)]);
  assert.match(shown, /engine\.worker/);
  assert.doesNotMatch(shown, /engine\.request/);
  assert.equal(worker.count("engine::supervisor::restart"), 0);
  assert.equal(worker.count("engine::supervisor::stop"), 0);
});

Deno.test("BrowserConnection refuses a guest that lets others make a call it may not make", async () => {
  const { worker, socket, say } = setup("guest");
  const trigger = { type: "state", config: { condition_function_id: "engine::queue::purge" } };
  const list = { function_id: "engine::workers::list" };

  await say(call(1, "engine::queue::enqueue", { function_id: "engine::queue::purge" }));
  await say({ type: "watch_trigger", id: 2, trigger });
  await say({ type: "watch_query", id: 3, query: list, on: [trigger] });

  for (const id of [1, 2, 3]) {
    const [refused] = socket.about(id);
    assert.ok(refused?.type === "error" && refused.error.code === "FORBIDDEN", String(id));
  }
  assert.equal(worker.count("engine::queue::enqueue"), 0);
});

Deno.test("BrowserConnection shows payloads to an operator while a guest has the same watch", async () => {
  const { worker, socket, say, open } = setup("guest");
  worker.functions["engine::traces::list"] = () => ({ spans: [["engine.request", "{}"]] });
  const watch: BrowserMessage = {
    type: "watch_query",
    id: 1,
    query: { function_id: "engine::traces::list", items: "spans" },
    on: [],
  };
  const other = open();
  other.connection.receive(JSON.stringify({ type: "hello", token: "operator" }));
  other.connection.receive(JSON.stringify(watch));

  await say(watch);

  assert.deepEqual(socket.about(1), [{ type: "snapshot", id: 1, items: [] }]);
  assert.deepEqual(other.socket.about(1), [
    { type: "snapshot", id: 1, items: [["engine.request", "{}"]] },
  ]);
});

Deno.test("BrowserConnection ends everything that is open when the socket closes", async () => {
  const { clock, worker, triggers, queries, socket, connection, say } = setup();
  let aborted = 0;
  worker.functions["slow::job"] = (_payload, { signal }) => {
    signal!.addEventListener("abort", () => void aborted++);
    return new Promise(() => {});
  };
  worker.functions["list"] = () => ({ rows: [] });
  await say(call(1, "slow::job"));
  await say({ type: "watch_trigger", id: 2, trigger: { type: "log" } });
  await say(watchQuery(3));
  const before = socket.sent.length;

  connection.closed();
  await settle();
  worker.become("reconnecting");

  assert.deepEqual([aborted, triggers.size, queries.size, connection.openCount], [1, 0, 0, 0]);
  assert.deepEqual([worker.triggers.size, clock.waiting, socket.sent.length], [0, 0, before]);
});

Deno.test("BrowserConnection refuses requests beyond its bound, and stays open", async () => {
  const { worker, socket, say } = setup();
  worker.functions["slow::job"] = () => new Promise(() => {});
  for (let id = 1; id <= OPEN_REQUESTS_MAX; id++) await say(call(id, "slow::job"));

  await say(call(OPEN_REQUESTS_MAX + 1, "slow::job"));
  const [refused] = socket.about(OPEN_REQUESTS_MAX + 1);
  assert.ok(refused?.type === "error" && refused.error.code === "overloaded");

  await say({ type: "end", id: 1 });
  await say(call(1, "slow::job"));
  assert.deepEqual(socket.about(1), []);
});

Deno.test("BrowserConnection answers an invalid message that has an id with an error", async () => {
  const { socket, connection } = setup();

  connection.receive('{"type":"call","id":9}');
  connection.receive('{"type":"dance","id":10}');
  await settle();

  for (const id of [9, 10]) {
    const [answer] = socket.about(id);
    assert.ok(answer?.type === "error" && answer.error.code === "bad_message");
  }
  assert.equal(socket.closedWith, undefined);
});

for (
  const [what, text] of [
    ["no JSON", "hello"],
    ["no object", "[1]"],
    ["no number", '{"type":"call","function_id":"a::b"}'],
    ["a second hello", '{"type":"hello","token":"operator"}'],
    ["a message that is too long", `"${"x".repeat(MESSAGE_CHARS_MAX)}"`],
  ] as const
) {
  Deno.test(`BrowserConnection ends the connection of a browser that says ${what}`, () => {
    const { socket, connection } = setup();

    connection.receive(text);
    connection.receive('{"type":"call","id":1,"function_id":"a::b"}');

    assert.ok(socket.closedWith);
    assert.deepEqual(socket.about(1), []);
  });
}

Deno.test("BrowserConnection closes when an open id is used twice", async () => {
  const { worker, socket, say } = setup();
  worker.functions["slow::job"] = () => new Promise(() => {});
  await say(call(1, "slow::job"));

  await say(call(1, "slow::job"));

  assert.deepEqual(socket.closedWith, [1008, "1 is in use"]);
});

Deno.test("BrowserConnection survives values that are nested too deep for JSON", async () => {
  const { worker, socket, say } = setup();
  // Only names that are numbers need a stack as deep as the value when it is written.
  const deep = JSON.parse('{"0":'.repeat(100_000) + "1" + "}".repeat(100_000)) as Json;
  worker.functions["deep::get"] = () => deep;
  worker.functions["deep::fail"] = () => {
    throw new EngineError("broken", "deep", { details: { deep } });
  };
  await say({ type: "watch_trigger", id: 1, trigger: { type: "log" } });

  await say(call(2, "deep::get"));
  await say(call(3, "deep::fail"));
  await worker.fire("log", deep);
  await settle();

  assert.deepEqual(socket.about(1), [{ type: "missed", id: 1, count: 1 }]);
  for (const id of [2, 3]) {
    const [answer] = socket.about(id);
    assert.ok(answer?.type === "error" && answer.error.code === "too_deep");
  }
});

Deno.test("BrowserConnection closes on a binary message", () => {
  const { socket, connection } = setup();

  connection.receiveBinary();

  assert.deepEqual(socket.closedWith, [1008, "not a message"]);
});

Deno.test("BrowserConnection survives random messages", () => {
  const letters = '{}[]":,0123456789.-+eEtrufalsn idtypecoken\\ \u0000';
  for (let seed = 1; seed <= 300; seed++) {
    const { connection } = setup();
    let state = seed;
    let text = "";
    for (let i = 0; i < 60; i++) {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      text += letters[state % letters.length];
    }
    connection.receive(text);
    connection.closed();
  }
});

const GOOD: readonly BrowserMessage[] = [
  { type: "hello", token: "" },
  { type: "call", id: 0, function_id: "a::b" },
  {
    type: "call",
    id: 1,
    function_id: "a::b",
    namespace: "lab",
    payload: [1, { a: null }],
    timeout_ms: 5,
    metadata: { a: true },
  },
  { type: "watch_trigger", id: 2, trigger: { type: "log" } },
  { type: "watch_trigger", id: 2, trigger: { type: "log", config: { level: "warn" } } },
  { type: "watch_query", id: 3, query: { function_id: "a::b" }, on: [] },
  {
    type: "watch_query",
    id: 3,
    query: { function_id: "a::b", payload: {}, items: "rows", key: ["id"] },
    on: [{ type: "x" }],
  },
  { type: "http", id: 4, method: "POST", path: "/a?b", headers: { a: "b" }, body: "{}" },
  { type: "end", id: 5 },
];

for (const message of GOOD) {
  Deno.test(`readMessage() takes ${JSON.stringify(message)}`, () => {
    assert.deepEqual(readMessage(JSON.stringify(message)), { message });
  });
}

const BAD: readonly (readonly [text: string, id: number | undefined, says: RegExp])[] = [
  ["", undefined, /not JSON/],
  ["{", undefined, /not JSON/],
  ["null", undefined, /cannot be understood/],
  ["7", undefined, /cannot be understood/],
  ["[]", undefined, /cannot be understood/],
  ['{"type":"hello"}', undefined, /token: expected string, received nothing/],
  ['{"type":"hello","token":1}', undefined, /token: expected string, received 1/],
  ['{"type":"dance","id":1}', 1, /cannot be understood/],
  ['{"type":"end","id":-1}', undefined, /id/],
  ['{"type":"end","id":1.5}', undefined, /id/],
  ['{"type":"end","id":"1"}', undefined, /id/],
  ['{"type":"call","id":1}', 1, /function_id: expected string, received nothing/],
  ['{"type":"call","id":1,"function_id":""}', 1, /function_id/],
  ['{"type":"call","id":1,"function_id":"a","timeout_ms":0}', 1, /timeout_ms/],
  ['{"type":"call","id":1,"function_id":"a","timeout_ms":1e12}', 1, /timeout_ms/],
  ['{"type":"call","id":1,"function_id":"a","metadata":[]}', 1, /metadata/],
  ['{"type":"watch_trigger","id":1,"trigger":{}}', 1, /trigger\.type/],
  ['{"type":"watch_query","id":1,"query":{"function_id":"a"}}', 1, /on: expected array/],
  ['{"type":"watch_query","id":1,"query":{"function_id":"a","key":[]},"on":[]}', 1, /key/],
  ['{"type":"http","id":1,"method":"get","path":"/","headers":{}}', 1, /method/],
  ['{"type":"http","id":1,"method":"GET\\r\\nX: y","path":"/","headers":{}}', 1, /method/],
  ['{"type":"http","id":1,"method":"GET","path":"http://a/","headers":{}}', 1, /path/],
  ['{"type":"http","id":1,"method":"GET","path":"/","headers":{"a":1}}', 1, /headers\.a/],
];

for (const [text, id, says] of BAD) {
  Deno.test(`readMessage() says what is wrong with ${text || "nothing"}`, () => {
    const read = readMessage(text);

    assert.ok("problem" in read);
    assert.match(read.problem, says);
    assert.equal(read.id, id);
  });
}

Deno.test("readMessage() refuses deep nesting before it is parsed", () => {
  const read = readMessage(`{"type":"call","payload":${"[".repeat(10_000_000)}`);

  assert.deepEqual(read, {
    problem: "The message is nested more deeply than 128 levels",
    id: undefined,
  });
});

Deno.test("readMessage() bounds names and triggers", () => {
  const function_id = "x".repeat(ID_CHARS_MAX + 1);
  const on = Array(QUERY_TRIGGERS_MAX + 1).fill({ type: "log" });

  for (
    const message of [
      { type: "call", id: 1, function_id },
      { type: "watch_query", id: 1, query: { function_id: "a" }, on },
    ]
  ) assert.ok("problem" in readMessage(JSON.stringify(message)));
});

Deno.test("readMessage() drops members that a message does not have", () => {
  const text = '{"type":"end","id":1,"__proto__":{"a":1},"constructor":2,"more":3}';

  assert.deepEqual(readMessage(text), { message: { type: "end", id: 1 } });
});

Deno.test("readMessage() survives values nested deeper than the stack", () => {
  const deep = "[".repeat(200_000) + "]".repeat(200_000);

  for (
    const text of [
      deep,
      `{"type":"call","id":1,"function_id":${deep}}`,
      `{"type":"call","id":1,"function_id":"a","payload":${deep},"metadata":{"a":${deep}}}`,
    ]
  ) assert.ok(readMessage(text));
});
