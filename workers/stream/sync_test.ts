import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { fakeStreams } from "../../tests/fakes/stream_subscriber.ts";
import { READS_MAX } from "./sync.ts";

const eventIn = (message: JsonObject | undefined): JsonObject => message?.event as JsonObject;

Deno.test("subscribers who wait for the same group share one read, made after they came", async () => {
  await using at = await fakeStreams();
  const reads: PromiseWithResolvers<Json>[] = [];
  at.worker.registerFunction("stream::list(chat)", () => {
    reads.push(Promise.withResolvers<Json>());
    return reads.at(-1)!.promise;
  });
  await at.engine.settle();
  const busy = Array.from({ length: READS_MAX }, (_, i) => ({ one: at.connect(), group: `b${i}` }));
  for (const { one, group } of busy) await one.join("s", { groupId: group });
  assert.equal(reads.length, READS_MAX);
  const waiting = Array.from({ length: 20 }, () => at.connect());
  for (const one of waiting) await one.join("s", {});
  assert.equal(reads.length, READS_MAX);

  for (const read of reads.splice(0)) read.resolve([]);
  await at.engine.settle();
  assert.equal(reads.length, 1);
  reads[0]!.resolve(["now"]);
  await at.engine.settle();

  for (const one of waiting) assert.deepEqual(eventIn(one.heard()[0]).data, ["now"]);
});

Deno.test("a group that is too large, or cannot be read, is an error of the subscription", async () => {
  await using at = await fakeStreams();
  for (const i of [1, 2]) {
    const place = { stream_name: "chat", group_id: "large", item_id: `i${i}` };
    await at.call("set", { ...place, data: "x".repeat(9 * 1024 * 1024) });
  }
  at.worker.registerFunction("stream::list(broken)", () => {
    throw new Error("the database is away");
  });
  await at.engine.settle();
  const one = at.connect();

  const [large] = await one.join("a", { groupId: "large" });
  const [broken] = await one.join("b", { streamName: "broken" });

  for (const [message, id, text] of [[large, "a", /more than/], [broken, "b", /away/]] as const) {
    const error = message!.error as JsonObject;
    assert.deepEqual([message!.subscriptionId, error.code], [id, "STREAM_LIST_ERROR"]);
    assert.match(error.message as string, text);
  }
  assert.equal((await at.stats()).subscriptions, 0);
  assert.equal(one.connection.closing, undefined);
});

Deno.test("an item that a worker keeps is asked of that worker", async () => {
  await using at = await fakeStreams();
  at.worker.registerFunction("stream::get(chat)", ({ item_id }: JsonObject) => `${item_id}!`);
  await at.engine.settle();

  const [message] = await at.connect().join("s", { id: "m7" });

  assert.deepEqual(eventIn(message), { type: "sync", data: "m7!" });
});
