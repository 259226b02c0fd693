import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

const STREAMS = [{ id: "chat", groups: ["room-1", "room-2"] }, { id: "news", groups: ["eu"] }];
const PLACE = { stream_name: "chat", group_id: "room-1", item_id: "m7" };
const GROUP = { stream_name: "chat", group_id: "room-1" };

type Answers = Record<string, (payload: JsonObject) => Json | undefined>;

function setup(answers: Answers = {}, options: { input?: string; files?: object } = {}) {
  const all: Answers = { list_all: () => ({ stream: STREAMS, count: 2 }), ...answers };
  const functions = Object.fromEntries(
    Object.entries(all).map(([name, answer]) => [`stream::${name}`, answer]),
  );
  return new FakeTerminal({ functions: functions as never, ...options as object });
}

const payloads = (terminal: FakeTerminal): Json[] =>
  terminal.calls.filter(({ function_id }) => function_id !== "stream::list_all")
    .map(({ payload }) => payload);

Deno.test("stream list has all pages, and a stream that goes on in the next one once", async () => {
  const terminal = setup({
    list_all: ({ cursor }) =>
      cursor === undefined
        ? { stream: [STREAMS[0]!], count: 1, cursor: "chat\0room-2" }
        : { stream: [{ id: "chat", groups: ["room-3"] }, STREAMS[1]!], count: 2 },
  });

  assert.equal(await terminal.run("stream", "list", "--json"), 0);

  assert.deepEqual(JSON.parse(terminal.outLines.join("\n")), [
    { id: "chat", groups: ["room-1", "room-2", "room-3"] },
    STREAMS[1],
  ]);
});

Deno.test("stream list shows streams, groups, and items with their ids", async () => {
  const terminal = setup({
    list_groups: () => ["room-1", "room-2"],
    list_items: () => ({ items: [{ id: "m7", data: { text: "hi" } }], cursor: "m7" }),
  });

  for (const words of [[], ["chat"], ["chat", "room-1", "--limit", "1"], ["chat", "--json"]]) {
    assert.equal(await terminal.run("stream", "list", ...words), 0);
  }

  assert.deepEqual(terminal.outLines, [
    "STREAM  GROUPS",
    "chat    2",
    "news    1",
    "GROUP",
    "room-1",
    "room-2",
    "ITEM  DATA",
    'm7    {"text":"hi"}',
    '["room-1","room-2"]',
  ]);
  assert.deepEqual(terminal.errLines, ["The first 1; more with --limit"]);
  assert.deepEqual(payloads(terminal)[1], { ...GROUP, limit: 1 });
});

Deno.test("stream set stores members or the whole item, get and delete print it", async () => {
  const terminal = setup({
    set: ({ data }) => ({ old_value: null, new_value: data! }),
    get: () => ({ text: "hi" }),
    delete: () => ({ old_value: { text: "hi" } }),
  }, { files: { "item.json": '{"n":1}' } });
  const at = ["chat", "room-1", "m7"];

  assert.equal(await terminal.run("stream", "set", ...at, "text=hi", "--ttl-ms", "60000"), 0);
  assert.equal(await terminal.run("stream", "set", ...at, "--value", "@item.json", "--json"), 0);
  assert.equal(await terminal.run("stream", "get", ...at), 0);
  assert.equal(await terminal.run("stream", "delete", ...at, "--json"), 0);

  assert.deepEqual(payloads(terminal), [
    { ...PLACE, data: { text: "hi" }, ttl_ms: 60_000 },
    { ...PLACE, data: { n: 1 } },
    PLACE,
    PLACE,
  ]);
  assert.deepEqual(terminal.outLines, [
    '{ "old_value": null, "new_value": { "text": "hi" } }',
    '{"old_value":null,"new_value":{"n":1}}',
    '{ "text": "hi" }',
    '{"text":"hi"}',
  ]);
});

Deno.test("what is not there is said with the nearest that is", async () => {
  const terminal = setup({
    get: () => undefined,
    delete: () => ({ old_value: null }),
    list_groups: () => [],
    list_items: () => ({ items: [] }),
  });
  const said: [code: number, text: string][] = [];
  for (
    const words of [
      ["get", "chta", "room-1", "m7"],
      ["get", "chat", "rom-1", "m7"],
      ["get", "chat", "room-1", "m8"],
      ["delete", "other-thing", "a", "b"],
      ["list", "newz"],
      ["list", "chat", "xyz"],
    ]
  ) {
    const code = await terminal.run("stream", ...words);
    said.push([code, terminal.errLines.at(-1)!]);
  }

  assert.deepEqual(said, [
    [1, "error: No items in stream chta; did you mean chat?"],
    [1, "error: Stream chat has no items in group rom-1; did you mean room-1?"],
    [1, "error: No item m8 in chat / room-1"],
    [1, "error: No items in stream other-thing"],
    [0, "No items in stream newz; did you mean news?"],
    [0, "Stream chat has no items in group xyz"],
  ]);
});

Deno.test("stream set needs an item, and says what is wrong with it", async () => {
  const terminal = setup({ set: () => null });
  const at = ["chat", "room-1", "m7"];
  for (
    const [words, text] of [
      [[], /Missing item/],
      [["--value", "{"], /--value is not JSON/],
      [["--value", "@none.json"], /--value: none\.json cannot be read/],
      [["--value", "[]", "a=1"], /need a --value that is an object/],
      [["a=1", "--ttl-ms", "0"], /--ttl-ms: expected 1 to/],
    ] as const
  ) {
    assert.equal(await terminal.run("stream", "set", ...at, ...words), 2);
    assert.match(terminal.errLines.at(-1)!, text);
  }
  assert.equal(await terminal.run("stream", "lst"), 2);
  assert.match(terminal.errText, /Did you mean list/);
});

Deno.test("stream send sends JSON, text, nothing or standard input", async () => {
  const terminal = setup({ send: () => undefined }, { input: '{"from": "input"}\n' });

  for (const data of [['{"by": "ann"}'], ["hello"], [], ["-", "--id", "m7"]]) {
    assert.equal(await terminal.run("stream", "send", "chat", "room-1", "typing", ...data), 0);
  }

  const event = { ...GROUP, type: "typing" };
  assert.deepEqual(payloads(terminal), [
    { ...event, data: { by: "ann" } },
    { ...event, data: "hello" },
    event,
    { ...event, data: { from: "input" }, id: "m7" },
  ]);
  assert.deepEqual(terminal.outLines, []);
});

const EVENT = { type: "stream", timestamp: 0, streamName: "chat", groupId: "room-1", id: "m7" };

Deno.test("stream follow prints events as they come, until Ctrl-C or so many", async () => {
  const terminal = setup();

  const running = terminal.run("stream", "follow", "chat", "room-1", "m7");
  const { config, hear } = await terminal.subscribed.promise;
  hear({ ...EVENT, event: { type: "create", data: { text: "two\nlines" } } });
  hear({ ...EVENT, id: null, event: { type: "event", event: { type: "typing", data: null } } });
  hear({ ...EVENT, groupId: "a\u001b[2Jb\nc", event: { type: "delete", data: 1 } });
  terminal.interrupt();

  assert.equal(await running, 0);
  assert.deepEqual(config, { stream_name: "chat", group_id: "room-1", item_id: "m7" });
  assert.deepEqual(terminal.outLines, [
    '1970-01-01T00:00:00.000Z room-1 m7 create {"text":"two\\nlines"}',
    "1970-01-01T00:00:00.000Z room-1 event typing null",
    "1970-01-01T00:00:00.000Z ab c m7 delete 1",
  ]);
  assert.deepEqual(terminal.errLines, ["Following chat / room-1 / m7"]);
  assert.deepEqual([terminal.openConnections, terminal.interruptListeners], [0, 0]);
});

Deno.test("stream follow --json prints whole events, and hints at a stream that is spelled alike", async () => {
  const terminal = setup();
  const event = { ...EVENT, event: { type: "update", data: 1 } };

  const running = terminal.run("stream", "follow", "chatt", "--json", "--count", "1");
  const { hear } = await terminal.subscribed.promise;
  hear(event);
  hear(event);

  assert.equal(await running, 0);
  assert.deepEqual(terminal.outLines, [JSON.stringify(event)]);
  assert.deepEqual(terminal.errLines, [
    "Following chatt",
    "No items in stream chatt; did you mean chat?",
  ]);
});

Deno.test("stream follow fails when the connection is lost", async () => {
  const terminal = setup();

  const running = terminal.run("stream", "follow", "chat");
  const { lose } = await terminal.subscribed.promise;
  lose(new Error("the engine is gone"));

  assert.equal(await running, 1);
  assert.match(terminal.errText, /the engine is gone/);
});

Deno.test("stream stats shows clients and subscriptions", async () => {
  const stats = {
    url: "ws://127.0.0.1:3112",
    connections: 2,
    connections_max: 10_000,
    subscriptions: 3,
    events: 12,
    events_sent: 1,
    closed_slow: 0,
    streams: [{ stream_name: "chat", subscriptions: 3, events: 12 }],
  };
  const terminal = new FakeTerminal({ functions: { "engine::stream::stats": () => stats } });

  assert.equal(await terminal.run("stream", "stats"), 0);
  assert.equal(await terminal.run("stream", "stats", "--json"), 0);

  assert.deepEqual(terminal.outLines, [
    "ws://127.0.0.1:3112: 2 of 10000 connections",
    "3 subscriptions, 1 event sent, 0 clients closed for reading too slowly",
    "STREAM  SUBSCRIPTIONS  EVENTS",
    "chat    3              12",
    JSON.stringify(stats),
  ]);
});
