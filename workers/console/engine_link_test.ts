/**
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConsoleWorker } from "../../tests/fakes/fake_console_worker.ts";
import { EngineLink } from "./engine_link.ts";

function setup() {
  const clock = new FakeClock();
  const worker = new FakeConsoleWorker();
  return { clock, worker, link: new EngineLink(worker, clock) };
}

Deno.test("EngineLink tells whenever the engine goes and comes, and since when", () => {
  const { clock, worker, link } = setup();
  const heard: [boolean, number][] = [];
  const began = clock.wall();
  link.listen((connected) => void heard.push([connected, link.sinceMs - began]));

  clock.tick(10);
  worker.become("reconnecting");
  clock.tick(10);
  worker.become("connecting");
  clock.tick(10);
  worker.become("connected");

  assert.deepEqual(heard, [[false, 10], [true, 30]]);
});

Deno.test("EngineLink.call() fails at once while there is no line", async () => {
  const { worker, link } = setup();
  worker.functions["a::b"] = () => 1;
  assert.equal(await link.call({ function_id: "a::b" }), 1);

  worker.become("reconnecting");

  await assert.rejects(link.call({ function_id: "a::b" }), {
    code: "engine_unreachable",
    message: "The engine cannot be reached now, and a::b was not called",
  });
  assert.equal(worker.calls.length, 1);
});

Deno.test("EngineLink.stop() listens no more, and nobody hears of it", () => {
  const { worker, link } = setup();
  let heard = 0;
  link.listen(() => void heard++);

  link.stop();
  worker.become("reconnecting");

  assert.deepEqual([heard, worker.listeners], [0, 0]);
});

Deno.test("EngineLink lets a listener stop to listen", () => {
  const { worker, link } = setup();
  let heard = 0;
  const stop = link.listen(() => void heard++);

  worker.become("reconnecting");
  stop();
  worker.become("connected");

  assert.equal(heard, 1);
});
