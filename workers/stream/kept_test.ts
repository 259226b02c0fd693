import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FRONT_FUNCTION, serveFronts } from "./kept.ts";

type Run = (payload: Json, metadata: Json, context: unknown) => Json | Promise<Json>;

function setup(engine: string | null = "b") {
  let run: Run | undefined;
  const did: unknown[] = [];
  const feed = {
    heard: (stats: unknown) => did.push(["heard", stats]),
    follow: (group: unknown) => did.push(["follow", group]),
    unfollow: (group: unknown) => did.push(["unfollow", group]),
    end: () => did.push(["end"]),
  };
  const feeds = {
    open: (...args: unknown[]) => did.push(["open", ...args]),
    of: (...args: unknown[]) => (did.push(["of", ...args]), feed),
  };
  const joins = { allows: () => Promise.resolve(true), left: (info: unknown) => did.push(info) };
  serveFronts({
    worker: { registerFunction: (_id: string, handler: Run) => run = handler } as never,
    directory: { worker: () => ({ engine: engine ?? undefined }) } as never,
    feeds: feeds as never,
    joins: joins as never,
    sync: { read: ({ id }) => Promise.resolve(new TextEncoder().encode(`{"of":"${id}"}`)) },
  });
  const context = { caller: "link", function_id: FRONT_FUNCTION };
  return { did, ask: async (payload: Json) => await run!(payload, null, context) };
}

const SESSION = { life: "b", session: "s" };
const group = { stream_name: "chat", group_id: "room" };
const topic = { ...group, id: "é" };

Deno.test("an engine opens a feed, and says what it follows", async () => {
  const { did, ask } = setup();

  await ask({ op: "open", ...SESSION });
  await ask({ op: "follow", ...SESSION, group });
  await ask({ op: "unfollow", ...SESSION, group });
  await ask({ op: "close", ...SESSION });

  const of = ["of", "b", "s"];
  assert.deepEqual(did, [["open", "b", "s"], of, ["follow", group], of, ["unfollow", group], of, [
    "end",
  ]]);
});

Deno.test("an engine reads topics, and asks who may follow them", async () => {
  const { did, ask } = setup();
  const subscription = { subscription_id: "1", topic, context: { user: "ann" } };

  assert.equal(await ask({ op: "read", topic }), '{"of":"é"}');
  assert.equal(await ask({ op: "join", subscription }), true);
  await ask({ op: "leave", subscriptions: [subscription, subscription] });
  assert.deepEqual(did, [subscription, subscription]);
});

Deno.test("what does not fit, and who is no engine, is refused", async () => {
  const { ask } = setup();
  for (const payload of [null, {}, { op: "other" }, { op: "read" }, { op: "open", life: "" }]) {
    await assert.rejects(ask(payload), { code: "deserialization_error" });
  }
  const stranger = setup(null);
  await assert.rejects(stranger.ask({ op: "read", topic }), { code: "FORBIDDEN" });
});
