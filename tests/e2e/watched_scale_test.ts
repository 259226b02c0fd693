/**
 * Workers that come and go cost the same each, also when everybody watches: `engine-observability`
 * runs, and somebody hears what a console hears.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { engine } from "../../workers/engine/mod.ts";
import { FakeConnection, type FakePeer, fakePeer } from "../fakes/fake_connection.ts";
import { observe, type Observed } from "../fakes/local_engine.ts";

/** How much longer one worker may take among ten times as many; a search takes ten times. */
const ROOM = 4;
/** What a console's pages of functions, workers and triggers are asked anew by. */
const WATCHED = [
  "engine::functions-available",
  "engine::workers-available",
  "engine::triggers-available",
];

/** Hears everything; the result counts it by type. */
function watch(worker: Worker): ReadonlyMap<string, number> {
  const heard = new Map(WATCHED.map((type) => [type, 0]));
  WATCHED.forEach((type, i) => {
    const function_id = `watch::heard${i}`;
    worker.registerFunction(function_id, () => void heard.set(type, heard.get(type)! + 1));
    worker.registerTrigger({ type, function_id, config: {} });
  });
  return heard;
}

/** A worker with a function and a trigger of its own. */
function join({ local: { router } }: Observed, i: number): FakePeer {
  const peer = { address: "127.0.0.1", launch_id: null, builtin: null };
  const connection = new FakeConnection(`line ${i}`);
  const line = fakePeer(connection, router.open(connection, peer));
  line.say({ type: "registerfunction", id: `crowd${i}::f` });
  const config: Json = { every: i };
  const [trigger_type, function_id] = ["tick", `crowd${i}::f`];
  line.say({ type: "registertrigger", id: `t${i}`, trigger_type, function_id, config });
  connection.take();
  return line;
}

/** Milliseconds for each of so many workers to come, be told of, go and be told of. */
async function lifeOf(size: number): Promise<{ each: number; heard: Record<string, number> }> {
  await using it = await observe();
  await it.local.start(engine);
  it.worker.registerTriggerType({ id: "tick", description: "Ticks" }, {
    registerTrigger: () => {},
    unregisterTrigger: () => {},
  });
  const heard = watch(it.worker);
  await it.pass(1_000);
  const before = new Map(heard);

  const began = performance.now();
  const lines = Array.from({ length: size }, (_, i) => join(it, i));
  await it.pass(1_000);
  for (const line of lines) line.cut();
  await it.pass(1_000);
  const each = (performance.now() - began) / size;

  return {
    each,
    heard: Object.fromEntries(WATCHED.map((type) => [type, heard.get(type)! - before.get(type)!])),
  };
}

Deno.test("with everybody watching, a worker comes and goes as fast among thousands", async () => {
  let [least, most] = [Infinity, Infinity];
  for (let round = 0; round < 3; round++) {
    least = Math.min(least, (await lifeOf(500)).each);
    most = Math.min(most, (await lifeOf(5_000)).each);
  }

  assert.ok(most < least * ROOM, `${most} ms each among 5,000, ${least} among 500`);
});

Deno.test("a crowd that comes and goes is told in heaps, but for who came", async () => {
  const { heard } = await lifeOf(1_000);

  assert.deepEqual(heard, {
    "engine::functions-available": 2,
    "engine::workers-available": 2_000,
    "engine::triggers-available": 2,
  });
});
