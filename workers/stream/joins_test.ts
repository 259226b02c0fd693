import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { type FakeStreams, fakeStreams } from "../../tests/fakes/stream_subscriber.ts";

const GROUP = { stream_name: "chat", group_id: "room-1" };

/** Runs a function for a trigger type of subscriptions; returns what it gets. */
async function handle(
  { worker, engine }: FakeStreams,
  type: string,
  config: JsonObject = {},
  answer: (payload: JsonObject) => Json | undefined = () => undefined,
): Promise<JsonObject[]> {
  const heard: JsonObject[] = [];
  const function_id = `handle::${crypto.randomUUID()}`;
  worker.registerFunction(function_id, (payload: JsonObject) => {
    heard.push(payload);
    return answer(payload) ?? null;
  });
  worker.registerTrigger({ type, function_id, config });
  await engine.settle();
  return heard;
}

Deno.test("the auth function gets the request, and its context goes to the handlers", async () => {
  await using at = await fakeStreams({ auth_function: "auth" });
  const asked: JsonObject[] = [];
  at.worker.registerFunction("auth", (request: JsonObject) => {
    asked.push(request);
    return { context: { user: "ann" } };
  });
  const joined = await handle(at, "stream:join");
  const left = await handle(at, "stream:leave");

  const one = at.connect({ token: "t" }, { "x-a": "b" });
  await one.join("s", { id: "m7" });
  await one.leave("s");
  await at.engine.settle();

  assert.deepEqual(asked, [{
    headers: { "x-a": "b" },
    path: "/stream",
    query_params: { token: "t" },
    addr: "127.0.0.1",
  }]);
  const info = { subscription_id: "s", ...GROUP, id: "m7", context: { user: "ann" } };
  assert.deepEqual([joined, left], [[info], [info]]);
});

for (
  const [what, answer] of [
    ["says so", () => ({ unauthorized: true })],
    ["returns nothing", () => null],
    ["fails", () => {
      throw new Error("the database is away");
    }],
    ["returns too large a context", () => ({ context: "x".repeat(20_000) })],
  ] as [string, () => Json][]
) {
  Deno.test(`a connection is refused when the auth function ${what}`, async () => {
    await using at = await fakeStreams({ auth_function: "auth" });
    at.worker.registerFunction("auth", answer);
    await at.engine.settle();
    const one = at.connect();

    assert.deepEqual(await one.join("s", {}), []);

    assert.deepEqual(one.connection.closing, { code: 1008, reason: "unauthorized" });
    assert.equal((await at.stats()).connections, 0);
  });
}

Deno.test("a connection is refused when there is no auth function, or it takes too long", async () => {
  await using at = await fakeStreams({ auth_function: "auth", call_timeout_ms: 1_000 });
  const missing = at.connect();
  await at.engine.settle();
  assert.equal(missing.connection.closing?.code, 1008);
  assert.match(at.engine.lines.map(({ text }) => text).join("\n"), /auth function .* failed/);

  at.worker.registerFunction("auth", () => new Promise<Json>(() => {}));
  await at.engine.settle();
  const late = at.connect();
  await at.engine.settle();
  assert.equal((await at.stats()).connections, 1);
  at.clock.tick(1_000);
  await at.engine.settle();

  assert.deepEqual(late.connection.closing, { code: 1008, reason: "unauthorized" });
});

Deno.test("a handler refuses a subscription, also by failing; the connection goes on", async () => {
  await using at = await fakeStreams();
  await handle(at, "stream:join", {}, ({ group_id }) => {
    if (group_id === "broken") throw new Error("no");
    return { unauthorized: group_id === "secret" };
  });
  const left = await handle(at, "stream:leave");
  const one = at.connect();

  const [secret] = await one.join("a", { groupId: "secret" });
  const [broken] = await one.join("b", { groupId: "broken" });
  const [open] = await one.join("c", { groupId: "open" });
  await at.call("set", { stream_name: "chat", group_id: "secret", item_id: "i", data: 1 });

  assert.deepEqual([secret!.groupId, secret!.event], ["secret", { type: "unauthorized" }]);
  assert.deepEqual(broken!.event, { type: "unauthorized" });
  assert.equal((open!.event as JsonObject).type, "sync");
  assert.deepEqual([one.heard(), left], [[], []]);
});

Deno.test("handlers with a condition are called when it holds", async () => {
  await using at = await fakeStreams();
  at.worker.registerFunction("is-vip", ({ group_id }: JsonObject) => group_id === "vip");
  const joined = await handle(at, "stream:join", { condition_function_id: "is-vip" });
  const one = at.connect();

  await one.join("a", { groupId: "vip" });
  await one.join("b", {});

  assert.deepEqual(joined.map(({ group_id }) => group_id), ["vip"]);
});

Deno.test("a connection that ends leaves all that it followed", async () => {
  await using at = await fakeStreams();
  const left = await handle(at, "stream:leave");
  const one = at.connect();
  await one.join("a", {});
  await one.join("b", { groupId: "room-2" });

  one.cut();
  await at.engine.settle();

  assert.deepEqual(left.map(({ subscription_id }) => subscription_id).sort(), ["a", "b"]);
  assert.deepEqual((await at.stats()).streams, []);
});

Deno.test("a subscriber that is gone when it was allowed leaves at once", async () => {
  await using at = await fakeStreams();
  const allow = Promise.withResolvers<void>();
  at.worker.registerFunction("slow", async () => {
    await allow.promise;
    return {};
  });
  at.worker.registerTrigger({ type: "stream:join", function_id: "slow", config: {} });
  const left = await handle(at, "stream:leave");
  const one = at.connect();
  await one.join("a", {});

  one.cut();
  allow.resolve();
  await at.engine.settle();

  assert.deepEqual([left.length, (await at.stats()).subscriptions], [1, 0]);
});

Deno.test("a trigger with another config is refused", async () => {
  await using at = await fakeStreams();
  const errors: string[] = [];
  at.worker.registerFunction("f", () => null);
  at.worker.registerTrigger({
    type: "stream:join",
    function_id: "f",
    config: { condition_function_id: 7 },
  });
  await at.engine.settle();
  errors.push(...at.engine.lines.map(({ text, fields }) => `${text} ${JSON.stringify(fields)}`));

  assert.match(errors.join("\n"), /stream:join trigger does not fit: condition_function_id/);
});

Deno.test("a handler with a stream in its config is asked about that stream only", async () => {
  await using at = await fakeStreams();
  const asked = await handle(at, "stream:join", { stream_name: "news" }, () => {
    throw new Error("the database is away");
  });
  const left = await handle(at, "stream:leave", { stream_name: "chat" });
  const one = at.connect();

  const [first] = await one.join("s", { groupId: "room-1" });
  const [other] = await one.join("t", { streamName: "news" });
  one.cut();
  await at.engine.settle();

  assert.deepEqual([first, other].map((message) => (message!.event as JsonObject).type), [
    "sync",
    "unauthorized",
  ]);
  assert.deepEqual(asked.map(({ stream_name }) => stream_name), ["news"]);
  assert.deepEqual(left.map(({ stream_name }) => stream_name), ["chat"]);
});
