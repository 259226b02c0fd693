/**
 * WebSocket routes on a real port of a real router, as clients and workers see them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { systemClock } from "../../../engine/platform/system_clock.ts";
import type { Handler } from "../../../sdk/typescript/options.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { LocalEngine, type LocalEngineOptions } from "../../../tests/fakes/local_engine.ts";
import { encodeFrame, OP, RawWsClient } from "../../../tests/fakes/raw_ws_client.ts";
import { until } from "../../../tests/fakes/until.ts";
import { http } from "../mod.ts";

/** `engine-http` on a real port, and a worker that serves WebSockets. */
async function onPort(config: JsonObject = {}, options: LocalEngineOptions = {}) {
  const local = new LocalEngine({ clock: systemClock, ...options });
  const end = await local.start(http, { port: 0, ...config });
  const worker = await local.connect("chat");
  const url = new URL(local.endpoints[0]!.url);
  const port = Number(url.port);
  let count = 0;
  const serve = async (api_path: string, handler: Handler, more: JsonObject = {}) => {
    const function_id = `socket::f${++count}`;
    worker.registerFunction(function_id, handler);
    const config = { api_path, ...more };
    const trigger = worker.registerTrigger({ type: "websocket", function_id, config });
    await local.settle();
    return trigger;
  };
  const call = async (name: string, payload: JsonObject = {}) => {
    const request = { function_id: `websocket::${name}`, payload };
    return await worker.trigger<Json, Record<string, Json>>(request);
  };
  return {
    local,
    worker,
    port,
    end,
    serve,
    call,
    offer: (id: string, handler: Handler) => worker.registerFunction(id, handler),
    connect: (path: string, headers: Record<string, string> = {}) =>
      RawWsClient.connect(port, { path, headers: { Host: `127.0.0.1:${port}`, ...headers } }),
    connections: async () => (await call("connections")).connections as JsonObject[],
    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  };
}

Deno.test("A message goes to the function of its route, and what that returns comes back", async () => {
  await using it = await onPort();
  const seen: JsonObject[] = [];
  await it.serve("/chat/:room", (payload) => {
    seen.push(payload as JsonObject);
    return { echo: (payload as JsonObject).data! };
  });
  using client = await it.connect("/chat/a%20b?x=1");

  assert.equal(client.status, 101);
  await client.text("hällo");
  assert.equal(await client.nextText(), '{"echo":"hällo"}');
  await client.frame(2, Uint8Array.of(0, 255));
  assert.equal(await client.nextText(), "{}");

  const [first, second] = seen;
  const { connection_id } = first!;
  assert.deepEqual(first, {
    event: "message",
    connection_id,
    path: "/chat/:room",
    path_params: { room: "a b" },
    groups: [],
    data: "hällo",
    trigger: { type: "websocket", path: "/chat/:room" },
  });
  assert.deepEqual([second!.data_base64, second!.data], ["AP8=", undefined]);
});

Deno.test("connect gets the request, and says groups, context and a first message", async () => {
  await using it = await onPort();
  const events: JsonObject[] = [];
  it.offer("chat::join", (payload) => {
    events.push(payload as JsonObject);
    return { groups: ["r", "r", "all"], context: { user: "ada" }, data: { welcome: 1 } };
  });
  it.offer("chat::left", (payload) => void events.push(payload as JsonObject));
  await it.serve("/chat", (payload) => void events.push(payload as JsonObject), {
    connect_function_id: "chat::join",
    close_function_id: "chat::left",
    subprotocols: ["v2", "v1"],
  });

  using client = await it.connect("/chat?name=Ada", { "Sec-WebSocket-Protocol": "x, v1, v2" });
  assert.match(client.head, /sec-websocket-protocol: v2/i);
  assert.equal(await client.nextText(), '{"welcome":1}');
  await client.text("hi");
  await until(() => events.length === 2);
  await client.close(4001, "bye");
  await until(() => events.length === 3);

  const [connect, message, close] = events;
  assert.equal(connect!.event, "connect");
  assert.deepEqual(connect!.query_params, { name: "Ada" });
  assert.equal((connect!.headers as JsonObject).upgrade, "websocket");
  assert.equal(connect!.subprotocol, "v2");
  assert.deepEqual([message!.context, message!.groups], [{ user: "ada" }, ["r", "all"]]);
  const { event, code, reason, context, groups } = close!;
  assert.deepEqual({ event, code, reason, context, groups }, {
    event: "close",
    code: 4001,
    reason: "bye",
    context: { user: "ada" },
    groups: ["r", "all"],
  });
  assert.equal(new Set(events.map(({ connection_id }) => connection_id)).size, 1);
  assert.deepEqual(await it.connections(), []);
});

Deno.test("connect refuses with a status, an error or what cannot be understood, before the upgrade", async () => {
  await using it = await onPort();
  let answer: () => unknown = () => undefined;
  let closes = 0;
  it.offer("chat::join", () => answer() as Json);
  it.offer("chat::left", () => void closes++);
  await it.serve("/chat", () => {}, {
    connect_function_id: "chat::join",
    close_function_id: "chat::left",
  });
  const answers: [() => unknown, number][] = [
    [() => ({ status_code: 401, body: { why: "no" }, headers: { "x-a": "b" } }), 401],
    [() => ({ status_code: 302, headers: { location: "/login" } }), 302],
    [() => {
      throw new EngineError("banned", "You are banned", { details: { status_code: 403 } });
    }, 403],
    [() => {
      throw new Error("broken");
    }, 500],
    [() => ({ status_code: 200 }), 500],
    [() => false, 500],
    [() => "yes", 500],
    [() => [], 500],
    [() => ({ group: "typo" }), 500],
    [() => ({ groups: "all" }), 500],
    [() => ({ groups: [""] }), 500],
    [() => ({ groups: Array.from({ length: 101 }, (_, i) => `g${i}`) }), 500],
    [() => ({ context: [] }), 500],
    [() => ({ context: { large: "x".repeat(16 * 1024) } }), 500],
    [() => ({}), 101],
    [() => null, 101],
    [() => ({ groups: null, context: null }), 101],
  ];

  for (const [given, status] of answers) {
    answer = given;
    using client = await it.connect("/chat");
    assert.equal(client.status, status, given.toString());
    if (status === 401) assert.match(client.head, /x-a: b/);
    if (status === 101) await client.close(1000);
  }
  await until(() => closes === 3);
});

Deno.test("Messages of one connection are handled one after another, those of others meanwhile", async () => {
  await using it = await onPort();
  const begun: string[] = [];
  const release: Record<string, () => void> = {};
  await it.serve("/", async (payload) => {
    const { data } = payload as { data: string };
    begun.push(data);
    await new Promise<void>((resolve) => release[data] = resolve);
    return data;
  });
  using one = await it.connect("/");
  using other = await it.connect("/");

  await one.text("a");
  await one.text("b");
  await other.text("c");
  await until(() => begun.length === 2);
  assert.deepEqual(begun.toSorted(), ["a", "c"]);
  release.c!();
  assert.equal(await other.nextText(), "c");
  release.a!();
  assert.equal(await one.nextText(), "a");
  await until(() => release.b !== undefined);
  release.b!();
  assert.equal(await one.nextText(), "b");
});

Deno.test("While a function runs few messages are read, and none is lost", async () => {
  await using it = await onPort();
  let count = 0;
  let release = (): void => {};
  const held = new Promise<void>((resolve) => release = resolve);
  const order: number[] = [];
  await it.serve("/", async (payload) => {
    const { data } = payload as { data: string };
    order.push(Number(data));
    if (count++ === 0) await held;
  });
  using client = await it.connect("/");

  for (let i = 0; i < 500; i++) await client.text(`${i}`);
  await until(() => count === 1);
  release();
  await until(() => order.length === 500);
  assert.deepEqual(order, Array.from({ length: 500 }, (_, i) => i));
});

Deno.test("websocket::send reaches a connection, a group or a route, in text, JSON and bytes", async () => {
  await using it = await onPort();
  it.offer("chat::join", (payload) => {
    const { path_params } = payload as { path_params: { room: string } };
    return { groups: [`room:${path_params.room}`] };
  });
  await it.serve("/chat/:room", () => {}, { connect_function_id: "chat::join" });
  await it.serve("/other", () => {});
  using a = await it.connect("/chat/a");
  using a2 = await it.connect("/chat/a");
  using b = await it.connect("/chat/b");
  using other = await it.connect("/other");
  await until(async () => (await it.connections()).length === 4);
  const ids = (await it.connections()).map(({ connection_id }) => connection_id as string);
  const send = (payload: JsonObject) => it.call("send", payload);

  assert.deepEqual(await send({ connection_id: ids[0]!, data: "one" }), { reached: 1, closed: 0 });
  assert.deepEqual(await send({ group: "room:a", data: { n: 1 }, except: ids[1]! }), {
    reached: 1,
    closed: 0,
  });
  assert.deepEqual(await send({ api_path: "/chat/:room", data: null }), { reached: 3, closed: 0 });
  assert.deepEqual(await send({ api_path: "chat/:room", data_base64: "AP8=", except: [ids[1]!] }), {
    reached: 2,
    closed: 0,
  });
  assert.deepEqual(await send({ group: "none", data: "" }), { reached: 0, closed: 0 });
  assert.deepEqual(await send({ api_path: "/none", data: 5 }), { reached: 0, closed: 0 });

  for (const text of ["one", '{"n":1}', "null"]) assert.equal(await a.nextText(), text);
  assert.deepEqual([...(await a.next())!.payload], [0, 255]);
  assert.equal(await a2.nextText(), "null");
  assert.equal(await b.nextText(), "null");
  assert.deepEqual((await b.next())!.opcode, 2);
  await send({ connection_id: ids[3]!, data: "last" });
  assert.equal(await other.nextText(), "last");
});

Deno.test("websocket::* refuses what cannot be meant", async () => {
  await using it = await onPort();
  await it.serve("/", () => {});
  using _client = await it.connect("/");
  await until(async () => (await it.connections()).length === 1);
  const [{ connection_id }] = await it.connections() as [{ connection_id: string }];
  const wrong: [string, JsonObject, string][] = [
    ["send", {}, "INVALID_ARGUMENTS"],
    ["send", { connection_id }, "INVALID_ARGUMENTS"],
    ["send", { connection_id, data: 1, data_base64: "" }, "INVALID_ARGUMENTS"],
    ["send", { connection_id, group: "g", data: 1 }, "INVALID_ARGUMENTS"],
    ["send", { connection_id, data_base64: "%" }, "INVALID_ARGUMENTS"],
    ["send", { connection_id, data_base64: 5 }, "deserialization_error"],
    ["send", { connection_id: 5, data: 1 }, "deserialization_error"],
    ["send", { group: "x".repeat(257), data: 1 }, "deserialization_error"],
    ["send", { group: "g", data: 1, except: Array(1_001).fill("x") }, "deserialization_error"],
    ["send", { connection_id: "gone", data: 1 }, "connection_not_found"],
    ["send", { connection_id, data: "x".repeat(16 * 1024 * 1024 + 1) }, "INVALID_ARGUMENTS"],
    ["close", { connection_id, code: 1005 }, "INVALID_ARGUMENTS"],
    ["close", { connection_id, code: 1006 }, "INVALID_ARGUMENTS"],
    ["close", { connection_id, code: 999 }, "INVALID_ARGUMENTS"],
    ["close", { connection_id, code: 5000 }, "INVALID_ARGUMENTS"],
    ["close", { connection_id, code: 1000.5 }, "deserialization_error"],
    ["close", { connection_id, reason: "ü".repeat(62) }, "INVALID_ARGUMENTS"],
    ["close", {}, "INVALID_ARGUMENTS"],
    ["join", { connection_id }, "deserialization_error"],
    ["join", { connection_id, group: "" }, "deserialization_error"],
    ["join", { connection_id: "gone", group: "g" }, "connection_not_found"],
    ["leave", { connection_id: "gone", group: "g" }, "connection_not_found"],
    ["connections", { limit: 0 }, "deserialization_error"],
    ["connections", { limit: 1_001 }, "deserialization_error"],
    ["connections", { cursor: "x" }, "deserialization_error"],
    ["connections", { group: "g", api_path: "/" }, "INVALID_ARGUMENTS"],
  ];

  for (const [name, payload, code] of wrong) {
    await assert.rejects(it.call(name, payload), { code }, JSON.stringify(payload).slice(0, 80));
  }
  assert.equal((await it.connections()).length, 1);
});

Deno.test("A connection joins and leaves groups, up to 100, and is in none when it has ended", async () => {
  await using it = await onPort();
  await it.serve("/", () => {});
  using client = await it.connect("/");
  await until(async () => (await it.connections()).length === 1);
  const [{ connection_id }] = await it.connections() as [{ connection_id: string }];
  const join = (group: string) => it.call("join", { connection_id, group });

  assert.deepEqual(await join("a"), { joined: true, groups: ["a"] });
  assert.deepEqual(await join("a"), { joined: false, groups: ["a"] });
  assert.deepEqual(await it.call("leave", { connection_id, group: "b" }), {
    left: false,
    groups: ["a"],
  });
  for (let i = 0; i < 10_000; i++) {
    const group = `g${i}`;
    if (i < 99) await join(group);
    else if (i < 110) await assert.rejects(join(group), { code: "overloaded" });
  }
  assert.equal((await it.call("routes")).groups, 100);
  assert.deepEqual((await it.call("leave", { connection_id, group: "a" })).left, true);
  await client.close(1000);
  await until(async () => (await it.call("routes")).connections === 0);
  assert.equal((await it.call("routes")).groups, 0);
});

Deno.test("A function that fails ends the connection with 1011, or with a code that it says", async () => {
  await using it = await onPort();
  const closes: JsonObject[] = [];
  it.offer("left", (payload) => void closes.push(payload as JsonObject));
  await it.serve("/", (payload) => {
    const { data } = payload as { data: string };
    if (data === "code") {
      throw new EngineError("rude", "Mind your words", { details: { close_code: 4003 } });
    }
    if (data === "bad code") {
      throw new EngineError("rude", "x", { details: { close_code: 1006 } });
    }
    throw new Error("secret text");
  }, { close_function_id: "left" });

  for (
    const [data, code, reason] of [["a", 1011, /failed/], ["code", 4003, /Mind/], [
      "bad code",
      1011,
      /failed/,
    ]] as const
  ) {
    using client = await it.connect("/");
    await client.text(data);
    await client.text("dropped");
    const close = await client.nextClose();
    assert.equal(close?.code, code);
    assert.match(close!.reason, reason);
    assert.ok(!close!.reason.includes("secret"));
  }
  await until(() => closes.length === 3);
  assert.deepEqual(closes.map(({ code }) => code), [1011, 4003, 1011]);
  const logged = it.local.lines.find(({ text }) => text.includes("could not be handled"))!;
  assert.equal(logged.fields.problem, "secret text");
});

Deno.test("Messages wait for a worker that starts anew, and its clients stay connected", async () => {
  await using it = await onPort();
  const trigger = await it.serve("/chat", () => "old");
  using client = await it.connect("/chat");
  await client.text("1");
  assert.equal(await client.nextText(), "old");

  trigger.unregister();
  await it.local.settle();
  using refused = await it.connect("/chat");
  assert.equal(refused.status, 404);
  await client.text("2");
  const successor = await it.local.connect("successor");
  successor.registerTrigger({
    type: "websocket",
    function_id: "chat::new",
    config: { api_path: "chat" },
  });
  await it.local.settle();
  successor.registerFunction("chat::new", () => "new");

  assert.equal(await client.nextText(), "new");
});

Deno.test("Every wrong upgrade is refused with a status that says why", async () => {
  await using it = await onPort();
  await it.serve("/ws", () => {});
  const cases: [string, Record<string, string>, number][] = [
    ["another version", { "Sec-WebSocket-Version": "8" }, 426],
    ["a short key", { "Sec-WebSocket-Key": "abc" }, 400],
    ["no Connection: Upgrade", { "Connection": "keep-alive" }, 400],
    ["a body", { "Content-Length": "5" }, 400],
    ["a page of another origin", { Origin: "https://evil.example" }, 403],
    ["a page without an origin", { Origin: "null" }, 403],
    ["another host", { Host: "evil.example" }, 403],
    ["a page of this machine", { Origin: "http://localhost:5173" }, 101],
    ["a subprotocol with a header in it", { "Sec-WebSocket-Protocol": "a, b\t c" }, 101],
  ];

  for (const [what, headers, status] of cases) {
    using client = await it.connect("/ws", headers);
    assert.equal(client.status, status, what);
    assert.ok(!/sec-websocket-protocol/i.test(client.head), what);
    if (status === 426) assert.match(client.head, /sec-websocket-version: 13/i);
  }
  for (const without of ["Sec-WebSocket-Key", "Sec-WebSocket-Version"]) {
    using client = await RawWsClient.connect(it.port, { path: "/ws", without: [without] });
    assert.equal(client.status, without.endsWith("Key") ? 400 : 426);
  }
  const plain = await fetch(`http://127.0.0.1:${it.port}/ws`);
  assert.deepEqual([plain.status, plain.headers.get("upgrade")], [426, "websocket"]);
  await plain.body?.cancel();
  using missing = await it.connect("/none");
  assert.equal(missing.status, 404);
});

Deno.test("Origins, tokens, middleware and conditions guard an upgrade as a request", async () => {
  await using it = await onPort({ middleware: [{ function_id: "global" }] });
  let allows = true;
  it.offer("global", () => ({ action: "continue", context: { from: "global" } }));
  it.offer("guard", (payload) => {
    const { headers } = (payload as { request: { headers: Record<string, string> } }).request;
    if (headers["x-user"]) return { action: "continue", context: { user: headers["x-user"] } };
    return { action: "respond", response: { status_code: 401, body: "who?" } };
  });
  it.offer("allowed", (payload) => (payload as JsonObject).event === "connect" && allows);
  await it.serve("/ws", (payload) => (payload as JsonObject).context, {
    auth_token: "secret",
    middleware_function_ids: ["guard"],
    condition_function_id: "allowed",
    allowed_origins: ["https://app.example"],
  });
  const status = async (path: string, headers: Record<string, string>) => {
    using client = await it.connect(path, headers);
    return client.status;
  };

  assert.equal(await status("/ws", { "x-user": "ada" }), 401);
  assert.equal(await status("/ws?token=wrong", { "x-user": "ada" }), 401);
  assert.equal(await status("/ws?token=secret", {}), 401);
  allows = false;
  assert.equal(await status("/ws?token=secret", { "x-user": "ada" }), 422);
  allows = true;
  using client = await it.connect("/ws", {
    Authorization: "Bearer secret",
    Origin: "https://app.example",
    "x-user": "ada",
  });
  await client.text("who am I");
  assert.equal(await client.nextText(), '{"from":"global","user":"ada"}');
});

Deno.test("Frames that RFC 6455 or the route do not allow end the connection", async () => {
  await using it = await onPort();
  const seen: unknown[] = [];
  await it.serve("/", (payload) => void seen.push((payload as JsonObject).data), {
    format: "json",
    max_message_bytes: 1_000,
  });
  const deep = "[".repeat(200) + "]".repeat(200);
  const frames: [string, (client: RawWsClient) => Promise<void>, number][] = [
    ["oversize", (client) => client.text(`"${"x".repeat(1_000)}"`), 1009],
    ["not UTF-8", (client) => client.frame(1, Uint8Array.of(0xff, 0xfe)), 1007],
    ["not JSON", (client) => client.text("{"), 1007],
    ["too deep", (client) => client.text(deep), 1007],
    ["not masked", (client) => client.frame(1, Uint8Array.of(49), { masked: false }), 1002],
    ["a reserved bit", (client) => client.frame(1, Uint8Array.of(49), { reserved: 4 }), 1002],
  ];

  for (const [what, act, code] of frames) {
    using client = await it.connect("/");
    await act(client);
    assert.equal((await client.nextClose())?.code, code, what);
  }
  using client = await it.connect("/");
  await client.text('{"a":[1,null]}');
  await until(() => seen.length === 1);
  assert.deepEqual(seen, [{ a: [1, null] }]);
});

Deno.test("As many connections are accepted as may be, and one client leaves some to others", async () => {
  await using it = await onPort({ websockets_max: 8 });
  await it.serve("/", () => {});
  const clients: RawWsClient[] = [];
  try {
    for (let i = 0; i < 9; i++) clients.push(await it.connect("/"));
    assert.deepEqual(clients.map(({ status }) => status), [...Array(7).fill(101), 503, 503]);
    await clients[0]!.close(1000);
    await until(async () => (await it.connections()).length === 6);
    clients.push(await it.connect("/"));
    assert.equal(clients.at(-1)!.status, 101);
  } finally {
    for (const client of clients) client.destroy();
  }
  await until(async () => (await it.connections()).length === 0);
});

Deno.test("The list has pages, and routes have their number of connections", async () => {
  await using it = await onPort();
  await it.serve("/a/:id", () => {});
  await it.serve("/b", () => {});
  using _a = await it.connect("/a/1");
  using _b = await it.connect("/a/2");
  using _c = await it.connect("/b");
  await until(async () => (await it.connections()).length === 3);

  const first = await it.call("connections", { limit: 2 });
  assert.deepEqual([first.total, (first.connections as Json[]).length], [3, 2]);
  const second = await it.call("connections", { limit: 2, cursor: first.next_cursor! });
  assert.deepEqual([(second.connections as Json[]).length, second.next_cursor], [1, undefined]);
  const ofA = await it.call("connections", { api_path: "/a/:id" });
  const entries = ofA.connections as JsonObject[];
  assert.deepEqual(entries.map(({ path_params }) => path_params), [{ id: "1" }, { id: "2" }]);
  assert.deepEqual(entries[0]!.client, "127.0.0.1");
  assert.deepEqual((await it.call("routes")).routes, [
    { api_path: "/a/:id", function_id: "socket::f1", connections: 2 },
    { api_path: "/b", function_id: "socket::f2", connections: 1 },
  ]);
});

Deno.test("A stopping engine closes with 1001, after the message that is handled, and delivers each close", async () => {
  const it = await onPort();
  const closes: JsonObject[] = [];
  let release = (): void => {};
  const held = new Promise<void>((resolve) => release = resolve);
  let begun = 0;
  it.offer("left", (payload) => void closes.push(payload as JsonObject));
  await it.serve("/", async () => {
    begun++;
    await held;
  }, { close_function_id: "left" });
  using busy = await it.connect("/");
  using idle = await it.connect("/");
  await busy.text("a");
  await until(() => begun === 1);

  const ended = it.end();
  assert.equal((await idle.nextClose())?.code, 1001);
  assert.equal((await busy.nextClose())?.code, 1001);
  await until(() => closes.length === 1);
  release();
  await ended;

  assert.deepEqual(closes.map(({ code }) => code), [1001, 1001]);
  await it[Symbol.asyncDispose]();
});

Deno.test("websocket::close ends a connection with its code, and close is delivered once", async () => {
  await using it = await onPort();
  const closes: JsonObject[] = [];
  it.offer("left", (payload) => void closes.push(payload as JsonObject));
  await it.serve("/", () => {}, { close_function_id: "left" });
  using client = await it.connect("/");
  await until(async () => (await it.connections()).length === 1);
  const [{ connection_id }] = await it.connections() as [{ connection_id: string }];

  assert.deepEqual(await it.call("close", { connection_id, code: 4000, reason: "kicked" }), {
    closed: 1,
  });
  assert.deepEqual(await client.nextClose(), { code: 4000, reason: "kicked" });
  await client.close(4000);
  await until(() => closes.length === 1);
  const { code, reason } = closes[0]!;
  assert.deepEqual({ code, reason }, { code: 4000, reason: "kicked" });
  await assert.rejects(it.call("close", { connection_id }), { code: "connection_not_found" });
  await it.local.settle();
  assert.equal(closes.length, 1);
});

Deno.test("A trigger that cannot be is refused with every problem", async () => {
  await using it = await onPort();
  const register = async (config: JsonObject) => {
    it.local.lines.length = 0;
    await it.serve("x", () => {}, config);
    return it.local.lines.map(({ text }) => text).join();
  };

  for (
    const [config, problem] of [
      [{ subprotocols: ["a\r\nx: y"] }, "config.subprotocols[0]: expected a token"],
      [{ subprotocols: ["a, b"] }, "config.subprotocols[0]"],
      [{ max_message_bytes: 0 }, "config.max_message_bytes"],
      [{ max_message_bytes: 2 ** 30 }, "config.max_message_bytes"],
      [{ format: "json", max_message_bytes: 2 ** 21 }, "messages of format json"],
      [{ format: "xml" }, "config.format"],
      [{ idle_timeout_ms: 10 }, "config.idle_timeout_ms"],
      [{ allowed_origins: "*" }, "config.allowed_origins"],
      [{ api_path: 5 }, "config.api_path"],
      [{ api_path: "/a b" }, "api_path"],
    ] as [JsonObject, string][]
  ) {
    const text = await register(config);
    assert.ok(text.includes(problem), `${JSON.stringify(config)}: ${text}`);
  }
});

Deno.test("A stopping engine waits until clients have its close frame, and not for one that is silent", async () => {
  const it = await onPort();
  await it.serve("/", () => {});
  using client = await it.connect("/");
  using silent = await it.connect("/");

  const ended = it.end();
  assert.equal((await client.nextClose())?.code, 1001);
  await client.close(1001);
  await ended;

  assert.equal((await silent.nextClose())?.code, 1001);
  assert.equal(await silent.next(), undefined);
  await it[Symbol.asyncDispose]();
});

Deno.test("The tokens of listener and route are both asked for, in the query and the header", async () => {
  await using it = await onPort({ auth_token: "listener" });
  await it.serve("/ws", () => {}, { auth_token: "route" });
  const status = async (path: string, headers: Record<string, string> = {}) => {
    using client = await it.connect(path, headers);
    return client.status;
  };

  assert.equal(await status("/ws?token=listener", { Authorization: "Bearer route" }), 101);
  assert.equal(await status("/ws?token=route", { Authorization: "Bearer listener" }), 101);
  assert.equal(await status("/ws?token=listener"), 401);
  assert.equal(await status("/ws", { Authorization: "Bearer route" }), 401);
});

Deno.test("A path serves requests and WebSockets, each by its trigger", async () => {
  await using it = await onPort();
  it.offer("page", () => "a page");
  it.worker.registerTrigger({ type: "http", function_id: "page", config: { api_path: "/both" } });
  await it.serve("/both", () => "a message");

  using client = await it.connect("/both");
  await client.text("x");
  assert.equal(await client.nextText(), "a message");
  assert.equal(await (await fetch(`http://127.0.0.1:${it.port}/both`)).text(), "a page");
  const post = await fetch(`http://127.0.0.1:${it.port}/both`, { method: "POST" });
  await post.body?.cancel();
  assert.equal(post.status, 405);
});

Deno.test("What a client sends while connect still runs is delivered after it", async () => {
  await using it = await onPort();
  let release = (): void => {};
  const held = new Promise<void>((resolve) => release = resolve);
  let isAsked = false;
  it.offer("slow", async () => {
    isAsked = true;
    await held;
  });
  await it.serve("/", (payload) => (payload as JsonObject).data, { connect_function_id: "slow" });

  const connecting = RawWsClient.connect(it.port, {
    behind: encodeFrame(OP.text, new TextEncoder().encode("early")),
  });
  await until(() => isAsked);
  release();

  using client = await connecting;
  assert.equal(await client.nextText(), "early");
});

Deno.test("A request of HTTP/1.0 has no upgrade", async () => {
  await using it = await onPort();
  await it.serve("/", () => {});
  const lines = [
    "GET / HTTP/1.0",
    "Host: localhost",
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];

  using client = await RawWsClient.open({ port: it.port }, [
    new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`),
  ]);

  assert.equal(client.status, 426);
});

Deno.test("A route whose worker has left and comes back is answered with 503", async () => {
  const absenceOf = () => ({ reason: "worker chat is down", worker: "chat" });
  await using it = await onPort({}, { absenceOf });
  await it.serve("/chat", () => ({}));

  await it.worker.shutdown();
  await it.local.settle();
  using client = await it.connect("/chat");

  assert.equal(client.status, 503);
});
