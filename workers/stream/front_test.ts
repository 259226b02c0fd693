import assert from "node:assert/strict";
import { ENGINE_NAMESPACE } from "../../engine/ports/directory.ts";
import { localDial } from "../../engine/transport/local_connection.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConnection, fakePeer } from "../../tests/fakes/fake_connection.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { ALIVE_MS } from "./front.ts";
import type { FrontRequest } from "./kept.ts";
import { stream } from "./mod.ts";

const LIFE = "b".repeat(16);

/** The front of an engine, and a keeper of streams that the test plays. */
async function setup() {
  const clock = new FakeClock();
  const linked = [{ life: "keeper", link: {} }];
  const engines = { life: LIFE, log: {}, keeper: "keeper", list: () => linked } as never;
  const engine = new LocalEngine({ clock, engines });
  const front = { ...stream, start: stream.startElsewhere! };
  await engine.start(front, { port: 0 });
  const dial = localDial({
    open: (line) =>
      engine.router.open(line, {
        address: "engine:a",
        launch_id: null,
        builtin: null,
        engine: "a",
      } as never),
  }, "a");
  const keeper = await engine.connect("a", { dial });
  const asked: FrontRequest[] = [];
  const says: Record<string, (request: FrontRequest) => unknown> = {
    read: () => '{"sync":1}',
    join: () => true,
  };
  keeper.registerFunction("stream::front", (request: FrontRequest) => {
    asked.push(request);
    return (says[request.op] ?? (() => null))(request) as Json;
  });
  await engine.settle();
  let connections = 0;
  return {
    clock,
    engine,
    linked,
    asked,
    says,
    ops: () => asked.splice(0).map(({ op }) => op),
    connect() {
      const accepted = engine.sockets.get("/stream")!.accept({
        path: "/stream",
        query: new URLSearchParams(),
        headers: new Headers(),
        address: "127.0.0.1",
      });
      if (typeof accepted !== "function") throw new Error(accepted.message);
      const connection = new FakeConnection(`c${++connections}`);
      const peer = fakePeer(connection, accepted(connection));
      return {
        connection,
        peer,
        async say(type: "join" | "leave", groupId = "room") {
          const data = { subscriptionId: groupId, streamName: "chat", groupId };
          peer.say({ type, data });
          for (let i = 0; i < 5; i++) await engine.settle();
        },
      };
    },
    /** A batch of events from the keeper. */
    async give(session: string, number: number, ...events: Json[]) {
      const called = keeper.trigger<Json, Json>({
        function_id: "stream::events",
        namespace: ENGINE_NAMESPACE + LIFE,
        payload: { session, number, events },
      });
      const outcome = called.then(() => "taken", (thrown: EngineError) => thrown.code);
      await engine.settle();
      return await outcome;
    },
    sessionOf: () => (asked.find(({ op }) => op === "open") as JsonObject).session as string,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

Deno.test("many subscribers of a group are one follower, who asks for events first", async () => {
  await using at = await setup();
  const all = [at.connect(), at.connect()];
  for (const one of all) await one.say("join");

  assert.deepEqual(at.asked.map(({ op }) => op), [
    "join",
    "open",
    "follow",
    "read",
    "join",
    "read",
  ]);
  const session = at.sessionOf();
  assert.equal(await at.give(session, 0, ["chat", "room", "i", '{"e":1}']), "taken");
  assert.equal(await at.give(session, 0, ["chat", "room", "i", '{"e":1}']), "taken"); // Again.
  assert.equal(await at.give(session, 1, ["chat", "other", "i", '{"e":2}']), "taken");
  for (const { connection } of all) {
    assert.deepEqual(connection.takeTexts(), ['{"sync":1}', '{"e":1}']);
  }

  at.ops();
  await all[0]!.say("leave");
  assert.deepEqual(at.ops(), ["leave"]);
  await all[1]!.say("leave");
  assert.deepEqual(at.ops().sort(), ["leave", "unfollow"]);
});

Deno.test("the engine that keeps the streams decides who may follow", async () => {
  await using at = await setup();
  at.says.join = () => false;
  const one = at.connect();
  await one.say("join");

  const [text] = one.connection.takeTexts();
  assert.deepEqual(JSON.parse(text!).event, { type: "unauthorized" });
  assert.deepEqual(at.ops(), ["join"]);
});

Deno.test("a batch that is missing closes all clients, and what they follow anew is whole", async () => {
  await using at = await setup();
  const one = at.connect();
  await one.say("join");
  const session = at.sessionOf();

  assert.equal(await at.give(session, 1, ["chat", "room", "i", "late"]), "NOT_FOUND");
  assert.equal(one.connection.closing?.code, 1013);
  at.asked.length = 0;
  const again = at.connect();
  await again.say("join");
  assert.notEqual(at.sessionOf(), session);
  assert.equal(await at.give(session, 0, ["chat", "room", "i", "old"]), "NOT_FOUND");
  assert.equal(await at.give(at.sessionOf(), 0, ["chat", "room", "i", "new"]), "taken");
  assert.deepEqual(again.connection.takeTexts(), ['{"sync":1}', "new"]);
});

Deno.test("clients begin anew when the engine that keeps the streams has changed", async () => {
  await using at = await setup();
  const one = at.connect();
  await one.say("join");
  at.clock.tick(ALIVE_MS);
  await at.engine.settle();
  assert.equal(at.asked.at(-1)!.op, "alive");
  assert.equal(one.connection.closing, undefined);

  at.says.alive = () => {
    throw new EngineError("NOT_FOUND", "The feed has ended");
  };
  const other = at.connect();
  await other.say("join");
  at.clock.tick(ALIVE_MS);
  for (let i = 0; i < 5; i++) await at.engine.settle();

  const leaves = at.asked.filter((request) => request.op === "leave");
  assert.deepEqual(leaves.map(({ subscriptions }) => subscriptions.length), [2]);
  const { closing } = one.connection as { closing?: { code: number; reason: string } };
  assert.equal(closing?.code, 1013);
  assert.match(closing!.reason, /has changed; connect again/);
});

Deno.test("clients begin anew when the engine that keeps the streams cannot be reached", async () => {
  await using at = await setup();
  const one = at.connect();
  await one.say("join");
  at.linked.pop();
  at.ops();

  at.clock.tick(ALIVE_MS);

  assert.equal((one.connection as { closing?: { code: number } }).closing?.code, 1013);
  await at.engine.settle();
  assert.ok(!at.ops().includes("alive"));
});

Deno.test("clients begin anew at once when the feed cannot be opened, as its keeper is gone", async () => {
  await using at = await setup();
  const one = at.connect();
  at.says.open = () => {
    throw new EngineError("store_unavailable", "The keeper has changed");
  };
  await one.say("join");

  assert.equal((one.connection as { closing?: { code: number } }).closing?.code, 1013);
  delete at.says.open;
  const again = at.connect();
  await again.say("join");
  assert.deepEqual(again.connection.takeTexts(), ['{"sync":1}']);
});

Deno.test("an error of a group is that of its subscription alone", async () => {
  await using at = await setup();
  const one = at.connect();
  at.says.read = () => {
    throw new EngineError("STREAM_LIST_ERROR", "Too large");
  };
  await one.say("join");

  const [text] = one.connection.takeTexts();
  assert.equal(JSON.parse(text!).error.code, "STREAM_LIST_ERROR");
  assert.equal(one.connection.closing, undefined);
});

Deno.test("only engines give events", async () => {
  await using at = await setup();
  const worker = await at.engine.connect("w");
  const called = worker.trigger({
    function_id: "stream::events",
    namespace: ENGINE_NAMESPACE + LIFE,
    payload: { session: "s", number: 0, events: [] },
  });
  const outcome = called.then(() => "taken", (thrown: EngineError) => thrown.code);
  await at.engine.settle();
  assert.equal(await outcome, "FORBIDDEN");
});
